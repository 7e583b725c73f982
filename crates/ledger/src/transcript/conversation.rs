//! `conversation.jsonl`: the conversation in a form independent of providers, derived from the trajectory.

use std::borrow::Cow;

use aec_base::timestamp::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::{Event, EventRole};

pub const CONVERSATION_FILE: &str = "conversation.jsonl";

/// The serialised form of a message, a tool call or a result.
#[derive(Serialize)]
struct Entry<'a> {
    role: &'static str,
    /// The text; for a tool call its arguments as JSON.
    content: Cow<'a, str>,
    event: &'static str,
    tool_name: Option<&'a str>,
    tool_call_id: Option<&'a str>,
    usage: Option<EntryUsage>,
    occurred_at: Option<&'a Timestamp>,
}

#[derive(Serialize)]
struct EntryUsage {
    input_tokens: u64,
    output_tokens: u64,
}

/// The entry of an event; `None` for events that are not part of the conversation.
fn entry(event: &Event) -> Option<Entry<'_>> {
    let content = event.content.as_deref().unwrap_or_default();
    let (role, kind, content) = match event.role {
        EventRole::System => ("system", "message", content.into()),
        EventRole::User => ("user", "message", content.into()),
        // A turn that only calls tools has no text.
        EventRole::Assistant if content.is_empty() && event.usage.is_none() => return None,
        EventRole::Assistant => ("assistant", "message", content.into()),
        EventRole::ToolCall => {
            let arguments = event.arguments.as_ref().map(Value::to_string).unwrap_or_default();
            ("assistant", "tool_call", arguments.into())
        }
        EventRole::ToolResult => ("tool", "tool_result", returned(event)),
        EventRole::ModelCall | EventRole::Note => return None,
    };
    Some(Entry {
        role,
        content,
        event: kind,
        tool_name: event.tool_name.as_deref(),
        tool_call_id: event.tool_call_id.as_deref(),
        usage: event
            .usage
            .map(|usage| EntryUsage { input_tokens: usage.all_input(), output_tokens: usage.all_output() }),
        occurred_at: event.timestamp.as_ref(),
    })
}

/// The text of a tool's result that the model received.
pub(super) fn returned(event: &Event) -> Cow<'_, str> {
    if let Some(told) = &event.content {
        return told.into();
    }
    let mut text = Cow::from(event.stdout.as_deref().unwrap_or_default());
    if let Some(stderr) = event.stderr.as_deref().filter(|stderr| !stderr.is_empty()) {
        text.to_mut().push_str(&format!("\nSTDERR: {stderr}"));
    }
    if let Some(code) = event.exit_code.filter(|code| *code != 0) {
        text.to_mut().push_str(&format!("\n[exit code: {code}]"));
    }
    text
}

/// The conversation of some events, one entry a line.
pub fn lines<'a>(events: impl IntoIterator<Item = &'a Event>) -> String {
    let lines = events.into_iter().filter_map(entry).filter_map(|entry| serde_json::to_string(&entry).ok());
    lines.flat_map(|line| [line, "\n".to_owned()]).collect()
}
