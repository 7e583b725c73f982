//! Vendors' answers, complete and streamed: how they are read, and that both forms agree.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use aec_model::dialect::Dialect;
use aec_model::dialect::openai::OpenAiChat;
use aec_model::failure::{Failure, FailureKind};
use aec_model::message::Reply;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{decode, read};

fn shapes(extension: &str) -> BTreeMap<String, String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openai/shapes");
    let paths = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let wanted = |path: &PathBuf| path.extension().is_some_and(|found| found == extension);
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let found: BTreeMap<String, String> =
        paths.filter(wanted).map(|path| (name(&path), std::fs::read_to_string(&path).unwrap())).collect();
    assert!(found.len() > 15);
    found
}

fn shown(outcome: &Result<Reply, Failure>) -> Value {
    match outcome {
        Ok(reply) => json!({"reply": reply}),
        Err(failure) => json!({"failure": failure}),
    }
}

/// The part that must not depend on streaming.
fn essence(outcome: Result<Reply, Failure>) -> Result<Reply, (FailureKind, bool)> {
    match outcome {
        Ok(reply) => Ok(Reply { extra: serde_json::Map::new(), ..reply }),
        Err(failure) => Err((failure.kind, failure.retryable)),
    }
}

#[test]
fn bodies_are_read() {
    for (name, body) in shapes("json") {
        insta::assert_json_snapshot!(format!("body_{name}"), shown(&decode(&body)));
    }
}

#[test]
fn streams_are_read() {
    for (name, stream) in shapes("sse") {
        insta::assert_json_snapshot!(format!("stream_{name}"), shown(&read([stream.as_bytes()])));
    }
}

#[test]
fn a_stream_says_what_the_body_says() {
    let bodies = shapes("json");
    for (name, stream) in shapes("sse") {
        let from_stream = essence(read([stream.as_bytes()]));
        assert_eq!(from_stream, essence(decode(&bodies[&name])), "{name}");
    }
}

#[test]
fn logprobs_are_the_same_in_both() {
    let choice = |outcome: Result<Reply, Failure>| outcome.unwrap().extra["choice"].clone();
    let logprobs = choice(decode(&shapes("json")["openai_logprobs"]));
    assert_eq!(logprobs["logprobs"]["content"].as_array().unwrap().len(), 2);
    assert_eq!(choice(read([shapes("sse")["openai_logprobs"].as_bytes()])), logprobs);
}

#[test]
fn a_cut_stream_never_says_something_else() {
    for (name, stream) in shapes("sse") {
        let whole = essence(read([stream.as_bytes()]));
        let (mut broken, mut complete) = (0, 0);
        for end in 0..stream.len() {
            match (essence(read([&stream.as_bytes()[..end]])), &whole) {
                (Err((FailureKind::Truncated | FailureKind::Protocol, true)), _) => broken += 1,
                (Ok(reply), Ok(whole)) => {
                    // The usage comes after the answer.
                    assert_eq!(
                        (&reply.parts, &reply.stop),
                        (&whole.parts, &whole.stop),
                        "{name} cut at {end}"
                    );
                    complete += 1;
                }
                (Err(failure), Err(whole)) if failure == *whole => complete += 1,
                (other, _) => panic!("{name} cut at {end}: {other:?}"),
            }
        }
        assert!(broken > complete, "{name}: {broken} broken, {complete} complete");
    }
}

#[test]
fn bytes_may_come_one_by_one() {
    for (name, stream) in shapes("sse") {
        assert_eq!(read(stream.as_bytes().chunks(1)), read([stream.as_bytes()]), "{name}");
    }
}

proptest! {
    #[test]
    fn a_damaged_body_is_read_or_refused(which: prop::sample::Index, place: prop::sample::Index, byte: u8) {
        let shapes = shapes("json");
        let mut body = shapes.values().nth(which.index(shapes.len())).unwrap().clone().into_bytes();
        let place = place.index(body.len());
        body[place] = byte;
        drop(OpenAiChat.decode(&body));
    }

    /// A lost chunk may shorten the answer, but no damage makes the reader panic.
    #[test]
    fn a_damaged_stream_is_read_or_refused(which: prop::sample::Index, place: prop::sample::Index, byte: u8) {
        let shapes = shapes("sse");
        let mut stream = shapes.values().nth(which.index(shapes.len())).unwrap().clone().into_bytes();
        let place = place.index(stream.len());
        stream[place] = byte;
        drop(read([stream.as_slice()]));
    }
}

