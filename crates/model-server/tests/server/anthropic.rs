//! Anthropic messages.

use std::sync::Arc;

use aec_model::script::Script;
use aec_model_server::{Answers, Options};
use serde_json::{Value, json};

use crate::client::{Answer, Case, Family, request, send, start};

const WHOLE: Case = Case { family: Family::Messages, stream: false };
const STREAM: Case = Case { family: Family::Messages, stream: true };

fn tools_and_thoughts() -> Options {
    let script: Script = serde_json::from_value(json!({"replies": [
        {"reasoning": "think first", "text": "I look", "tool_calls": [{"name": "f", "arguments": {"a": "x y"}}]}]}))
    .unwrap();
    Options { answers: Answers::Script(Arc::new(script)), ..Options::default() }
}

#[tokio::test]
async fn a_whole_message() {
    let server = start(tools_and_thoughts()).await;
    let answer = WHOLE.ask(&server, "12345678", &json!({})).await;
    assert!(answer.header("request-id").starts_with("req_01"));
    let value = answer.json();
    assert!(value["id"].as_str().unwrap().starts_with("msg_01"));
    assert_eq!([&value["type"], &value["role"], &value["model"]], ["message", "assistant", "m"]);
    assert_eq!((&value["stop_reason"], &value["stop_sequence"]), (&json!("tool_use"), &Value::Null));
    let content = value["content"].as_array().unwrap();
    assert_eq!((&content[0]["type"], &content[0]["thinking"]), (&json!("thinking"), &json!("think first")));
    assert!(!content[0]["signature"].as_str().unwrap().is_empty());
    assert_eq!(content[1], json!({"type": "text", "text": "I look"}));
    assert!(content[2]["id"].as_str().unwrap().starts_with("toolu_01"));
    assert_eq!((&content[2]["name"], &content[2]["input"]), (&json!("f"), &json!({"a": "x y"})));
    let usage = &value["usage"];
    assert_eq!([&usage["input_tokens"], &usage["output_tokens"]], [2, 7]);
    assert_eq!([&usage["cache_creation_input_tokens"], &usage["cache_read_input_tokens"]], [0, 0]);
}

#[tokio::test]
async fn a_stream_has_every_kind_of_event_in_its_order() {
    let server = start(tools_and_thoughts()).await;
    let answer = STREAM.ask(&server, "12345678", &json!({})).await;
    assert_eq!(answer.header("content-type"), "text/event-stream; charset=utf-8");
    let events = answer.events();
    let mut names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    let data: Vec<Value> = answer.data();
    assert!(names.iter().zip(&data).all(|(name, value)| value["type"] == *name), "names and types agree");
    names.dedup();
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let expected = [
        &["message_start", "content_block_start", "ping", "content_block_delta", "content_block_stop"][..],
        &block,
        &block,
        &["message_delta", "message_stop"],
    ]
    .concat();
    assert_eq!(names, expected);

    let deltas = |kind: &str, key: &str| -> String {
        let of_kind = data.iter().filter(|value| value["delta"]["type"] == kind);
        of_kind.map(|value| value["delta"][key].as_str().unwrap()).collect()
    };
    assert_eq!(deltas("thinking_delta", "thinking"), "think first");
    assert_eq!(deltas("text_delta", "text"), "I look");
    assert_eq!(deltas("input_json_delta", "partial_json"), "{\"a\":\"x y\"}");
    assert!(!deltas("signature_delta", "signature").is_empty());
    let start = &data[0]["message"];
    assert_eq!(
        (&start["content"], &start["stop_reason"], &start["usage"]["input_tokens"]),
        (&json!([]), &Value::Null, &json!(2))
    );
    let call = data.iter().find(|value| value["content_block"]["type"] == "tool_use").unwrap();
    assert_eq!((&call["index"], &call["content_block"]["input"]), (&json!(2), &json!({})));
    let end = &data[data.len() - 2];
    assert_eq!(
        (&end["delta"]["stop_reason"], &end["usage"]["output_tokens"]),
        (&json!("tool_use"), &json!(7))
    );
}

#[tokio::test]
async fn marked_prefixes_are_read_from_the_cache_the_second_time() {
    let server = start(Options::default()).await;
    let system = json!([{"type": "text", "text": "s".repeat(400), "cache_control": {"type": "ephemeral"}}]);
    let mut counts = Vec::new();
    for text in ["1234", "12345678"] {
        let value = WHOLE.ask(&server, text, &json!({"system": system})).await.json();
        let usage = &value["usage"];
        counts.push(
            ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"]
                .map(|key| usage[key].clone()),
        );
    }
    assert_eq!(counts, [[1, 100, 0].map(Value::from), [2, 0, 100].map(Value::from)]);
    assert_eq!(server.stats().cached_tokens, 100);
}

#[tokio::test]
async fn key_version_and_the_parts_of_a_request_are_demanded() {
    let server = start(Options { key: Some("right".to_owned()), ..Options::default() }).await;
    let ask = async |headers: &[(&str, &str)], body: &Value| {
        let request = request(&server, "/anthropic/v1/messages", headers, body);
        let answer = Answer::read(send(&server, request).await.unwrap().response).await;
        let value = answer.json();
        if answer.status != 200 {
            assert_eq!(value["type"], "error");
            assert!(value["request_id"].is_string());
        }
        (answer.status, value["error"]["type"].as_str().unwrap_or_default().to_owned())
    };
    let body = WHOLE.body("one", &json!({}));
    let version = ("anthropic-version", "2023-06-01");
    let refused = (401, "authentication_error".to_owned());
    assert_eq!(ask(&[version], &body).await, refused);
    assert_eq!(ask(&[version, ("x-api-key", "wrong")], &body).await, refused);
    let invalid = (400, "invalid_request_error".to_owned());
    assert_eq!(ask(&[("x-api-key", "right")], &body).await, invalid);
    assert_eq!(
        ask(&[version, ("x-api-key", "right")], &json!({"model": "m", "messages": []})).await,
        invalid
    );
    assert_eq!(ask(&[version, ("authorization", "Bearer right")], &body).await.0, 200);
}

#[tokio::test]
async fn thinking_and_stop_sequences() {
    let server = start(Options { answers: Answers::Echo, ..Options::default() }).await;
    let thinking = json!({"thinking": {"type": "enabled", "budget_tokens": 500}});
    let value = WHOLE.ask(&server, "one", &thinking).await.json();
    assert_eq!([&value["content"][0]["type"], &value["content"][1]["type"]], ["thinking", "text"]);
    let value = WHOLE.ask(&server, "one two three", &json!({"stop_sequences": ["two"]})).await.json();
    assert_eq!([&value["stop_reason"], &value["stop_sequence"]], ["stop_sequence", "two"]);
    assert_eq!(value["content"][0]["text"], "one ");
}
