//! Decodes an agent's chat-completions request. Keys that could cost more than the meter knows, leave the sandbox or
//! reach another service are refused by name; so are unknown keys.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::super::Inbound;
use super::super::strict::{Fields, parse};
use super::thoughts;
use crate::message::{Message, Part, Request, Role, Sampling, Tool, ToolCall, ToolChoice};

/// The type of a value that is passed on.
#[derive(Clone, Copy)]
enum Kind {
    Number,
    Whole,
    Flag,
    Object,
}

/// Keys that are passed on unchanged: they only shape the answer.
const PASSED_ON: [(&str, Kind); 11] = [
    ("presence_penalty", Kind::Number),
    ("frequency_penalty", Kind::Number),
    ("logit_bias", Kind::Object),
    ("logprobs", Kind::Flag),
    ("top_logprobs", Kind::Whole),
    ("response_format", Kind::Object),
    ("parallel_tool_calls", Kind::Flag),
    ("top_k", Kind::Whole),
    ("min_p", Kind::Number),
    ("repetition_penalty", Kind::Number),
    ("chat_template_kwargs", Kind::Object),
];

/// Decodes a request. The error names the wrong key, for the author of the agent.
pub fn decode_request(body: &[u8]) -> Result<Inbound, String> {
    let mut fields = Fields::of(parse(body)?, "")?;
    let model = fields.name("model")?;
    let stream = fields.flag("stream")?.unwrap_or(false);
    let include_usage = include_usage(&mut fields)?;
    if fields.whole("n")?.is_some_and(|n| n != 1) {
        return Err("`n` is not 1: a request gets one answer".to_owned());
    }
    let tools = tools(&mut fields)?;
    let tool_choice = tool_choice(&mut fields, &tools)?;
    let sampling = sampling(&mut fields)?;
    let messages = messages(&mut fields)?;
    // These concern the payer's account and do not affect the answer.
    fields.text("user")?;
    fields.fields("metadata")?;
    fields.flag("store")?;
    fields.finish()?;
    let request = Request { messages, tools: tools.into(), tool_choice, sampling };
    Ok(Inbound { model, stream, include_usage, request })
}

fn include_usage(fields: &mut Fields) -> Result<bool, String> {
    let Some(mut options) = fields.fields("stream_options")? else { return Ok(false) };
    let include = options.flag("include_usage")?;
    options.finish()?;
    Ok(include.unwrap_or(false))
}

fn sampling(fields: &mut Fields) -> Result<Sampling, String> {
    let mut max_tokens = None;
    for key in ["max_tokens", "max_completion_tokens"] {
        let Some(limit) = fields.whole(key)? else { continue };
        let limit = u32::try_from(limit)
            .ok()
            .filter(|limit| *limit > 0)
            .ok_or_else(|| fields.objection(key, "a possible number of tokens"))?;
        if max_tokens.is_some_and(|other| other != limit) {
            return Err("`max_tokens` and `max_completion_tokens` contradict each other".to_owned());
        }
        max_tokens = Some(limit);
    }
    let mut extra = Map::new();
    for (key, kind) in PASSED_ON {
        let Some(value) = fields.take(key) else { continue };
        let (fits, expected) = match kind {
            Kind::Number => (value.is_number(), "a number"),
            Kind::Whole => (value.is_i64() || value.is_u64(), "a whole number"),
            Kind::Flag => (value.is_boolean(), "true or false"),
            Kind::Object => (value.is_object(), "an object"),
        };
        if !fits {
            return Err(fields.objection(key, expected));
        }
        extra.insert(key.to_owned(), value);
    }
    Ok(Sampling {
        max_tokens,
        temperature: fields.number("temperature")?,
        top_p: fields.number("top_p")?,
        stop: stop(fields)?,
        seed: fields.whole("seed")?,
        reasoning_effort: fields.text("reasoning_effort")?,
        thinking_tokens: None,
        extra,
    })
}

