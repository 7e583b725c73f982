//! Malformed streams, and the state of a reader while it reads.

use aec_model::dialect::Dialect;
use aec_model::dialect::anthropic::AnthropicMessages;
use aec_model::failure::FailureKind;
use aec_model::message::{Stop, Usage};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::anthropic::{call, read, sse};

fn start() -> Value {
    json!({"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "usage": {"input_tokens": 9, "output_tokens": 1},
    }})
}

fn end(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 4}}),
        json!({"type": "message_stop"}),
    ]
}

fn open(index: u32) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}})
}

fn delta(index: u32, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn close(index: u32) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

#[test]
fn disorder_is_noticed() {
    let text = json!({"type": "text_delta", "text": "a"});
    let [last, stop] = end("end_turn");
    let cases: Vec<(&str, Vec<Value>)> = vec![
        ("no start", vec![open(0)]),
        ("two starts", vec![start(), start()]),
        ("unopened block", vec![start(), delta(0, &text)]),
        ("block opened twice", vec![start(), open(0), close(0), open(0)]),
        ("growth of a closed block", vec![start(), open(0), close(0), delta(0, &text)]),
        ("open block at the end", vec![start(), open(0), last, stop.clone()]),
        ("no reason to stop", vec![start(), stop]),
        (
            "thought in a text",
            vec![start(), open(0), delta(0, &json!({"type": "thinking_delta", "thinking": "a"}))],
        ),
        ("text without text", vec![start(), open(0), delta(0, &json!({"type": "text_delta"}))]),
        ("event without type", vec![start(), json!({"index": 0, "type": 5})]),
        ("index below zero", vec![start(), json!({"type": "content_block_stop", "index": -1})]),
        ("usage that is none", vec![start(), json!({"type": "message_delta", "delta": {}, "usage": 5})]),
    ];
    for (what, events) in cases {
        let body = events.iter().map(|event| format!("data: {event}\n\n")).collect::<Vec<_>>().concat();
        let failure = read(&[body.as_bytes()]).unwrap_err();
        assert_eq!((failure.kind, failure.retryable), (FailureKind::Protocol, true), "{what}");
    }
    assert_eq!(read(&[b"data: [DONE]\n\n"]).unwrap_err().kind, FailureKind::Protocol);
    assert_eq!(read(&[]).unwrap_err().kind, FailureKind::Truncated);
}

#[test]
fn arguments_that_the_limit_cut_off_are_kept_as_text() {
    let mut events = vec![
        start(),
        json!({"type": "content_block_start", "index": 0, "content_block":
            {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}}),
        delta(0, &json!({"type": "input_json_delta", "partial_json": "{\"city\": \"Pa"})),
        close(0),
    ];
    events.extend(end("max_tokens"));
    let reply = read(&[sse(&events).as_bytes()]).unwrap();
    assert_eq!(reply.stop, Stop::Length);
    assert_eq!(reply.tool_calls().collect::<Vec<_>>(), [&call("toolu_1", "{\"city\": \"Pa")]);
}

#[test]
fn counters_of_the_end_replace_those_of_the_start() {
    let usage = |last: Value| {
        let mut events = vec![start()];
        events.extend(end("end_turn"));
        events[1]["usage"] = last;
        read(&[sse(&events).as_bytes()]).unwrap().usage
    };
    let counted = |input: u64, output: u64| Some(Usage { input, output, ..Usage::default() });
    assert_eq!(usage(json!({"output_tokens": 4})), counted(9, 4));
    assert_eq!(usage(json!({"output_tokens": 4, "input_tokens": 30})), counted(30, 4));
    assert_eq!(usage(json!({"output_tokens": 4, "input_tokens": 0})), counted(9, 4));
    assert_eq!(usage(json!({"output_tokens": 0})), counted(9, 0));
    // The count in `message_start` is only a placeholder.
    assert_eq!(usage(Value::Null), None);
}

#[test]
fn the_reader_knows_how_much_came_and_when_it_is_over() {
    let mut reader = AnthropicMessages.reader();
    let mut send = |events: &[Value]| {
        reader.take(&Bytes::from(sse(events))).unwrap();
        (reader.received(), reader.is_done())
    };
    let [last, stop] = end("end_turn");
    assert_eq!(send(&[start(), open(0)]), (0, false));
    assert_eq!(send(&[delta(0, &json!({"type": "text_delta", "text": "größe"}))]), (7, false));
    assert_eq!(send(&[close(0), last]), (7, false));
    assert_eq!(send(&[stop]), (7, true));
    // Anything after the end is ignored.
    assert_eq!(send(&[json!({"type": "error", "error": {"type": "api_error"}})]), (7, true));
    assert_eq!(reader.finish().unwrap().text(), "größe");
}
