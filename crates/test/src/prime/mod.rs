//! A server on this machine that answers as Prime's does, for tests of this crate and of Prime's own program.
//!
//! It keeps state: what is uploaded is stored and checked, evaluations and training runs go on as they are asked
//! about, lists come in pages. It records every request, and it fails where a test wants it to.

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

/// The server.
pub type StandIn = crate::stand_in::StandIn<StandInState>;

impl StandIn {
    /// Root of its model API.
    pub fn inference_url(&self) -> String {
        format!("{}/inference/v1", self.base_url())
    }

    /// Environment variables that lead a client here, as its user.
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
