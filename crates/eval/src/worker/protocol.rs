//! What the pool and its workers say to each other: lines of JSON, each an object with one key that names the message.

use std::collections::BTreeMap;

use aec_base::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::worker::FAMILY;

/// The version of these messages; both sides are of one build, so it changes with every change of a message.
pub(crate) const PROTOCOL: u32 = 1;

/// Which of the library's two kinds of environment is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interface {
    /// v0 if the library and the module have it, else v1.
    #[default]
    Auto,
    /// `load_environment`, up to 0.3.
    V0,
    /// A taskset, from 0.3.1.
    V1,
}

/// One rollout of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Index into the examples that were loaded.
    pub example: usize,
    /// Which rollout of the example this is.
    pub rollout: usize,
}

/// A message of a conversation. Content is text or a list of parts as the environment made them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant`, `tool` or `text`.
    pub role: String,
    /// Text, or a list of parts.
    #[serde(default)]
    pub content: Value,
    /// What the model thought, if it was told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// Thoughts that must go back to the provider as they came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_blocks: Option<Value>,
    /// The tools an assistant called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Which call a tool's message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The name of the speaker, where one is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id of the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments as the model wrote them, which need not be JSON.
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
    /// Whether the provider must keep to the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

/// One call of a model by an environment.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ModelCall {
    /// Number of the call within its worker.
    pub call: u64,
    pub job: u64,
    /// The rollout of the job, where the environment lets it be known.
    #[serde(default)]
    pub rollout: Option<usize>,
    /// The model that is asked.
    pub model: String,
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// The tools that are offered.
    #[serde(default)]
    pub tools: Vec<Tool>,
    /// Sampling arguments as the library holds them: `n`, `extra_body`, `max_tokens` and so on, without empty ones.
    #[serde(default)]
    pub sampling_args: Map<String, Value>,
    /// Values of the rollout's state that [`crate::worker::EnvironmentRequest::state_keys`] asked for, as text.
    #[serde(default)]
    pub state: BTreeMap<String, String>,
}

/// Tokens of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read.
    pub prompt_tokens: u64,
    /// Tokens written, thoughts included.
    pub completion_tokens: u64,
    /// Both.
    pub total_tokens: u64,
    /// Tokens of thoughts.
    pub reasoning_tokens: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ModelAnswer {
    /// The provider's id of the answer.
    pub id: String,
    /// When it was made, in seconds since 1970.
    pub created: i64,
    pub model: String,
    /// Text, a list of parts, or nothing.
    pub content: Value,
    /// What it thought, if that was told apart.
    pub reasoning_content: Option<String>,
    /// Thoughts that must go back as they came.
    pub thinking_blocks: Option<Value>,
    pub tool_calls: Vec<ToolCall>,
    /// `stop`, `length`, `tool_calls`, or another word of the provider.
    pub finish_reason: Option<String>,
    /// The tokens, if the provider counted them.
    pub usage: Option<Usage>,
}

/// Why a model did not answer, as far as environments make a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The conversation does not fit into the model; the rollout ends as truncated.
    Overlong,
    /// The answer was empty.
    Empty,
    /// The answer made no sense.
    Invalid,
    /// The key is wrong or may not do this; the job fails as a whole.
    Refused,
    /// Too many requests, and no patience left.
    RateLimited,
    /// The provider took too long.
    Timeout,
    /// The provider could not be reached.
    Connection,
    /// Anything else the provider said, with its status.
    Provider,
}

/// A call of a model that failed for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelFailure {
    pub kind: FailureKind,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// What happened; it becomes part of the row. The library's own client says `Error code: <status> - <message>`.
    pub message: String,
}

impl ModelFailure {
    /// A failure without a status.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, status: None, message: message.into() }
    }

    /// With the status of the provider.
    #[must_use]
    pub const fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }
}

/// The versions that an evaluation's metadata names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionInfo {
    /// The library's version.
    pub vf_version: Option<String>,
    /// The commit the library says it is of.
    pub vf_commit: Option<String>,
    /// The version of the environment's package.
    pub env_version: Option<String>,
    /// The commit of the environment's directory.
    pub env_commit: Option<String>,
}

/// What a worker loaded.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Loaded {
    /// v0 or v1.
    pub interface: Interface,
    /// The class of the environment or the taskset.
    pub class_name: String,
    /// Versions for the metadata.
    pub version_info: VersionInfo,
    /// The id of each example, in the order of the evaluation.
    pub example_ids: Vec<i64>,
    /// The reward from which a rollout counts as passed.
    pub pass_threshold: f64,
    /// Whether a reward looks at all rollouts of an example.
    pub has_group_rewards: bool,
    /// The tools of the environment.
    pub tools: Vec<Tool>,
    /// The most turns of a rollout, where the environment says so.
    pub max_turns: Option<i64>,
    /// The environment's own sampling arguments, under those of the evaluation.
    pub sampling_args: Map<String, Value>,
    /// The arguments the environment says it was loaded with.
    pub env_args: Value,
    /// A digest of the examples, to notice when two workers loaded different ones.
    pub examples_digest: String,
    /// Whether rollouts cannot be generated now and scored later.
    pub generates_and_scores_at_once: bool,
    /// What the library and the environment warned of.
    pub warnings: Vec<String>,
}

impl Loaded {
    /// Why rollouts cannot be scored on their own, if they cannot.
    pub fn refuses_independent_scoring(&self, env_id: &str) -> Option<Problem> {
        self.has_group_rewards.then(|| {
            Problem::error(format!("rollouts of `{env_id}` cannot be scored independently"))
                .id(FAMILY.number(52))
                .why("one of its rewards compares all rollouts of an example")
                .fix("leave out --independent-scoring")
        })
    }
}

/// Messages to a worker.
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
    /// The message as a line. Nothing in it can fail to be written: keys are text and numbers are finite.
    pub(crate) fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// Messages of a worker.
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
