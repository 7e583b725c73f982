//! The conversation as chat messages: in memory, and in the form of chat interfaces, with nested tool calls and
//! arguments as text.

use aec_model::message::{Reply, Tool, ToolCall};
use serde::Serialize;
use serde_json::Value;

use super::conversation::returned;
use super::{Event, EventRole, calls_of_harness};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub role: Role,
    /// A picture appears in it as `[image 1]`, `[image 2]` and so on.
    pub text: String,
    /// The model's thoughts, as far as the provider reveals them.
    pub reasoning: Option<String>,
    pub tool_calls: Vec<ToolCall>,
    /// For a tool's result: the call that it answers.
    pub tool_call_id: Option<String>,
    /// For a tool's result: whether the result is marked as a failure beside its text.
    pub is_error: bool,
    pub images: usize,
}

impl Message {
    /// A message with one text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, text: text.into(), ..Self::default() }
    }

    /// A tool's result.
    pub fn tool(call_id: impl Into<String>, text: impl Into<String>) -> Self {
        Self { tool_call_id: Some(call_id.into()), ..Self::text(Role::Tool, text) }
    }

    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
            && self.tool_calls.is_empty()
            && self.images == 0
            && self.reasoning.as_deref().is_none_or(|thought| thought.trim().is_empty())
    }
}

impl From<&Reply> for Message {
    fn from(reply: &Reply) -> Self {
        Self {
            reasoning: reply.thoughts(),
            tool_calls: reply.tool_calls().cloned().collect(),
            ..Self::text(Role::Assistant, reply.text())
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// The system prompt.
    System,
    /// The prompt, or a message from the environment.
    #[default]
    User,
    Assistant,
    /// A tool's result.
    Tool,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// The conversation of a trajectory. The calls of one step form one message of the model, whether they ran in sequence
/// or in parallel. Calls that the harness made itself are left out.
pub fn messages(events: &[Event]) -> Vec<Message> {
    let not_said = calls_of_harness(events);
    let mut messages: Vec<Message> = Vec::new();
    // The latest turn of the model, and the index of its message.
    let mut turn: Option<(u32, usize)> = None;
    for event in events {
        let said = || event.content.clone().unwrap_or_default();
        if event.tool_call_id.as_ref().is_some_and(|id| not_said.contains(id)) {
            continue;
        }
        match event.role {
            EventRole::System => messages.push(Message::text(Role::System, said())),
            EventRole::User => messages.push(Message::text(Role::User, said())),
            EventRole::Assistant => {
                turn = Some((event.step, messages.len()));
                let reasoning = event.reasoning.clone();
                messages.push(Message { reasoning, ..Message::text(Role::Assistant, said()) });
            }
            EventRole::ToolCall => {
                let at = match turn {
                    Some((step, at)) if step == event.step => at,
                    _ => {
                        messages.push(Message::text(Role::Assistant, ""));
                        messages.len() - 1
                    }
                };
                turn = Some((event.step, at));
                messages[at].tool_calls.push(called(event));
            }
            EventRole::ToolResult => messages.push(Message {
                tool_call_id: event.tool_call_id.clone(),
                is_error: event.is_failed(),
                ..Message::text(Role::Tool, returned(event))
            }),
            EventRole::ModelCall | EventRole::Note => {}
        }
    }
    messages
}

fn called(event: &Event) -> ToolCall {
    let arguments = match &event.arguments {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    ToolCall { id: text(&event.tool_call_id), name: text(&event.tool_name), arguments }
}

/// Whether to include thoughts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thoughts {
    /// As `reasoning_content`.
    Kept,
    #[default]
    LeftOut,
}

/// The serialised form of a message. Fields are in the order of the keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChatMessage<'a> {
    role: &'static str,
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct ChatCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: ChatFunction<'a>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct ChatFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

/// The serialised form of an offered tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChatTool<'a> {
    r#type: &'static str,
    function: &'a Tool,
}

impl<'a> ChatMessage<'a> {
    fn of(message: &'a Message, thoughts: Thoughts) -> Self {
        let calls = message.tool_calls.iter().map(|call| ChatCall {
            id: &call.id,
            r#type: "function",
            function: ChatFunction { name: &call.name, arguments: &call.arguments },
        });
        Self {
            role: message.role.name(),
            content: &message.text,
            reasoning_content: message.reasoning.as_deref().filter(|_| thoughts == Thoughts::Kept),
            tool_calls: calls.collect(),
            tool_call_id: message.tool_call_id.as_deref().filter(|_| message.role == Role::Tool),
        }
    }

    /// The serialised form of messages.
    pub fn all(messages: &'a [Message], thoughts: Thoughts) -> Vec<Self> {
        messages.iter().map(|message| Self::of(message, thoughts)).collect()
    }
}

impl<'a> ChatTool<'a> {
    /// The serialised form of tools.
    pub fn all(tools: &'a [Tool]) -> Vec<Self> {
        tools.iter().map(|function| Self { r#type: "function", function }).collect()
    }
}
