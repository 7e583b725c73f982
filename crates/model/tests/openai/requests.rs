//! Requests on the wire.

use aec_model::dialect::openai::OpenAiChat;
use aec_model::dialect::{Dialect, LimitKey, Wire};
use aec_model::message::{Message, Part, Request, Role, Sampling, Tool, ToolCall, ToolChoice};
use serde_json::{Map, Value, json};

use super::{decode, wire};

fn encode(request: &Request, wire: &Wire) -> Value {
    serde_json::from_slice(&OpenAiChat.encode(request, wire).unwrap()).unwrap()
}

fn image(data: &str) -> Part {
    Part::Image { media_type: "image/png".to_owned(), data: data.to_owned() }
}

fn call(id: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall { id: id.to_owned(), name: "look".to_owned(), arguments: arguments.to_owned() })
}

fn result(id: &str, parts: Vec<Part>) -> Part {
    Part::ToolResult { call_id: id.to_owned(), parts, is_error: false }
}

fn said(role: Role, parts: Vec<Part>) -> Message {
    Message { role, parts }
}

fn asked(messages: Vec<Message>) -> Request {
    Request { messages, ..Request::default() }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other}"),
    }
}

#[test]
fn path_and_headers() {
    assert_eq!(OpenAiChat.path(&wire()), "/chat/completions");
    assert!(OpenAiChat.headers().is_empty());
}

#[test]
fn plain() {
    let request =
        asked(vec![Message::text(Role::System, "You build bridges."), Message::text(Role::User, "Hello")]);
    insta::assert_json_snapshot!(encode(&request, &wire()));
}

#[test]
fn every_setting() {
    let request = Request {
        messages: vec![Message::text(Role::User, "Hello")],
        tools: vec![Tool {
            name: "look".to_owned(),
            description: "Looks.".to_owned(),
            parameters: json!({"type": "object", "properties": {"z": {}, "a": {}}, "required": ["z"]}),
        }]
        .into(),
        tool_choice: ToolChoice::Tool("look".to_owned()),
        sampling: Sampling {
            max_tokens: Some(1000),
            temperature: Some(0.25),
            top_p: Some(1.0),
            stop: vec!["END".to_owned()],
            seed: Some(-7),
            reasoning_effort: Some("low".to_owned()),
            thinking_tokens: Some(500),
            extra: object(json!({"top_k": 5, "min_p": 0.1, "top_p": 0.5})),
        },
    };
    let wire = Wire { stream: true, limit_key: LimitKey::MaxTokens, ..wire() };
    insta::assert_json_snapshot!(encode(&request, &wire));
}

#[test]
fn azure_names_the_model_elsewhere() {
    let body = encode(&asked(vec![Message::text(Role::User, "x")]), &Wire { model_in_body: false, ..wire() });
    assert_eq!(body.get("model"), None);
    assert_eq!(body["max_completion_tokens"], 16_384);
    assert_eq!(body.get("max_tokens"), None);
}

#[test]
fn further_keys_do_not_lift_limits() {
    let keys = [
        "messages",
        "model",
        "stream",
        "stream_options",
        "n",
        "best_of",
        "tools",
        "tool_choice",
        "functions",
        "function_call",
        "max_tokens",
        "max_completion_tokens",
    ];
    let plain = asked(vec![Message::text(Role::User, "x")]);
    let mut bold = plain.clone();
    bold.sampling.extra = keys.into_iter().map(|key| (key.to_owned(), json!(9))).collect();
    for limit_key in [LimitKey::MaxTokens, LimitKey::MaxCompletionTokens] {
        let wire = Wire { limit_key, ..wire() };
        assert_eq!(encode(&bold, &wire), encode(&plain, &wire));
    }
}

#[test]
fn equal_requests_give_equal_bytes() {
    let mut one = asked(vec![Message::text(Role::User, "x")]);
    let mut two = one.clone();
    one.sampling.extra = object(json!({"a": 1, "b": 2}));
    two.sampling.extra = object(json!({"b": 2, "a": 1}));
    assert_eq!(one, two);
    assert_eq!(encode(&one, &wire()).to_string(), encode(&two, &wire()).to_string());
}

