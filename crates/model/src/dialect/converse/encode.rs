//! Encodes requests in the Converse format.

use serde_json::{Map, Value, json};

use crate::dialect::Wire;
use crate::dialect::anthropic::{input, object_schema};
use crate::dialect::turns::{Turn, system_texts, turns};
use crate::message::{Part, Request, Tool, ToolChoice};

/// Names of the output limit in the formats of model families. If one were sent beside `maxTokens`, the limit for which
/// money is reserved would not hold.
const LIMIT_KEYS: [&str; 8] = [
    "max_tokens",
    "maxTokens",
    "max_gen_len",
    "max_new_tokens",
    "max_completion_tokens",
    "max_tokens_to_sample",
    "maxTokenCount",
    "inferenceConfig",
];

pub(super) fn encode_body(request: &Request, wire: &Wire) -> Map<String, Value> {
    let sampling = &request.sampling;
    let caching = Caching::of(wire);
    let mut body = Map::new();
    let mut put = |key: &str, value: Value| body.insert(key.to_owned(), value);

    let mut system: Vec<Value> = system_texts(&request.messages).map(|text| json!({"text": text})).collect();
    if !system.is_empty() {
        mark(&mut system, caching.prompt);
        put("system", system.into());
    }
    put("messages", messages(request, &caching).into());

    let mut inference = json!({"maxTokens": sampling.output_limit()});
    if let Some(temperature) = sampling.temperature {
        inference["temperature"] = temperature.into();
    }
    if let Some(top_p) = sampling.top_p {
        inference["topP"] = top_p.into();
    }
    if !sampling.stop.is_empty() {
        inference["stopSequences"] = sampling.stop.clone().into();
    }
    put("inferenceConfig", inference);
    if let Some(tools) = tool_config(request, &caching) {
        put("toolConfig", tools);
    }
    if let Some(effort) = &sampling.reasoning_effort {
        put("outputConfig", json!({"effort": effort}));
    }

    let mut more = Map::new();
    if let Some(budget) = sampling.thinking_tokens {
        more.insert("thinking".to_owned(), json!({"type": "enabled", "budget_tokens": budget}));
    }
    let extra = sampling.extra.iter().filter(|(key, _)| !LIMIT_KEYS.contains(&key.as_str()));
    more.extend(extra.map(|(key, value)| (key.clone(), value.clone())));
    if !more.is_empty() {
        put("additionalModelRequestFields", more.into());
    }
    body
}

/// Where cache points are allowed.
struct Caching {
    prompt: bool,
    tools: bool,
}

impl Caching {
    fn of(wire: &Wire) -> Self {
        let has = |family: &str| wire.cache_prompt && wire.model.contains(family);
        Self { prompt: has("amazon.nova") || has("anthropic."), tools: has("anthropic.") }
    }
}

/// Asks the service to cache everything up to this point.
fn mark(blocks: &mut Vec<Value>, wanted: bool) {
    if wanted {
        blocks.push(json!({"cachePoint": {"type": "default"}}));
    }
}

fn messages(request: &Request, caching: &Caching) -> Vec<Value> {
    let turns = turns(&request.messages, content_block);
    let last_user = turns.iter().rposition(Turn::is_user);
    let mut messages = Vec::with_capacity(turns.len());
    for (index, turn) in turns.into_iter().enumerate() {
        let role = turn.role();
        let mut blocks = turn.into_blocks();
        mark(&mut blocks, caching.prompt && Some(index) == last_user);
        messages.push(json!({"role": role, "content": blocks}));
    }
    messages
}

/// The wire form of a part; `None` if the service would reject it.
fn content_block(part: &Part) -> Option<Value> {
    match part {
        Part::Text { text } => (!text.trim().is_empty()).then(|| json!({"text": text})),
        Part::Image { media_type, data } => {
            Some(json!({"image": {"format": image_format(media_type), "source": {"bytes": data}}}))
        }
        Part::Reasoning { text, opaque } => thought(text, opaque.as_ref()?),
        Part::ToolCall(call) => {
            Some(json!({"toolUse": {"toolUseId": call.id, "name": call.name, "input": input(call)}}))
        }
        Part::ToolResult { call_id, parts, is_error } => Some(tool_result(call_id, parts, *is_error)),
    }
}

fn image_format(media_type: &str) -> &str {
    match media_type.strip_prefix("image/").unwrap_or(media_type) {
        "jpg" => "jpeg",
        format => format,
    }
}

/// A thought as received; see `thought_part` in `decode`.
fn thought(text: &str, opaque: &Value) -> Option<Value> {
    let sealed = |key: &str| opaque.get(key).and_then(Value::as_str);
    let content = match sealed("type")? {
        "reasoningText" => json!({"reasoningText": {"text": text, "signature": sealed("signature")?}}),
        "redactedContent" => json!({"redactedContent": sealed("data")?}),
        _ => return None,
    };
    Some(json!({"reasoningContent": content}))
}

fn tool_result(call_id: &str, parts: &[Part], is_error: bool) -> Value {
    let mut content: Vec<Value> = parts
        .iter()
        .filter(|part| matches!(part, Part::Text { .. } | Part::Image { .. }))
        .filter_map(content_block)
        .collect();
    if content.is_empty() {
        // The format requires some content, and model families reject blank text.
        content.push(json!({"text": "(no output)"}));
    }
    let mut result = json!({"toolUseId": call_id, "content": content});
    if is_error {
        // Success is the default, and not every model family accepts the field.
        result["status"] = "error".into();
    }
    json!({"toolResult": result})
}

fn tool_config(request: &Request, caching: &Caching) -> Option<Value> {
    let parts = || request.messages.iter().flat_map(|message| &message.parts);
    let is_tool_block = |part: &Part| matches!(part, Part::ToolCall(_) | Part::ToolResult { .. });
    let silenced = request.tool_choice == ToolChoice::None && !parts().any(is_tool_block);
    if request.tools.is_empty() || silenced {
        return None;
    }
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    mark(&mut tools, caching.tools);
    let mut config = json!({"tools": tools});
    match &request.tool_choice {
        // "auto" is the default, and not every model family accepts the field.
        ToolChoice::Auto | ToolChoice::None => {}
        ToolChoice::Required => config["toolChoice"] = json!({"any": {}}),
        ToolChoice::Tool(name) => config["toolChoice"] = json!({"tool": {"name": name}}),
    }
    Some(config)
}

fn tool(tool: &Tool) -> Value {
    let mut specification = Map::new();
    specification.insert("name".to_owned(), tool.name.as_str().into());
    if !tool.description.is_empty() {
        specification.insert("description".to_owned(), tool.description.as_str().into());
    }
    specification.insert("inputSchema".to_owned(), json!({"json": object_schema(&tool.parameters)}));
    json!({"toolSpec": specification})
}
