//! A local server that answers as Prime's does, for our tests and for Prime's own program.
//!
//! It keeps state: uploads are stored and checked, evaluations and training runs advance with each request, lists come
//! in pages. It records every request, and it fails where a test asks it to.

mod answer;
mod evaluations;
mod hub;
mod state;
mod training;

use crate::stand_in::Answer;
pub use crate::stand_in::RecordedRequest;
pub use evaluations::{HostedRun, SampleSource};
pub use state::{Failure, SharedTraining, StandInState};
pub use training::TrainingRun;

pub type StandIn = crate::stand_in::StandIn<StandInState>;

impl StandIn {
    /// Base URL of its model API.
    pub fn inference_url(&self) -> String {
        format!("{}/inference/v1", self.base_url())
    }

    /// Environment variables that direct a client to this server.
    pub fn variables(&self) -> [(&'static str, String); 4] {
        [
            ("PRIME_API_KEY", self.with(|state| state.key.clone())),
            ("PRIME_API_BASE_URL", self.base_url()),
            ("PRIME_FRONTEND_URL", self.base_url()),
            ("PRIME_INFERENCE_URL", self.inference_url()),
        ]
    }
}

fn dispatch(state: &mut StandInState, request: &RecordedRequest) -> Answer {
    let segments: Vec<&str> = request.path.trim_start_matches('/').split('/').collect();
    if let ["storage", name] = segments.as_slice() {
        return hub::storage(state, request, name);
    }
    if request.header("authorization") != Some(format!("Bearer {}", state.key).as_str()) {
        return answer::refusal(401, "Invalid or missing API key");
    }
    match (request.method.as_str(), segments.as_slice()) {
        ("GET", ["inference", "v1", "models"]) => Answer::json(&state.models),
        ("GET", ["api", "v1", "user", "whoami"]) => answer::data(&state.user),
        ("GET", ["api", "v1", "user", "teams"]) => Answer::json(&serde_json::json!({"data": []})),
        (method, ["api", "v1", "environmentshub", rest @ ..]) => hub::answer(state, request, method, rest),
        (method, ["api", "v1", "evaluations", rest @ ..]) => {
            evaluations::answer(state, request, method, rest)
        }
        (method, ["api", "v1", "hosted-evaluations", rest @ ..]) => {
            evaluations::answer_hosted(state, request, method, rest)
        }
        (method, ["api", "v1", "rft", rest @ ..]) => training::answer(state, request, method, rest),
        ("POST", ["api", "v1", "training", "runs"]) => training::create_dedicated(state, request),
        _ => answer::refusal(404, "Not Found"),
    }
}
