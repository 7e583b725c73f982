//! A local server that answers as the Hugging Face hub does for dataset repositories, for tests.
//!
//! It keeps state: a dataset can be created only once, uploads are checked against their digests and sizes, and a
//! commit may only refer to uploaded files. It records every request, and it fails where a test asks it to.

mod commit;
mod state;
mod storage;

use serde_json::json;

pub use crate::stand_in::{Answer, Outcome, RecordedRequest};
pub use state::{Dataset, Failure, Hook, StandInState};

pub type StandIn = crate::stand_in::StandIn<StandInState>;

impl StandIn {
    /// Makes requests fail from now on.
    pub fn fail(&self, failure: Failure) {
        self.with(|state| state.failures.push(failure));
    }
}

/// A refusal in the hub's format.
fn refusal(status: u16, error: &str) -> Answer {
    Answer::with_status(status, &json!({"error": error}))
}

fn dispatch(state: &mut StandInState, request: &RecordedRequest) -> Answer {
    let segments: Vec<&str> = request.path.trim_start_matches('/').split('/').collect();
    if let ["storage", rest @ ..] = segments.as_slice() {
        return storage::answer(state, request, rest);
    }
    if request.header("authorization") != Some(format!("Bearer {}", state.token).as_str()) {
        return refusal(401, "Invalid credentials in Authorization header");
    }
    match (request.method.as_str(), segments.as_slice()) {
        ("GET", ["api", "whoami-v2"]) => Answer::json(&json!({
            "type": "user",
            "name": state.user,
            "auth": {"type": "access_token", "accessToken": {"displayName": "test", "role": state.role}},
        })),
        ("POST", ["api", "repos", "create"]) => state.create(&request.json()),
        ("GET", ["api", "datasets", owner, name]) => match state.datasets.get(&format!("{owner}/{name}")) {
            Some(dataset) => {
                Answer::json(&json!({"id": format!("{owner}/{name}"), "private": dataset.private}))
            }
            None => refusal(404, "Repository not found"),
        },
        ("POST", ["api", "datasets", owner, name, "preupload", "main"]) => {
            commit::preupload(state, &format!("{owner}/{name}"), &request.json())
        }
        ("POST", ["api", "datasets", owner, name, "commit", "main"]) => {
            commit::commit(state, &format!("{owner}/{name}"), request)
        }
        ("POST", ["datasets", owner, name, "info", "lfs", "objects", step]) => {
            let name = name.strip_suffix(".git").unwrap_or_default();
            storage::protocol(state, request, &format!("{owner}/{name}"), step)
        }
        _ => refusal(404, "Not Found"),
    }
}
