//! Requests to models and their replies, independent of any provider's format.
//!
//! These types are stored in cassettes and trajectories, so their serde form is a public format.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Output tokens of a call without an explicit limit. A call needs a limit so that its cost is bounded.
pub const DEFAULT_MAX_TOKENS: u32 = 16_384;

/// One request to a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// The conversation so far, oldest first.
    pub messages: Vec<Message>,
    /// Tools that the model may call.
    #[serde(default, skip_serializing_if = "Tools::is_empty")]
    pub tools: Tools,
    /// Whether the model must call a tool.
    #[serde(default, skip_serializing_if = "ToolChoice::is_auto")]
    pub tool_choice: ToolChoice,
    /// How the answer is sampled.
    #[serde(default)]
    pub sampling: Sampling,
}

/// One turn of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// The speaker.
    pub role: Role,
    /// The parts, in order.
    pub parts: Vec<Part>,
}

impl Message {
    /// A message with one text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, parts: vec![Part::Text { text: text.into() }] }
    }

    /// All text of the message, parts separated by line breaks.
    pub fn joined_text(&self) -> Cow<'_, str> {
        join_text(&self.parts)
    }
}

/// The speaker. Results of tools are parts of a user message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The system prompt.
    System,
    /// The harness, on behalf of the task.
    User,
    /// The model.
    Assistant,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture, in base64.
    Image {
        /// Such as `image/png`.
        media_type: String,
        /// The bytes in base64.
        data: String,
    },
    /// The model's thoughts before its answer.
    Reasoning {
        /// The thought as far as the provider reveals it.
        text: String,
        /// Data that the provider wants back unchanged with the next request: a signature or an encrypted thought.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Value>,
    },
    /// The model calls a tool.
    ToolCall(ToolCall),
    /// A tool's result.
    ToolResult {
        /// Id of the call.
        call_id: String,
        /// Text and images.
        parts: Vec<Self>,
        /// Whether the tool failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

impl Part {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            _ => None,
        }
    }
}

/// All text of some parts, separated by line breaks.
pub fn join_text(parts: &[Part]) -> Cow<'_, str> {
    let mut all = Cow::Borrowed("");
    for (number, text) in parts.iter().filter_map(Part::as_text).enumerate() {
        if number == 0 {
            all = Cow::Borrowed(text);
        } else {
            let all = all.to_mut();
            all.push('\n');
            all.push_str(text);
        }
    }
    all
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// Identifies the call within the conversation.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Arguments as the model wrote them. They should be a JSON object; otherwise a harness reports it to the model.
    pub arguments: String,
}

impl ToolCall {
    /// The arguments as an object, if they are one.
    pub fn object(&self) -> Option<Map<String, Value>> {
        if self.arguments.trim().is_empty() {
            return Some(Map::new());
        }
        match aec_base::json::from_str(&self.arguments) {
            Ok(Value::Object(object)) => Some(object),
            _ => None,
        }
    }
}

/// A tool that the model may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// The tools of a request. They are the same in every turn and in many conversations, so clones share them.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Vec<Tool>", into = "Vec<Tool>")]
#[schemars(with = "Vec<Tool>")]
pub struct Tools(Arc<Offered>);

#[derive(Debug, Default)]
struct Offered {
    list: Vec<Tool>,
    most_tokens: OnceLock<u64>,
}

impl Tools {
    pub fn is_empty(&self) -> bool {
        self.0.list.is_empty()
    }

    /// Changes the list.
    pub fn edit(&mut self, change: impl FnOnce(&mut Vec<Tool>)) {
        let mut list = self.to_vec();
        change(&mut list);
        *self = list.into();
    }

    /// The most tokens that they can have, counted once.
    pub(crate) fn most_tokens(&self, count: impl FnOnce(&[Tool]) -> u64) -> u64 {
        *self.0.most_tokens.get_or_init(|| count(&self.0.list))
    }
}

