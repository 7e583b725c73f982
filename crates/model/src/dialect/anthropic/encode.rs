//! Encodes requests in Anthropic's format.

use serde_json::{Map, Value, json};

use crate::dialect::Wire;
use crate::dialect::turns::{Turn, system_texts, turns};
use crate::message::{Part, Request, Tool, ToolCall, ToolChoice};

/// Keys that [`crate::message::Sampling::extra`] cannot replace: conversation, model, and bound of the cost.
const OWN_KEYS: [&str; 8] =
    ["messages", "model", "stream", "max_tokens", "tools", "tool_choice", "system", "anthropic_version"];

/// The body except for keys that depend on the endpoint: `model`, `stream`, `anthropic_version`.
pub(crate) fn encode_body(request: &Request, wire: &Wire) -> Map<String, Value> {
    let sampling = &request.sampling;
    let mut body = Map::new();
    let mut put = |key: &str, value: Value| body.insert(key.to_owned(), value);

    put("max_tokens", sampling.output_limit().into());
    let mut system: Vec<Value> =
        system_texts(&request.messages).map(|text| json!({"type": "text", "text": text})).collect();
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    if wire.cache_prompt {
        // Each marker caches everything before it; this uses three of the four that the service allows.
        mark(&mut system);
        mark(&mut tools);
    }
    if !system.is_empty() {
        put("system", system.into());
    }
    put("messages", messages(request, wire.cache_prompt).into());
    if !tools.is_empty() {
        put("tools", tools.into());
        if let Some(choice) = tool_choice(&request.tool_choice) {
            put("tool_choice", choice);
        }
    }
    if let Some(temperature) = sampling.temperature {
        put("temperature", temperature.into());
    }
    if let Some(top_p) = sampling.top_p {
        put("top_p", top_p.into());
    }
    if !sampling.stop.is_empty() {
        put("stop_sequences", sampling.stop.clone().into());
    }
    if let Some(budget) = sampling.thinking_tokens {
        put("thinking", json!({"type": "enabled", "budget_tokens": budget}));
    }
    if let Some(effort) = &sampling.reasoning_effort {
        put("output_config", json!({"effort": effort}));
    }
    add_extra(&mut body, &sampling.extra);
    body
}

/// Adds further keys. Objects are merged, so that `output_config` can hold more than the effort.
fn add_extra(body: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (key, value) in extra.iter().filter(|(key, _)| !OWN_KEYS.contains(&key.as_str())) {
        match (body.get_mut(key), value) {
            (Some(Value::Object(known)), Value::Object(more)) if known.get("type") == more.get("type") => {
                known.extend(more.clone());
            }
            _ => {
                body.insert(key.clone(), value.clone());
            }
        }
    }
}

fn messages(request: &Request, cache_prompt: bool) -> Vec<Value> {
    let turns = turns(&request.messages, content_block);
    let last_user = turns.iter().rposition(Turn::is_user);
    let encode = |(index, turn): (usize, Turn)| {
        let role = turn.role();
        let mut blocks = turn.into_blocks();
        if cache_prompt && Some(index) == last_user {
            mark(&mut blocks);
        }
        json!({"role": role, "content": blocks})
    };
    turns.into_iter().enumerate().map(encode).collect()
}

/// Asks the service to cache everything up to the last of these blocks.
fn mark(blocks: &mut [Value]) {
    if let Some(Value::Object(block)) = blocks.last_mut() {
        block.insert("cache_control".to_owned(), json!({"type": "ephemeral"}));
    }
}

/// The wire form of a part; `None` if the service would reject it.
fn content_block(part: &Part) -> Option<Value> {
    match part {
        Part::Text { text } => (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text})),
        Part::Image { media_type, data } => Some(json!({
            "type": "image",
            "source": {"type": "base64", "media_type": media_type, "data": data},
        })),
        Part::Reasoning { text, opaque } => thought(text, opaque.as_ref()?.as_object()?),
        Part::ToolCall(call) => Some(json!({
            "type": "tool_use", "id": call.id, "name": call.name, "input": input(call),
        })),
        Part::ToolResult { call_id, parts, is_error } => Some(tool_result(call_id, parts, *is_error)),
    }
}

/// A thought as received; see `thought_part` in `decode`.
fn thought(text: &str, opaque: &Map<String, Value>) -> Option<Value> {
    let kind = opaque.get("type")?.as_str()?;
    let mut block = Map::new();
    block.insert("type".to_owned(), kind.into());
    match kind {
        "thinking" => block.insert("thinking".to_owned(), text.into()),
        "redacted_thinking" => None,
        _ => return None,
    };
    for (key, value) in opaque {
        block.entry(key.clone()).or_insert_with(|| value.clone());
    }
    Some(block.into())
}

/// Arguments of a call. For formats that accept only an object, other text is wrapped in one.
pub(crate) fn input(call: &ToolCall) -> Value {
    match call.object() {
        Some(object) => object.into(),
        None => json!({"unparsed_arguments": call.arguments}),
    }
}

fn tool_result(call_id: &str, parts: &[Part], is_error: bool) -> Value {
    let mut content: Vec<Value> = parts
        .iter()
        .filter(|part| matches!(part, Part::Text { .. } | Part::Image { .. }))
        .filter_map(content_block)
        .collect();
    if content.is_empty() && is_error {
        // The service rejects an error result without text.
        content.push(json!({"type": "text", "text": "(no output)"}));
    }
    let mut block = json!({"type": "tool_result", "tool_use_id": call_id});
    if !content.is_empty() {
        block["content"] = content.into();
    }
    if is_error {
        block["is_error"] = true.into();
    }
    block
}

fn tool(tool: &Tool) -> Value {
    let mut object = Map::new();
    object.insert("name".to_owned(), tool.name.as_str().into());
    if !tool.description.is_empty() {
        object.insert("description".to_owned(), tool.description.as_str().into());
    }
    object.insert("input_schema".to_owned(), object_schema(&tool.parameters));
    object.into()
}

/// A schema of arguments, which must declare an object.
pub(crate) fn object_schema(parameters: &Value) -> Value {
    let mut schema = match parameters {
        Value::Object(schema) => schema.clone(),
        _ => Map::new(),
    };
    schema.entry("type").or_insert_with(|| "object".into());
    schema.into()
}

fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({"type": "none"})),
        ToolChoice::Required => Some(json!({"type": "any"})),
        ToolChoice::Tool(name) => Some(json!({"type": "tool", "name": name})),
    }
}
