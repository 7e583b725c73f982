//! The lines of a cassette file.
//!
//! A file defines texts (messages, lists of tools) and turns (a message after a turn) under increasing numbers, and
//! calls refer to them; so a conversation is stored once however often it is sent.

use aec_base::digest::Digest;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::event::CallEvent;
use crate::failure::Failure;
use crate::message::{Message, Part, Reply, Role, Sampling, Stop, ToolChoice, Usage};

/// The format name in the first line of every file.
pub(super) const FORMAT: &str = "aec-bench cassette";

/// Increases when readers of the present format would misunderstand a file.
pub(super) const SCHEMA_VERSION: u32 = 1;

/// In bytes; longer lines are neither written nor read.
pub(super) const LONGEST_LINE: usize = 64 * 1024 * 1024;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) format: String,
    pub(super) schema_version: u32,
}

impl Header {
    pub(super) fn line() -> String {
        format!("{{\"format\":\"{FORMAT}\",\"schema_version\":{SCHEMA_VERSION}}}\n")
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line<'a> {
    #[serde(borrow)]
    Message(TextLine<'a>),
    #[serde(borrow)]
    Tools(TextLine<'a>),
    Turn(TurnLine),
    Call(Box<CallLine>),
}

/// A text that is stored once.
#[derive(Debug, Deserialize)]
pub(super) struct TextLine<'a> {
    pub(super) number: u32,
    #[serde(borrow)]
    pub(super) value: &'a RawValue,
}

/// A message after other ones.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TurnLine {
    pub(super) number: u32,
    /// The previous turn; absent for the first of a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<u32>,
    pub(super) message: u32,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CallLine {
    pub(super) scope: String,
    pub(super) model: String,
    pub(super) digest: Digest,
    pub(super) occurrence: u32,
    /// Whether the request or the name of the model contained a secret.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) redacted: bool,
    pub(super) request: StoredRequest,
    pub(super) endpoint: String,
    pub(super) events: Vec<CallEvent>,
    pub(super) outcome: Outcome,
}

/// A request that refers to stored texts.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredRequest {
    /// The last turn; absent if there are no messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) turn: Option<u32>,
    /// The list of tools; absent if it is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) tool_choice: ToolChoice,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) sampling: Sampling,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Reply(StoredReply),
    Failure(Failure),
}

/// A reply without its parts, which are stored as a message because the next request repeats them.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredReply {
    pub(super) message: u32,
    pub(super) stop: Stop,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) extra: Map<String, Value>,
}

impl StoredReply {
    /// Splits a reply into its message and the rest, which gets the number of the message later.
    pub(super) fn split(reply: Reply) -> (Message, Self) {
        let Reply { parts, stop, usage, model, id, extra } = reply;
        (Message { role: Role::Assistant, parts }, Self { message: 0, stop, usage, model, id, extra })
    }

    /// Reverses [`Self::split`].
    pub(super) fn join(self, parts: Vec<Part>) -> Reply {
        let Self { message: _, stop, usage, model, id, extra } = self;
        Reply { parts, stop, usage, model, id, extra }
    }
}
