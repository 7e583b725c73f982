//! Writes OpenAI chat completions, and Azure's additions to them.

use std::borrow::Cow;

use aec_model::script::Ending;
use bytes::BytesMut;
use serde_json::{Value, json};

use crate::answer::Part;
use crate::route::Form;
use crate::voice::{CREATED, Reply, Voice, json};

pub(crate) struct OpenAi;

impl Voice for OpenAi {
    fn whole(&self, reply: &Reply, out: &mut BytesMut) {
        // Written by hand for speed: load tests request almost nothing else.
        put(
            out,
            &format!(
                "{{\"id\":\"chatcmpl-{}\",\"object\":\"chat.completion\",\"created\":{CREATED},\"model\":",
                reply.id
            ),
        );
        json(out, &reply.model);
        if reply.form == Form::Azure {
            put(out, ",\"prompt_filter_results\":");
            json(out, &prompt_filter_results());
        }
        put(out, ",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":");
        json(out, &text(reply));
        put(out, ",\"refusal\":null,\"annotations\":[]");
        for part in &reply.answer.parts {
            if let Part::Thought { text, .. } = part {
                put(out, ",\"reasoning_content\":");
                json(out, text);
            }
        }
        let calls: Vec<Value> = reply.answer.parts.iter().filter_map(call).collect();
        if !calls.is_empty() {
            put(out, ",\"tool_calls\":");
            json(out, &calls);
        }
        let reason = finish_reason(reply.answer.ending);
        put(out, &format!("}},\"logprobs\":null,\"finish_reason\":\"{reason}\""));
        if reply.form == Form::Azure {
            put(out, ",\"content_filter_results\":");
            json(out, &filter_results(reply.answer.ending));
        }
        put(out, "}],\"usage\":");
        usage(reply, out);
        put(out, ",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_0123456789\"}");
    }

    fn stream_type(&self) -> &'static str {
        "text/event-stream; charset=utf-8"
    }

    fn start(&self, reply: &mut Reply, out: &mut BytesMut) {
        if reply.form == Form::Azure {
            // Azure first reports on the prompt, in an event without choices.
            data(
                out,
                &json!({"choices": [], "created": 0, "id": "", "model": "", "object": "",
                    "prompt_filter_results": prompt_filter_results()}),
            );
        }
        reply.head = format!(
            "data: {{\"id\":\"chatcmpl-{}\",\"object\":\"chat.completion.chunk\",\"created\":{CREATED},\"model\":{},\"service_tier\":\"default\",\"system_fingerprint\":\"fp_0123456789\",\"choices\":[",
            reply.id,
            Value::from(reply.model.as_str()),
        );
        let calls_only = reply.answer.parts.iter().all(|part| matches!(part, Part::Call { .. }));
        let content = if calls_only && !reply.answer.parts.is_empty() { "null" } else { "\"\"" };
        chunk(reply, out, None, |out| {
            out.extend_from_slice(b"{\"role\":\"assistant\",\"content\":");
            out.extend_from_slice(content.as_bytes());
            out.extend_from_slice(b",\"refusal\":null}");
        });
    }

    fn open(&self, reply: &Reply, index: usize, out: &mut BytesMut) {
        let Part::Call { id, name, .. } = &reply.answer.parts[index] else { return };
        let position = call_position(reply, index);
        let call = json!({"tool_calls": [{"index": position, "id": format!("call_{id}"), "type": "function",
            "function": {"name": name, "arguments": ""}}]});
        chunk(reply, out, None, |out| json(out, &call));
    }

    fn piece(&self, reply: &Reply, index: usize, piece: &str, out: &mut BytesMut) {
        chunk(reply, out, None, |out| match &reply.answer.parts[index] {
            Part::Text(_) => {
                out.extend_from_slice(b"{\"content\":");
                json(out, &piece);
                out.extend_from_slice(b"}");
            }
            Part::Thought { .. } => json(out, &json!({"reasoning_content": piece})),
            Part::Call { .. } => {
                let position = call_position(reply, index);
                json(out, &json!({"tool_calls": [{"index": position, "function": {"arguments": piece}}]}));
            }
        });
    }

    fn close(&self, _: &Reply, _: usize, _: &mut BytesMut) {}

