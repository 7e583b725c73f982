//! Decodes agents' requests strictly.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::gateway::Inbound;
use crate::message::{Message, Part, Request, Role, Sampling, Tool, ToolCall, ToolChoice};

/// Types of images that the services accept.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Keys of an object, removed one by one; remaining keys are refused.
struct Keys {
    at: String,
    map: Map<String, Value>,
}

impl Keys {
    fn of(value: Value, at: impl Into<String>) -> Result<Self, String> {
        let at = at.into();
        match value {
            Value::Object(map) => Ok(Self { at, map }),
            _ => Err(format!("{}: expected an object", if at.is_empty() { "body" } else { &at })),
        }
    }

    fn path(&self, key: &str) -> String {
        if self.at.is_empty() { key.to_owned() } else { format!("{}.{key}", self.at) }
    }

    fn take(&mut self, key: &str) -> Option<Value> {
        self.map.shift_remove(key).filter(|value| !value.is_null())
    }

    fn wrong<T>(&self, key: &str, expected: &str) -> Result<T, String> {
        Err(format!("{}: expected {expected}", self.path(key)))
    }

    fn need(&mut self, key: &str) -> Result<Value, String> {
        self.take(key).ok_or_else(|| format!("{}: required", self.path(key)))
    }

    fn text(&mut self, key: &str) -> Result<Option<String>, String> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => self.wrong(key, "a string"),
        }
    }

    fn need_text(&mut self, key: &str) -> Result<String, String> {
        self.text(key)?.ok_or_else(|| format!("{}: required", self.path(key)))
    }

    fn boolean(&mut self, key: &str) -> Result<bool, String> {
        match self.take(key) {
            None => Ok(false),
            Some(Value::Bool(value)) => Ok(value),
            Some(_) => self.wrong(key, "true or false"),
        }
    }

    fn positive(&mut self, key: &str) -> Result<Option<u32>, String> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match value.as_u64().and_then(|value| u32::try_from(value).ok()) {
            Some(value) if value > 0 => Ok(Some(value)),
            _ => self.wrong(key, "a positive integer"),
        }
    }

    fn number(&mut self, key: &str) -> Result<Option<f64>, String> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match value.as_f64() {
            Some(value) if (0.0..=1.0).contains(&value) => Ok(Some(value)),
            _ => self.wrong(key, "a number from 0 to 1"),
        }
    }

    fn list(&mut self, key: &str) -> Result<Vec<Value>, String> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(list)) => Ok(list),
            Some(_) => self.wrong(key, "a list"),
        }
    }

    fn object(&mut self, key: &str) -> Result<Option<Self>, String> {
        let at = self.path(key);
        self.take(key).map(|value| Self::of(value, at)).transpose()
    }

    /// Accepts and ignores an object.
    fn drop_object(&mut self, key: &str) -> Result<(), String> {
        self.object(key).map(drop)
    }

    /// Refuses remaining keys.
    fn done(self) -> Result<(), String> {
        match self.map.iter().find(|(_, value)| !value.is_null()) {
            None => Ok(()),
            Some((key, _)) => Err(format!("{}: not supported here", self.path(key))),
        }
    }
}

/// Decodes the body of an agent's request, or says what is wrong with it.
pub fn decode_request(body: &[u8]) -> Result<Inbound, String> {
    let body = aec_base::json::from_slice(body).map_err(|error| format!("body: not JSON: {error}"))?;
    let mut keys = Keys::of(body, "")?;
    let model = keys.need_text("model")?;
    let stream = keys.boolean("stream")?;
    keys.drop_object("metadata")?;
    keys.drop_object("cache_control")?;

    let max_tokens = keys.positive("max_tokens")?.ok_or("max_tokens: required")?;
    let mut sampling = Sampling {
        max_tokens: Some(max_tokens),
        temperature: keys.number("temperature")?,
        top_p: keys.number("top_p")?,
        stop: strings(&mut keys, "stop_sequences")?,
        ..Sampling::default()
    };
    if let Some(top_k) = keys.positive("top_k")? {
        sampling.extra.insert("top_k".to_owned(), top_k.into());
    }
    if let Some(thinking) = keys.object("thinking")? {
        decode_thinking(thinking, &mut sampling)?;
    }
    if let Some(mut output) = keys.object("output_config")? {
        sampling.reasoning_effort = output.text("effort")?;
        output.done()?;
    }

    let tools = indexed(keys.list("tools")?, "tools").map(decode_tool).collect::<Result<Vec<_>, _>>()?;
    let tool_choice = match keys.object("tool_choice")? {
        Some(choice) => decode_tool_choice(choice, &tools)?,
        None => ToolChoice::Auto,
    };
    let mut messages = Vec::new();
    if let Some(system) = keys.take("system") {
        let parts = content(system, "system", |block| match block.kind.as_str() {
            "text" => text_part(block),
            _ => Err(block.unsupported()),
        })?;
        messages.push(Message { role: Role::System, parts });
    }
    let turns = keys.list("messages")?;
    if turns.is_empty() {
        return Err("messages: at least one is required".to_owned());
    }
    for turn in indexed(turns, "messages") {
        messages.push(decode_turn(turn)?);
    }
    keys.done()?;
    let request = Request { messages, tools: tools.into(), tool_choice, sampling };
    Ok(Inbound { model, stream, include_usage: true, request })
}

