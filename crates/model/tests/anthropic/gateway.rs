//! The server side: which requests are allowed, and that replies survive encoding and decoding.

use aec_model::failure::{Failure, FailureKind};
use aec_model::gateway::anthropic::{decode_request, encode_failure, encode_reply, encode_stream};
use aec_model::message::{Part, Reply, Stop, ToolCall, ToolChoice, Usage};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::anthropic::{decode, read};

fn refusal(body: &Value) -> String {
    decode_request(body.to_string().as_bytes()).unwrap_err()
}

fn minimal() -> Value {
    json!({"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]})
}

fn with(key: &str, value: Value) -> Value {
    let mut body = minimal();
    body[key] = value;
    body
}

/// A body with one block in the only message.
fn with_block(role: &str, block: &Value) -> Value {
    with("messages", json!([{"role": role, "content": [block]}]))
}

#[test]
fn everything_an_agent_may_say() {
    let cached = json!({"type": "ephemeral", "ttl": "1h"});
    let body = json!({
        "model": "claude-sonnet-4-5",
        "max_tokens": 32_000,
        "stream": true,
        "metadata": {"user_id": "user_1"},
        "cache_control": cached,
        "temperature": 1, "top_p": 0.9, "top_k": 40, "stop_sequences": ["END"],
        "thinking": {"type": "enabled", "budget_tokens": 2_000},
        "output_config": {"effort": "high"},
        "system": [{"type": "text", "text": "Be brief.", "cache_control": cached}],
        "tools": [{
            "name": "bash", "type": "custom", "description": "Runs a command",
            "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}},
            "cache_control": cached, "eager_input_streaming": true,
        }],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": false},
        "messages": [
            {"role": "user", "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
                {"type": "text", "text": "hi", "cache_control": cached},
            ]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "ZGF0YQ=="},
                {"type": "text", "text": "I run it.", "citations": null},
                {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "ls"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "content": "no"},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": [
                    {"type": "text", "text": "a"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0lG"}},
                ]},
                {"type": "tool_result", "tool_use_id": "toolu_3"},
            ]},
            {"role": "assistant", "content": "Done"},
        ],
    });
    let inbound = decode_request(body.to_string().as_bytes()).unwrap();
    assert_eq!(
        (inbound.model.as_str(), inbound.stream, inbound.include_usage),
        ("claude-sonnet-4-5", true, true)
    );
    insta::assert_json_snapshot!(inbound.request);
}

#[test]
fn what_an_agent_may_leave_out() {
    let inbound = decode_request(minimal().to_string().as_bytes()).unwrap();
    assert!(!inbound.stream);
    insta::assert_json_snapshot!(inbound.request);
    let system = decode_request(with("system", json!("obey")).to_string().as_bytes()).unwrap();
    assert_eq!(system.request.messages[0].joined_text(), "obey");
    let quiet = decode_request(with("tool_choice", json!({"type": "none"})).to_string().as_bytes()).unwrap();
    assert_eq!(quiet.request.tool_choice, ToolChoice::None);
}

#[test]
fn ways_of_thinking() {
    let sampling = |thinking: Value| {
        decode_request(with("thinking", thinking).to_string().as_bytes()).unwrap().request.sampling
    };
    assert_eq!(sampling(json!({"type": "disabled"})).thinking_tokens, None);
    let adaptive = sampling(json!({"type": "adaptive", "display": "summarized"}));
    assert_eq!(adaptive.extra["thinking"], json!({"type": "adaptive"}));
    assert_eq!(refusal(&with("thinking", json!({"type": "enabled"}))), "thinking.budget_tokens: required");
}

#[test]
fn what_has_no_place_here_is_refused_by_name() {
    for key in [
        "service_tier",
        "mcp_servers",
        "container",
        "base_url",
        "context_management",
        "betas",
        "inference_geo",
        "speed",
        "seed",
        "n",
        "constructor",
        "anthropic_version",
    ] {
        assert_eq!(refusal(&with(key, json!("x"))), format!("{key}: not supported here"));
    }
}

