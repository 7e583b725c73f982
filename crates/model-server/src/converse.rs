//! Writes Bedrock's Converse format.

use aec_model::script::Ending;
use bytes::BytesMut;
use serde_json::{Value, json};

use crate::answer::Part;
use crate::frame;
use crate::voice::{Reply, Voice, json};

pub(crate) struct Converse;

/// Bedrock pads events so that their lengths reveal nothing.
const PADDING: &str = "abcdefghijklmnop";

impl Voice for Converse {
    fn whole(&self, reply: &Reply, out: &mut BytesMut) {
        let content: Vec<Value> = reply.answer.parts.iter().map(block).collect();
        let whole = json!({
            "metrics": {"latencyMs": reply.latency_ms},
            "output": {"message": {"content": content, "role": "assistant"}},
            "stopReason": stop_reason(reply.answer.ending),
            "usage": usage(reply),
        });
        json(out, &whole);
    }

    fn stream_type(&self) -> &'static str {
        frame::MEDIA_TYPE
    }

    fn start(&self, _: &mut Reply, out: &mut BytesMut) {
        frame::event(out, "messageStart", &json!({"p": PADDING, "role": "assistant"}));
    }

    fn open(&self, reply: &Reply, index: usize, out: &mut BytesMut) {
        // Only tool calls have a start event.
        if let Part::Call { id, name, .. } = &reply.answer.parts[index] {
            let start = json!({"toolUse": {"name": name, "toolUseId": format!("tooluse_{id}")}});
            let event = json!({"contentBlockIndex": index, "p": PADDING, "start": start});
            frame::event(out, "contentBlockStart", &event);
        }
    }

    fn piece(&self, reply: &Reply, index: usize, piece: &str, out: &mut BytesMut) {
        let part = match &reply.answer.parts[index] {
            Part::Thought { .. } => json!({"reasoningContent": {"text": piece}}),
            Part::Text(_) => json!({"text": piece}),
            Part::Call { .. } => json!({"toolUse": {"input": piece}}),
        };
        delta(index, &part, out);
    }

    fn close(&self, reply: &Reply, index: usize, out: &mut BytesMut) {
        if let Part::Thought { signature, .. } = &reply.answer.parts[index] {
            delta(index, &json!({"reasoningContent": {"signature": signature}}), out);
        }
        frame::event(out, "contentBlockStop", &json!({"contentBlockIndex": index, "p": PADDING}));
    }

    fn end(&self, reply: &Reply, out: &mut BytesMut) {
        let stop = json!({"p": PADDING, "stopReason": stop_reason(reply.answer.ending)});
        frame::event(out, "messageStop", &stop);
        let metrics = json!({"latencyMs": reply.latency_ms});
        frame::event(out, "metadata", &json!({"metrics": metrics, "p": PADDING, "usage": usage(reply)}));
    }

    fn error(&self, out: &mut BytesMut) {
        frame::overloaded(out);
    }

    fn malformed(&self, _: &Reply, out: &mut BytesMut) {
        frame::event(out, "contentBlockDelta", &json!({"contentBlockIndex": "zero", "delta": []}));
    }

    fn garbage(&self, out: &mut BytesMut) {
        frame::garbage(out);
    }

    fn spoil(&self, whole: &mut Value) {
        whole["output"] = json!([]);
    }
}

fn delta(index: usize, delta: &Value, out: &mut BytesMut) {
    let event = json!({"contentBlockIndex": index, "delta": delta, "p": PADDING});
    frame::event(out, "contentBlockDelta", &event);
}

fn block(part: &Part) -> Value {
    match part {
        Part::Thought { text, signature } => {
            json!({"reasoningContent": {"reasoningText": {"signature": signature, "text": text}}})
        }
        Part::Text(text) => json!({"text": text}),
        Part::Call { id, name, arguments } => {
            let input: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments));
            json!({"toolUse": {"input": input, "name": name, "toolUseId": format!("tooluse_{id}")}})
        }
    }
}

fn usage(reply: &Reply) -> Value {
    let (input, output) = (reply.input, reply.output);
    json!({
        "inputTokens": input.fresh,
        "outputTokens": output,
        "totalTokens": input.all() + output,
        "cacheReadInputTokens": input.read,
        "cacheWriteInputTokens": input.written,
    })
}

fn stop_reason(ending: Ending) -> &'static str {
    match ending {
        Ending::End => "end_turn",
        Ending::ToolCalls => "tool_use",
        Ending::Length => "max_tokens",
        Ending::StopText => "stop_sequence",
        Ending::ContentFilter => "content_filtered",
    }
}
