//! Requests of untrusted agents.

use aec_model::dialect::Dialect;
use aec_model::dialect::openai::OpenAiChat;
use aec_model::gateway::Inbound;
use aec_model::gateway::openai::decode_request;
use aec_model::message::{Part, Request, Role, ToolChoice};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::wire;

fn inbound(body: &Value) -> Result<Inbound, String> {
    decode_request(body.to_string().as_bytes())
}

/// A valid request with some keys set.
fn asking(more: Value) -> Value {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

fn saying(message: Value) -> Value {
    json!({"model": "m", "messages": [message]})
}

#[test]
fn a_whole_request_is_understood() {
    let body = json!({
        "model": "gpt-x",
        "messages": [
            {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
            {"role": "user", "name": "ann", "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw==", "detail": "high"}},
            ]},
            {"role": "assistant", "content": null, "refusal": null, "annotations": [], "audio": null, "function_call": null,
             "reasoning_content": "hm",
             "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"x\": 1}"}},
                {"id": "c2", "type": "function", "index": 1, "function": {"name": "look", "arguments": ""}},
             ]},
            {"role": "tool", "tool_call_id": "c1", "content": "one"},
            {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "two"}]},
            {"role": "user", "content": "go on"},
        ],
        "tools": [
            {"type": "function", "function": {"name": "look", "description": "Looks.", "strict": true, "parameters": {"type": "object"}}},
            {"type": "function", "function": {"name": "rest"}},
        ],
        "tool_choice": {"type": "function", "function": {"name": "look"}},
        "max_completion_tokens": 500, "temperature": 0, "top_p": 0.9, "stop": "END", "seed": 3, "reasoning_effort": "low",
        "n": 1, "stream": true, "stream_options": {"include_usage": true},
        "presence_penalty": 0.5, "top_k": 5, "response_format": {"type": "json_object"}, "parallel_tool_calls": false,
        "user": "u", "metadata": {"a": "b"}, "store": false, "logit_bias": null,
    });
    let inbound = inbound(&body).unwrap();
    assert_eq!((inbound.model.as_str(), inbound.stream, inbound.include_usage), ("gpt-x", true, true));
    insta::assert_json_snapshot!(inbound.request);
    insta::assert_json_snapshot!("a_whole_request_is_passed_on", sent(&inbound.request));
}

#[test]
fn keys_that_are_not_known_are_named() {
    let keys = [
        "service_tier",
        "web_search_options",
        "base_url",
        "api_key",
        "extra_headers",
        "extra_body",
        "models",
        "provider",
        "functions",
        "function_call",
        "modalities",
        "audio",
        "prediction",
        "plugins",
        "route",
        "transforms",
        "best_of",
        "thinking",
        "max_output_tokens",
        "Model",
        "",
    ];
    for key in keys {
        for value in [json!("x"), json!({}), Value::Null] {
            let objection = inbound(&asking(json!({key: value}))).expect_err(key);
            assert!(objection.contains(&format!("`{key}`")), "{key}: {objection}");
        }
    }
}