#[test]
fn ways_out_to_the_network_are_refused() {
    let source = |source: Value| json!({"type": "image", "source": source});
    let url = "https://example.com/a.png";
    let base64 = |data: &str| json!({"type": "base64", "media_type": "image/png", "data": data});
    let pdf = json!({"type": "base64", "media_type": "application/pdf", "data": "AAAA"});
    let mut decorated = base64("AAAA");
    decorated["url"] = url.into();
    let cases = [
        (
            source(json!({"type": "url", "url": url})),
            "messages[0].content[0].source.type: expected `base64`; other sources are not supported here",
        ),
        (
            source(json!({"type": "file", "file_id": "f"})),
            "messages[0].content[0].source.type: expected `base64`; other sources are not supported here",
        ),
        (source(base64("https://x")), "messages[0].content[0].source.data: expected base64"),
        (source(base64("")), "messages[0].content[0].source.data: expected base64"),
        (source(decorated), "messages[0].content[0].source.url: not supported here"),
        (
            source(pdf.clone()),
            "messages[0].content[0].source.media_type: expected one of image/png, image/jpeg, image/gif, image/webp",
        ),
        (
            json!({"type": "document", "source": pdf}),
            "messages[0].content[0]: a block of type `document` is not supported here",
        ),
        (
            json!({"type": "container_upload", "file_id": "f"}),
            "messages[0].content[0]: a block of type `container_upload` is not supported here",
        ),
        (
            json!({"type": "tool_result", "tool_use_id": "t", "content": [source(json!({"type": "url", "url": url}))]}),
            "messages[0].content[0].content[0].source.type: expected `base64`; other sources are not supported here",
        ),
        (
            json!({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "search_result"}]}),
            "messages[0].content[0].content[0]: a block of type `search_result` is not supported here",
        ),
    ];
    for (block, expected) in cases {
        assert_eq!(refusal(&with_block("user", &block)), expected);
    }
    for kind in [
        "web_search_20250305",
        "web_fetch_20250910",
        "code_execution_20250825",
        "bash_20250124",
        "mcp_toolset",
    ] {
        let tools = with("tools", json!([{"type": kind, "name": "x", "input_schema": {}}]));
        assert_eq!(refusal(&tools), format!("tools[0].type: tools of type `{kind}` are not supported here"));
    }
    let caller = json!({"type": "tool_use", "id": "t", "name": "n", "input": {}, "caller": {"type": "code_execution_20250825"}});
    assert_eq!(
        refusal(&with_block("assistant", &caller)),
        "messages[0].content[0].caller.type: expected `direct`"
    );
}

