//! Writes Anthropic messages: as server-sent events, and in the frames of Bedrock.

use aec_model::script::Ending;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::BytesMut;
use serde_json::{Value, json};

use crate::answer::Part;
use crate::frame;
use crate::voice::{Reply, Voice, json};

/// Writes Anthropic's own format.
pub(crate) struct Events;

/// Writes Anthropic's format as Bedrock wraps it.
pub(crate) struct Frames;

/// Writes one event to a buffer.
type Emit = fn(&mut BytesMut, &str, &Value);

impl Voice for Events {
    fn whole(&self, reply: &Reply, out: &mut BytesMut) {
        json(out, &whole(reply));
    }

    fn stream_type(&self) -> &'static str {
        "text/event-stream; charset=utf-8"
    }

    fn start(&self, reply: &mut Reply, out: &mut BytesMut) {
        start(reply, out, event);
    }

    fn open(&self, reply: &Reply, index: usize, out: &mut BytesMut) {
        open(reply, index, out, event);
        if index == 0 {
            event(out, "ping", &json!({"type": "ping"}));
        }
    }

    fn piece(&self, reply: &Reply, index: usize, piece: &str, out: &mut BytesMut) {
        if let Part::Text(_) = reply.answer.parts[index] {
            // Written by hand because it is by far the most frequent event.
            out.extend_from_slice(
                b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":",
            );
            json(out, &index);
            out.extend_from_slice(b",\"delta\":{\"type\":\"text_delta\",\"text\":");
            json(out, &piece);
            out.extend_from_slice(b"}}\n\n");
            return;
        }
        delta(reply, index, piece, out, event);
    }

    fn close(&self, reply: &Reply, index: usize, out: &mut BytesMut) {
        close(reply, index, out, event);
    }

    fn end(&self, reply: &Reply, out: &mut BytesMut) {
        message_delta(reply, out, event);
        event(out, "message_stop", &json!({"type": "message_stop"}));
    }

    fn error(&self, out: &mut BytesMut) {
        let error = json!({"type": "overloaded_error", "message": "Overloaded"});
        event(out, "error", &json!({"type": "error", "error": error}));
    }

    fn malformed(&self, _: &Reply, out: &mut BytesMut) {
        malformed(out, event);
    }

    fn garbage(&self, out: &mut BytesMut) {
        out.extend_from_slice(b"event: content_block_delta\ndata: {\"type\":<html>\n\n");
    }

    fn spoil(&self, whole: &mut Value) {
        whole["content"] = json!("text");
    }
}

impl Voice for Frames {
    fn whole(&self, reply: &Reply, out: &mut BytesMut) {
        json(out, &whole(reply));
    }

    fn stream_type(&self) -> &'static str {
        frame::MEDIA_TYPE
    }

    fn start(&self, reply: &mut Reply, out: &mut BytesMut) {
        start(reply, out, chunk);
    }

    fn open(&self, reply: &Reply, index: usize, out: &mut BytesMut) {
        open(reply, index, out, chunk);
    }

    fn piece(&self, reply: &Reply, index: usize, piece: &str, out: &mut BytesMut) {
        delta(reply, index, piece, out, chunk);
    }

    fn close(&self, reply: &Reply, index: usize, out: &mut BytesMut) {
        close(reply, index, out, chunk);
    }

    fn end(&self, reply: &Reply, out: &mut BytesMut) {
        message_delta(reply, out, chunk);
        let metrics = json!({
            "inputTokenCount": reply.input.fresh,
            "outputTokenCount": reply.output,
            "invocationLatency": reply.latency_ms,
            "firstByteLatency": reply.latency_ms,
            "cacheReadInputTokenCount": reply.input.read,
            "cacheWriteInputTokenCount": reply.input.written,
        });
        let stop = json!({"type": "message_stop", "amazon-bedrock-invocationMetrics": metrics});
        chunk(out, "message_stop", &stop);
    }

    fn error(&self, out: &mut BytesMut) {
        frame::overloaded(out);
    }

    fn malformed(&self, _: &Reply, out: &mut BytesMut) {
        malformed(out, chunk);
    }

    fn garbage(&self, out: &mut BytesMut) {
        frame::garbage(out);
    }

    fn spoil(&self, whole: &mut Value) {
        whole["content"] = json!("text");
    }
}

pub(crate) fn models(names: &[&str]) -> Value {
    let entry = |name: &&str| json!({"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"});
    let data: Vec<Value> = names.iter().map(entry).collect();
    json!({"data": data, "has_more": false, "first_id": names.first(), "last_id": names.last()})
}

