//! Encodes replies and failures as chat completions, so that SDKs of the format handle them correctly.

use serde_json::{Map, Value, json};

use super::thoughts;
use crate::failure::{Failure, FailureKind};
use crate::message::{Part, Reply, Stop, ToolCall, Usage};

/// A reply as a complete body. `created` is in seconds since 1970.
pub fn encode_reply(reply: &Reply, model: &str, created: u64) -> Value {
    let mut message = Map::new();
    message.insert("role".to_owned(), json!("assistant"));
    let text = reply.text();
    message.insert("content".to_owned(), if text.is_empty() { Value::Null } else { json!(text) });
    message.insert("refusal".to_owned(), Value::Null);
    thoughts::show(&reply.parts, &mut message);
    let calls: Vec<Value> = reply.tool_calls().map(tool_call).map(Value::Object).collect();
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    let mut body = head(reply, "chat.completion", model, created);
    let mut choice = ending(reply);
    choice.insert("message".to_owned(), Value::Object(message));
    body.insert("choices".to_owned(), json!([choice]));
    if let Some(used) = &reply.usage {
        body.insert("usage".to_owned(), usage(used));
    }
    Value::Object(body)
}

/// A reply as a stream: one text per event, including the closing one.
pub fn encode_stream(reply: &Reply, model: &str, created: u64, include_usage: bool) -> Vec<String> {
    let head = head(reply, "chat.completion.chunk", model, created);
    let chunk = |choices: Value, used: Option<&Usage>| {
        let mut chunk = head.clone();
        chunk.insert("choices".to_owned(), choices);
        if include_usage {
            chunk.insert("usage".to_owned(), used.map_or(Value::Null, usage));
        }
        format!("data: {}\n\n", Value::Object(chunk))
    };
    let delta = |delta: Value| {
        chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}]), None)
    };
    let mut events = vec![delta(json!({"role": "assistant", "content": ""}))];
    let mut thought = Map::new();
    thoughts::show(&reply.parts, &mut thought);
    if !thought.is_empty() {
        events.push(delta(Value::Object(thought)));
    }
    let text = reply.text();
    if !text.is_empty() {
        events.push(delta(json!({"content": text})));
    }
    for (index, call) in reply.tool_calls().enumerate() {
        let mut piece = Map::new();
        piece.insert("index".to_owned(), json!(index));
        piece.extend(tool_call(call));
        events.push(delta(json!({"tool_calls": [piece]})));
    }
    let mut last = ending(reply);
    last.insert("delta".to_owned(), json!({}));
    events.push(chunk(json!([last]), None));
    if include_usage && let Some(used) = &reply.usage {
        events.push(chunk(json!([]), Some(used)));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}

fn head(reply: &Reply, object: &str, model: &str, created: u64) -> Map<String, Value> {
    let mut head = Map::new();
    head.insert("id".to_owned(), json!(reply.id.as_deref().unwrap_or("chatcmpl-unnamed")));
    head.insert("object".to_owned(), json!(object));
    head.insert("created".to_owned(), json!(created));
    head.insert("model".to_owned(), json!(model));
    head
}

fn tool_call(call: &ToolCall) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("id".to_owned(), json!(call.id));
    object.insert("type".to_owned(), json!("function"));
    object.insert("function".to_owned(), json!({"name": call.name, "arguments": call.arguments}));
    object
}

/// The choice without its message. SDKs know four finish reasons and some break on a fifth, so others go beside it.
fn ending(reply: &Reply) -> Map<String, Value> {
    let calls = reply.parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
    let (finish, beside) = match &reply.stop {
        Stop::End | Stop::StopText | Stop::Other(_) if calls => ("tool_calls", None),
        Stop::End => ("stop", None),
        Stop::ToolCalls => ("tool_calls", None),
        Stop::Length => ("length", None),
        Stop::ContentFilter => ("content_filter", None),
        Stop::StopText => ("stop", Some(("stop_reason", "stop text"))),
        Stop::Other(reason) => ("stop", Some(("native_finish_reason", reason.as_str()))),
    };
    let mut choice = Map::new();
    choice.insert("index".to_owned(), json!(0));
    choice.insert("finish_reason".to_owned(), json!(finish));
    choice.insert("logprobs".to_owned(), Value::Null);
    if let Some((key, reason)) = beside {
        choice.insert(key.to_owned(), json!(reason));
    }
    choice
}

fn usage(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.all_input(),
        "completion_tokens": usage.all_output(),
        "total_tokens": usage.total(),
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}

/// A failure as HTTP status and error object. SDKs retry after 408, 409, 429 and everything from 500 on, so only
/// temporary failures get such a status.
pub fn encode_failure(failure: &Failure) -> (u16, Value) {
    use FailureKind as Kind;
    let (status, kind) = match failure.kind {
        Kind::Auth => (403, "permission_error"),
        Kind::Budget => (402, "insufficient_quota"),
        Kind::Request if failure.status == Some(404) => (404, "invalid_request_error"),
        Kind::Overlong | Kind::ContentFilter | Kind::Request => (400, "invalid_request_error"),
        Kind::Cancelled => (499, "cancelled"),
        Kind::Replay => (424, "replay_error"),
        Kind::Rate if failure.retryable => (429, "rate_limit_error"),
        Kind::Server | Kind::Network if failure.retryable => (503, "server_error"),
        Kind::Empty | Kind::Truncated | Kind::Protocol if failure.retryable => (502, "server_error"),
        Kind::Rate | Kind::Server | Kind::Network | Kind::Empty | Kind::Truncated | Kind::Protocol => {
            (424, "upstream_error")
        }
    };
    // Agents recognise this word and shorten the conversation.
    let overlong = "context_length_exceeded";
    let message = if failure.kind == Kind::Overlong && !failure.message.contains(overlong) {
        format!("{} ({overlong})", failure.message)
    } else {
        failure.message.clone()
    };
    let error = json!({"message": message, "type": kind, "param": null, "code": failure.kind.name()});
    (status, json!({"error": error}))
}
