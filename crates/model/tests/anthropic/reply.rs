//! Whole answers and the same answers as streams.

use aec_model::dialect::anthropic::AnthropicMessages;
use aec_model::dialect::refusal::inspect;
use aec_model::dialect::{Dialect, Wire};
use aec_model::failure::FailureKind;
use aec_model::message::{Message, Part, Request, Role, Stop, Usage};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::anthropic::request::sent;
use crate::anthropic::{decode, read, sse};

/// An answer in both forms.
struct Answer {
    whole: Value,
    events: Vec<Value>,
}

fn message(content: &Value, stop_reason: &str, usage: &Value) -> Value {
    json!({
        "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": usage,
    })
}

/// Adds the first and last events of a stream to those of its blocks.
fn stream(whole: &Value, first_usage: &Value, last_usage: &Value, blocks: Vec<Value>) -> Vec<Value> {
    let mut start = whole.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["stop_sequence"] = Value::Null;
    start["usage"] = first_usage.clone();
    let mut events = vec![json!({"type": "message_start", "message": start}), json!({"type": "ping"})];
    events.extend(blocks);
    events.push(json!({
        "type": "message_delta",
        "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": whole["stop_sequence"]},
        "usage": last_usage,
    }));
    events.push(json!({"type": "message_stop"}));
    events
}

fn start(index: u32, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u32, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u32) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn text_events(index: u32, pieces: &[&str]) -> Vec<Value> {
    let mut events = vec![start(index, &json!({"type": "text", "text": ""}))];
    events.extend(pieces.iter().map(|text| delta(index, &json!({"type": "text_delta", "text": text}))));
    events.push(stop(index));
    events
}

fn plain() -> Answer {
    let usage = json!({"input_tokens": 25, "output_tokens": 15, "service_tier": "standard"});
    let whole = message(&json!([{"type": "text", "text": "Hello! Größe: 3 m²"}]), "end_turn", &usage);
    let first = json!({"input_tokens": 25, "output_tokens": 1, "service_tier": "standard"});
    let blocks = text_events(0, &["Hello", "!", " Größe: 3 m²"]);
    let events = stream(&whole, &first, &json!({"output_tokens": 15}), blocks);
    Answer { whole, events }
}

fn parallel_tools() -> Answer {
    let content = json!([
        {"type": "text", "text": "I look at both."},
        {"type": "tool_use", "id": "toolu_01", "name": "get_weather", "input": {"city": "Paris", "days": 2}},
        {"type": "tool_use", "id": "toolu_02", "name": "now", "input": {}, "caller": {"type": "direct"}},
    ]);
    let whole = message(&content, "tool_use", &json!({"input_tokens": 400, "output_tokens": 89}));
    let mut blocks = text_events(0, &["I look at ", "both."]);
    blocks.push(start(1, &json!({"type": "tool_use", "id": "toolu_01", "name": "get_weather", "input": {}})));
    for piece in ["", "{\"city\":", " \"Par", "is\", \"days\": 2}"] {
        blocks.push(delta(1, &json!({"type": "input_json_delta", "partial_json": piece})));
    }
    blocks.push(stop(1));
    blocks.push(start(
        2,
        &json!({"type": "tool_use", "id": "toolu_02", "name": "now", "input": {}, "caller": {"type": "direct"}}),
    ));
    blocks.push(delta(2, &json!({"type": "input_json_delta", "partial_json": ""})));
    blocks.push(stop(2));
    let first = json!({"input_tokens": 400, "output_tokens": 3});
    let events = stream(&whole, &first, &json!({"output_tokens": 89}), blocks);
    Answer { whole, events }
}