#[test]
fn values_of_another_type_are_named() {
    let cases = [
        json!({"model": 1}),
        json!({"model": ""}),
        json!({"model": null}),
        json!({"messages": {}}),
        json!({"messages": []}),
        json!({"messages": null}),
        json!({"messages": ["x"]}),
        json!({"stream": 1}),
        json!({"stream_options": true}),
        json!({"stream_options": {"include_usage": 1}}),
        json!({"stream_options": {"include_obfuscation": true}}),
        json!({"max_tokens": 0}),
        json!({"max_tokens": -1}),
        json!({"max_tokens": 1.5}),
        json!({"max_tokens": "9"}),
        json!({"max_tokens": 5_000_000_000_u64}),
        json!({"max_tokens": 5, "max_completion_tokens": 6}),
        json!({"n": 2}),
        json!({"n": 0}),
        json!({"n": "1"}),
        json!({"temperature": "hot"}),
        json!({"top_p": []}),
        json!({"stop": 1}),
        json!({"stop": ["a", 1]}),
        json!({"seed": 1.5}),
        json!({"reasoning_effort": 1}),
        json!({"tools": {}}),
        json!({"tools": [{"type": "web_search"}]}),
        json!({"tools": [{"function": {"name": "f"}}]}),
        json!({"tools": [{"type": "custom", "custom": {"name": "f"}}]}),
        json!({"tools": [{"type": "function"}]}),
        json!({"tools": [{"type": "function", "function": {"name": ""}}]}),
        json!({"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]}),
        json!({"tools": [{"type": "function", "function": {"name": "f", "url": "x"}}]}),
        json!({"tools": [{"type": "function", "function": {"name": "f"}, "server_url": "x"}]}),
        json!({"tool_choice": "any"}),
        json!({"tool_choice": 1}),
        json!({"tool_choice": {"type": "function", "function": {"name": "absent"}}}),
        json!({"tool_choice": {"type": "allowed_tools", "allowed_tools": {}}}),
        json!({"user": 1}),
        json!({"metadata": "x"}),
        json!({"store": "yes"}),
        json!({"presence_penalty": "1"}),
        json!({"frequency_penalty": []}),
        json!({"logit_bias": []}),
        json!({"logprobs": 1}),
        json!({"top_logprobs": 1.5}),
        json!({"response_format": "json"}),
        json!({"parallel_tool_calls": 0}),
        json!({"top_k": 0.5}),
        json!({"min_p": true}),
        json!({"repetition_penalty": {}}),
        json!({"chat_template_kwargs": []}),
    ];
    for case in cases {
        let objection = inbound(&asking(case.clone())).expect_err(&case.to_string());
        let key = case.as_object().unwrap().keys().next().unwrap();
        assert!(objection.contains(key.as_str()), "{case}: {objection}");
    }
}

#[test]
fn messages_that_are_not_understood_are_refused() {
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let with = |key: &str, value: Value| {
        let mut call = call.clone();
        call[key] = value;
        json!({"role": "assistant", "tool_calls": [call]})
    };
    let cases = [
        json!({"content": "x"}),
        json!({"role": 1, "content": "x"}),
        json!({"role": "function", "name": "f", "content": "x"}),
        json!({"role": "user"}),
        json!({"role": "user", "content": 1}),
        json!({"role": "user", "content": "x", "name": 1}),
        json!({"role": "user", "content": "x", "cache_control": {}}),
        json!({"role": "user", "content": ["x"]}),
        json!({"role": "user", "content": [{"type": "text"}]}),
        json!({"role": "user", "content": [{"text": "x"}]}),
        json!({"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]}),
        json!({"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}),
        json!({"role": "user", "content": [{"type": "file", "file": {"file_id": "x"}}]}),
        json!({"role": "user", "content": [{"type": "refusal", "refusal": "x"}]}),
        json!({"role": "user", "content": "x", "tool_calls": [call]}),
        json!({"role": "user", "content": "x", "reasoning": "y"}),
        json!({"role": "system", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}),
        json!({"role": "tool", "content": "x"}),
        json!({"role": "tool", "tool_call_id": "c"}),
        json!({"role": "assistant", "audio": {"id": "x"}}),
        json!({"role": "assistant", "function_call": {"name": "f"}}),
        json!({"role": "assistant", "tool_calls": call}),
        json!({"role": "assistant", "refusal": 1}),
        json!({"role": "assistant", "reasoning": 1}),
        json!({"role": "assistant", "reasoning_details": "x"}),
        json!({"role": "assistant", "reasoning_details": [{"type": "image", "source": {"url": "https://a.test"}}]}),
        json!({"role": "assistant", "reasoning_details": [{"type": "aec.reasoning", "text": "x", "opaque": {"source": {"url": "https://a.test"}}}]}),
        json!({"role": "assistant", "reasoning_details": [{"type": "aec.reasoning"}]}),
        json!({"role": "assistant", "reasoning_details": [{"type": "aec.reasoning", "text": "x"}, {"type": "other"}]}),
        with("id", Value::Null),
        with("id", json!("")),
        with("type", json!("custom")),
        with("function", json!({"arguments": ""})),
        with("function", json!({"name": "f", "arguments": {}})),
        with("extra_content", json!({})),
        with("index", json!("0")),
    ];
    for case in cases {
        let objection = inbound(&saying(case.clone())).expect_err(&case.to_string());
        assert!(objection.contains("messages[0]"), "{case}: {objection}");
    }
}

#[test]
fn images_come_with_the_request_or_not_at_all() {
    let image = |url: &str| {
        inbound(&saying(
            json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}),
        ))
    };
    let request = image("data:image/svg+xml;base64,AAA=").unwrap().request;
    let expected = Part::Image { media_type: "image/svg+xml".to_owned(), data: "AAA=".to_owned() };
    assert_eq!(request.messages[0].parts, [expected]);
    let refused = [
        "https://a.test/x.png",
        "http://169.254.169.254/",
        "file:///etc/passwd",
        "ftp://a.test/x.png",
        "//a.test/x.png",
        "gs://bucket/x",
        "data:image/png,abc",
        "data:image/png;base64,",
        "data:image/png;base64,???",
        "data:image/png;base64,AAA",
        "data:text/html;base64,AAAA",
        "data:;base64,AAAA",
        "data:image/;base64,AAAA",
        "data:image/png;charset=x;base64,AAAA",
        "DATA:image/png;base64,AAAA",
        " data:image/png;base64,AAAA",
        "data:image/a\"b;base64,AAAA",
        "",
    ];
    for url in refused {
        assert!(image(url).expect_err(url).contains("messages[0].content[0].image_url.url"), "{url}");
    }
    let objection = inbound(&saying(
        json!({"role": "user", "content": [{"type": "image_url", "image_url": "data:image/png;base64,AAAA"}]}),
    ));
    assert!(objection.is_err());
}

#[test]
fn results_of_one_turn_are_one_message() {
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "x"});
    let user = json!({"role": "user", "content": "y"});
    let body = json!({"model": "m", "messages": [user, result("a"), result("b"), user, result("c")]});
    let messages = inbound(&body).unwrap().request.messages;
    let lengths: Vec<usize> = messages.iter().map(|message| message.parts.len()).collect();
    assert_eq!(lengths, [1, 2, 1, 1]);
    assert!(messages.iter().all(|message| message.role == Role::User));
}

#[test]
fn choices_in_words() {
    let choice = |word: &str| inbound(&asking(json!({"tool_choice": word}))).unwrap().request.tool_choice;
    assert_eq!(choice("auto"), ToolChoice::Auto);
    assert_eq!(choice("none"), ToolChoice::None);
    assert_eq!(choice("required"), ToolChoice::Required);
}

#[test]
fn bodies_that_are_no_request() {
    let deep = format!("{{\"model\":\"m\",\"messages\":{}{}}}", "[".repeat(50_000), "]".repeat(50_000));
    let twice = r#"{"model":"m","messages":[{"role":"user","content":"x","content":"y"}]}"#;
    for body in ["", "null", "[]", "{}", "x", "{\"model\":\"m\"}", twice, &deep] {
        assert!(decode_request(body.as_bytes()).is_err(), "{body:.40}");
    }
    assert!(decode_request(twice.as_bytes()).unwrap_err().contains("\"content\" occurs twice"));
    assert!(decode_request(b"{\"model\":\"\xff\"}").is_err());
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec!["user", "assistant", "tool", "text", "image_url", "function", "x", ""])
            .prop_map(Value::from),
    ];
    let key = prop::sample::select(vec![
        "role",
        "content",
        "type",
        "text",
        "image_url",
        "url",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "id",
        "tool_call_id",
        "reasoning_details",
        "reasoning",
        "opaque",
    ]);
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..5)
                .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

fn sent(request: &Request) -> Map<String, Value> {
    serde_json::from_slice(&OpenAiChat.encode(request, &wire()).unwrap()).unwrap()
}

proptest! {
    /// Every accepted request can be sent on, and contains no address.
    #[test]
    fn anything_is_understood_or_refused(messages in prop::collection::vec(json_value(), 1..4), tools in json_value()) {
        let body = json!({"model": "m", "messages": messages, "tools": tools});
        if let Ok(inbound) = inbound(&body) {
            let sent = sent(&inbound.request);
            prop_assert!(sent.contains_key("messages"));
        }
    }
}
