//! `InvokeModel` with Anthropic bodies.

use aec_model::dialect::bedrock::BedrockInvoke;
use aec_model::dialect::{Dialect, Wire};
use aec_model::failure::FailureKind;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::bedrock::{conversation, frame, pieces, read, sent};

fn wire(stream: bool) -> Wire {
    Wire {
        model: "anthropic.claude-sonnet-4-20250514-v1:0".to_owned(),
        stream,
        // Bedrock has the model in the path, whatever the endpoint says.
        model_in_body: true,
        ..Wire::default()
    }
}

#[test]
fn paths_hold_the_model_as_one_segment() {
    assert_eq!(BedrockInvoke.path(&wire(false)), "/model/anthropic.claude-sonnet-4-20250514-v1%3A0/invoke");
    let profile = Wire {
        model: "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude~1_x é"
            .to_owned(),
        ..wire(true)
    };
    assert_eq!(
        BedrockInvoke.path(&profile),
        "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.anthropic.claude~1_x%20%C3%A9/invoke-with-response-stream"
    );
    assert!(BedrockInvoke.headers().is_empty());
}

#[test]
fn bodies_name_neither_model_nor_stream() {
    let mut request = conversation(json!({"type": "thinking", "signature": "EqQB"}));
    for key in ["model", "stream", "anthropic_version"] {
        request.sampling.extra.insert(key.to_owned(), "no".into());
    }
    request.sampling.extra.insert("anthropic_beta".to_owned(), json!(["context-1m-2025-08-07"]));
    insta::assert_json_snapshot!(sent(&BedrockInvoke, &request, &Wire { cache_prompt: true, ..wire(true) }));
}

fn whole() -> Value {
    json!({
        "id": "msg_bdrk_01", "type": "message", "role": "assistant", "model": "claude-sonnet-4-20250514",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "EqQB"},
            {"type": "text", "text": "Größe"},
            {"type": "tool_use", "id": "toolu_bdrk_1", "name": "get_weather", "input": {"city": "Paris"}},
        ],
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": {"input_tokens": 12, "cache_read_input_tokens": 7, "output_tokens": 30},
    })
}

fn chunk(event: &Value) -> Vec<u8> {
    frame("event", "chunk", &json!({"bytes": STANDARD.encode(event.to_string()), "p": "abcdefgh"}))
}

fn events() -> Vec<Value> {
    let mut start = whole();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"] = json!({"input_tokens": 12, "cache_read_input_tokens": 7, "output_tokens": 1});
    let open = |index: u32, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta =
        |index: u32, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let close = |index: u32| json!({"type": "content_block_stop", "index": index});
    vec![
        json!({"type": "message_start", "message": start}),
        open(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, json!({"type": "signature_delta", "signature": "EqQB"})),
        close(0),
        open(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "text_delta", "text": "Grö"})),
        delta(1, json!({"type": "text_delta", "text": "ße"})),
        close(1),
        open(2, json!({"type": "tool_use", "id": "toolu_bdrk_1", "name": "get_weather", "input": {}})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"city\": \"Paris\"}"})),
        close(2),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null},
            "usage": {"output_tokens": 30}}),
        json!({"type": "message_stop"}),
    ]
}

fn stream(events: &[Value]) -> Vec<u8> {
    events.iter().flat_map(chunk).collect()
}

#[test]
fn both_forms_give_the_same_reply() {
    let reply = BedrockInvoke.decode(whole().to_string().as_bytes()).unwrap();
    insta::assert_json_snapshot!(reply);
    assert_eq!(read(&BedrockInvoke, &[&stream(&events())]).unwrap(), reply);
}

#[test]
fn what_bedrock_counts_itself_is_kept() {
    let mut events = events();
    let metrics = json!({"inputTokenCount": 12, "outputTokenCount": 30, "invocationLatency": 900});
    events.last_mut().unwrap()["amazon-bedrock-invocationMetrics"] = metrics.clone();
    let reply = read(&BedrockInvoke, &[&stream(&events)]).unwrap();
    assert_eq!(reply.extra["amazon-bedrock-invocationMetrics"], metrics);
}

#[test]
fn a_stream_cut_anywhere_is_cut_and_nothing_else() {
    let bytes = stream(&events());
    for end in 0..bytes.len() {
        let failure = read(&BedrockInvoke, &[&bytes[..end]]).unwrap_err();
        assert_eq!((failure.kind, failure.retryable), (FailureKind::Truncated, true), "{end}");
    }
}

#[test]
fn trouble_inside_the_stream() {
    use FailureKind as K;
    let exception = |kind: &str, message: &str| frame("exception", kind, &json!({"message": message}));
    let cases = [
        (exception("throttlingException", "slow down"), K::Rate, true),
        (exception("modelStreamErrorException", "broken"), K::Server, true),
        (exception("validationException", "Input is too long for requested model."), K::Overlong, false),
        (
            chunk(&json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})),
            K::Server,
            true,
        ),
        (frame("event", "chunk", &json!({"bytes": "?"})), K::Protocol, true),
        (frame("event", "chunk", &json!({"byte": ""})), K::Protocol, true),
        (frame("event", "chunk", &json!({"bytes": STANDARD.encode("{")})), K::Protocol, true),
    ];
    for (bytes, kind, retryable) in cases {
        let mut body = stream(&events()[..6]);
        body.extend(&bytes);
        let failure = read(&BedrockInvoke, &[&body]).unwrap_err();
        assert_eq!((failure.kind, failure.retryable), (kind, retryable), "{}", failure.message);
    }
    // Events that are not chunks are ignored.
    let mut body = frame("event", "initial-response", &json!({}));
    body.extend(stream(&events()));
    assert!(read(&BedrockInvoke, &[&body]).is_ok());
}

proptest! {
    #[test]
    fn pieces_do_not_matter(cuts in proptest::collection::vec(0_usize..6_000, 0..20)) {
        let bytes = stream(&events());
        let whole = BedrockInvoke.decode(whole().to_string().as_bytes());
        prop_assert_eq!(read(&BedrockInvoke, &pieces(&bytes, &cuts)), whole);
    }

    #[test]
    fn a_damaged_stream_is_no_other_answer(at in 0_usize..6_000, bit in 0_u8..8) {
        let mut bytes = stream(&events());
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        let failure = read(&BedrockInvoke, &[&bytes]).unwrap_err();
        prop_assert!(matches!(failure.kind, FailureKind::Protocol | FailureKind::Truncated));
    }
}
