//! A request as a chat-completions body.

use serde_json::{Map, Number, Value, json};

use super::reasoning;
use crate::dialect::{LimitKey, Wire};
use crate::message::{Message, Part, Request, Role, Tool, ToolCall, ToolChoice, join_text};

/// Keys that further keys of a request never set. The meter counts on one answer of bounded length, and the rest of
/// the program on what it said itself.
const OURS: [&str; 12] = [
    "messages",
    "model",
    "stream",
    "stream_options",
    "n",
    "best_of",
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "max_tokens",
    "max_completion_tokens",
];

/// What a tool message says when the tool returned nothing but images, which it cannot hold.
const IMAGES_FOLLOW: &str = "see the images in the next message";

/// The body. Equal requests give equal bytes.
pub(super) fn body(request: &Request, wire: &Wire) -> Map<String, Value> {
    let sampling = &request.sampling;
    let mut body = Map::new();
    let mut put = |key: &str, value: Value| {
        body.insert(key.to_owned(), value);
    };
    if wire.model_in_body {
        put("model", json!(wire.model));
    }
    put("messages", messages(&request.messages));
    // A choice among no tools is refused by some.
    if !request.tools.is_empty() {
        put("tools", request.tools.iter().map(tool).collect());
        if let Some(choice) = tool_choice(&request.tool_choice) {
            put("tool_choice", choice);
        }
    }
    let limit_key = match wire.limit_key {
        LimitKey::MaxCompletionTokens => "max_completion_tokens",
        LimitKey::MaxTokens => "max_tokens",
    };
    put(limit_key, json!(sampling.output_limit()));
    for (key, number) in [("temperature", sampling.temperature), ("top_p", sampling.top_p)] {
        if let Some(number) = number.and_then(Number::from_f64) {
            put(key, Value::Number(number));
        }
    }
    if !sampling.stop.is_empty() {
        put("stop", json!(sampling.stop));
    }
    if let Some(seed) = sampling.seed {
        put("seed", json!(seed));
    }
    if let Some(effort) = &sampling.reasoning_effort {
        put("reasoning_effort", json!(effort));
    }
    if wire.stream {
        put("stream", json!(true));
        put("stream_options", json!({"include_usage": true}));
    }
    // Maps are equal in any order, so the order in which the keys were given must not show.
    let mut extra: Vec<(&String, &Value)> =
        sampling.extra.iter().filter(|(key, _)| !OURS.contains(&key.as_str())).collect();
    extra.sort_unstable_by_key(|(key, _)| *key);
    for (key, value) in extra {
        put(key, value.clone());
    }
    body
}

fn tool(tool: &Tool) -> Value {
    json!({
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
    })
}

fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!("none")),
        ToolChoice::Required => Some(json!("required")),
        ToolChoice::Tool(name) => Some(json!({"type": "function", "function": {"name": name}})),
    }
}

fn messages(messages: &[Message]) -> Value {
    let mut list = Vec::with_capacity(messages.len());
    for run in messages.chunk_by(|one, next| one.role == Role::User && next.role == Role::User) {
        match run[0].role {
            Role::System => push_spoken("system", run[0].parts.iter(), &mut list),
            Role::User => push_user_run(run, &mut list),
            Role::Assistant => list.push(assistant(&run[0].parts)),
        }
    }
    Value::Array(list)
}

/// User messages in a row. Tool messages must follow the calls that they answer at once, so all results of the run
/// come first; their images come with what the user says next.
fn push_user_run(run: &[Message], list: &mut Vec<Value>) {
    let mut images: Vec<&Part> = Vec::new();
    for part in run.iter().flat_map(|message| &message.parts) {
        let Part::ToolResult { call_id, parts, .. } = part else { continue };
        let before = images.len();
        images.extend(parts.iter().filter(|part| matches!(part, Part::Image { .. })));
        let mut text = join_text(parts);
        if text.is_empty() && images.len() > before {
            IMAGES_FOLLOW.clone_into(&mut text);
        }
        list.push(json!({"role": "tool", "tool_call_id": call_id, "content": text}));
    }
    for message in run {
        let said = message.parts.iter().filter(|part| matches!(part, Part::Text { .. } | Part::Image { .. }));
        if said.clone().next().is_some() {
            push_spoken("user", images.drain(..).chain(said), list);
        }
    }
    push_spoken("user", images.drain(..), list);
}

/// A message of text and images, unless there is none of either. Other parts cannot stand here.
fn push_spoken<'a>(role: &str, parts: impl Iterator<Item = &'a Part>, list: &mut Vec<Value>) {
    let parts: Vec<&Part> =
        parts.filter(|part| matches!(part, Part::Text { .. } | Part::Image { .. })).collect();
    if parts.is_empty() {
        return;
    }
    let pieces: Vec<Value> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } if !text.is_empty() => Some(json!({"type": "text", "text": text})),
            Part::Image { media_type, data } => Some(
                json!({"type": "image_url", "image_url": {"url": format!("data:{media_type};base64,{data}")}}),
            ),
            _ => None,
        })
        .collect();
    let content = if parts.iter().any(|part| matches!(part, Part::Image { .. })) {
        Value::Array(pieces)
    } else {
        let texts: Vec<&str> = parts
            .iter()
            .filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        json!(texts.join("\n"))
    };
    list.push(json!({"role": role, "content": content}));
}

/// The model's own turn: text, calls, and thoughts that this format can carry.
fn assistant(parts: &[Part]) -> Value {
    let calls: Vec<Value> = parts
        .iter()
        .filter_map(|part| match part {
            Part::ToolCall(ToolCall { id, name, arguments }) => Some(json!({
                "id": id,
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            })),
            _ => None,
        })
        .collect();
    let text = join_text(parts);
    let mut message = Map::new();
    message.insert("role".to_owned(), json!("assistant"));
    let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { json!(text) };
    message.insert("content".to_owned(), content);
    reasoning::put_back(parts, &mut message);
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    Value::Object(message)
}
