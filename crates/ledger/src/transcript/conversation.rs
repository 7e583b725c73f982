//! `conversation.jsonl`: who said what, free of any provider's spelling, derived from the trajectory.

use aec_base::timestamp::Timestamp;
use aec_model::message::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Event, EventRole};

/// The file of messages.
pub const CONVERSATION_FILE: &str = "conversation.jsonl";

/// One message, one tool call or one result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// What was said; the arguments of a tool call as JSON.
    pub content: String,
    /// `message`, `tool_call` or `tool_result`.
    pub event: String,
    /// Which tool.
    pub tool_name: Option<String>,
    /// Which call of a tool.
    pub tool_call_id: Option<String>,
    /// What a message took.
    pub usage: Option<EntryUsage>,
    /// When.
    pub occurred_at: Option<Timestamp>,
}

/// What a message took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryUsage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
}

impl From<Usage> for EntryUsage {
    fn from(usage: Usage) -> Self {
        Self { input_tokens: usage.all_input(), output_tokens: usage.all_output() }
    }
}

/// The entry of an event; events that are not part of the conversation have none.
fn entry(event: &Event) -> Option<Entry> {
    let message = |role: &str, content: String| Entry {
        role: role.to_owned(),
        content,
        event: "message".to_owned(),
        tool_name: event.tool_name.clone(),
        tool_call_id: event.tool_call_id.clone(),
        usage: event.usage.map(EntryUsage::from),
        occurred_at: event.timestamp.clone(),
    };
    let content = || event.content.clone().unwrap_or_default();
    Some(match event.role {
        EventRole::System => message("system", content()),
        EventRole::User => message("user", content()),
        // A turn that only calls tools says nothing.
        EventRole::Assistant
            if event.content.as_deref().is_none_or(str::is_empty) && event.usage.is_none() =>
        {
            return None;
        }
        EventRole::Assistant => message("assistant", content()),
        EventRole::ToolCall => {
            let arguments = event.arguments.as_ref().map(Value::to_string).unwrap_or_default();
            Entry { event: "tool_call".to_owned(), ..message("assistant", arguments) }
        }
        EventRole::ToolResult => {
            Entry { event: "tool_result".to_owned(), ..message("tool", returned(event)) }
        }
        EventRole::ModelCall | EventRole::Note => return None,
    })
}

/// What the model was told of a tool's result.
pub(super) fn returned(event: &Event) -> String {
    if let Some(told) = &event.content {
        return told.clone();
    }
    let mut text = event.stdout.clone().unwrap_or_default();
    if let Some(stderr) = event.stderr.as_deref().filter(|stderr| !stderr.is_empty()) {
        text.push_str(&format!("\nSTDERR: {stderr}"));
    }
    if let Some(code) = event.exit_code.filter(|code| *code != 0) {
        text.push_str(&format!("\n[exit code: {code}]"));
    }
    text
}

/// The conversation of some events, one entry a line.
pub fn lines<'a>(events: impl IntoIterator<Item = &'a Event>) -> String {
    let lines = events.into_iter().filter_map(entry).filter_map(|entry| serde_json::to_string(&entry).ok());
    lines.flat_map(|line| [line, "\n".to_owned()]).collect()
}
