//! Messages in one form, whatever format they were written in.
//!
//! Tool calls occur flat, nested under `function`, and as JSON text of either; arguments occur as text and as an
//! object; content occurs as text, as a list of parts and as null. All of them become one [`Message`].

use std::collections::{HashMap, HashSet, VecDeque};

use aec_ledger::transcript::chat::{Message, Role};
use aec_model::message::{Tool, ToolCall};
use serde_json::Value;

use crate::rollouts::json::parse_text;
use crate::rollouts::problem::Note;
use crate::rollouts::value::{Object, first_text, id, kind, take, text};

/// The arguments of a call as JSON, if they are JSON. They are parsed on each call, because parsed values take many
/// times the memory of the text.
pub fn parsed(call: &ToolCall) -> Option<Value> {
    parse_text(&call.arguments)
}

/// Whether this is a call of some tool. A tool server may prefix its own name: `files_submit_answer`.
pub fn is_of(call: &ToolCall, tool: &str) -> bool {
    let front = call.name.strip_suffix(tool);
    front.is_some_and(|front| front.is_empty() || front.ends_with(['_', '.', '/', ':']))
}

/// The arguments of a call, if they are an object. Missing arguments are an empty object.
pub fn object(call: &ToolCall) -> Option<Object> {
    if call.arguments.trim().is_empty() {
        return Some(Object::new());
    }
    match parsed(call) {
        Some(Value::Object(object)) => Some(object),
        _ => None,
    }
}

fn role_of(name: &str) -> Option<Role> {
    Some(match name {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" | "model" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        _ => return None,
    })
}

/// Reads a prompt or a completion: a list of messages, one message, a text, or JSON text of a list. `speaker` is the
/// role of a text that names none.
pub fn read_messages(value: Value, speaker: Role, notes: &mut Vec<Note>) -> Vec<Message> {
    match value {
        Value::Null => Vec::new(),
        Value::String(text) => match list_in(&text) {
            Some(items) => items.into_iter().filter_map(|item| read_message(item, speaker, notes)).collect(),
            None => vec![Message { role: speaker, text, ..Message::default() }],
        },
        Value::Array(items) => {
            items.into_iter().filter_map(|item| read_message(item, speaker, notes)).collect()
        }
        Value::Object(_) => read_message(value, speaker, notes).into_iter().collect(),
        other => {
            notes.push(passed_over(if speaker == Role::User { "prompt" } else { "completion" }, &other));
            Vec::new()
        }
    }
}

/// A list of messages that was written as text. A prompt may begin with a bracket, so every item must be a message.
fn list_in(text: &str) -> Option<Vec<Value>> {
    if !text.starts_with('[') {
        return None;
    }
    let Some(Value::Array(items)) = parse_text(text) else { return None };
    (!items.is_empty() && items.iter().all(|item| item.get("role").is_some_and(Value::is_string)))
        .then_some(items)
}

pub(crate) fn read_message(value: Value, speaker: Role, notes: &mut Vec<Note>) -> Option<Message> {
    let mut object = match value {
        Value::Object(object) => object,
        Value::String(text) => return Some(Message { role: speaker, text, ..Message::default() }),
        other => {
            notes.push(passed_over("message", &other));
            return None;
        }
    };
    let named = text(&object, "role");
    let role = match named.as_deref() {
        None | Some("text") => speaker,
        Some(name) => role_of(name).unwrap_or_else(|| {
            notes.push(Note::PassedOver { key: "role".to_owned(), found: format!("`{name}`") });
            speaker
        }),
    };
    let mut message = Message { role, ..Message::default() };
    let mut thoughts = Vec::new();
    if let Some(content) = take(&mut object, "content") {
        read_content(content, &mut message, &mut thoughts, notes);
    }
    message.reasoning =
        read_reasoning(&object).or_else(|| (!thoughts.is_empty()).then(|| thoughts.join("\n")));
    if let Some(calls) = take(&mut object, "tool_calls") {
        message.tool_calls = read_tool_calls(calls, notes);
    }
    message.tool_call_id = id(&object, "tool_call_id");
    message.is_error = object.get("is_error").and_then(Value::as_bool) == Some(true)
        || (role == Role::Tool && text(&object, "status").as_deref() == Some("error"));
    Some(message)
}

fn read_content(content: Value, message: &mut Message, thoughts: &mut Vec<String>, notes: &mut Vec<Note>) {
    let parts = match content {
        Value::String(text) => {
            message.text = text;
            return;
        }
        Value::Array(parts) => parts,
        part @ Value::Object(_) => vec![part],
        other => {
            message.text = other.to_string();
            return;
        }
    };
    let mut texts = Vec::new();
    for part in parts {
        let Value::Object(object) = &part else {
            match part {
                Value::String(text) => texts.push(text),
                other => notes.push(passed_over("content", &other)),
            }
            continue;
        };
        match object.get("type").and_then(Value::as_str) {
            Some("image_url" | "image" | "input_image") => {
                message.images += 1;
                texts.push(format!("[image {}]", message.images));
            }
            Some("thinking" | "reasoning") => {
                thoughts.extend(first_text(object, &["thinking", "text", "reasoning"]));
            }
            other => match object.get("text") {
                Some(Value::String(text)) => texts.push(text.clone()),
                _ => notes.push(Note::PassedOver {
                    key: "content".to_owned(),
                    found: format!("a part of type `{}`", other.unwrap_or("-")),
                }),
            },
        }
    }
    message.text = texts.join("\n");
}