fn stop(fields: &mut Fields) -> Result<Vec<String>, String> {
    let texts = match fields.take("stop") {
        None => Some(Vec::new()),
        Some(Value::String(text)) => Some(vec![text]),
        Some(Value::Array(items)) => {
            items.into_iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        }
        Some(_) => None,
    };
    texts.ok_or_else(|| fields.objection("stop", "a text or a list of texts"))
}

fn tools(fields: &mut Fields) -> Result<Vec<Tool>, String> {
    let items = fields.list("tools")?.unwrap_or_default();
    items
        .into_iter()
        .enumerate()
        .map(|(index, item)| {
            let mut item = Fields::of(item, format!("tools[{index}]"))?;
            let mut function = function_of(&mut item)?;
            item.finish()?;
            let name = function.name("name")?;
            let description = function.text("description")?.unwrap_or_default();
            let parameters = match function.take("parameters") {
                None => json!({"type": "object", "properties": {}}),
                Some(parameters) if parameters.is_object() => parameters,
                Some(_) => return Err(function.objection("parameters", "an object")),
            };
            // Not every provider can guarantee arguments that match their schema.
            function.flag("strict")?;
            function.finish()?;
            Ok(Tool { name, description, parameters })
        })
        .collect()
}

/// The function in a tool, a choice or a call. Other types would run at the provider.
fn function_of(item: &mut Fields) -> Result<Fields, String> {
    let kind = item.name("type")?;
    if kind != "function" {
        return Err(format!(
            "`{}` is {kind:?}; only tools of type \"function\" are supported",
            item.place("type")
        ));
    }
    item.fields("function")?.ok_or_else(|| item.missing("function"))
}

fn tool_choice(fields: &mut Fields, tools: &[Tool]) -> Result<ToolChoice, String> {
    let expected = "\"auto\", \"none\", \"required\" or a function";
    match fields.take("tool_choice") {
        None => Ok(ToolChoice::Auto),
        Some(Value::String(word)) => match word.as_str() {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            "required" => Ok(ToolChoice::Required),
            _ => Err(fields.objection("tool_choice", expected)),
        },
        Some(choice @ Value::Object(_)) => {
            let mut choice = Fields::of(choice, "tool_choice")?;
            let mut function = function_of(&mut choice)?;
            choice.finish()?;
            let name = function.name("name")?;
            function.finish()?;
            if tools.iter().all(|tool| tool.name != name) {
                return Err(format!("`tool_choice` names {name:?}, which is not among `tools`"));
            }
            Ok(ToolChoice::Tool(name))
        }
        Some(_) => Err(fields.objection("tool_choice", expected)),
    }
}

fn messages(fields: &mut Fields) -> Result<Vec<Message>, String> {
    let items = fields.list("messages")?.ok_or_else(|| fields.missing("messages"))?;
    if items.is_empty() {
        return Err("`messages` is empty".to_owned());
    }
    let mut messages: Vec<Message> = Vec::with_capacity(items.len());
    let mut after_result = false;
    for (index, item) in items.into_iter().enumerate() {
        let place = format!("messages[{index}]");
        let Value::Object(mut object) = item else { return Err(format!("`{place}` is not an object")) };
        let role = match object.shift_remove("role") {
            Some(Value::String(role)) => role,
            Some(_) => return Err(format!("`{place}.role` is not a text")),
            None => return Err(format!("`{place}.role` is missing")),
        };
        let thoughts = if role == "assistant" { thoughts::take(&mut object, &place)? } else { Vec::new() };
        let mut message = Fields::of(Value::Object(object), place)?;
        // A speaker's name is a hint that not every provider accepts.
        message.text("name")?;
        let is_result = role == "tool";
        let (role, parts) = match role.as_str() {
            "system" | "developer" => (Role::System, content(&mut message, Holds::Text)?),
            "user" => (Role::User, content(&mut message, Holds::Images)?),
            "assistant" => (Role::Assistant, assistant(&mut message, thoughts)?),
            "tool" => (Role::User, vec![tool_result(&mut message)?]),
            _ => return Err(format!("`{}` is {role:?}, which is not supported", message.place("role"))),
        };
        message.finish()?;
        // The results of one turn form one message in our format.
        match messages.last_mut() {
            Some(last) if is_result && after_result => last.parts.extend(parts),
            _ => messages.push(Message { role, parts }),
        }
        after_result = is_result;
    }
    Ok(messages)
}

