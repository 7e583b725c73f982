//! Decodes answers in the Converse format.

use serde_json::{Map, Value, json};

use crate::dialect::fields::{Fields, arguments_text, malformed};
use crate::failure::Failure;
use crate::message::{Part, Reply, Stop, ToolCall, Usage};

/// The reply in a complete answer.
pub(super) fn decode_answer(answer: Value) -> Result<Reply, Failure> {
    let mut fields = Fields::of(answer, "")?;
    let stop = stop(fields.need_text("stopReason")?);
    let mut message = fields.need_object("output")?.need_object("message")?;
    let mut parts = Vec::new();
    let mut leftover = Vec::new();
    for (index, block) in message.need_list("content")?.into_iter().enumerate() {
        let (part, rest) = content_part(block, index)?;
        parts.extend(part);
        if !rest.is_empty() {
            leftover.push(json!({"index": index, "block": rest}));
        }
    }
    let (usage, more_usage) = match fields.object("usage")? {
        Some(usage) => decode_usage(usage)?,
        None => (None, Map::new()),
    };
    let extra = fields.rest_with(leftover, more_usage);
    Ok(Reply { parts, stop, usage, model: None, id: None, extra })
}

fn stop(reason: String) -> Stop {
    match reason.as_str() {
        "end_turn" => Stop::End,
        "tool_use" => Stop::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "stop_sequence" => Stop::StopText,
        "guardrail_intervened" | "content_filtered" => Stop::ContentFilter,
        _ => Stop::Other(reason),
    }
}

/// The part for a block, and what the part cannot hold. A block is an object whose single key is its type.
fn content_part(block: Value, index: usize) -> Result<(Option<Part>, Map<String, Value>), Failure> {
    let mut fields = Fields::of(block, format!("output.message.content[{index}]"))?;
    if let Some(text) = fields.text("text")? {
        return Ok((Some(Part::Text { text }), fields.rest()));
    }
    if let Some(mut call) = fields.object("toolUse")? {
        let part = Part::ToolCall(ToolCall {
            id: call.need_text("toolUseId")?,
            name: call.need_text("name")?,
            arguments: arguments_text(call.need("input")?),
        });
        let rest = call.rest();
        if !rest.is_empty() {
            fields.put("toolUse", rest);
        }
        return Ok((Some(part), fields.rest()));
    }
    if let Some(content) = fields.object("reasoningContent")? {
        return Ok((Some(thought_part(content)?), fields.rest()));
    }
    Ok((None, fields.rest()))
}

/// A thought. Without a signature nothing is sent back.
fn thought_part(mut content: Fields) -> Result<Part, Failure> {
    if let Some(data) = content.text("redactedContent")? {
        let opaque = Some(json!({"type": "redactedContent", "data": data}));
        return Ok(Part::Reasoning { text: String::new(), opaque });
    }
    let at = content.path("reasoningText");
    let mut thought = content.object("reasoningText")?.ok_or_else(|| malformed(&at, "there"))?;
    let text = thought.text("text")?.unwrap_or_default();
    let opaque = thought
        .text("signature")?
        .filter(|signature| !signature.is_empty())
        .map(|signature| json!({"type": "reasoningText", "signature": signature}));
    Ok(Part::Reasoning { text, opaque })
}

/// The counters, which are already disjoint, and further fields.
fn decode_usage(mut fields: Fields) -> Result<(Option<Usage>, Map<String, Value>), Failure> {
    let input = fields.count("inputTokens")?;
    let output = fields.count("outputTokens")?;
    let cache_read = fields.count("cacheReadInputTokens")?.unwrap_or(0);
    let cache_write = fields.count("cacheWriteInputTokens")?.unwrap_or(0);
    fields.take("totalTokens");
    let usage = input.zip(output).map(|(input, output)| Usage {
        input,
        cache_read,
        cache_write,
        output,
        reasoning: 0,
    });
    Ok((usage, fields.rest()))
}
