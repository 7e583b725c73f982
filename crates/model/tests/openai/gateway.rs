//! Replies and failures for agents, read with our own reader of the same format.

use aec_model::failure::{Failure, FailureKind};
use aec_model::gateway::openai::{decode_request, encode_failure, encode_reply, encode_stream};
use aec_model::message::{Part, Reply, Stop, ToolCall, Usage};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{decode, read};

fn reply(parts: Vec<Part>, stop: Stop) -> Reply {
    let usage = Usage { input: 5, cache_read: 3, cache_write: 2, output: 7, reasoning: 4 };
    Reply {
        parts,
        stop,
        usage: Some(usage),
        model: None,
        id: Some("r1".to_owned()),
        extra: serde_json::Map::new(),
    }
}

fn thought(text: &str, opaque: Option<Value>) -> Part {
    Part::Reasoning { text: text.to_owned(), opaque }
}

fn call(id: &str) -> Part {
    Part::ToolCall(ToolCall { id: id.to_owned(), name: "look".to_owned(), arguments: "{\"x\":1}".to_owned() })
}

fn streamed(reply: &Reply, include_usage: bool) -> Result<Reply, Failure> {
    let events = encode_stream(reply, "m", 7, include_usage);
    read(events.iter().map(String::as_bytes))
}

#[test]
fn as_the_agent_sees_it() {
    let full =
        reply(vec![thought("hm", None), Part::text("Let me see."), call("c1"), call("c2")], Stop::ToolCalls);
    insta::assert_json_snapshot!("reply_full", encode_reply(&full, "gpt-x", 1_700_000_000));
    insta::assert_snapshot!("stream_full", encode_stream(&full, "gpt-x", 1_700_000_000, true).concat());
    let plain = Reply { usage: None, id: None, ..reply(vec![Part::text("Hi")], Stop::End) };
    insta::assert_json_snapshot!("reply_plain", encode_reply(&plain, "gpt-x", 1_700_000_000));
    insta::assert_snapshot!("stream_plain", encode_stream(&plain, "gpt-x", 1_700_000_000, false).concat());
}

/// The agent appends the message to its conversation and sends it back.
fn given_back(reply: &Reply) -> Vec<Part> {
    let message = encode_reply(reply, "m", 7)["choices"][0]["message"].clone();
    let body = json!({"model": "m", "messages": [message]}).to_string();
    decode_request(body.as_bytes()).unwrap().request.messages.remove(0).parts
}

#[test]
fn thoughts_survive_the_way_through_an_agent() {
    let details = json!({"dialect": "openai_chat", "text_key": "reasoning",
        "reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": "s", "index": 0}]});
    let ours = [
        thought("hm", Some(json!({"dialect": "openai_chat", "text_key": "reasoning"}))),
        thought("hm", Some(json!({"dialect": "openai_chat", "text_key": "reasoning_content"}))),
        thought("hm", Some(details)),
        thought("hm", Some(json!({"type": "thinking", "signature": "s"}))),
        thought("", Some(json!("encrypted"))),
    ];
    for part in &ours {
        let parts = vec![part.clone(), Part::text("x"), call("c")];
        assert_eq!(given_back(&reply(parts.clone(), Stop::ToolCalls)), parts);
    }
    let several = vec![ours[0].clone(), ours[3].clone(), thought("bare", None), Part::text("x")];
    assert_eq!(given_back(&reply(several.clone(), Stop::End)), several);
    // Nested values could hold an address and are not passed on.
    let nested = vec![thought("hm", Some(json!({"source": {"url": "https://a.test"}}))), Part::text("x")];
    assert_eq!(given_back(&reply(nested, Stop::End)), [thought("hm", None), Part::text("x")]);
}

#[test]
fn endings_are_in_words_that_sdks_know() {
    let finish = |parts: Vec<Part>, stop: Stop| {
        encode_reply(&reply(parts, stop), "m", 7)["choices"][0]["finish_reason"].as_str().unwrap().to_owned()
    };
    let text = || vec![Part::text("x")];
    assert_eq!(finish(text(), Stop::End), "stop");
    assert_eq!(finish(text(), Stop::StopText), "stop");
    assert_eq!(finish(text(), Stop::Length), "length");
    assert_eq!(finish(text(), Stop::ContentFilter), "content_filter");
    assert_eq!(finish(text(), Stop::Other("pause_turn".to_owned())), "stop");
    assert_eq!(finish(vec![call("c")], Stop::End), "tool_calls");
    assert_eq!(finish(vec![call("c")], Stop::Length), "length");
}

