//! Streams beyond the recorded shapes: endings, odd numbering, errors, bounds.

use aec_model::dialect::Dialect;
use aec_model::dialect::openai::OpenAiChat;
use aec_model::failure::{Failure, FailureKind};
use aec_model::message::{Reply, Stop, ToolCall};
use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{decode, read};

fn sse(chunks: &[Value]) -> String {
    let events: Vec<String> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    events.concat()
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn outcome(chunks: &[Value]) -> Result<Reply, Failure> {
    read([sse(chunks).as_bytes()])
}

#[test]
fn the_closing_event_is_not_needed_but_the_reason_is() {
    let text = delta(json!({"content": "x"}));
    let complete = sse(&[text.clone(), end("stop")]);
    assert_eq!(read([complete.as_bytes()]).unwrap().text(), "x");
    let closed = format!("{}data: [DONE]\n\n", sse(std::slice::from_ref(&text)));
    for broken in ["", ": ping\n\n", &sse(&[text]), &closed] {
        let failure = read([broken.as_bytes()]).unwrap_err();
        assert_eq!((failure.kind, failure.retryable), (FailureKind::Truncated, true), "{broken}");
    }
}

#[test]
fn what_follows_the_closing_event_is_of_no_interest() {
    let mut reader = OpenAiChat.reader();
    reader.take(&Bytes::from(sse(&[delta(json!({"content": "x"})), end("stop")]))).unwrap();
    assert!(!reader.is_done());
    reader.take(&Bytes::from("data: [DONE]\n\ndata: nonsense\n\n")).unwrap();
    assert!(reader.is_done());
    assert_eq!(reader.finish().unwrap().text(), "x");
}

#[test]
fn a_chunk_without_names_takes_none_away() {
    let mut named = delta(json!({"content": "x"}));
    named["id"] = json!("a");
    named["model"] = json!("m");
    let unnamed = json!({"id": "", "model": "", "choices": [], "prompt_filter_results": []});
    let reply = outcome(&[named, unnamed, end("stop")]).unwrap();
    assert_eq!((reply.id.as_deref(), reply.model.as_deref()), (Some("a"), Some("m")));
}

#[test]
fn malformed_chunks_are_protocol_failures() {
    let bad = [
        json!("x"),
        json!([]),
        json!({"choices": 1}),
        json!({"choices": ["x"]}),
        json!({"choices": [{"delta": {}}, {"delta": {}}]}),
        json!({"choices": [{"index": 1, "delta": {"content": "x"}}]}),
        json!({"choices": [{"delta": []}]}),
        json!({"choices": [{"delta": {}, "finish_reason": 1}]}),
        delta(json!({"content": 1})),
        delta(json!({"refusal": {}})),
        delta(json!({"reasoning": 1})),
        delta(json!({"reasoning_details": {}})),
        delta(json!({"reasoning_details": [1]})),
        delta(json!({"tool_calls": {}})),
        delta(json!({"tool_calls": [1]})),
        delta(json!({"tool_calls": [{"index": -1, "function": {"name": "f"}}]})),
        delta(json!({"tool_calls": [{"index": 0, "type": "custom"}]})),
        delta(json!({"tool_calls": [{"index": 0, "function": "f"}]})),
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": 1}}]})),
        // A piece of a call that never began, and a call without a name.
        delta(json!({"tool_calls": [{"function": {"arguments": "{}"}}]})),
        delta(json!({"tool_calls": [{"index": 0, "id": "a", "function": {"arguments": "{}"}}]})),
        delta(json!({"function_call": {"name": "f", "arguments": ""}})),
    ];
    for chunk in bad {
        let failure = outcome(&[chunk.clone(), end("stop")]).expect_err(&chunk.to_string());
        assert_eq!((failure.kind, failure.retryable), (FailureKind::Protocol, true), "{chunk}: {failure}");
    }
    let failure = read([b"data: {\"choices\n\n".as_slice()]).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Protocol);
}

#[test]
fn errors_amid_a_stream_have_their_kind() {
    let text = sse(&[delta(json!({"content": "x"}))]);
    let cases = [
        ("data: {\"error\":{\"message\":\"boom\",\"code\":500}}\n\n", FailureKind::Server),
        ("event: error\ndata: {\"message\":\"Rate limit reached\"}\n\n", FailureKind::Rate),
        ("data: {\"error\":\"overloaded\"}\n\n", FailureKind::Server),
        (
            "data: {\"choices\":[{\"delta\":{},\"error\":{\"code\":402,\"message\":\"pay\"}}]}\n\n",
            FailureKind::Auth,
        ),
    ];
    for (event, kind) in cases {
        assert_eq!(read([text.as_bytes(), event.as_bytes()]).unwrap_err().kind, kind, "{event}");
    }
}