fn thinking() -> Answer {
    let content = json!([
        {"type": "thinking", "thinking": "27 * 453 = 12231", "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3h"},
        {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"},
        {"type": "thinking", "thinking": "", "signature": "EtcFClkICRgC"},
        {"type": "text", "text": "12231"},
    ]);
    let usage = json!({
        "input_tokens": 30, "output_tokens": 120, "output_tokens_details": {"thinking_tokens": 100},
    });
    let whole = message(&content, "end_turn", &usage);
    let empty = json!({"type": "thinking", "thinking": "", "signature": ""});
    let signature = |text: &str| json!({"type": "signature_delta", "signature": text});
    let mut blocks = vec![
        start(0, &empty),
        delta(0, &json!({"type": "thinking_delta", "thinking": "27 * 453"})),
        delta(0, &json!({"type": "thinking_delta", "thinking": " = 12231"})),
        delta(0, &signature("EqQBCgIYAhIM1gbcDa9GJwZA2b3h")),
        stop(0),
        start(1, &content[1]),
        stop(1),
        start(2, &empty),
        delta(2, &signature("EtcFClkICRgC")),
        stop(2),
    ];
    blocks.extend(text_events(3, &["12231"]));
    let last = json!({"output_tokens": 120, "output_tokens_details": {"thinking_tokens": 100}});
    let events = stream(&whole, &json!({"input_tokens": 30, "output_tokens": 4}), &last, blocks);
    Answer { whole, events }
}

fn cache() -> Answer {
    let first = json!({
        "input_tokens": 4,
        "cache_creation_input_tokens": 188,
        "cache_read_input_tokens": 18_000,
        "cache_creation": {"ephemeral_5m_input_tokens": 188, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 1,
    });
    let mut usage = first.clone();
    usage["output_tokens"] = 393.into();
    let mut whole = message(&json!([{"type": "text", "text": "Once upon"}]), "stop_sequence", &usage);
    whole["stop_sequence"] = "a time".into();
    // Newer servers repeat the counters of the input at the end.
    let last = json!({
        "input_tokens": 4, "cache_creation_input_tokens": 188, "cache_read_input_tokens": 18_000,
        "output_tokens": 393,
    });
    let events = stream(&whole, &first, &last, text_events(0, &["Once", " upon"]));
    Answer { whole, events }
}

fn refusal() -> Answer {
    let mut whole = message(&json!([]), "refusal", &json!({"input_tokens": 99, "output_tokens": 2}));
    whole["stop_details"] = json!({"type": "refusal", "category": "bio", "explanation": null});
    let first = json!({"input_tokens": 99, "output_tokens": 1});
    let mut events = stream(&whole, &first, &json!({"output_tokens": 2}), vec![]);
    let end = events.len() - 2;
    events[0]["message"]["stop_details"] = Value::Null;
    events[end]["delta"]["stop_details"] = whole["stop_details"].clone();
    Answer { whole, events }
}

/// Unknown blocks, and known ones with unknown fields.
fn unknown() -> Answer {
    let search =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []});
    let citation = json!({"type": "char_location", "cited_text": "x", "document_index": 0});
    let content = json!([search, found, {"type": "text", "text": "It is x.", "citations": [citation]}]);
    let mut whole = message(&content, "pause_turn", &json!({"input_tokens": 10, "output_tokens": 5}));
    whole["container"] = json!({"id": "c1"});
    let mut opened = search;
    opened["input"] = json!({});
    let blocks = vec![
        start(0, &opened),
        delta(0, &json!({"type": "input_json_delta", "partial_json": "{\"query\":\"x\"}"})),
        stop(0),
        start(1, &found),
        stop(1),
        json!({"type": "event_of_the_future", "index": 1}),
        start(2, &json!({"type": "text", "text": "", "citations": []})),
        delta(2, &json!({"type": "citations_delta", "citation": citation})),
        delta(2, &json!({"type": "text_delta", "text": "It is x."})),
        stop(2),
    ];
    let first = json!({"input_tokens": 10, "output_tokens": 1});
    let events = stream(&whole, &first, &json!({"output_tokens": 5}), blocks);
    Answer { whole, events }
}

macro_rules! answers {
    ($($name:ident),*) => {
        $(
            #[test]
            fn $name() {
                let answer = super::$name();
                let reply = decode(&answer.whole).unwrap();
                insta::assert_json_snapshot!(stringify!($name), reply);
                assert_eq!(read(&[sse(&answer.events).as_bytes()]).unwrap(), reply);
            }
        )*
    };
}

mod both_forms_give {
    use super::{decode, read, sse};

    answers!(plain, parallel_tools, thinking, cache, refusal, unknown);
}

fn all() -> Vec<Answer> {
    vec![plain(), parallel_tools(), thinking(), cache(), refusal(), unknown()]
}

#[test]
fn a_stream_cut_anywhere_is_cut_and_nothing_else() {
    for answer in all() {
        let bytes = sse(&answer.events).into_bytes();
        for end in 0..bytes.len() {
            let failure = read(&[&bytes[..end]]).unwrap_err();
            assert_eq!((failure.kind, failure.retryable), (FailureKind::Truncated, true), "{end}");
        }
    }
}

proptest! {
    #[test]
    fn pieces_do_not_matter(which in 0_usize..6, cuts in proptest::collection::vec(0_usize..3_000, 0..20)) {
        let answer = &all()[which];
        let bytes = sse(&answer.events).into_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(read(&pieces).unwrap(), decode(&answer.whole).unwrap());
    }

    /// One lost event never yields another answer that looks complete, except for purely decorative events; lost pieces
    /// of text cannot be noticed in this format.
    #[test]
    fn lost_events(which in 0_usize..6, lost in 0_usize..30) {
        let answer = &all()[which];
        let mut events = answer.events.clone();
        let kind = events.remove(lost % events.len())["type"].as_str().unwrap().to_owned();
        let found = read(&[sse(&events).as_bytes()]);
        match kind.as_str() {
            "ping" | "event_of_the_future" => prop_assert_eq!(found, decode(&answer.whole)),
            "content_block_delta" => {}
            _ => prop_assert!(found.is_err(), "{kind}: {found:?}"),
        }
    }

    #[test]
    fn no_json_panics(text in r#"\{("type"|"content"|"usage"|"stop_reason"|"error"):.{0,40}\}"#) {
        drop(AnthropicMessages.decode(text.as_bytes()));
        drop(read(&[format!("data: {text}\n\n").as_bytes()]));
    }
}

