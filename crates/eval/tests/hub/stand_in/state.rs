//! What the server knows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bytes::Bytes;
use serde_json::{Value, json};

use super::Answer;

/// A request that the server got.
#[derive(Clone, Debug)]
pub(crate) struct RecordedRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    /// Headers, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

impl RecordedRequest {
    /// A header by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON, or null.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// How a request fails.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// With an answer.
    Refused(Answer),
    /// Without: the connection is cut.
    Cut,
}

/// A failure on demand.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// Part of `METHOD path` of the requests that fail.
    pub(crate) request: String,
    /// How often.
    pub(crate) times: u32,
    /// How.
    pub(crate) outcome: Outcome,
}

impl Failure {
    /// Requests whose `METHOD path` contains `request` are refused.
    pub(crate) fn status(request: &str, status: u16, times: u32) -> Self {
        let answer = Answer::refusal(status, &format!("failure {status} on demand"));
        Self { request: request.to_owned(), times, outcome: Outcome::Refused(answer) }
    }

    /// The connection is cut instead of an answer.
    pub(crate) fn cut(request: &str, times: u32) -> Self {
        Self { request: request.to_owned(), times, outcome: Outcome::Cut }
    }

    /// With a header.
    #[must_use]
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        if let Outcome::Refused(answer) = &mut self.outcome {
            answer.headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// With another body.
    #[must_use]
    pub(crate) fn body(mut self, body: &str) -> Self {
        if let Outcome::Refused(answer) = &mut self.outcome {
            body.clone_into(&mut answer.body);
        }
        self
    }
}

/// Something that happens when a request arrives, once.
pub(crate) struct Hook {
    /// Part of `METHOD path` of the request.
    pub(crate) request: String,
    /// What happens.
    pub(crate) run: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for Hook {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Hook").field("request", &self.request).finish_non_exhaustive()
    }
}

/// A dataset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dataset {
    pub(crate) private: bool,
    /// Content of the files, by path.
    pub(crate) files: BTreeMap<String, Bytes>,
    /// Summaries of the commits.
    pub(crate) commits: Vec<String>,
}

/// Everything that the server keeps. Tests change it as they need.
#[derive(Debug)]
pub(crate) struct StandInState {
    /// The token that is accepted.
    pub(crate) token: String,
    /// Who it belongs to.
    pub(crate) user: String,
    /// What it may do: `read`, `write` or `fineGrained`.
    pub(crate) role: String,
    /// Organisations besides the user that it may write to.
    pub(crate) organisations: Vec<String>,
    /// Names that are taken by something that is no dataset.
    pub(crate) taken: BTreeSet<String>,
    /// Whether datasets become public whatever was asked for.
    pub(crate) deaf_to_visibility: bool,
    /// Datasets by `owner/name`.
    pub(crate) datasets: BTreeMap<String, Dataset>,
    /// Size from which files are large.
    pub(crate) large_from: u64,
    /// Size of the parts of an upload, or nothing for uploads in one piece.
    pub(crate) part_size: Option<u64>,
    /// Failures to come.
    pub(crate) failures: Vec<Failure>,
    /// What happens when requests arrive.
    pub(crate) hooks: Vec<Hook>,
    /// Requests so far.
    pub(crate) requests: Vec<RecordedRequest>,
    /// Large files that arrived whole, by digest.
    pub(crate) objects: BTreeMap<String, Bytes>,
    /// Parts that arrived, by digest and number.
    pub(crate) parts: BTreeMap<(String, u64), Bytes>,
    /// Digests that were verified.
    pub(crate) verified: BTreeSet<String>,
    pub(super) root: String,
}

impl StandInState {
    pub(super) fn new(root: String) -> Self {
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

    /// Makes a dataset.
    pub(super) fn create(&mut self, body: &Value) -> Answer {
        let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default();
        let (owner, name) = (text("organization"), text("name"));
        let private = match text("visibility") {
            "private" => true,
            "public" => false,
            _ => return Answer::refusal(400, "visibility must be private or public"),
        } && !self.deaf_to_visibility;
        if text("type") != "dataset" || name.is_empty() || name.len() > 96 || name.contains("--") {
            return Answer::refusal(400, "Invalid repo name");
        }
        if owner != self.user && !self.organisations.iter().any(|known| known == owner) {
            return Answer::refusal(
                403,
                "You don't have the rights to create a dataset under this namespace",
            );
        }
        let id = format!("{owner}/{name}");
        if self.datasets.contains_key(&id) || self.taken.contains(&id) {
            return Answer::refusal(409, "You already created this dataset repo");
        }
        self.datasets.insert(id.clone(), Dataset { private, ..Dataset::default() });
        Answer::json(&json!({"url": format!("{}/datasets/{id}", self.root)}))
    }

    /// Lets happen what a test wants to happen now.
    pub(super) fn run_hooks(&mut self, request: &RecordedRequest) {
        let shown = format!("{} {}", request.method, request.path);
        for hook in self.hooks.extract_if(.., |hook| shown.contains(&hook.request)) {
            (hook.run)();
        }
    }

    /// The failure that a request meets, if one is due.
    pub(super) fn take_failure(&mut self, request: &RecordedRequest) -> Option<Outcome> {
        let shown = format!("{} {}", request.method, request.path);
        let due =
            self.failures.iter_mut().find(|failure| failure.times > 0 && shown.contains(&failure.request))?;
        due.times -= 1;
        Some(due.outcome.clone())
    }
}