/// The items of a list with their paths.
fn indexed(list: Vec<Value>, at: &str) -> impl Iterator<Item = (String, Value)> {
    list.into_iter().enumerate().map(move |(index, value)| (format!("{at}[{index}]"), value))
}

fn strings(keys: &mut Keys, key: &str) -> Result<Vec<String>, String> {
    let list = keys.list(key)?;
    let at = keys.path(key);
    indexed(list, &at)
        .map(|(at, value)| match value {
            Value::String(text) => Ok(text),
            _ => Err(format!("{at}: expected a string")),
        })
        .collect()
}

fn decode_thinking(mut keys: Keys, sampling: &mut Sampling) -> Result<(), String> {
    let kind = keys.need_text("type")?;
    let display = keys.text("display")?;
    match kind.as_str() {
        "disabled" => {}
        "enabled" => {
            sampling.thinking_tokens = keys.positive("budget_tokens")?;
            if sampling.thinking_tokens.is_none() {
                return Err(format!("{}: required", keys.path("budget_tokens")));
            }
        }
        // Other dialects have no such switch, so it is passed on as an extra key.
        "adaptive" => {
            sampling.extra.insert("thinking".to_owned(), json!({"type": "adaptive"}));
        }
        _ => return keys.wrong("type", "`enabled`, `disabled` or `adaptive`"),
    }
    match display.as_deref() {
        // It only concerns which thoughts are shown.
        None | Some("summarized" | "omitted") => keys.done(),
        Some(_) => keys.wrong("display", "`summarized` or `omitted`"),
    }
}

fn decode_tool((at, value): (String, Value)) -> Result<Tool, String> {
    let mut keys = Keys::of(value, at)?;
    match keys.text("type")?.as_deref() {
        None | Some("custom") => {}
        Some(kind) => {
            return Err(format!("{}: tools of type `{kind}` are not supported here", keys.path("type")));
        }
    }
    let name = keys.need_text("name")?;
    let description = keys.text("description")?.unwrap_or_default();
    let parameters = keys.need("input_schema")?;
    if !parameters.is_object() {
        return keys.wrong("input_schema", "an object");
    }
    keys.drop_object("cache_control")?;
    // A hint about the pieces of streamed arguments; answers are complete here.
    keys.boolean("eager_input_streaming")?;
    keys.done()?;
    Ok(Tool { name, description, parameters })
}

fn decode_tool_choice(mut keys: Keys, tools: &[Tool]) -> Result<ToolChoice, String> {
    let choice = match keys.need_text("type")?.as_str() {
        "auto" => ToolChoice::Auto,
        "none" => ToolChoice::None,
        "any" => ToolChoice::Required,
        "tool" => ToolChoice::Tool(keys.need_text("name")?),
        _ => return keys.wrong("type", "`auto`, `any`, `tool` or `none`"),
    };
    let possible = match &choice {
        ToolChoice::Auto | ToolChoice::None => true,
        ToolChoice::Required => !tools.is_empty(),
        ToolChoice::Tool(name) => tools.iter().any(|tool| tool.name == *name),
    };
    if !possible {
        return Err("tool_choice: names a tool that `tools` does not have".to_owned());
    }
    if keys.boolean("disable_parallel_tool_use")? {
        return Err(format!("{}: not supported here", keys.path("disable_parallel_tool_use")));
    }
    keys.done()?;
    Ok(choice)
}

/// A block of a known type.
struct Block {
    kind: String,
    keys: Keys,
}

impl Block {
    fn unsupported(&self) -> String {
        format!("{}: a block of type `{}` is not supported here", self.keys.at, self.kind)
    }
}

