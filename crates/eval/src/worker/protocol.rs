//! The messages between the pool and its workers: lines of JSON, each an object with one key that names the message.

use std::collections::BTreeMap;

use aec_base::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::worker::FAMILY;

/// The version of these messages. Both sides belong to one build, so it changes with every change of a message.
pub(crate) const PROTOCOL: u32 = 1;

/// Which of the library's two kinds of environment is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interface {
    /// v0 if the library and the module support it, else v1.
    #[default]
    Auto,
    /// `load_environment`, in versions up to 0.3.
    V0,
    /// A taskset, in versions from 0.3.1.
    V1,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Index into the loaded examples.
    pub example: usize,
    /// Which rollout of the example this is.
    pub rollout: usize,
}

/// A message of a conversation. The content is a text or a list of parts, as the environment made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant`, `tool` or `text`.
    pub role: String,
    #[serde(default)]
    pub content: Value,
    /// The model's reasoning, if the provider separates it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// Reasoning blocks that must go back to the provider unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_blocks: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// The arguments as the model wrote them, which need not be JSON.
    pub arguments: String,
}

/// A tool that the model may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// JSON Schema of its arguments.
    #[serde(default)]
    pub parameters: Value,
    /// Whether the provider must enforce the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ModelCall {
    /// Number of the call within its worker.
    pub call: u64,
    pub job: u64,
    /// The rollout of the job, if the environment reveals it.
    #[serde(default)]
    pub rollout: Option<usize>,
    pub model: String,
    pub messages: Vec<Message>,
    #[serde(default)]
    pub tools: Vec<Tool>,
    /// Sampling arguments as the library has them: `n`, `extra_body`, `max_tokens` and so on, without empty ones.
    #[serde(default)]
    pub sampling_args: Map<String, Value>,
    /// Values of the rollout's state that [`crate::worker::EnvironmentRequest::state_keys`] requests, as text.
    #[serde(default)]
    pub state: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub prompt_tokens: u64,
    /// Includes reasoning tokens.
    pub completion_tokens: u64,
    pub total_tokens: u64,
    pub reasoning_tokens: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ModelAnswer {
    pub id: String,
    /// In seconds since 1970.
    pub created: i64,
    pub model: String,
    /// Text, a list of parts, or null.
    pub content: Value,
    /// The model's reasoning, if the provider separates it.
    pub reasoning_content: Option<String>,
    /// Reasoning blocks that must go back unchanged.
    pub thinking_blocks: Option<Value>,
    pub tool_calls: Vec<ToolCall>,
    /// `stop`, `length`, `tool_calls`, or another value of the provider.
    pub finish_reason: Option<String>,
    /// Absent if the provider did not count tokens.
    pub usage: Option<Usage>,
}

/// Why a model did not answer, with the distinctions that environments make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The conversation does not fit into the model; the rollout ends as truncated.
    Overlong,
    Empty,
    /// The answer could not be parsed.
    Invalid,
    /// The key is wrong or lacks a right; the whole job fails.
    Refused,
    /// Too many requests, even after retries.
    RateLimited,
    Timeout,
    Connection,
    /// Any other error of the provider, with its status.
    Provider,
}

/// A model call that failed permanently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelFailure {
    pub kind: FailureKind,
    pub status: Option<u16>,
    /// Becomes part of the row. The library's own client writes `Error code: <status> - <message>`.
    pub message: String,
}

impl ModelFailure {
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, status: None, message: message.into() }
    }

    #[must_use]
    pub const fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionInfo {
    pub vf_version: Option<String>,
    pub vf_commit: Option<String>,
    pub env_version: Option<String>,
    pub env_commit: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Loaded {
    pub interface: Interface,
    /// The class of the environment or the taskset.
    pub class_name: String,
    pub version_info: VersionInfo,
    /// The id of each example, in the order of the evaluation.
    pub example_ids: Vec<i64>,
    /// The reward from which a rollout counts as passed.
    pub pass_threshold: f64,
    /// Whether a reward compares the rollouts of an example.
    pub has_group_rewards: bool,
    pub tools: Vec<Tool>,
    /// The most turns of a rollout, if the environment has a limit.
    pub max_turns: Option<i64>,
    /// The environment's own sampling arguments; those of the evaluation take precedence.
    pub sampling_args: Map<String, Value>,
    /// The arguments that the environment reports.
    pub env_args: Value,
    /// A digest of the examples, to detect workers that loaded different ones.
    pub examples_digest: String,
    /// Whether the environment cannot generate now and score later.
    pub generates_and_scores_at_once: bool,
    /// Warnings of the library and the environment.
    pub warnings: Vec<String>,
}

impl Loaded {
    /// Why rollouts cannot be scored one by one, if they cannot.
    pub fn refuses_independent_scoring(&self, env_id: &str) -> Option<Problem> {
        self.has_group_rewards.then(|| {
            Problem::error(format!("rollouts of `{env_id}` cannot be scored independently"))
                .id(FAMILY.number(52))
                .why("one of its rewards compares all rollouts of an example")
                .fix("leave out --independent-scoring")
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToWorker<'a> {
    Load(&'a Value),
    Run {
        job: u64,
        members: &'a [Member],
        independent: bool,
        model: &'a str,
        sampling_args: &'a Map<String, Value>,
    },
    Score {
        job: u64,
    },
    Answer {
        call: u64,
        reply: Option<&'a ModelAnswer>,
        failure: Option<&'a ModelFailure>,
    },
    Drop {
        job: u64,
    },
    Shutdown {},
}

impl ToWorker<'_> {
    /// The message as a line. Serialising cannot fail: keys are text and numbers are finite.
    pub(crate) fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromWorker {
    Hello { protocol: u32 },
    Loaded(Box<Loaded>),
    LoadFailed { error: String, message: String, traceback: String },
    Call(Box<ModelCall>),
    HangUp { call: u64, job: u64 },
    Generated { job: u64, errors: Vec<Option<String>>, scored: bool },
    Rows { job: u64, lines: usize },
    Failed { job: u64, error: String, message: String, traceback: String },
    Dropped { job: u64 },
    Log { level: String, message: String },
}