#[test]
fn mistakes_are_named() {
    let message = |value: Value| with("messages", json!([value]));
    let cases = [
        (json!([]), "body: expected an object"),
        (json!({"max_tokens": 1, "messages": []}), "model: required"),
        (with("model", json!(5)), "model: expected a string"),
        (with("max_tokens", Value::Null), "max_tokens: required"),
        (with("max_tokens", json!(0)), "max_tokens: expected a positive integer"),
        (with("max_tokens", json!(1e12)), "max_tokens: expected a positive integer"),
        (with("max_tokens", json!("1")), "max_tokens: expected a positive integer"),
        (with("temperature", json!(2)), "temperature: expected a number from 0 to 1"),
        (with("stream", json!("yes")), "stream: expected true or false"),
        (with("metadata", json!("x")), "metadata: expected an object"),
        (with("stop_sequences", json!([1])), "stop_sequences[0]: expected a string"),
        (with("messages", json!([])), "messages: at least one is required"),
        (with("messages", json!({})), "messages: expected a list"),
        (
            message(json!({"role": "system", "content": "x"})),
            "messages[0].role: expected `user` or `assistant`",
        ),
        (message(json!({"role": "user"})), "messages[0].content: required"),
        (
            message(json!({"role": "user", "content": 5})),
            "messages[0].content: expected a string or a list of blocks",
        ),
        (
            message(json!({"role": "user", "content": "x", "name": "y"})),
            "messages[0].name: not supported here",
        ),
        (with_block("user", &json!({"text": "x"})), "messages[0].content[0].type: required"),
        (with_block("user", &json!({"type": "text"})), "messages[0].content[0].text: required"),
        (
            with_block("user", &json!({"type": "text", "text": "x", "citations": []})),
            "messages[0].content[0].citations: not supported here",
        ),
        (
            with_block("user", &json!({"type": "tool_use", "id": "x"})),
            "messages[0].content[0]: a block of type `tool_use` is not supported here",
        ),
        (
            with_block("assistant", &json!({"type": "tool_result"})),
            "messages[0].content[0]: a block of type `tool_result` is not supported here",
        ),
        (
            with_block("assistant", &json!({"type": "tool_use", "id": "x", "name": "y", "input": "z"})),
            "messages[0].content[0].input: expected an object",
        ),
        (with("tools", json!([{"name": "x"}])), "tools[0].input_schema: required"),
        (
            with("tools", json!([{"name": "x", "input_schema": {}, "strict": true}])),
            "tools[0].strict: not supported here",
        ),
        (with("tool_choice", json!({"type": "any"})), "tool_choice: names a tool that `tools` does not have"),
        (
            with("tool_choice", json!({"type": "tool", "name": "x"})),
            "tool_choice: names a tool that `tools` does not have",
        ),
        (
            with("tool_choice", json!({"type": "auto", "disable_parallel_tool_use": true})),
            "tool_choice.disable_parallel_tool_use: not supported here",
        ),
        (with("output_config", json!({"format": {}})), "output_config.format: not supported here"),
        (
            with("thinking", json!({"type": "between_tools"})),
            "thinking.type: expected `enabled`, `disabled` or `adaptive`",
        ),
        (
            with("system", json!([{"type": "image"}])),
            "system[0]: a block of type `image` is not supported here",
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(refusal(&body), expected);
    }
    assert!(decode_request(b"{").unwrap_err().starts_with("body: not JSON"));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(decode_request(deep.as_bytes()).is_err());
}

#[test]
fn replies() {
    let reply = Reply {
        parts: vec![
            Part::Reasoning {
                text: "hm".to_owned(),
                opaque: Some(json!({"type": "thinking", "signature": "c2ln"})),
            },
            Part::Reasoning {
                text: "from elsewhere".to_owned(),
                opaque: Some(json!({"encrypted_content": "x"})),
            },
            Part::text("Two\nlines"),
            Part::ToolCall(crate::anthropic::call("toolu_1", r#"{"city":"Paris"}"#)),
            Part::ToolCall(crate::anthropic::call("toolu_2", "not json")),
        ],
        stop: Stop::ToolCalls,
        usage: Some(Usage { input: 1, cache_read: 2, cache_write: 3, output: 4, reasoning: 5 }),
        model: Some("hidden-name".to_owned()),
        id: Some("msg_1".to_owned()),
        extra: Map::new(),
    };
    insta::assert_json_snapshot!(encode_reply(&reply, "claude-sonnet-4-5"));
    insta::assert_snapshot!(encode_stream(&reply, "claude-sonnet-4-5").concat());
}

#[test]
fn a_reply_of_nothing_is_still_a_message() {
    let reply =
        Reply { parts: vec![], stop: Stop::End, usage: None, model: None, id: None, extra: Map::new() };
    insta::assert_json_snapshot!(encode_reply(&reply, "m"));
}

#[test]
fn the_text_that_ended_an_answer_is_passed_on() {
    let extra = Map::from_iter([("stop_sequence".to_owned(), json!("END"))]);
    let reply = Reply { parts: vec![], stop: Stop::StopText, usage: None, model: None, id: None, extra };
    assert_eq!(encode_reply(&reply, "m")["stop_sequence"], "END");
    assert_eq!(read(&[encode_stream(&reply, "m").concat().as_bytes()]).unwrap().extra, reply.extra);
}

fn part() -> impl Strategy<Value = Part> {
    let object = proptest::collection::btree_map(".{0,6}", any::<i32>(), 0..3);
    prop_oneof![
        ".{0,20}".prop_map(Part::text),
        (".{0,20}", proptest::option::of("[a-zA-Z0-9+/=]{1,12}")).prop_map(|(text, signature)| {
            Part::Reasoning {
                text,
                opaque: signature.map(|signature| json!({"type": "thinking", "signature": signature})),
            }
        }),
        "[a-zA-Z0-9+/=]{1,12}".prop_map(|data| Part::Reasoning {
            text: String::new(),
            opaque: Some(json!({"type": "redacted_thinking", "data": data})),
        }),
        (".{1,8}", ".{1,8}", object).prop_map(|(id, name, arguments)| {
            Part::ToolCall(ToolCall { id, name, arguments: json!(arguments).to_string() })
        }),
    ]
}

fn any_reply() -> impl Strategy<Value = Reply> {
    let stop = prop_oneof![
        Just(Stop::End),
        Just(Stop::ToolCalls),
        Just(Stop::Length),
        Just(Stop::StopText),
        Just(Stop::ContentFilter),
        "[a-z]{1,5}_x".prop_map(Stop::Other),
    ];
    let usage = any::<[u32; 5]>().prop_map(|counts| {
        let [input, cache_read, cache_write, output, reasoning] = counts.map(u64::from);
        Usage { input, cache_read, cache_write, output, reasoning }
    });
    (proptest::collection::vec(part(), 0..6), stop, usage, proptest::option::of("[a-z0-9]{1,9}")).prop_map(
        |(parts, stop, usage, id)| Reply {
            parts,
            stop,
            usage: Some(usage),
            model: Some("m".to_owned()),
            id: Some(id.unwrap_or_else(|| "msg_local".to_owned())),
            extra: Map::new(),
        },
    )
}

proptest! {
    #[test]
    fn replies_survive_the_way_out_and_back_in(reply in any_reply()) {
        prop_assert_eq!(&decode(&encode_reply(&reply, "m")).unwrap(), &reply);
        prop_assert_eq!(read(&[encode_stream(&reply, "m").concat().as_bytes()]).unwrap(), reply);
    }

    #[test]
    fn no_request_panics(text in r#"\{("(messages|tools|system|thinking|model|max_tokens)":.{0,20},?){1,4}\}"#) {
        drop(decode_request(text.as_bytes()));
    }
}

#[test]
fn failures_that_last_have_statuses_that_clients_do_not_try_again() {
    use FailureKind as K;
    let all = [
        K::Auth,
        K::Overlong,
        K::ContentFilter,
        K::Empty,
        K::Truncated,
        K::Rate,
        K::Server,
        K::Network,
        K::Protocol,
        K::Request,
        K::Budget,
        K::Replay,
        K::Cancelled,
    ];
    let tried_again = |status: u16| matches!(status, 408 | 409 | 429 | 500..);
    for kind in all {
        assert!(!tried_again(encode_failure(&Failure::lasting(kind, "x")).0), "{kind:?}");
        assert!(tried_again(encode_failure(&Failure::passing(kind, "x")).0), "{kind:?}");
    }
    let error = |failure: &Failure| encode_failure(failure);
    let object =
        |kind: &str, message: &str| json!({"type": "error", "error": {"type": kind, "message": message}});
    assert_eq!(
        error(&Failure::passing(K::Rate, "slow down")),
        (429, object("rate_limit_error", "rate: slow down"))
    );
    assert_eq!(
        error(&Failure::lasting(K::Overlong, "HTTP 400: context length")),
        (400, object("invalid_request_error", "prompt is too long: overlong: HTTP 400: context length"))
    );
    assert_eq!(error(&Failure::lasting(K::Budget, "spent")), (402, object("billing_error", "budget: spent")));
    assert_eq!(
        error(&Failure::lasting(K::Request, "no such model").status(404)),
        (404, object("not_found_error", "request: no such model"))
    );
}