impl Deref for Tools {
    type Target = [Tool];

    fn deref(&self) -> &[Tool] {
        &self.0.list
    }
}

impl From<Vec<Tool>> for Tools {
    fn from(list: Vec<Tool>) -> Self {
        Self(Arc::new(Offered { list, most_tokens: OnceLock::new() }))
    }
}

impl FromIterator<Tool> for Tools {
    fn from_iter<I: IntoIterator<Item = Tool>>(tools: I) -> Self {
        Vec::from_iter(tools).into()
    }
}

impl From<Tools> for Vec<Tool> {
    fn from(tools: Tools) -> Self {
        tools.to_vec()
    }
}

impl PartialEq for Tools {
    fn eq(&self, other: &Self) -> bool {
        self.0.list == other.0.list
    }
}

/// Whether the model must call a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must not call a tool.
    None,
    /// The model must call some tool.
    Required,
    /// The model must call this tool.
    Tool(String),
}

impl ToolChoice {
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// How an answer is sampled. The provider chooses what is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Sampling {
    /// Most output tokens, including thoughts; [`DEFAULT_MAX_TOKENS`] when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Randomness.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Texts that end the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Seed, if the provider supports one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// How hard a reasoning model thinks: `low`, `medium`, `high` or another level of the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// Tokens for thinking, if the provider counts them separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_tokens: Option<u32>,
    /// Further keys of the provider's request body, sent unchanged.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Sampling {
    /// The limit that is sent.
    pub fn output_limit(&self) -> u32 {
        self.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS)
    }
}

/// A model's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    /// Text, thoughts and tool calls in the order of arrival.
    pub parts: Vec<Part>,
    /// Why it ended.
    pub stop: Stop,
    /// Token counts; absent when the provider did not report them.
    pub usage: Option<Usage>,
    /// The model as the provider names it.
    pub model: Option<String>,
    /// The provider's id of the answer.
    pub id: Option<String>,
    /// Further fields of the provider, unchanged.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Reply {
    /// All text, parts separated by line breaks.
    pub fn text(&self) -> String {
        join_text(&self.parts).into_owned()
    }

    /// All visible thoughts, separated by line breaks.
    pub fn thoughts(&self) -> Option<String> {
        let shown = self.parts.iter().filter_map(|part| match part {
            Part::Reasoning { text, .. } if !text.is_empty() => Some(text.as_str()),
            _ => None,
        });
        let shown: Vec<&str> = shown.collect();
        (!shown.is_empty()).then(|| shown.join("\n"))
    }

    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Whether it has text or a tool call.
    pub fn says_something(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::Text { text } => !text.trim().is_empty(),
            Part::ToolCall(_) => true,
            _ => false,
        })
    }

    /// The message to append to the conversation.
    pub fn into_message(self) -> Message {
        Message { role: Role::Assistant, parts: self.parts }
    }
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The model finished.
    End,
    /// The model waits for tools.
    ToolCalls,
    /// The limit of output tokens was reached.
    Length,
    /// A stop text occurred.
    StopText,
    /// The provider's filter intervened, or the model refused in the provider's own form.
    ContentFilter,
    /// Another reason, in the provider's words.
    Other(String),
}

/// The tokens of a call. The counters are disjoint: their sum is the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// Input that was not cached.
    pub input: u64,
    /// Input read from the provider's cache.
    pub cache_read: u64,
    /// Input written to the provider's cache.
    pub cache_write: u64,
    /// Output in the answer, plus thoughts if the provider does not count them separately.
    pub output: u64,
    /// Thoughts.
    pub reasoning: u64,
}

impl Usage {
    pub fn total(&self) -> u64 {
        [self.input, self.cache_read, self.cache_write, self.output, self.reasoning]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    pub fn all_input(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    pub fn all_output(&self) -> u64 {
        self.output.saturating_add(self.reasoning)
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}