fn assistant(message: &mut Fields, thoughts: Vec<Part>) -> Result<Vec<Part>, String> {
    let mut parts = thoughts;
    // A turn that only has calls has no content.
    parts.extend(optional_content(message, Holds::Refusals)?.unwrap_or_default());
    parts.extend(message.text("refusal")?.filter(|text| !text.is_empty()).map(Part::text));
    for (index, call) in message.list("tool_calls")?.unwrap_or_default().into_iter().enumerate() {
        let mut call = Fields::of(call, format!("{}[{index}]", message.place("tool_calls")))?;
        let mut function = function_of(&mut call)?;
        let id = call.name("id")?;
        // Some agents number the calls as in streams.
        call.whole("index")?;
        call.finish()?;
        let name = function.name("name")?;
        let arguments = function.text("arguments")?.unwrap_or_default();
        function.finish()?;
        parts.push(Part::ToolCall(ToolCall { id, name, arguments }));
    }
    // SDKs send these back with the message that they received.
    message.list("annotations")?;
    message.fields("provider_specific_fields")?;
    for key in ["audio", "function_call"] {
        if message.take(key).is_some() {
            return Err(message.objection(key, "supported here; leave it out"));
        }
    }
    Ok(parts)
}

fn tool_result(message: &mut Fields) -> Result<Part, String> {
    let call_id = message.name("tool_call_id")?;
    let parts = content(message, Holds::Images)?;
    Ok(Part::ToolResult { call_id, parts, is_error: false })
}

/// What a content may hold besides text.
#[derive(Clone, Copy, PartialEq)]
enum Holds {
    Text,
    Images,
    Refusals,
}

fn content(message: &mut Fields, holds: Holds) -> Result<Vec<Part>, String> {
    optional_content(message, holds)?.ok_or_else(|| message.missing("content"))
}

fn optional_content(message: &mut Fields, holds: Holds) -> Result<Option<Vec<Part>>, String> {
    let items = match message.take("content") {
        None => return Ok(None),
        Some(Value::String(text)) if text.is_empty() && holds == Holds::Refusals => return Ok(None),
        Some(Value::String(text)) => return Ok(Some(vec![Part::text(text)])),
        Some(Value::Array(items)) => items,
        Some(_) => return Err(message.objection("content", "a text or a list")),
    };
    let mut parts = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        let mut item = Fields::of(item, format!("{}[{index}]", message.place("content")))?;
        let kind = item.name("type")?;
        parts.push(match (kind.as_str(), holds) {
            ("text", _) => Part::Text { text: item.text("text")?.ok_or_else(|| item.missing("text"))? },
            ("refusal", Holds::Refusals) => {
                Part::Text { text: item.text("refusal")?.ok_or_else(|| item.missing("refusal"))? }
            }
            ("image_url", Holds::Images) => {
                let mut image = item.fields("image_url")?.ok_or_else(|| item.missing("image_url"))?;
                let part = image_part(&image.name("url")?, &image.place("url"))?;
                image.text("detail")?;
                image.finish()?;
                part
            }
            _ => return Err(format!("`{}` is {kind:?}, which cannot stand here", item.place("type"))),
        });
        item.finish()?;
    }
    Ok(Some(parts))
}

/// An image inside the request. A provider would fetch any other, which would give the sandbox access to the network.
fn image_part(url: &str, place: &str) -> Result<Part, String> {
    let Some((media_type, data)) = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"))
    else {
        return Err(format!(
            "`{place}` is not a data: URL in base64; images elsewhere are not fetched, send the bytes"
        ));
    };
    let plain = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".+-".contains(&byte))
    };
    if !media_type.strip_prefix("image/").is_some_and(plain) {
        return Err(format!("`{place}` is not an image"));
    }
    if STANDARD.decode(data).is_err() || data.is_empty() {
        return Err(format!("`{place}` is not sound base64"));
    }
    Ok(Part::Image { media_type: media_type.to_owned(), data: data.to_owned() })
}
