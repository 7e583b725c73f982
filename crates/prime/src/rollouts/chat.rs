//! A message as chat interfaces write it: `role`, `content`, nested tool calls with arguments as text.

use serde::Serialize;

use crate::rollouts::message::{Message, Role, Tool};

/// Whether thoughts are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thoughts {
    /// As `reasoning_content`.
    Kept,
    /// Not at all.
    #[default]
    LeftOut,
}

/// A message as it is written. The order of its fields is the order of its keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChatMessage<'a> {
    /// Who speaks.
    pub role: &'static str,
    /// What is said.
    pub content: &'a str,
    /// What the model thought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<&'a str>,
    /// The tools that it calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ChatCall<'a>>,
    /// The call that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<&'a str>,
}

/// A call of a tool as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChatCall<'a> {
    /// Names the call.
    pub id: &'a str,
    /// Always `function`.
    pub r#type: &'static str,
    /// Which tool, and with what.
    pub function: ChatFunction<'a>,
}

/// Which tool is called, and with what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChatFunction<'a> {
    /// Which tool.
    pub name: &'a str,
    /// The arguments as the model wrote them.
    pub arguments: &'a str,
}

/// A tool as it is offered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChatTool<'a> {
    /// Always `function`.
    pub r#type: &'static str,
    /// The tool.
    pub function: ChatToolFunction<'a>,
}

/// A tool as it is offered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChatToolFunction<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it does.
    pub description: &'a str,
    /// JSON Schema of its arguments.
    pub parameters: &'a serde_json::Value,
}

impl<'a> ChatMessage<'a> {
    /// A message as it is written.
    pub fn of(message: &'a Message, thoughts: Thoughts) -> Self {
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

    /// Messages as they are written.
    pub fn all(messages: &'a [Message], thoughts: Thoughts) -> Vec<Self> {
        messages.iter().map(|message| Self::of(message, thoughts)).collect()
    }
}

impl<'a> ChatTool<'a> {
    /// Tools as they are offered.
    pub fn all(tools: &'a [Tool]) -> Vec<Self> {
        let offer = |tool: &'a Tool| ChatToolFunction {
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.parameters,
        };
        tools.iter().map(|tool| Self { r#type: "function", function: offer(tool) }).collect()
    }
}