const KINDS: [FailureKind; 13] = [
    FailureKind::Auth,
    FailureKind::Overlong,
    FailureKind::ContentFilter,
    FailureKind::Empty,
    FailureKind::Truncated,
    FailureKind::Rate,
    FailureKind::Server,
    FailureKind::Network,
    FailureKind::Protocol,
    FailureKind::Request,
    FailureKind::Budget,
    FailureKind::Replay,
    FailureKind::Cancelled,
];

#[test]
fn sdks_try_again_only_what_can_pass() {
    use FailureKind as Kind;
    let retried = |status: u16| matches!(status, 408 | 409 | 429) || status >= 500;
    for kind in KINDS {
        let (status, body) = encode_failure(&Failure::lasting(kind, "m"));
        assert!((400..500).contains(&status) && !retried(status), "{kind:?} {status}");
        assert_eq!(body["error"]["code"], kind.name());
        assert!(body["error"]["message"].as_str().unwrap().starts_with('m'));
    }
    for kind in [Kind::Rate, Kind::Server, Kind::Network, Kind::Empty, Kind::Truncated, Kind::Protocol] {
        assert!(retried(encode_failure(&Failure::passing(kind, "m")).0), "{kind:?}");
    }
    let status = |failure: Failure| encode_failure(&failure).0;
    assert_eq!(status(Failure::passing(Kind::Rate, "m")), 429);
    assert_eq!(status(Failure::lasting(Kind::Auth, "m")), 403);
    assert_eq!(status(Failure::lasting(Kind::Budget, "m")), 402);
    assert_eq!(status(Failure::lasting(Kind::Request, "m").status(404)), 404);
    let (_, overlong) = encode_failure(&Failure::lasting(Kind::Overlong, "m"));
    assert_eq!(overlong["error"]["message"], "m (context_length_exceeded)");
}

fn any_reply() -> impl Strategy<Value = Reply> {
    let flat = prop_oneof![
        Just(json!({"dialect": "openai_chat", "text_key": "reasoning"})),
        Just(json!({"dialect": "openai_chat", "text_key": "reasoning_content"})),
        "[a-z]{1,8}".prop_map(|data| json!({"dialect": "openai_chat", "text_key": "reasoning",
            "reasoning_details": [{"type": "reasoning.encrypted", "data": data}]})),
    ];
    let thought = (".{1,20}", flat).prop_map(|(text, opaque)| thought(&text, Some(opaque)));
    let call = ("[a-z0-9_]{1,8}", "[a-z]{1,8}", ".{0,20}").prop_map(|(id, name, arguments)| ToolCall {
        id,
        name,
        arguments,
    });
    let stop =
        prop_oneof![Just(Stop::End), Just(Stop::Length), Just(Stop::ContentFilter), Just(Stop::StopText)];
    let count = 0..u64::from(u32::MAX);
    let usage = [count.clone(), count.clone(), count.clone(), count.clone(), count].prop_map(
        |[input, cache_read, cache_write, output, reasoning]| Usage {
            input,
            cache_read,
            cache_write,
            output,
            reasoning,
        },
    );
    (
        prop::option::of(thought),
        prop::option::of("(?s).{1,30}"),
        prop::collection::vec(call, 0..3),
        stop,
        prop::option::of(usage),
    )
        .prop_map(|(thought, text, calls, stop, usage)| {
            let stop = match stop {
                Stop::End | Stop::StopText if !calls.is_empty() => Stop::ToolCalls,
                stop => stop,
            };
            let mut parts: Vec<Part> = thought.into_iter().chain(text.map(Part::text)).collect();
            parts.extend(calls.into_iter().enumerate().map(|(index, mut call)| {
                call.id = format!("{}{index}", call.id);
                Part::ToolCall(call)
            }));
            Reply { usage, ..reply(parts, stop) }
        })
}

proptest! {
    #[test]
    fn our_reader_finds_what_was_sent(sent in any_reply()) {
        let body = encode_reply(&sent, "m", 7).to_string();
        for received in [decode(&body).unwrap(), streamed(&sent, true).unwrap()] {
            prop_assert_eq!(&received.parts, &sent.parts);
            prop_assert_eq!(&received.stop, &sent.stop);
            prop_assert_eq!(&received.usage, &sent.usage);
            prop_assert_eq!(&received.id, &sent.id);
        }
        prop_assert_eq!(streamed(&sent, false).unwrap().usage, None);
    }

    #[test]
    fn counts_at_the_edge_do_not_overflow(counts: [u64; 5]) {
        let [input, cache_read, cache_write, output, reasoning] = counts;
        let usage = Some(Usage { input, cache_read, cache_write, output, reasoning });
        let sent = Reply { usage, ..reply(vec![Part::text("x")], Stop::End) };
        prop_assert!(decode(&encode_reply(&sent, "m", 7).to_string()).unwrap().usage.is_some());
    }
}
