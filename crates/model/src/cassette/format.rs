//! The lines of a cassette file, as they are written and read.
//!
//! A file defines texts (messages, lists of tools) and turns (a message after a turn) under numbers that only
//! grow, and calls refer to them; so a conversation is stored once however often it is sent.

use aec_base::digest::Digest;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::event::CallEvent;
use crate::failure::Failure;
use crate::message::{Message, Part, Reply, Role, Sampling, Stop, ToolChoice, Usage};

/// The first line of every file says this.
pub(super) const FORMAT: &str = "aec-bench cassette";

/// Grows when a reader of the present format would misunderstand a file.
pub(super) const SCHEMA_VERSION: u32 = 1;

/// A longer line is neither written nor read.
pub(super) const LONGEST_LINE: usize = 64 * 1024 * 1024;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) format: String,
    pub(super) schema_version: u32,
}

impl Header {
    /// The line of this program's files.
    pub(super) fn line() -> String {
        format!("{{\"format\":\"{FORMAT}\",\"schema_version\":{SCHEMA_VERSION}}}\n")
    }
}

/// Any other line.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line<'a> {
    #[serde(borrow)]
    Message(TextLine<'a>),
    /// A list of tools.
    #[serde(borrow)]
    Tools(TextLine<'a>),
    /// A message after others.
    Turn(TurnLine),
    Call(Box<CallLine>),
}

/// Something that is stored once.
#[derive(Debug, Deserialize)]
pub(super) struct TextLine<'a> {
    pub(super) number: u32,
    #[serde(borrow)]
    pub(super) value: &'a RawValue,
}

/// A message after others.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TurnLine {
    pub(super) number: u32,
    /// The turn before; absent for the first of a conversation.
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
    /// Whether the request or the name of the model held a secret.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) redacted: bool,
    pub(super) request: StoredRequest,
    pub(super) endpoint: String,
    pub(super) events: Vec<CallEvent>,
    pub(super) outcome: Outcome,
}

/// A request that refers to its texts.
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

/// What came of a call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Reply(StoredReply),
    Failure(Failure),
}

/// A reply that refers to its parts, stored as the message which the next request repeats.
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
    /// A reply as its message and the rest, which refers to the message by a number still to be given.
    pub(super) fn split(reply: Reply) -> (Message, Self) {
        let Reply { parts, stop, usage, model, id, extra } = reply;
        (Message { role: Role::Assistant, parts }, Self { message: 0, stop, usage, model, id, extra })
    }

    /// The reply again.
    pub(super) fn join(self, parts: Vec<Part>) -> Reply {
        let Self { message: _, stop, usage, model, id, extra } = self;
        Reply { parts, stop, usage, model, id, extra }
    }
}
