//! The state of the server.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

use super::dispatch;
use super::evaluations::HostedRun;
use super::hub::Environment;
use super::training::TrainingRun;
use crate::stand_in::{Answer, Outcome, RecordedRequest, Service};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharedTraining {
    #[default]
    Open,
    /// The present state of the real service.
    Retired,
}

/// A failure that a test asks for.
#[derive(Clone, Debug, Default)]
pub struct Failure {
    /// Method that fails; absent for any method.
    pub method: Option<String>,
    /// Part of the paths that fail.
    pub path: String,
    pub times: u32,
    /// Matching requests that still work before the first failure.
    pub after: u32,
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Failure {
    /// Fails `times` times on paths that contain `path`.
    pub fn new(path: &str, status: u16, times: u32) -> Self {
        let body = json!({"detail": format!("failure {status} on demand")}).to_string();
        Self { path: path.to_owned(), status, times, body, ..Self::default() }
    }
}

/// The server's state, which tests may change.
#[derive(Debug)]
pub struct StandInState {
    pub key: String,
    /// Answer to the request for the user.
    pub user: Value,
    /// Answer to the request for the models.
    pub models: Value,
    pub failures: Vec<Failure>,
    pub requests: Vec<RecordedRequest>,
    pub evaluations: BTreeMap<String, HostedRun>,
    /// Adapters in the format of the API.
    pub adapters: Vec<Value>,
    pub runs: BTreeMap<String, TrainingRun>,
    pub shared_training: SharedTraining,
    /// Status of the hub's check of every environment.
    pub environment_action: String,
    pub(super) environments: Vec<Environment>,
    pub(super) storage: BTreeMap<String, Bytes>,
    pub(super) root: String,
}

impl StandInState {
    /// Content of the upload with this file name.
    pub fn stored(&self, file_name: &str) -> Option<&Bytes> {
        self.storage.iter().find(|(key, _)| key.ends_with(file_name)).map(|(_, bytes)| bytes)
    }

    /// Creates an environment that can be evaluated without a push.
    pub fn add_environment(&mut self, owner: &str, name: &str) -> String {
        self.resolve(owner, name, "PRIVATE").0
    }
}

impl Service for StandInState {
    fn new(root: String) -> Self {
        let price = json!({"input_usd_per_mtok": 0.1, "output_usd_per_mtok": 0.2});
        Self {
            key: "pit_test_key".to_owned(),
            user: json!({"id": "u1", "email": "t@example.com", "name": "Tester", "slug": "me"}),
            models: json!({"object": "list", "data": [
                {"id": "openai/gpt-4.1-mini", "object": "model", "created": 1, "owned_by": "x", "pricing": price},
                {"id": "Qwen/Qwen3.5-4B", "object": "model", "created": 1, "owned_by": "x", "pricing": price},
            ]}),
            failures: Vec::new(),
            requests: Vec::new(),
            evaluations: BTreeMap::new(),
            adapters: Vec::new(),
            runs: BTreeMap::new(),
            shared_training: SharedTraining::Open,
            environment_action: "SUCCESS".to_owned(),
            environments: Vec::new(),
            storage: BTreeMap::new(),
            root,
        }
    }

    fn requests(&mut self) -> &mut Vec<RecordedRequest> {
        &mut self.requests
    }

    fn arrive(&mut self, request: &RecordedRequest) -> Option<Outcome> {
        let due = self.failures.iter_mut().find(|failure| {
            failure.times > 0
                && request.path.contains(&failure.path)
                && failure.method.as_ref().is_none_or(|method| *method == request.method)
        })?;
        if due.after > 0 {
            due.after -= 1;
            return None;
        }
        due.times -= 1;
        let mut answer =
            Answer { status: due.status, headers: due.headers.clone(), body: due.body.clone().into() };
        if answer.headers.iter().all(|(name, _)| name != "content-type") {
            answer.headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        Some(Outcome::Refused(answer))
    }

    fn answer(&mut self, request: &RecordedRequest) -> Answer {
        dispatch(self, request)
    }
}
