//! Decodes answers and errors in Anthropic's format.

use serde_json::{Map, Value, json};

use crate::dialect::fields::{Fields, arguments_text, malformed};
use crate::dialect::reported;
use crate::failure::Failure;
use crate::message::{Part, Reply, Stop, ToolCall, Usage};

/// The reply in a complete message.
pub(crate) fn decode_message(message: Value) -> Result<Reply, Failure> {
    let mut fields = Fields::of(message, "")?;
    match fields.text("type")?.as_deref() {
        Some("error") => return Err(error_event(&mut fields)),
        Some("message") | None => {}
        Some(_) => return Err(malformed("type", "\"message\"")),
    }
    if fields.has("error") {
        return Err(error_event(&mut fields));
    }
    fields.take("role");
    let id = fields.text("id")?;
    let model = fields.text("model")?;
    let stop = stop(fields.need_text("stop_reason")?);
    let mut parts = Vec::new();
    let mut leftover = Vec::new();
    for (index, block) in fields.need_list("content")?.into_iter().enumerate() {
        let (part, rest) = content_part(block, index)?;
        parts.extend(part);
        leftover.extend(rest.map(|block| json!({"index": index, "block": block})));
    }
    let (usage, more_usage) = match fields.object("usage")? {
        Some(usage) => decode_usage(usage)?,
        None => (None, Map::new()),
    };
    let extra = fields.rest_with(leftover, more_usage);
    Ok(Reply { parts, stop, usage, model, id, extra })
}

fn stop(reason: String) -> Stop {
    match reason.as_str() {
        "end_turn" => Stop::End,
        "tool_use" => Stop::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "stop_sequence" => Stop::StopText,
        "refusal" => Stop::ContentFilter,
        _ => Stop::Other(reason),
    }
}

/// The part for a block, and what the part cannot hold: the whole block if its type is unknown.
fn content_part(block: Value, index: usize) -> Result<(Option<Part>, Option<Value>), Failure> {
    let mut fields = Fields::of(block, format!("content[{index}]"))?;
    let kind = fields.need_text("type")?;
    let part = match kind.as_str() {
        "text" => Part::Text { text: fields.need_text("text")? },
        "thinking" | "redacted_thinking" => return Ok((Some(thought_part(fields, &kind)?), None)),
        "tool_use" => Part::ToolCall(ToolCall {
            id: fields.need_text("id")?,
            name: fields.need_text("name")?,
            arguments: arguments_text(fields.need("input")?),
        }),
        _ => return Ok((None, Some(with_type(&kind, fields.rest())))),
    };
    let rest = fields.rest();
    Ok((Some(part), (!rest.is_empty()).then(|| with_type(&kind, rest))))
}

fn with_type(kind: &str, rest: Map<String, Value>) -> Value {
    let mut block = Map::new();
    block.insert("type".to_owned(), kind.into());
    block.extend(rest);
    block.into()
}

/// A thought. Everything but its text is opaque and sent back unchanged. Without a signature it cannot be sent back.
fn thought_part(mut fields: Fields, kind: &str) -> Result<Part, Failure> {
    let (text, seal) = if kind == "thinking" {
        (fields.need_text("thinking")?, "signature")
    } else {
        (String::new(), "data")
    };
    let sealed = fields.text(seal)?.filter(|value| !value.is_empty());
    if sealed.is_none() && kind == "redacted_thinking" {
        return Err(malformed(&fields.path(seal), "a text"));
    }
    let opaque = sealed.map(|value| {
        fields.put(seal, value);
        with_type(kind, fields.rest())
    });
    Ok(Part::Reasoning { text, opaque })
}

/// The counters and further fields. The counters need both totals to be meaningful.
fn decode_usage(mut fields: Fields) -> Result<(Option<Usage>, Map<String, Value>), Failure> {
    let input = fields.count("input_tokens")?;
    let output = fields.count("output_tokens")?;
    let cache_read = fields.count("cache_read_input_tokens")?.unwrap_or(0);
    let cache_write = fields.count("cache_creation_input_tokens")?.unwrap_or(0);
    let thoughts = match fields.object("output_tokens_details")? {
        Some(mut details) => {
            let thoughts = details.count("thinking_tokens")?;
            let rest = details.rest();
            if !rest.is_empty() {
                fields.put("output_tokens_details", rest);
            }
            thoughts.unwrap_or(0)
        }
        None => 0,
    };
    let usage = input.zip(output).map(|(input, output)| {
        // `output_tokens` includes the thoughts.
        let reasoning = thoughts.min(output);
        Usage { input, cache_read, cache_write, output: output - reasoning, reasoning }
    });
    Ok((usage, fields.rest()))
}

/// The failure in `{"type": "error", "error": {…}}`.
pub(crate) fn error_event(fields: &mut Fields) -> Failure {
    let error = fields.take("error").unwrap_or_default();
    let text = |key: &str| error.get(key).and_then(Value::as_str);
    let message = text("message").map_or_else(|| error.to_string(), str::to_owned);
    reported::by_anthropic(text("type").unwrap_or("error"), &message)
}
