//! Messages of a completion, as rows hold them.

use aec_base::json::{push_ascii, push_text};
use serde_json::value::RawValue;

use crate::results::json::{push_key, push_raw};

/// Who says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The one who sets the rules.
    System,
    /// The one who asks.
    User,
    /// The model.
    Assistant,
    /// What a tool returned.
    Tool,
}

impl Role {
    /// The role as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// What is said.
#[derive(Clone, Debug)]
pub enum Content {
    /// Text.
    Text(String),
    /// Parts such as pictures, or null, as ready JSON.
    Json(Box<RawValue>),
}

/// One call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The id to which the tool's answer refers.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments: JSON as text, or whatever the model wrote there.
    pub arguments: String,
}

/// One message of a completion.
#[derive(Clone, Debug)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: Content,
    /// What the model thought before, when its service tells.
    pub reasoning_content: Option<String>,
    /// Signed thoughts of a service that wants them back, as ready JSON.
    pub thinking_blocks: Option<Box<RawValue>>,
    /// Tools that the model calls.
    pub tool_calls: Vec<ToolCall>,
    /// The call that a tool answers.
    pub tool_call_id: Option<String>,
}

impl Message {
    /// A message of text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            content: Content::Text(text.into()),
            reasoning_content: None,
            thinking_blocks: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
        }
    }

    /// The answer of a tool.
    pub fn tool(call_id: impl Into<String>, text: impl Into<String>) -> Self {
        Self { tool_call_id: Some(call_id.into()), ..Self::text(Role::Tool, text) }
    }

    /// Writes the message as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"role\":");
        push_text(out, self.role.as_str());
        if let Some(id) = &self.tool_call_id {
            push_key(out, "tool_call_id");
            push_text(out, id);
        }
        push_key(out, "content");
        match &self.content {
            Content::Text(text) => push_text(out, text),
            Content::Json(json) => push_raw(out, json),
        }
        if let Some(reasoning) = &self.reasoning_content {
            push_key(out, "reasoning_content");
            push_text(out, reasoning);
        }
        if let Some(blocks) = &self.thinking_blocks {
            push_key(out, "thinking_blocks");
            push_raw(out, blocks);
        }
        if !self.tool_calls.is_empty() {
            push_key(out, "tool_calls");
            write_calls(out, &self.tool_calls);
        }
        out.push(b'}');
    }
}

/// A call is a JSON object inside a string, with Python's blanks and in ASCII: readers may compare the strings.
fn write_calls(out: &mut Vec<u8>, calls: &[ToolCall]) {
    let mut object = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        out.push(if index == 0 { b'[' } else { b',' });
        object.clear();
        object.extend_from_slice(b"{\"id\": ");
        push_ascii(&mut object, &call.id);
        object.extend_from_slice(b", \"name\": ");
        push_ascii(&mut object, &call.name);
        object.extend_from_slice(b", \"arguments\": ");
        push_ascii(&mut object, &call.arguments);
        object.push(b'}');
        // It is ASCII, so nothing is replaced.
        push_text(out, &String::from_utf8_lossy(&object));
    }
    out.push(b']');
}
