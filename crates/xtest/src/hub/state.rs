//! The state of the server.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{dispatch, refusal};
use crate::stand_in::{Answer, Outcome, RecordedRequest, Service};

/// A failure that a test asks for.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Part of `METHOD path` of the requests that fail.
    pub request: String,
    pub times: u32,
    pub outcome: Outcome,
}

impl Failure {
    /// Requests whose `METHOD path` contains `request` are refused.
    pub fn status(request: &str, status: u16, times: u32) -> Self {
        let answer = refusal(status, &format!("failure {status} on demand"));
        Self { request: request.to_owned(), times, outcome: Outcome::Refused(answer) }
    }

    /// The connection is cut instead of an answer.
    pub fn cut(request: &str, times: u32) -> Self {
        Self { request: request.to_owned(), times, outcome: Outcome::Cut }
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Outcome::Refused(answer) = &mut self.outcome {
            answer.headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Sets another body.
    #[must_use]
    pub fn body(mut self, body: &str) -> Self {
        if let Outcome::Refused(answer) = &mut self.outcome {
            answer.body = body.to_owned().into();
        }
        self
    }
}

/// Something that happens once, when a request arrives.
pub struct Hook {
    /// Part of `METHOD path` of the request.
    pub request: String,
    pub run: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for Hook {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Hook").field("request", &self.request).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, Default)]
pub struct Dataset {
    pub private: bool,
    /// Content of the files, by path.
    pub files: BTreeMap<String, Bytes>,
    pub commits: Vec<String>,
}

/// The server's state, which tests may change.
#[derive(Debug)]
pub struct StandInState {
    pub token: String,
    /// The user that the token belongs to.
    pub user: String,
    /// Permission of the token: `read`, `write` or `fineGrained`.
    pub role: String,
    /// Organisations that the token may write to, besides the user.
    pub organisations: Vec<String>,
    /// Names that are taken by something other than a dataset.
    pub taken: BTreeSet<String>,
    /// Whether datasets become public whatever visibility the client asked for.
    pub deaf_to_visibility: bool,
    /// Datasets by `owner/name`.
    pub datasets: BTreeMap<String, Dataset>,
    /// Size in bytes from which files are large.
    pub large_from: u64,
    /// Size of the parts of an upload; absent for uploads in one piece.
    pub part_size: Option<u64>,
    pub failures: Vec<Failure>,
    pub hooks: Vec<Hook>,
    pub requests: Vec<RecordedRequest>,
    /// Large files that arrived completely, by digest.
    pub objects: BTreeMap<String, Bytes>,
    /// Parts that arrived, by digest and number.
    pub parts: BTreeMap<(String, u64), Bytes>,
    pub verified: BTreeSet<String>,
    pub(super) root: String,
}

impl StandInState {
    /// Creates a dataset.
    pub(super) fn create(&mut self, body: &Value) -> Answer {
        let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default();
        let (owner, name) = (text("organization"), text("name"));
        let private = match text("visibility") {
            "private" => true,
            "public" => false,
            _ => return refusal(400, "visibility must be private or public"),
        } && !self.deaf_to_visibility;
        if text("type") != "dataset" || name.is_empty() || name.len() > 96 || name.contains("--") {
            return refusal(400, "Invalid repo name");
        }
        if owner != self.user && !self.organisations.iter().any(|known| known == owner) {
            return refusal(403, "You don't have the rights to create a dataset under this namespace");
        }
        let id = format!("{owner}/{name}");
        if self.datasets.contains_key(&id) || self.taken.contains(&id) {
            return refusal(409, "You already created this dataset repo");
        }
        self.datasets.insert(id.clone(), Dataset { private, ..Dataset::default() });
        Answer::json(&json!({"url": format!("{}/datasets/{id}", self.root)}))
    }
}

impl Service for StandInState {
    fn new(root: String) -> Self {
        Self {
            token: "hf_test_token".to_owned(),
            user: "tester".to_owned(),
            role: "write".to_owned(),
            organisations: vec!["some-org".to_owned()],
            taken: BTreeSet::new(),
            deaf_to_visibility: false,
            datasets: BTreeMap::new(),
            large_from: 10 * 1024 * 1024,
            part_size: None,
            failures: Vec::new(),
            hooks: Vec::new(),
            requests: Vec::new(),
            objects: BTreeMap::new(),
            parts: BTreeMap::new(),
            verified: BTreeSet::new(),
            root,
        }
    }

    fn requests(&mut self) -> &mut Vec<RecordedRequest> {
        &mut self.requests
    }

    /// Applies the hook or failure that a test set up for this request.
    fn arrive(&mut self, request: &RecordedRequest) -> Option<Outcome> {
        let shown = request.shown();
        for hook in self.hooks.extract_if(.., |hook| shown.contains(&hook.request)) {
            (hook.run)();
        }
        let due =
            self.failures.iter_mut().find(|failure| failure.times > 0 && shown.contains(&failure.request))?;
        due.times -= 1;
        Some(due.outcome.clone())
    }

    fn answer(&mut self, request: &RecordedRequest) -> Answer {
        dispatch(self, request)
    }
}
