//! Replays equal what was recorded.

use aec_base::secret::Redactor;
use aec_model::cassette::{Call, Player, Recorder, request_digest};
use aec_model::event::{CallEvent, Charged};
use aec_model::failure::{Failure, FailureKind};
use aec_model::message::{
    Message, Part, Reply, Request, Role, Sampling, Stop, Tool, ToolCall, ToolChoice, Usage,
};
use aec_model::money::MicroDollars;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::cassette::{open, record, recorder, reply, request, text};

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"b": 1.0, "a": [null, true, "x"]})),
        Just(json!({"a": {"z": -1, "y": 1e300}})),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ]
}

fn part() -> impl Strategy<Value = Part> {
    let call = ("[a-z0-9]{1,4}", "[a-z]{1,4}", "\\PC{0,20}")
        .prop_map(|(id, name, arguments)| Part::ToolCall(ToolCall { id, name, arguments }));
    let leaf = prop_oneof![
        any::<String>().prop_map(|text| Part::Text { text }),
        Just(Part::Image { media_type: "image/png".into(), data: "aGVsbG8=".into() }),
        ("\\PC{0,9}", option::of(value())).prop_map(|(text, opaque)| Part::Reasoning { text, opaque }),
        call,
    ];
    let result = (vec("\\PC{0,9}", 0..3), any::<bool>()).prop_map(|(texts, is_error)| Part::ToolResult {
        call_id: "c1".into(),
        parts: texts.into_iter().map(Part::text).collect(),
        is_error,
    });
    prop_oneof![4 => leaf, 1 => result]
}

fn role() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::System), Just(Role::User), Just(Role::Assistant)]
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    vec(("[a-c]{1,2}", value()), 0..3).prop_map(|pairs| pairs.into_iter().collect())
}

fn any_request() -> impl Strategy<Value = Request> {
    let messages = vec((role(), vec(part(), 0..4)), 0..5)
        .prop_map(|list| list.into_iter().map(|(role, parts)| Message { role, parts }).collect());
    let tools = vec(value(), 0..3).prop_map(|list| {
        let tool = |parameters| Tool { name: "t".into(), description: "d".into(), parameters };
        list.into_iter().map(tool).collect()
    });
    let choice = prop_oneof![Just(ToolChoice::Auto), Just(ToolChoice::Tool("t".into()))];
    let sampling = (option::of(1_u32..9), option::of(0.0..2.0), vec("\\PC{0,3}", 0..2), object()).prop_map(
        |(max_tokens, temperature, stop, extra)| Sampling {
            max_tokens,
            temperature,
            stop,
            extra,
            ..Sampling::default()
        },
    );
    (messages, tools, choice, sampling).prop_map(|(messages, tools, tool_choice, sampling)| Request {
        messages,
        tools,
        tool_choice,
        sampling,
    })
}

fn any_outcome() -> impl Strategy<Value = Result<Reply, Failure>> {
    let failure =
        ("\\PC{0,20}", any::<bool>(), option::of(400_u16..600)).prop_map(|(message, retryable, status)| {
            Failure { status, retryable, ..Failure::lasting(FailureKind::Server, message) }
        });
    let stop = prop_oneof![Just(Stop::End), Just(Stop::ToolCalls), "[a-z]{1,5}".prop_map(Stop::Other)];
    let reply = (vec(part(), 0..4), stop, option::of(any::<u64>()), option::of("[a-z]{1,5}"), object())
        .prop_map(|(parts, stop, input, model, extra)| Reply {
            parts,
            stop,
            usage: input.map(|input| Usage { input, ..Usage::default() }),
            model,
            id: None,
            extra,
        });
    prop_oneof![1 => failure.prop_map(Err), 3 => reply.prop_map(Ok)]
}

