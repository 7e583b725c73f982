//! The Converse format.

use aec_model::dialect::converse::BedrockConverse;
use aec_model::dialect::{Dialect, Wire};
use aec_model::failure::{Failure, FailureKind};
use aec_model::message::{Message, Part, Reply, Request, Role, Sampling, Stop, ToolChoice};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::bedrock::{conversation, frame, pieces, read, sent, weather_tool};

fn wire(model: &str) -> Wire {
    Wire { model: model.to_owned(), model_in_body: true, ..Wire::default() }
}

fn sealed() -> Request {
    conversation(json!({"type": "reasoningText", "signature": "c2ln"}))
}

fn hello() -> Request {
    Request { messages: vec![Message::text(Role::User, "Hello")], ..Request::default() }
}

fn encode(request: &Request) -> Map<String, Value> {
    sent(&BedrockConverse, request, &wire("meta.llama3-1-70b-instruct-v1:0"))
}

#[test]
fn paths() {
    let llama = wire("meta.llama3-1-70b-instruct-v1:0");
    assert_eq!(BedrockConverse.path(&llama), "/model/meta.llama3-1-70b-instruct-v1%3A0/converse");
    assert_eq!(
        BedrockConverse.path(&Wire { stream: true, ..llama }),
        "/model/meta.llama3-1-70b-instruct-v1%3A0/converse-stream"
    );
}

#[test]
fn tools_images_and_thoughts() {
    insta::assert_json_snapshot!(encode(&sealed()));
}

#[test]
fn every_setting() {
    let extra = json!({"top_k": 20, "max_tokens": 1_000_000, "maxTokens": 5, "max_gen_len": 5, "inferenceConfig": {}});
    let request = Request {
        sampling: Sampling {
            max_tokens: Some(500),
            temperature: Some(0.5),
            top_p: Some(0.9),
            stop: vec!["END".to_owned()],
            seed: Some(7),
            reasoning_effort: Some("low".to_owned()),
            thinking_tokens: Some(2_000),
            extra: extra.as_object().unwrap().clone(),
        },
        ..hello()
    };
    insta::assert_json_snapshot!(encode(&request));
}

#[test]
fn redacted_thoughts_go_back_and_those_of_others_do_not() {
    let thought = |opaque: Value| {
        let body = encode(&conversation(opaque));
        body["messages"][1]["content"][0].clone()
    };
    let redacted = thought(json!({"type": "redactedContent", "data": "AQID"}));
    assert_eq!(redacted, json!({"reasoningContent": {"redactedContent": "AQID"}}));
    for foreign in
        [json!({"type": "thinking", "signature": "x"}), json!("x"), json!({"type": "reasoningText"})]
    {
        assert!(thought(foreign).get("toolUse").is_some());
    }
}

#[test]
fn cache_points_only_where_they_are_taken() {
    let points = |model: &str| {
        let body = sent(&BedrockConverse, &sealed(), &Wire { cache_prompt: true, ..wire(model) });
        let point = json!({"cachePoint": {"type": "default"}});
        let ends_with_point = |list: &Value| list.as_array().unwrap().last() == Some(&point);
        let places = [
            ends_with_point(&body["system"]),
            ends_with_point(&body["messages"][2]["content"]),
            ends_with_point(&body["toolConfig"]["tools"]),
        ];
        let count = places.iter().filter(|place| **place).count();
        assert_eq!(Value::from(body).to_string().matches("cachePoint").count(), count);
        places
    };
    assert_eq!(points("us.amazon.nova-pro-v1:0"), [true, true, false]);
    assert_eq!(points("anthropic.claude-sonnet-4-20250514-v1:0"), [true, true, true]);
    assert_eq!(points("mistral.mistral-large-2407-v1:0"), [false, false, false]);
}