/// A content that is a string or a list of blocks.
fn content(
    value: Value,
    at: &str,
    mut part: impl FnMut(Block) -> Result<Part, String>,
) -> Result<Vec<Part>, String> {
    match value {
        Value::String(text) => Ok(vec![Part::Text { text }]),
        Value::Array(blocks) => indexed(blocks, at)
            .map(|(at, block)| {
                let mut keys = Keys::of(block, at)?;
                let kind = keys.need_text("type")?;
                keys.drop_object("cache_control")?;
                part(Block { kind, keys })
            })
            .collect(),
        _ => Err(format!("{at}: expected a string or a list of blocks")),
    }
}

fn decode_turn((at, value): (String, Value)) -> Result<Message, String> {
    let mut keys = Keys::of(value, at)?;
    let role = match keys.need_text("role")?.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => return keys.wrong("role", "`user` or `assistant`"),
    };
    let at = keys.path("content");
    let parts = content(keys.need("content")?, &at, |block| match (block.kind.as_str(), role) {
        ("text", _) => text_part(block),
        ("image", Role::User) => image_part(block),
        ("tool_result", Role::User) => tool_result_part(block),
        ("tool_use", Role::Assistant) => tool_use_part(block),
        ("thinking", Role::Assistant) => thinking_part(block),
        ("redacted_thinking", Role::Assistant) => redacted_part(block),
        _ => Err(block.unsupported()),
    })?;
    keys.done()?;
    Ok(Message { role, parts })
}

fn text_part(block: Block) -> Result<Part, String> {
    let mut keys = block.keys;
    let text = keys.need_text("text")?;
    keys.done()?;
    Ok(Part::Text { text })
}

/// Only images inside the request: a URL would reach the network, a file id someone's storage.
fn image_part(mut block: Block) -> Result<Part, String> {
    let Some(mut source) = block.keys.object("source")? else {
        return Err(format!("{}: required", block.keys.path("source")));
    };
    if source.need_text("type")? != "base64" {
        return source.wrong("type", "`base64`; other sources are not supported here");
    }
    let media_type = source.need_text("media_type")?;
    if !IMAGE_TYPES.contains(&media_type.as_str()) {
        return source.wrong("media_type", &format!("one of {}", IMAGE_TYPES.join(", ")));
    }
    let data = source.need_text("data")?;
    if data.is_empty() || STANDARD.decode(&data).is_err() {
        return source.wrong("data", "base64");
    }
    source.done()?;
    block.keys.done()?;
    Ok(Part::Image { media_type, data })
}

fn tool_result_part(block: Block) -> Result<Part, String> {
    let mut keys = block.keys;
    let call_id = keys.need_text("tool_use_id")?;
    let is_error = keys.boolean("is_error")?;
    let at = keys.path("content");
    let parts = match keys.take("content") {
        None => Vec::new(),
        Some(value) => content(value, &at, |block| match block.kind.as_str() {
            "text" => text_part(block),
            "image" => image_part(block),
            _ => Err(block.unsupported()),
        })?,
    };
    keys.done()?;
    Ok(Part::ToolResult { call_id, parts, is_error })
}

fn tool_use_part(block: Block) -> Result<Part, String> {
    let mut keys = block.keys;
    let id = keys.need_text("id")?;
    let name = keys.need_text("name")?;
    let input = keys.need("input")?;
    if !input.is_object() {
        return keys.wrong("input", "an object");
    }
    if let Some(mut caller) = keys.object("caller")? {
        if caller.need_text("type")? != "direct" {
            return caller.wrong("type", "`direct`");
        }
        caller.done()?;
    }
    keys.done()?;
    Ok(Part::ToolCall(ToolCall { id, name, arguments: input.to_string() }))
}

fn thinking_part(block: Block) -> Result<Part, String> {
    let mut keys = block.keys;
    let text = keys.need_text("thinking")?;
    let signature = keys.text("signature")?.filter(|signature| !signature.is_empty());
    keys.done()?;
    let opaque = signature.map(|signature| json!({"type": "thinking", "signature": signature}));
    Ok(Part::Reasoning { text, opaque })
}

fn redacted_part(block: Block) -> Result<Part, String> {
    let mut keys = block.keys;
    let data = keys.need_text("data")?;
    keys.done()?;
    Ok(Part::Reasoning {
        text: String::new(),
        opaque: Some(json!({"type": "redacted_thinking", "data": data})),
    })
}