/// JSON cannot distinguish an opaque `null` from an absent one.
fn without_null(mut outcome: Result<Reply, Failure>) -> Result<Reply, Failure> {
    for part in outcome.iter_mut().flat_map(|reply| &mut reply.parts) {
        if let Part::Reasoning { opaque, .. } = part {
            *opaque = opaque.take().filter(|value| !value.is_null());
        }
    }
    outcome
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn calls_come_back_as_they_were(
        calls in vec((0_u8..2, any_request(), any_outcome()), 1..8),
        repeat in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let recorder = recorder(dir.path());
        let events = vec![
            CallEvent::Failed {
                attempt: 1,
                failure: Failure::passing(FailureKind::Rate, "slow down"),
                elapsed_ms: 5,
                wait_ms: Some(7),
                charged: Some(Charged { usage: None, tokens: 11, cost: Some(MicroDollars(2)) }),
            },
            CallEvent::Answered {
                attempt: 2,
                elapsed_ms: 9,
                usage: None,
                cost: Some(MicroDollars(3)),
                tokens_at_most: Some(12), implausible: None,
            },
        ];
        let rounds = if repeat { 2 } else { 1 };
        for (scope, request, outcome) in calls.iter().cycle().take(calls.len() * rounds) {
            let ticket = recorder.begin(&scope.to_string(), "m", request);
            let call = Call { request, endpoint: "e", events: &events, outcome };
            recorder.record(ticket, &call).unwrap();
        }
        let (player, problems) = open(dir.path());
        prop_assert!(problems.is_empty(), "{:?}", problems);
        prop_assert_eq!(player.len(), calls.len() * rounds);
        for (scope, request, outcome) in calls.iter().cycle().take(calls.len() * rounds) {
            let played = player.play(&scope.to_string(), "m", request).unwrap();
            prop_assert_eq!(&played.endpoint, "e");
            prop_assert_eq!(&played.events, &events);
            prop_assert_eq!(played.outcome, without_null(outcome.clone()));
        }
        for (scope, request, _) in &calls {
            prop_assert!(player.play(&scope.to_string(), "m", request).is_err(), "nothing is given twice");
        }
    }
}

#[test]
fn scopes_do_not_take_from_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = recorder(dir.path());
    for (scope, answer) in [("", "none"), ("a", "first"), ("b", "other"), ("a", "second")] {
        record(&recorder, scope, &request(&["same"]), &Ok(reply(answer)));
    }
    let (player, _) = open(dir.path());
    let play = |scope: &str| player.play(scope, "m", &request(&["same"])).map(|played| text(&played));
    assert_eq!(play("b").unwrap(), "other");
    assert_eq!(play("a").unwrap(), "first");
    assert_eq!(play("").unwrap(), "none");
    assert_eq!(play("a").unwrap(), "second");
    assert!(play("a").is_err() && play("b").is_err());
}

#[test]
fn the_order_of_asking_counts_not_that_of_answering() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = recorder(dir.path());
    let request = request(&["same"]);
    let tickets: Vec<_> = (0..4).map(|_| recorder.begin("s", "m", &request)).collect();
    for (number, ticket) in tickets.into_iter().enumerate().rev() {
        // The second call is dropped: its position stays empty and is skipped.
        if number != 1 {
            let outcome = Ok(reply(&number.to_string()));
            recorder
                .record(ticket, &Call { request: &request, endpoint: "", events: &[], outcome: &outcome })
                .unwrap();
        }
    }
    let (player, problems) = open(dir.path());
    assert!(problems.is_empty());
    let answers: Vec<String> = (0..3).map(|_| text(&player.play("s", "m", &request).unwrap())).collect();
    assert_eq!(answers, ["0", "2", "3"]);
}

#[test]
fn a_new_recording_of_a_trial_replaces_one_that_was_broken_off() {
    let dir = tempfile::tempdir().unwrap();
    let first = recorder(dir.path());
    record(&first, "t", &request(&["q"]), &Ok(reply("old")));
    record(&first, "t", &request(&["q"]), &Ok(reply("old too")));
    let second = recorder(dir.path());
    record(&second, "t", &request(&["q"]), &Ok(reply("new")));
    record(&second, "t", &request(&["q", "new", "go on"]), &Ok(reply("end")));
    let (player, problems) = open(dir.path());
    insta::assert_snapshot!(crate::cassette::lines(&problems, dir.path()), @"warning K017 DIR/calls-000001.jsonl: calls that a newer file has recorded again, and which are taken from there: 1");
    assert_eq!(text(&player.play("t", "m", &request(&["q"])).unwrap()), "new");
    assert_eq!(text(&player.play("t", "m", &request(&["q", "new", "go on"])).unwrap()), "end");
    assert_eq!(text(&player.play("t", "m", &request(&["q"])).unwrap()), "old too");
}