#[test]
fn tool_choices() {
    let config = |request: Request, choice: ToolChoice| {
        let body = encode(&Request { tool_choice: choice, ..request });
        body.get("toolConfig")
            .map(|config| (config["tools"].as_array().unwrap().len(), config.get("toolChoice").cloned()))
    };
    let fresh = || Request { tools: vec![weather_tool()].into(), ..hello() };
    assert_eq!(config(fresh(), ToolChoice::Auto), Some((1, None)));
    assert_eq!(config(fresh(), ToolChoice::Required), Some((1, Some(json!({"any": {}})))));
    let named = ToolChoice::Tool("get_weather".to_owned());
    assert_eq!(config(fresh(), named), Some((1, Some(json!({"tool": {"name": "get_weather"}})))));
    assert_eq!(config(fresh(), ToolChoice::None), None);
    // Calls in the conversation require tools beside them.
    assert_eq!(config(sealed(), ToolChoice::None), Some((1, None)));
    assert_eq!(config(hello(), ToolChoice::Auto), None);
}

/// An answer in both forms.
struct Answer {
    whole: Value,
    events: Vec<(&'static str, Value)>,
}

fn answer(content: &Value, stop: &str, blocks: Vec<(&'static str, Value)>) -> Answer {
    let usage = json!({
        "inputTokens": 30, "outputTokens": 628, "totalTokens": 700, "cacheReadInputTokens": 40,
        "cacheWriteInputTokens": 2, "cacheDetails": [{"ttl": "5m", "inputTokens": 2}],
    });
    let whole = json!({
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": stop,
        "usage": usage,
        "metrics": {"latencyMs": 1275},
    });
    let mut events = vec![("messageStart", json!({"role": "assistant", "p": "abc"}))];
    events.extend(blocks);
    events.push(("messageStop", json!({"stopReason": stop, "p": "abcd"})));
    events.push(("metadata", json!({"usage": usage, "metrics": {"latencyMs": 1275}, "p": "abcdef"})));
    Answer { whole, events }
}

fn delta(index: u32, delta: &Value) -> (&'static str, Value) {
    ("contentBlockDelta", json!({"contentBlockIndex": index, "delta": delta, "p": "abcdefghijkl"}))
}

fn close(index: u32) -> (&'static str, Value) {
    ("contentBlockStop", json!({"contentBlockIndex": index, "p": "ab"}))
}

fn open(index: u32, start: &Value) -> (&'static str, Value) {
    ("contentBlockStart", json!({"contentBlockIndex": index, "start": start}))
}

fn plain() -> Answer {
    let blocks = vec![delta(0, &json!({"text": "Hel"})), delta(0, &json!({"text": "lo, Größe"})), close(0)];
    answer(&json!([{"text": "Hello, Größe"}]), "end_turn", blocks)
}

fn parallel_tools() -> Answer {
    let content = json!([
        {"text": "I look."},
        {"toolUse": {"toolUseId": "tooluse_1", "name": "get_weather", "input": {"city": "Paris", "days": 2}}},
        {"toolUse": {"toolUseId": "tooluse_2", "name": "now", "input": {}}},
    ]);
    let blocks = vec![
        delta(0, &json!({"text": "I look."})),
        close(0),
        open(1, &json!({"toolUse": {"toolUseId": "tooluse_1", "name": "get_weather"}})),
        delta(1, &json!({"toolUse": {"input": "{\"city\": \"Par"}})),
        delta(1, &json!({"toolUse": {"input": "is\", \"days\": 2}"}})),
        close(1),
        open(2, &json!({"toolUse": {"toolUseId": "tooluse_2", "name": "now"}})),
        close(2),
    ];
    answer(&content, "tool_use", blocks)
}

fn thinking() -> Answer {
    let content = json!([
        {"reasoningContent": {"reasoningText": {"text": "27 * 453", "signature": "c2lnbmF0dXJl"}}},
        {"reasoningContent": {"redactedContent": "AQIDBAU="}},
        {"reasoningContent": {"reasoningText": {"text": "unsigned"}}},
        {"text": "12231"},
    ]);
    let thought = |piece: Value| json!({"reasoningContent": piece});
    let blocks = vec![
        delta(0, &thought(json!({"text": "27 *"}))),
        delta(0, &thought(json!({"text": " 453"}))),
        delta(0, &thought(json!({"signature": "c2lnbmF0dXJl"}))),
        close(0),
        delta(1, &thought(json!({"redactedContent": "AQI="}))),
        delta(1, &thought(json!({"redactedContent": "AwQF"}))),
        close(1),
        delta(2, &thought(json!({"text": "unsigned"}))),
        close(2),
        delta(3, &json!({"text": "12231"})),
        close(3),
    ];
    answer(&content, "max_tokens", blocks)
}

fn guardrail() -> Answer {
    let mut answer = answer(&json!([]), "guardrail_intervened", vec![]);
    let trace = json!({"guardrail": {"actionReason": "Guardrail blocked."}});
    answer.whole["trace"] = trace.clone();
    answer.events.last_mut().unwrap().1["trace"] = trace;
    let fields = json!({"stop_sequence": "x"});
    answer.whole["additionalModelResponseFields"] = fields.clone();
    let stop = answer.events.len() - 2;
    answer.events[stop].1["additionalModelResponseFields"] = fields;
    answer
}

fn bytes(events: &[(&str, Value)]) -> Vec<u8> {
    events.iter().flat_map(|(kind, payload)| frame("event", kind, payload)).collect()
}

fn decode(body: &Value) -> Result<Reply, Failure> {
    BedrockConverse.decode(body.to_string().as_bytes())
}

macro_rules! answers {
    ($($name:ident),*) => {
        $(
            #[test]
            fn $name() {
                let answer = super::$name();
                let reply = decode(&answer.whole).unwrap();
                insta::assert_json_snapshot!(stringify!($name), reply);
                assert_eq!(read(&BedrockConverse, &[&bytes(&answer.events)]).unwrap(), reply);
            }
        )*
    };
}

mod both_forms_give {
    use super::{BedrockConverse, bytes, decode, read};

    answers!(plain, parallel_tools, thinking, guardrail);
}

fn all() -> Vec<Answer> {
    vec![plain(), parallel_tools(), thinking(), guardrail()]
}

#[test]
fn thoughts_go_back_as_they_came() {
    let answer = thinking();
    let messages = vec![Message::text(Role::User, "?"), decode(&answer.whole).unwrap().into_message()];
    let body = encode(&Request { messages, ..Request::default() });
    let mut expected = answer.whole["output"]["message"]["content"].as_array().unwrap().clone();
    // Unsigned thoughts are not sent back.
    expected.remove(2);
    assert_eq!(body["messages"][1]["content"], Value::from(expected));
}

#[test]
fn a_stream_cut_anywhere_is_cut_or_lacks_its_metadata() {
    for answer in all() {
        let body = bytes(&answer.events);
        let without_metadata = bytes(&answer.events[..answer.events.len() - 1]).len();
        for end in 0..body.len() {
            let found = read(&BedrockConverse, &[&body[..end]]);
            if end == without_metadata {
                let whole = decode(&answer.whole).unwrap();
                let found = found.unwrap();
                assert_eq!((found.parts, found.stop, found.usage), (whole.parts, whole.stop, None));
            } else {
                let failure = found.unwrap_err();
                assert_eq!((failure.kind, failure.retryable), (FailureKind::Truncated, true), "{end}");
            }
        }
    }
}

#[test]
fn the_reader_is_done_with_the_metadata() {
    let events = plain().events;
    let mut reader = BedrockConverse.reader();
    for (index, (kind, payload)) in events.iter().enumerate() {
        assert!(!reader.is_done());
        reader.take(&frame("event", kind, payload).into()).unwrap();
        assert_eq!(reader.received(), [0, 3, 14][index.min(2)]);
    }
    assert!(reader.is_done());
}

#[test]
fn disorder_and_exceptions_inside_the_stream() {
    use FailureKind as K;
    let exception = |kind: &str, message: &str| frame("exception", kind, &json!({"message": message}));
    let event = |(kind, payload): (&str, Value)| frame("event", kind, &payload);
    let text = json!({"text": "x"});
    let cases = [
        (exception("throttlingException", "slow down"), K::Rate, true),
        (exception("serviceUnavailableException", "down"), K::Server, true),
        (exception("validationException", "Malformed input request"), K::Request, false),
        (event(("messageStart", json!({"role": "assistant"}))), K::Protocol, true),
        (event(delta(0, &text)), K::Protocol, true),
        (event(delta(1, &json!({"toolUse": {"input": "{}"}}))), K::Protocol, true),
        (event(("contentBlockDelta", json!({"delta": text}))), K::Protocol, true),
        (event(("contentBlockDelta", json!({"contentBlockIndex": 1}))), K::Protocol, true),
        (event(open(0, &json!({}))), K::Protocol, true),
        (event(delta(1, &json!({"reasoningContent": {"redactedContent": "?"}}))), K::Protocol, true),
    ];
    let so_far = bytes(&plain().events[..4]);
    for (extra, kind, retryable) in cases {
        let failure = read(&BedrockConverse, &[&so_far, &extra]).unwrap_err();
        assert_eq!((failure.kind, failure.retryable), (kind, retryable), "{}", failure.message);
    }
    assert_eq!(read(&BedrockConverse, &[&event(delta(0, &text))]).unwrap_err().kind, K::Protocol);
    let open_end =
        [so_far, event(delta(1, &text)), event(("messageStop", json!({"stopReason": "end_turn"})))];
    assert_eq!(read(&BedrockConverse, &[&open_end.concat()]).unwrap_err().kind, K::Protocol);
    // Unknown kinds of events are ignored, whatever they carry.
    let body = [event(("future", json!([]))), bytes(&plain().events)];
    assert!(read(&BedrockConverse, &[&body.concat()]).is_ok());
}

#[test]
fn reasons_to_stop() {
    let cases = [
        ("end_turn", Stop::End),
        ("tool_use", Stop::ToolCalls),
        ("max_tokens", Stop::Length),
        ("model_context_window_exceeded", Stop::Length),
        ("stop_sequence", Stop::StopText),
        ("guardrail_intervened", Stop::ContentFilter),
        ("content_filtered", Stop::ContentFilter),
        ("malformed_tool_use", Stop::Other("malformed_tool_use".to_owned())),
    ];
    for (reason, expected) in cases {
        assert_eq!(decode(&answer(&json!([]), reason, vec![]).whole).unwrap().stop, expected);
    }
}

#[test]
fn unknown_blocks_are_kept() {
    let citations = json!({"citationsContent": {"content": [{"text": "x"}]}});
    let reply = decode(&answer(&json!([citations, {"text": "y"}]), "end_turn", vec![]).whole).unwrap();
    assert_eq!(reply.parts, [Part::text("y")]);
    assert_eq!(reply.extra["blocks"], json!([{"index": 0, "block": citations}]));
}

#[test]
fn malformed_fields_are_named() {
    let cases = [
        ("/output", json!(5), "`output`"),
        ("/output/message/content", json!("x"), "`output.message.content`"),
        ("/output/message/content", json!([{"text": 5}]), "`output.message.content[0].text`"),
        (
            "/output/message/content",
            json!([{"toolUse": {"toolUseId": "x"}}]),
            "`output.message.content[0].toolUse.name`",
        ),
        (
            "/output/message/content",
            json!([{"reasoningContent": {}}]),
            "`output.message.content[0].reasoningContent.reasoningText`",
        ),
        ("/stopReason", Value::Null, "`stopReason`"),
        ("/usage/inputTokens", json!(1.5), "`usage.inputTokens`"),
    ];
    for (pointer, value, named) in cases {
        let mut body = plain().whole;
        *body.pointer_mut(pointer).unwrap() = value;
        let failure = decode(&body).unwrap_err();
        assert_eq!((failure.kind, failure.retryable), (FailureKind::Protocol, true), "{named}");
        assert!(failure.message.contains(named), "{named}: {}", failure.message);
    }
}

proptest! {
    #[test]
    fn pieces_do_not_matter(which in 0_usize..4, cuts in proptest::collection::vec(0_usize..3_000, 0..20)) {
        let answer = &all()[which];
        let body = bytes(&answer.events);
        prop_assert_eq!(read(&BedrockConverse, &pieces(&body, &cuts)), decode(&answer.whole));
    }

    #[test]
    fn a_damaged_stream_is_no_other_answer(at in 0_usize..3_000, bit in 0_u8..8) {
        let mut body = bytes(&parallel_tools().events);
        let at = at % body.len();
        body[at] ^= 1 << bit;
        let failure = read(&BedrockConverse, &[&body]).unwrap_err();
        prop_assert!(matches!(failure.kind, FailureKind::Protocol | FailureKind::Truncated));
    }
}