fn event(out: &mut BytesMut, name: &str, value: &Value) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    json(out, value);
    out.extend_from_slice(b"\n\n");
}

/// Bedrock wraps each event in base64.
fn chunk(out: &mut BytesMut, _: &str, value: &Value) {
    let payload = json!({"bytes": BASE64_STANDARD.encode(value.to_string()), "p": "abcdefghijklm"});
    frame::event(out, "chunk", &payload);
}

fn whole(reply: &Reply) -> Value {
    let content: Vec<Value> = reply.answer.parts.iter().map(block).collect();
    json!({
        "id": format!("msg_01{}", reply.id),
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": content,
        "stop_reason": stop_reason(reply.answer.ending),
        "stop_sequence": reply.answer.stop_text,
        "usage": usage(reply, reply.output),
    })
}

fn block(part: &Part) -> Value {
    match part {
        Part::Thought { text, signature } => {
            json!({"type": "thinking", "thinking": text, "signature": signature})
        }
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Call { id, name, arguments } => {
            let input: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments));
            json!({"type": "tool_use", "id": format!("toolu_01{id}"), "name": name, "input": input})
        }
    }
}

fn start(reply: &Reply, out: &mut BytesMut, emit: Emit) {
    let message = json!({
        "id": format!("msg_01{}", reply.id),
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage(reply, 1),
    });
    emit(out, "message_start", &json!({"type": "message_start", "message": message}));
}

fn open(reply: &Reply, index: usize, out: &mut BytesMut, emit: Emit) {
    let (block, first) = match &reply.answer.parts[index] {
        Part::Thought { .. } => (json!({"type": "thinking", "thinking": "", "signature": ""}), None),
        Part::Text(_) => (json!({"type": "text", "text": ""}), None),
        Part::Call { id, name, .. } => (
            json!({"type": "tool_use", "id": format!("toolu_01{id}"), "name": name, "input": {}}),
            Some(json!({"type": "input_json_delta", "partial_json": ""})),
        ),
    };
    let value = json!({"type": "content_block_start", "index": index, "content_block": block});
    emit(out, "content_block_start", &value);
    if let Some(delta) = first {
        block_delta(index, &delta, out, emit);
    }
}

fn delta(reply: &Reply, index: usize, piece: &str, out: &mut BytesMut, emit: Emit) {
    let delta = match &reply.answer.parts[index] {
        Part::Thought { .. } => json!({"type": "thinking_delta", "thinking": piece}),
        Part::Text(_) => json!({"type": "text_delta", "text": piece}),
        Part::Call { .. } => json!({"type": "input_json_delta", "partial_json": piece}),
    };
    block_delta(index, &delta, out, emit);
}

fn block_delta(index: usize, delta: &Value, out: &mut BytesMut, emit: Emit) {
    let value = json!({"type": "content_block_delta", "index": index, "delta": delta});
    emit(out, "content_block_delta", &value);
}

fn close(reply: &Reply, index: usize, out: &mut BytesMut, emit: Emit) {
    if let Part::Thought { signature, .. } = &reply.answer.parts[index] {
        block_delta(index, &json!({"type": "signature_delta", "signature": signature}), out, emit);
    }
    emit(out, "content_block_stop", &json!({"type": "content_block_stop", "index": index}));
}

fn message_delta(reply: &Reply, out: &mut BytesMut, emit: Emit) {
    let delta =
        json!({"stop_reason": stop_reason(reply.answer.ending), "stop_sequence": reply.answer.stop_text});
    let usage = json!({
        "input_tokens": reply.input.fresh,
        "cache_creation_input_tokens": reply.input.written,
        "cache_read_input_tokens": reply.input.read,
        "output_tokens": reply.output,
    });
    emit(out, "message_delta", &json!({"type": "message_delta", "delta": delta, "usage": usage}));
}

fn malformed(out: &mut BytesMut, emit: Emit) {
    let value = json!({"type": "content_block_delta", "index": 0, "delta": "text"});
    emit(out, "content_block_delta", &value);
}

fn usage(reply: &Reply, output: u64) -> Value {
    json!({
        "input_tokens": reply.input.fresh,
        "cache_creation_input_tokens": reply.input.written,
        "cache_read_input_tokens": reply.input.read,
        "cache_creation": {"ephemeral_5m_input_tokens": reply.input.written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "service_tier": "standard",
    })
}

fn stop_reason(ending: Ending) -> &'static str {
    match ending {
        Ending::End => "end_turn",
        Ending::ToolCalls => "tool_use",
        Ending::Length => "max_tokens",
        Ending::StopText => "stop_sequence",
        Ending::ContentFilter => "refusal",
    }
}