/// Replaces the value at a JSON pointer in a valid body.
fn with(pointer: &str, value: Value) -> String {
    let mut body: Value = serde_json::from_str(&shapes("json")["openai_parallel_tools"]).unwrap();
    *body.pointer_mut(pointer).unwrap() = value;
    body.to_string()
}

#[test]
fn malformed_fields_are_named() {
    let message = "/choices/0/message";
    let choice = json!({"index": 0, "message": {"content": "x"}, "finish_reason": "stop"});
    let cases = [
        ("/choices", json!([]), "choices"),
        ("/choices", json!([choice, choice]), "choices"),
        ("/choices", json!({}), "choices"),
        ("/choices", Value::Null, "choices"),
        ("/choices/0", json!("x"), "choices[0]"),
        ("/choices/0/finish_reason", Value::Null, "choices[0].finish_reason"),
        ("/choices/0/finish_reason", json!(3), "choices[0].finish_reason"),
        (message, json!([]), "choices[0].message"),
        ("/choices/0/message/content", json!(3), "choices[0].message.content"),
        ("/choices/0/message/content", json!([{"type": "audio"}]), "choices[0].message.content"),
        ("/choices/0/message/content", json!([{"type": "image", "text": "x"}]), "choices[0].message.content"),
        ("/choices/0/message/refusal", json!(true), "choices[0].message.refusal"),
        ("/choices/0/message/tool_calls", json!("x"), "choices[0].message.tool_calls"),
        ("/choices/0/message/tool_calls/1", json!("x"), "choices[0].message.tool_calls[1]"),
        ("/choices/0/message/tool_calls/0/id", json!(7), "choices[0].message.tool_calls[0].id"),
        ("/choices/0/message/tool_calls/0/type", json!("custom"), "choices[0].message.tool_calls[0].type"),
        ("/choices/0/message/tool_calls/0/function", json!("f"), "choices[0].message.tool_calls[0].function"),
        (
            "/choices/0/message/tool_calls/0/function/name",
            json!(""),
            "choices[0].message.tool_calls[0].function.name",
        ),
        (
            "/choices/0/message/tool_calls/0/function/arguments",
            json!([1]),
            "choices[0].message.tool_calls[0].function.arguments",
        ),
        (message, json!({"reasoning": 1}), "choices[0].message.reasoning"),
        (message, json!({"reasoning_content": []}), "choices[0].message.reasoning_content"),
        (message, json!({"reasoning_details": ["x"]}), "choices[0].message.reasoning_details"),
        (message, json!({"function_call": {"name": "f"}}), "choices[0].message.function_call"),
        ("/id", json!(5), "id"),
        ("/model", json!({}), "model"),
    ];
    for (pointer, value, field) in cases {
        let body = with(pointer, value);
        let failure = decode(&body).expect_err(&body);
        assert_eq!((failure.kind, failure.retryable), (FailureKind::Protocol, true), "{body}");
        assert!(failure.message.contains(&format!("{field} is not")), "{body}: {failure}");
    }
}

#[test]
fn garbage_is_no_answer() {
    let deep = "[".repeat(100_000);
    for body in ["", "<html>502</html>", "[]", "null", "\"text\"", "{", "{}", "{\"choices\":[{}]}", &deep] {
        let failure = decode(body).expect_err(body);
        assert_eq!((failure.kind, failure.retryable), (FailureKind::Protocol, true), "{body:.20}: {failure}");
    }
}

#[test]
fn odd_endings_have_their_meaning() {
    use aec_model::message::Stop;
    let stop = |finish: &str| decode(&with("/choices/0/finish_reason", json!(finish))).unwrap().stop;
    for finish in ["stop", "eos", "tool_calls", "function_call"] {
        assert_eq!(stop(finish), Stop::ToolCalls, "{finish}");
    }
    assert_eq!(stop("length"), Stop::Length);
    assert_eq!(stop("content_filter"), Stop::ContentFilter);
    assert_eq!(stop("recitation"), Stop::Other("recitation".to_owned()));
    // No calls means that the answer does not wait for tools.
    let body = with("/choices/0/message/tool_calls", json!([]));
    assert_eq!(decode(&body).unwrap().stop, Stop::Other("tool_calls".to_owned()));
}