#[test]
fn numbers_that_are_none_are_left_out() {
    let mut request = asked(vec![Message::text(Role::User, "x")]);
    request.sampling.temperature = Some(f64::NAN);
    assert_eq!(encode(&request, &wire()).get("temperature"), None);
}

#[test]
fn choices_need_tools() {
    let mut request = asked(vec![Message::text(Role::User, "x")]);
    request.tool_choice = ToolChoice::Required;
    assert_eq!(encode(&request, &wire()).get("tool_choice"), None);
    request.tools = vec![Tool {
        name: "t".to_owned(),
        description: String::new(),
        parameters: json!({"type": "object"}),
    }]
    .into();
    assert_eq!(encode(&request, &wire())["tool_choice"], "required");
    request.tool_choice = ToolChoice::None;
    assert_eq!(encode(&request, &wire())["tool_choice"], "none");
    request.tool_choice = ToolChoice::Auto;
    assert_eq!(encode(&request, &wire()).get("tool_choice"), None);
}

#[test]
fn conversation_with_tools_and_images() {
    let request = asked(vec![
        Message::text(Role::System, "Be brief."),
        said(Role::User, vec![Part::text("What is this?"), image("AAAA"), Part::text("And why?")]),
        said(
            Role::Assistant,
            vec![Part::text("Let me see."), call("c1", "{\"x\": 1 }"), call("c2", "{\"cut")],
        ),
        said(
            Role::User,
            vec![
                Part::text("go on"),
                result("c1", vec![Part::text("line 1"), image("BBBB"), Part::text("line 2")]),
                result("c2", vec![image("CCCC")]),
            ],
        ),
        said(Role::Assistant, vec![call("c3", "")]),
        // Results of one turn in two messages, an image in the first.
        said(Role::User, vec![result("c3", vec![image("DDDD")])]),
        said(Role::User, vec![result("c4", vec![])]),
        said(Role::Assistant, vec![]),
        said(Role::User, vec![Part::text("one"), Part::text("two")]),
        said(Role::User, vec![]),
    ]);
    insta::assert_json_snapshot!(encode(&request, &wire())["messages"]);
}

/// The assistant's message in the request that follows an answer.
fn sent_back(body: &Value) -> Value {
    let reply = decode(&body.to_string()).unwrap();
    encode(&asked(vec![reply.into_message()]), &wire())["messages"][0].clone()
}

#[test]
fn thoughts_go_back_as_they_came() {
    let answer = |message: Value| json!({"choices": [{"message": message, "finish_reason": "stop"}]});
    let details = json!([{"type": "reasoning.text", "text": "a", "signature": "s"}, {"type": "reasoning.encrypted", "data": "d"}]);
    let cases = [
        (json!({"reasoning": "a", "content": "x"}), json!({"reasoning": "a"})),
        (json!({"reasoning_content": "a", "content": "x"}), json!({"reasoning_content": "a"})),
        (json!({"reasoning_details": details, "content": "x"}), json!({"reasoning_details": details})),
        (json!({"reasoning": "a", "reasoning_details": details}), json!({"reasoning_details": details})),
        (json!({"reasoning": "a", "reasoning_content": "a"}), json!({"reasoning": "a"})),
        (json!({"reasoning": "", "reasoning_details": []}), json!({})),
    ];
    for (message, expected) in cases {
        let mut back = object(sent_back(&answer(message.clone())));
        back.remove("role");
        back.remove("content");
        assert_eq!(Value::Object(back), expected, "{message}");
    }
}

#[test]
fn thoughts_of_other_formats_stay_behind() {
    for opaque in
        [None, Some(json!({"signature": "s"})), Some(json!("s")), Some(json!({"dialect": "anthropic"}))]
    {
        let thought = Part::Reasoning { text: "hm".to_owned(), opaque };
        let body = encode(&asked(vec![said(Role::Assistant, vec![thought, Part::text("x")])]), &wire());
        assert_eq!(body["messages"], json!([{"role": "assistant", "content": "x"}]));
    }
}
