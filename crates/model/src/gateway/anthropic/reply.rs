//! Encodes replies and failures for agents.

use serde_json::{Value, json};

use crate::dialect::anthropic::input;
use crate::failure::{Failure, FailureKind};
use crate::message::{Part, Reply, Stop, Usage};

/// The reply as a whole message. `model` is the name that the agent used.
pub fn encode_reply(reply: &Reply, model: &str) -> Value {
    let mut message = shell(reply, model);
    message["content"] = reply.parts.iter().filter_map(block).collect();
    message["stop_reason"] = stop_reason(&reply.stop).into();
    message["stop_sequence"] = stop_text(reply);
    message["usage"] = usage(&reply.usage.unwrap_or_default());
    message
}

/// The reply as a stream: complete server-sent events, in order.
pub fn encode_stream(reply: &Reply, model: &str) -> Vec<String> {
    let counted = reply.usage.unwrap_or_default();
    let mut start = shell(reply, model);
    // Output tokens are counted at the end.
    start["usage"] = usage(&Usage { output: 0, reasoning: 0, ..counted });
    let mut chunks = vec![chunk(&json!({"type": "message_start", "message": start}))];
    for (index, block) in reply.parts.iter().filter_map(block).enumerate() {
        let (opened, deltas) = open(block);
        chunks.push(chunk(&json!({"type": "content_block_start", "index": index, "content_block": opened})));
        for delta in deltas {
            chunks.push(chunk(&json!({"type": "content_block_delta", "index": index, "delta": delta})));
        }
        chunks.push(chunk(&json!({"type": "content_block_stop", "index": index})));
    }
    chunks.push(chunk(&json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason(&reply.stop), "stop_sequence": stop_text(reply)},
        "usage": usage(&counted),
    })));
    chunks.push(chunk(&json!({"type": "message_stop"})));
    chunks
}

/// A message without content, with which streams begin.
fn shell(reply: &Reply, model: &str) -> Value {
    json!({
        "id": reply.id.as_deref().unwrap_or("msg_local"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
    })
}

/// The wire form of a part that a model can produce. A thought sealed by another dialect keeps only its text.
fn block(part: &Part) -> Option<Value> {
    match part {
        Part::Text { text } => Some(json!({"type": "text", "text": text})),
        Part::Reasoning { text, opaque } => {
            let sealed = |key: &str| opaque.as_ref()?.get(key)?.as_str();
            Some(match sealed("type") {
                Some("redacted_thinking") => json!({"type": "redacted_thinking", "data": sealed("data")?}),
                Some("thinking") => {
                    json!({"type": "thinking", "thinking": text, "signature": sealed("signature").unwrap_or("")})
                }
                _ => json!({"type": "thinking", "thinking": text, "signature": ""}),
            })
        }
        Part::ToolCall(call) => {
            Some(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input(call)}))
        }
        Part::Image { .. } | Part::ToolResult { .. } => None,
    }
}

/// The start of a block, and the pieces that fill it.
fn open(mut block: Value) -> (Value, Vec<Value>) {
    let kind = block.get("type").cloned().unwrap_or_default();
    // Each removed value is replaced by its empty form.
    let mut take = |key: &str, empty: Value| {
        block.get_mut(key).map(|value| std::mem::replace(value, empty)).unwrap_or_default()
    };
    let deltas = match kind.as_str() {
        Some("text") => vec![json!({"type": "text_delta", "text": take("text", "".into())})],
        Some("thinking") => {
            let mut deltas = vec![json!({"type": "thinking_delta", "thinking": take("thinking", "".into())})];
            let signature = take("signature", "".into());
            if signature != "" {
                deltas.push(json!({"type": "signature_delta", "signature": signature}));
            }
            deltas
        }
        Some("tool_use") => {
            let input = take("input", json!({})).to_string();
            vec![json!({"type": "input_json_delta", "partial_json": input})]
        }
        _ => Vec::new(),
    };
    (block, deltas)
}

/// One server-sent event. The JSON is on one line, since line breaks inside strings are escaped.
fn chunk(event: &Value) -> String {
    let name = event.get("type").and_then(Value::as_str).unwrap_or_default();
    format!("event: {name}\ndata: {event}\n\n")
}

fn stop_reason(stop: &Stop) -> &str {
    match stop {
        Stop::End => "end_turn",
        Stop::ToolCalls => "tool_use",
        Stop::Length => "max_tokens",
        Stop::StopText => "stop_sequence",
        Stop::ContentFilter => "refusal",
        Stop::Other(reason) => reason,
    }
}

/// The stop text, if the provider reported it.
fn stop_text(reply: &Reply) -> Value {
    match reply.stop {
        Stop::StopText => reply.extra.get("stop_sequence").cloned().unwrap_or_default(),
        _ => Value::Null,
    }
}

/// The counters. Clients require numbers, so an uncounted answer has zeros.
fn usage(usage: &Usage) -> Value {
    let Usage { input, cache_read, cache_write, reasoning, .. } = *usage;
    let mut counters = json!({
        "input_tokens": input,
        "cache_creation_input_tokens": cache_write,
        "cache_read_input_tokens": cache_read,
        "output_tokens": usage.all_output(),
    });
    if reasoning > 0 {
        counters["output_tokens_details"] = json!({"thinking_tokens": reasoning});
    }
    counters
}

/// The status and error object of a failure. Clients retry after 408, 409, 429 and everything from 500 on, so a lasting
/// failure gets none of these.
pub fn encode_failure(failure: &Failure) -> (u16, Value) {
    use FailureKind as Kind;
    let (status, kind) = match failure.kind {
        Kind::Rate if failure.retryable => (429, "rate_limit_error"),
        _ if failure.retryable => (500, "api_error"),
        Kind::Auth => (403, "permission_error"),
        // The service uses this status for an exhausted account.
        Kind::Budget => (402, "billing_error"),
        Kind::Request if failure.status == Some(404) => (404, "not_found_error"),
        _ => (400, "invalid_request_error"),
    };
    let mut message = failure.to_string();
    if failure.kind == Kind::Overlong && !message.contains("prompt is too long") {
        // Agents recognise these words and shorten the conversation.
        message = format!("prompt is too long: {message}");
    }
    (status, json!({"type": "error", "error": {"type": kind, "message": message}}))
}