fn read_reasoning(object: &Object) -> Option<String> {
    first_text(object, &["reasoning_content", "reasoning"]).or_else(|| {
        let blocks = ["thinking_blocks", "reasoning_details"]
            .into_iter()
            .find_map(|key| object.get(key)?.as_array())?;
        let texts: Vec<String> = blocks
            .iter()
            .filter_map(|block| first_text(block.as_object()?, &["thinking", "text", "summary"]))
            .collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    })
}

fn read_tool_calls(calls: Value, notes: &mut Vec<Note>) -> Vec<ToolCall> {
    let items = match calls {
        Value::Array(items) => items,
        Value::String(text) => match parse_text(&text) {
            Some(Value::Array(items)) => items,
            _ => vec![Value::String(text)],
        },
        other => vec![other],
    };
    items.into_iter().filter_map(|item| read_tool_call(item, notes)).collect()
}

fn read_tool_call(item: Value, notes: &mut Vec<Note>) -> Option<ToolCall> {
    let written = match &item {
        Value::String(text) => parse_text(text),
        _ => None,
    };
    let Value::Object(mut object) = written.unwrap_or(item) else {
        notes.push(Note::PassedOver {
            key: "tool_calls".to_owned(),
            found: "not a call of a tool".to_owned(),
        });
        return None;
    };
    let id = id(&object, "id").or_else(|| id(&object, "call_id")).unwrap_or_default();
    if let Some(Value::Object(function)) = take(&mut object, "function") {
        object = function;
    }
    let Some(name) = text(&object, "name") else {
        notes.push(Note::PassedOver {
            key: "tool_calls".to_owned(),
            found: "a call without a name".to_owned(),
        });
        return None;
    };
    let given = ["arguments", "input"].into_iter().find_map(|key| take(&mut object, key));
    let arguments = match given {
        None => String::new(),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    };
    Some(ToolCall { id, name, arguments })
}

/// Reads the tools that a model might call: flat, nested under `function`, or as JSON text of either.
pub(crate) fn read_tools(value: Value, notes: &mut Vec<Note>) -> Vec<Tool> {
    let Value::Array(items) = value else {
        notes.push(passed_over("tool_defs", &value));
        return Vec::new();
    };
    let mut tools = Vec::new();
    for item in items {
        let written = item.as_str().and_then(parse_text);
        let item = written.unwrap_or(item);
        let Value::Object(mut object) = item else {
            notes.push(passed_over("tool_defs", &item));
            continue;
        };
        if let Some(Value::Object(function)) = take(&mut object, "function") {
            object = function;
        }
        match text(&object, "name") {
            Some(name) => tools.push(Tool {
                name,
                description: text(&object, "description").unwrap_or_default(),
                parameters: take(&mut object, "parameters").unwrap_or_else(|| Value::Object(Object::new())),
            }),
            None => notes.push(Note::PassedOver {
                key: "tool_defs".to_owned(),
                found: "a tool without a name".to_owned(),
            }),
        }
    }
    tools
}

/// Gives ids to calls without one, and assigns each result without an id to its call, in order.
pub(crate) fn pair_calls(messages: &mut [Message]) {
    let mut number = 0;
    let mut open = VecDeque::new();
    let mut answered = HashSet::new();
    for message in messages {
        match message.role {
            Role::Assistant => {
                open.clear();
                answered.clear();
                for call in &mut message.tool_calls {
                    number += 1;
                    if call.id.is_empty() {
                        call.id = format!("call_{number}");
                    }
                    open.push_back(call.id.clone());
                }
            }
            Role::Tool => {
                if message.tool_call_id.is_none() {
                    while open.front().is_some_and(|id| answered.contains(id)) {
                        open.pop_front();
                    }
                    message.tool_call_id = open.pop_front();
                }
                answered.extend(message.tool_call_id.clone());
            }
            Role::System | Role::User => {}
        }
    }
}

/// For each message, the call that it answers. Calls are searched in the preceding turn, because another turn may have
/// used the same ids.
pub(crate) fn answered_calls(messages: &[Message]) -> Vec<Option<&ToolCall>> {
    let mut calls: HashMap<&str, &ToolCall> = HashMap::new();
    let of_message = messages.iter().map(|message| {
        if message.role == Role::Assistant {
            calls = message.tool_calls.iter().map(|call| (call.id.as_str(), call)).collect();
        }
        let id = message.tool_call_id.as_deref().filter(|_| message.role == Role::Tool)?;
        calls.get(id).copied()
    });
    of_message.collect()
}

pub(crate) fn passed_over(key: &str, value: &Value) -> Note {
    Note::PassedOver { key: key.to_owned(), found: kind(value).to_owned() }
}