    fn end(&self, reply: &Reply, out: &mut BytesMut) {
        chunk(reply, out, Some(finish_reason(reply.answer.ending)), |out| out.extend_from_slice(b"{}"));
        if reply.include_usage {
            out.extend_from_slice(reply.head.as_bytes());
            out.extend_from_slice(b"],\"usage\":");
            usage(reply, out);
            out.extend_from_slice(b"}\n\n");
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }

    fn error(&self, out: &mut BytesMut) {
        data(
            out,
            &json!({"error": {"message": "The server is currently overloaded. Please try again later.",
                "type": "server_error", "param": null, "code": "server_error"}}),
        );
    }

    fn malformed(&self, reply: &Reply, out: &mut BytesMut) {
        data(
            out,
            &json!({"id": format!("chatcmpl-{}", reply.id), "object": "chat.completion.chunk", "created": CREATED,
                "model": reply.model, "choices": {"index": 0}}),
        );
    }

    fn garbage(&self, out: &mut BytesMut) {
        out.extend_from_slice(b"data: {\"id\":<html>\n\n");
    }

    fn spoil(&self, whole: &mut Value) {
        whole["choices"] = json!({"index": 0});
    }
}

pub(crate) fn models(names: &[&str]) -> Value {
    let entry = |name: &&str| json!({"id": name, "object": "model", "created": CREATED, "owned_by": "test"});
    json!({"object": "list", "data": names.iter().map(entry).collect::<Vec<_>>()})
}

fn data(out: &mut BytesMut, value: &Value) {
    out.extend_from_slice(b"data: ");
    json(out, value);
    out.extend_from_slice(b"\n\n");
}

/// One event with one choice.
fn chunk(reply: &Reply, out: &mut BytesMut, finish: Option<&str>, delta: impl FnOnce(&mut BytesMut)) {
    out.extend_from_slice(reply.head.as_bytes());
    out.extend_from_slice(b"{\"index\":0,\"delta\":");
    delta(out);
    out.extend_from_slice(b",\"logprobs\":null,\"finish_reason\":");
    json(out, &finish);
    if reply.form == Form::Azure {
        out.extend_from_slice(b",\"content_filter_results\":");
        json(out, &if finish.is_some() { filter_results(reply.answer.ending) } else { json!({}) });
    }
    out.extend_from_slice(b"}]");
    if reply.include_usage {
        out.extend_from_slice(b",\"usage\":null");
    }
    out.extend_from_slice(b"}\n\n");
}

/// The text; `None` when there are only tool calls.
fn text(reply: &Reply) -> Option<Cow<'_, str>> {
    let mut texts = reply.answer.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let first = Cow::Borrowed(texts.next()?);
    Some(texts.fold(first, |all, text| all + text))
}

fn call(part: &Part) -> Option<Value> {
    let Part::Call { id, name, arguments } = part else { return None };
    let function = json!({"name": name, "arguments": arguments});
    Some(json!({"id": format!("call_{id}"), "type": "function", "function": function}))
}

/// The position of a part among the tool calls.
fn call_position(reply: &Reply, index: usize) -> usize {
    reply.answer.parts[..index].iter().filter(|part| matches!(part, Part::Call { .. })).count()
}

fn usage(reply: &Reply, out: &mut BytesMut) {
    let (input, output) = (reply.input.all(), reply.output);
    put(
        out,
        &format!(
            "{{\"prompt_tokens\":{input},\"completion_tokens\":{output},\"total_tokens\":{},\"prompt_tokens_details\":{{\"cached_tokens\":{},\"audio_tokens\":0}},\"completion_tokens_details\":{{\"reasoning_tokens\":{},\"audio_tokens\":0,\"accepted_prediction_tokens\":0,\"rejected_prediction_tokens\":0}}}}",
            input + output,
            reply.input.read,
            reply.thoughts
        ),
    );
}

fn put(out: &mut BytesMut, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

fn finish_reason(ending: Ending) -> &'static str {
    match ending {
        Ending::End | Ending::StopText => "stop",
        Ending::ToolCalls => "tool_calls",
        Ending::Length => "length",
        Ending::ContentFilter => "content_filter",
    }
}

/// Azure's results for the four kinds of harm.
pub(crate) fn filter_results(ending: Ending) -> Value {
    let hit = ending == Ending::ContentFilter;
    let safe = json!({"filtered": false, "severity": "safe"});
    let violence = json!({"filtered": hit, "severity": if hit { "high" } else { "safe" }});
    json!({"hate": safe, "self_harm": safe, "sexual": safe, "violence": violence})
}

fn prompt_filter_results() -> Value {
    json!([{"prompt_index": 0, "content_filter_results": filter_results(Ending::End)}])
}
