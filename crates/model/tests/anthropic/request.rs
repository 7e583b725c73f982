//! Requests on the wire.

use aec_model::dialect::anthropic::AnthropicMessages;
use aec_model::dialect::{Dialect, Wire};
use aec_model::message::{Message, Part, Request, Role, Sampling, ToolChoice};
use serde_json::{Map, Value, json};

use crate::anthropic::{call, weather_tool};

fn wire() -> Wire {
    Wire { model: "claude-sonnet-4-5".to_owned(), model_in_body: true, ..Wire::default() }
}

/// The encoded body.
pub(super) fn sent(request: &Request, wire: &Wire) -> Map<String, Value> {
    serde_json::from_slice(&AnthropicMessages.encode(request, wire).unwrap()).unwrap()
}

fn encode(request: &Request) -> Map<String, Value> {
    sent(request, &wire())
}

fn says(role: Role, parts: Vec<Part>) -> Message {
    Message { role, parts }
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

/// A conversation with every kind of part.
fn conversation() -> Request {
    let image = Part::Image { media_type: "image/png".to_owned(), data: "iVBORw0KGgo=".to_owned() };
    let thought = Part::Reasoning {
        text: "Two cities.".to_owned(),
        opaque: Some(json!({"type": "thinking", "signature": "EqQBCgIYAhIM"})),
    };
    let redacted = Part::Reasoning {
        text: String::new(),
        opaque: Some(json!({"type": "redacted_thinking", "data": "EmwKAhgBEgy3"})),
    };
    let result = |id: &str, parts: Vec<Part>, is_error: bool| Part::ToolResult {
        call_id: id.to_owned(),
        parts,
        is_error,
    };
    Request {
        messages: vec![
            Message::text(Role::System, "Be brief."),
            Message::text(Role::System, "Use metric units."),
            says(Role::User, vec![image.clone(), Part::text("Weather in the two cities of this picture?")]),
            says(
                Role::Assistant,
                vec![
                    thought,
                    redacted,
                    Part::text("I look."),
                    Part::ToolCall(call("toolu_01", r#"{"city": "Paris"}"#)),
                    Part::ToolCall(call("toolu_02", "")),
                    Part::ToolCall(call("toolu_03", "{\"city\": \"Ro")),
                ],
            ),
            says(
                Role::User,
                vec![Part::text("Hurry."), result("toolu_01", vec![Part::text("18 °C"), image], false)],
            ),
            says(
                Role::User,
                vec![
                    result("toolu_02", vec![], true),
                    result("toolu_03", vec![Part::text("bad json")], true),
                ],
            ),
        ],
        tools: vec![weather_tool()].into(),
        ..Request::default()
    }
}

#[test]
fn plain() {
    insta::assert_json_snapshot!(encode(&Request { messages: vec![user("Hello")], ..Request::default() }));
    assert_eq!(AnthropicMessages.path(&wire()), "/v1/messages");
    assert_eq!(AnthropicMessages.headers(), [("anthropic-version", "2023-06-01")]);
}

#[test]
fn tools_images_and_thoughts() {
    insta::assert_json_snapshot!(encode(&conversation()));
}

#[test]
fn caching_marks_the_ends_of_tools_system_and_the_last_user_turn() {
    let body = sent(&conversation(), &Wire { cache_prompt: true, ..wire() });
    let marked = json!({"type": "ephemeral"});
    assert_eq!(body["tools"][0]["cache_control"], marked);
    assert_eq!(body["system"][1]["cache_control"], marked);
    assert_eq!(body["messages"][2]["content"][3]["cache_control"], marked);
    assert_eq!(Value::from(body).to_string().matches("cache_control").count(), 3);
}

#[test]
fn the_last_user_turn_is_marked_even_when_the_model_spoke_last() {
    let messages = vec![user("a"), Message::text(Role::Assistant, "b")];
    let body = sent(&Request { messages, ..Request::default() }, &Wire { cache_prompt: true, ..wire() });
    assert!(body["messages"][0]["content"][0].get("cache_control").is_some());
    assert!(body["messages"][1]["content"][0].get("cache_control").is_none());
}

#[test]
fn every_setting() {
    let extra = json!({
        "top_k": 5,
        "metadata": {"user_id": "u"},
        "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
        "model": "other", "messages": [], "stream": false, "max_tokens": 1, "tools": [], "tool_choice": {},
        "system": "obey", "anthropic_version": "x",
    });
    let request = Request {
        messages: vec![user("Hello")],
        sampling: Sampling {
            max_tokens: Some(9_000),
            temperature: Some(0.5),
            top_p: Some(0.9),
            stop: vec!["END".to_owned()],
            seed: Some(7),
            reasoning_effort: Some("high".to_owned()),
            thinking_tokens: Some(4_000),
            extra: extra.as_object().unwrap().clone(),
        },
        ..Request::default()
    };
    insta::assert_json_snapshot!(sent(&request, &Wire { stream: true, ..wire() }));
}

#[test]
fn the_model_can_stay_out_of_the_body() {
    let body = sent(&conversation(), &Wire { model_in_body: false, ..wire() });
    assert!(!body.contains_key("model"));
}

#[test]
fn extra_can_choose_another_way_of_thinking() {
    let mut request = Request { messages: vec![user("Hello")], ..Request::default() };
    request.sampling.thinking_tokens = Some(2_000);
    request.sampling.extra.insert("thinking".to_owned(), json!({"type": "adaptive"}));
    assert_eq!(encode(&request)["thinking"], json!({"type": "adaptive"}));
}

#[test]
fn tool_choices() {
    let choice = |choice: ToolChoice| {
        let mut request = conversation();
        request.tool_choice = choice;
        encode(&request).get("tool_choice").cloned()
    };
    assert_eq!(choice(ToolChoice::Auto), None);
    assert_eq!(choice(ToolChoice::None), Some(json!({"type": "none"})));
    assert_eq!(choice(ToolChoice::Required), Some(json!({"type": "any"})));
    assert_eq!(
        choice(ToolChoice::Tool("get_weather".to_owned())),
        Some(json!({"type": "tool", "name": "get_weather"}))
    );
}

#[test]
fn thoughts_that_the_service_would_reject_and_blank_texts_are_left_out() {
    let thought = |opaque: Option<Value>| Part::Reasoning { text: "hm".to_owned(), opaque };
    let request = Request {
        messages: vec![
            user("a"),
            says(
                Role::Assistant,
                vec![
                    thought(None),
                    thought(Some(json!({"type": "reasoning.encrypted", "data": "x"}))),
                    thought(Some(json!("signature"))),
                    Part::text(" \n"),
                ],
            ),
            Message::text(Role::System, "  "),
            user("b"),
        ],
        ..Request::default()
    };
    let body = encode(&request);
    assert!(!body.contains_key("system"));
    // With nothing left between them, the two user messages are one turn.
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(body["messages"], json!([{"role": "user", "content": [text("a"), text("b")]}]));
}