#[test]
fn thoughts_go_back_as_they_came() {
    let answer = thinking();
    let reply = decode(&answer.whole).unwrap();
    let messages = vec![Message::text(Role::User, "27 * 453?"), reply.into_message()];
    let body = sent(&Request { messages, ..Request::default() }, &Wire::default());
    assert_eq!(body["messages"][1]["content"], answer.whole["content"]);
}

#[test]
fn unsigned_thoughts_have_nothing_to_go_back() {
    for thought in [
        json!({"type": "thinking", "thinking": "hm"}),
        json!({"type": "thinking", "thinking": "hm", "signature": ""}),
    ] {
        let reply = decode(&message(&json!([thought]), "end_turn", &Value::Null)).unwrap();
        assert_eq!(reply.parts, [Part::Reasoning { text: "hm".to_owned(), opaque: None }]);
    }
}

#[test]
fn reasons_to_stop() {
    let cases = [
        ("end_turn", Stop::End),
        ("tool_use", Stop::ToolCalls),
        ("max_tokens", Stop::Length),
        ("model_context_window_exceeded", Stop::Length),
        ("stop_sequence", Stop::StopText),
        ("refusal", Stop::ContentFilter),
        ("pause_turn", Stop::Other("pause_turn".to_owned())),
    ];
    for (reason, expected) in cases {
        assert_eq!(decode(&message(&json!([]), reason, &Value::Null)).unwrap().stop, expected);
    }
    let refused = inspect(&decode(&refusal().whole).unwrap()).unwrap();
    assert_eq!(refused.kind, FailureKind::ContentFilter);
}

#[test]
fn usage_that_is_not_said_is_not_made_up() {
    let usage = |usage: Value| decode(&message(&json!([]), "end_turn", &usage)).unwrap().usage;
    assert_eq!(usage(Value::Null), None);
    assert_eq!(usage(json!({"output_tokens": 5})), None);
    assert_eq!(usage(json!({"input_tokens": 5})), None);
    let counted = usage(json!({
        "input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": null,
        "output_tokens_details": {"thinking_tokens": 9},
    }));
    assert_eq!(counted, Some(Usage { input: 5, output: 0, reasoning: 7, ..Usage::default() }));
}

#[test]
fn malformed_fields_are_named() {
    let good = message(&json!([]), "end_turn", &json!({"input_tokens": 1, "output_tokens": 1}));
    let cases = [
        ("/content", json!("text"), "`content`"),
        ("/content", json!([7]), "`content[0]`"),
        ("/content", json!([{"text": "?"}]), "`content[0].type`"),
        ("/content", json!([{"type": "text", "text": 5}]), "`content[0].text`"),
        (
            "/content",
            json!([{"type": "text", "text": "a"}, {"type": "tool_use", "id": "x"}]),
            "`content[1].name`",
        ),
        ("/content", json!([{"type": "tool_use", "id": "x", "name": "y"}]), "`content[0].input`"),
        ("/content", json!([{"type": "thinking", "signature": "x"}]), "`content[0].thinking`"),
        ("/content", json!([{"type": "redacted_thinking"}]), "`content[0].data`"),
        ("/stop_reason", Value::Null, "`stop_reason`"),
        ("/usage", json!([]), "`usage`"),
        ("/usage/input_tokens", json!(-1), "`usage.input_tokens`"),
        ("/usage/output_tokens", json!("12"), "`usage.output_tokens`"),
        ("/model", json!(4), "`model`"),
        ("/type", json!("completion"), "`type`"),
    ];
    for (pointer, value, named) in cases {
        let mut body = good.clone();
        *body.pointer_mut(pointer).unwrap() = value;
        let failure = decode(&body).unwrap_err();
        assert_eq!((failure.kind, failure.retryable), (FailureKind::Protocol, true), "{named}");
        assert!(failure.message.contains(named), "{named}: {}", failure.message);
    }
    assert!(decode(&json!([])).is_err());
    let html = AnthropicMessages.decode(b"<html>Bad gateway</html>");
    assert!(html.unwrap_err().message.ends_with("<html>Bad gateway</html>"));
}

#[test]
fn errors_inside_a_success() {
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let failure = decode(&error).unwrap_err();
    assert_eq!(failure.message, "the provider reports overloaded_error: Overloaded");
    assert_eq!((failure.kind, failure.retryable), (FailureKind::Server, true));
    let mut events = plain().events;
    events[3] = error;
    assert_eq!(read(&[sse(&events).as_bytes()]).unwrap_err(), failure);
}