/// The file size of a conversation with this many turns of equal length.
fn size_of_conversation(turns: usize, sliding: Option<usize>) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let recorder = recorder(dir.path());
    let mut conversation = Request {
        tools: vec![Tool { name: "t".into(), description: "long ".repeat(200), parameters: json!({}) }]
            .into(),
        ..request(&["begin"])
    };
    for turn in 0..turns {
        let mut asked = conversation.clone();
        if let Some(kept) = sliding {
            let start = asked.messages.len().saturating_sub(kept);
            asked.messages.drain(..start);
        }
        let answer = reply(&format!("answer {turn:04} {}", "words ".repeat(100)));
        record(&recorder, "s", &asked, &Ok(answer.clone()));
        conversation.messages.push(answer.into_message());
        let result = format!("result {turn:04} {}", "lines\n".repeat(200));
        conversation.messages.push(Message::text(Role::User, result));
    }
    recorder.finish().unwrap();
    std::fs::metadata(dir.path().join("calls-000001.jsonl")).unwrap().len()
}

#[test]
fn a_conversation_is_stored_once() {
    let content = |turns: u64| turns * (200 * 7 + 100 * 6 + 30);
    for sliding in [None, Some(6)] {
        let (short, long) = (size_of_conversation(50, sliding), size_of_conversation(100, sliding));
        // The size of a turn does not depend on how many came before.
        assert!((long - short).abs_diff(short) < short / 10, "{short} {long}");
        assert!(short < content(50) * 3 / 2, "{short}");
    }
}

/// A cassette in the first version of the format.
fn example() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cassette/version-1")
}

/// The two requests of the example.
fn example_requests() -> (Request, Request) {
    let parameters = json!({"b": 1, "a": 2});
    let mut first = request(&["What is 6 x 7?"]);
    first.tools = vec![Tool { name: "add".into(), description: "Adds.".into(), parameters }].into();
    first.sampling.temperature = Some(0.0);
    let mut second = first.clone();
    second.messages.push(reply("42").into_message());
    second.messages.push(Message::text(Role::User, "Sure?"));
    (first, second)
}

#[test]
fn the_format_is_the_documented_one() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = recorder(dir.path());
    let (first, second) = example_requests();
    record(&recorder, "trial-1", &first, &Ok(reply("42")));
    record(&recorder, "trial-1", &second, &Err(Failure::lasting(FailureKind::Overlong, "too long")));
    recorder.finish().unwrap();
    let content =
        |directory: &std::path::Path| std::fs::read_to_string(directory.join("calls-000001.jsonl")).unwrap();
    assert_eq!(content(dir.path()), content(&example()));
}

#[test]
fn cassettes_of_version_1_stay_readable() {
    let (player, problems) = Player::open(&example()).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    let (first, second) = example_requests();
    assert_eq!(player.play("trial-1", "m", &first).unwrap().outcome, Ok(reply("42")));
    let failure = Failure::lasting(FailureKind::Overlong, "too long");
    assert_eq!(player.play("trial-1", "m", &second).unwrap().outcome, Err(failure));
}

#[test]
fn a_call_ends_with_the_request_it_began_with() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::create(dir.path(), std::sync::Arc::new(Redactor::default())).unwrap();
    let ticket = recorder.begin("s", "m", &request(&["a"]));
    let outcome = Ok(reply("x"));
    let other = request(&["a", "b"]);
    let call = Call { request: &other, endpoint: "", events: &[], outcome: &outcome };
    assert_eq!(recorder.record(ticket, &call).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    assert_ne!(request_digest("m", &other), request_digest("m", &request(&["a"])));
}