#[test]
fn numbers_of_calls_can_be_anything() {
    let piece = |index: u64, piece: Value| {
        let mut piece = piece;
        piece["index"] = json!(index);
        delta(json!({"tool_calls": [piece]}))
    };
    let reply = outcome(&[
        piece(1_000_000_000, json!({"id": "a", "function": {"name": "f", "arguments": "{"}})),
        piece(u64::MAX, json!({"id": "b", "function": {"name": "g", "arguments": "["}})),
        piece(1_000_000_000, json!({"function": {"arguments": "}"}})),
        piece(u64::MAX, json!({"function": {"arguments": "]"}})),
        end("tool_calls"),
    ])
    .unwrap();
    let calls: Vec<&ToolCall> = reply.tool_calls().collect();
    assert_eq!((calls[0].id.as_str(), calls[0].arguments.as_str()), ("a", "{}"));
    assert_eq!((calls[1].id.as_str(), calls[1].arguments.as_str()), ("b", "[]"));
    assert_eq!(reply.stop, Stop::ToolCalls);
}

#[test]
fn ids_that_change_do_not_split_a_call() {
    let reply = outcome(&[
        delta(json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}}]})),
        delta(json!({"tool_calls": [{"index": 0, "id": "b", "function": {"arguments": "}"}}]})),
        end("tool_calls"),
    ])
    .unwrap();
    let calls: Vec<&ToolCall> = reply.tool_calls().collect();
    assert_eq!(calls, [&ToolCall { id: "a".into(), name: "f".into(), arguments: "{}".into() }]);
}

#[test]
fn received_bytes_are_counted_once() {
    let received = |delta_value: Value| {
        let mut reader = OpenAiChat.reader();
        reader.take(&Bytes::from(sse(&[delta(delta_value)]))).unwrap();
        reader.received()
    };
    assert_eq!(received(json!({"role": "assistant", "content": ""})), 0);
    assert_eq!(received(json!({"content": "ü!"})), 3);
    assert_eq!(received(json!({"refusal": "no"})), 2);
    assert_eq!(
        received(json!({"reasoning": "abc", "reasoning_content": "abc",
        "reasoning_details": [{"type": "reasoning.text", "text": "abc"}]})),
        3
    );
    assert_eq!(received(json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "abcd"}]})), 4);
    assert_eq!(
        received(
            json!({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "f", "arguments": "{}"}}]})
        ),
        3
    );
}

/// Cuts a text at the given positions.
fn pieces(text: &str, cuts: &[prop::sample::Index]) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(letters.len() + 1)).collect();
    places.extend([0, letters.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| letters[pair[0]..pair[1]].iter().collect()).collect()
}

proptest! {
    /// Any answer, cut into any deltas, equals the answer of the complete body.
    #[test]
    fn deltas_add_up(
        thought in ".{0,12}",
        key in prop::sample::select(vec!["reasoning", "reasoning_content"]),
        content in ".{0,12}",
        calls in prop::collection::vec(("[a-z]{1,5}", ".{0,12}"), 0..3),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        finish in prop::sample::select(vec!["stop", "length", "content_filter", "tool_calls"]),
    ) {
        let mut chunks = Vec::new();
        chunks.extend(pieces(&thought, &cuts).into_iter().map(|piece| delta(json!({key: piece}))));
        chunks.extend(pieces(&content, &cuts).into_iter().map(|piece| delta(json!({"content": piece}))));
        let mut whole = Vec::new();
        for (index, (name, arguments)) in calls.iter().enumerate() {
            whole.push(json!({"id": format!("id{index}"), "function": {"name": name, "arguments": arguments}}));
            chunks.push(delta(json!({"tool_calls": [{"index": index, "id": format!("id{index}"), "function": {"name": name}}]})));
        }
        for piece in 0..=cuts.len() {
            for (index, (_, arguments)) in calls.iter().enumerate() {
                let arguments = &pieces(arguments, &cuts)[piece];
                chunks.push(delta(json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]})));
            }
        }
        chunks.push(end(finish));
        let body = json!({"choices": [{"finish_reason": finish,
            "message": {"content": content, key: thought, "tool_calls": whole}}]});
        prop_assert_eq!(outcome(&chunks), decode(&body.to_string()));
    }
}
