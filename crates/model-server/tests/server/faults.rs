//! Every fault in every format.

use aec_model_server::{Answers, FaultKind, Options, TestServer};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::BytesMut;
use http_body_util::BodyExt as _;
use serde_json::Value;

use crate::client::{Answer, Case, Ended, Family, send, start, until};

async fn echo() -> TestServer {
    start(Options { answers: Answers::Echo, ..Options::default() }).await
}

/// The name of an error in its provider's form.
fn error_name(case: Case, answer: &Answer) -> String {
    let value = answer.json();
    let name = match case.family {
        Family::Chat | Family::Azure => {
            let error = &value["error"];
            assert!(error["message"].is_string(), "{value}");
            error["code"].as_str().or_else(|| error["type"].as_str()).unwrap_or_default().to_owned()
        }
        Family::Messages => {
            assert_eq!(value["type"], "error");
            assert!(value["error"]["message"].is_string() && value["request_id"].is_string());
            value["error"]["type"].as_str().unwrap().to_owned()
        }
        Family::Invoke | Family::Converse => {
            assert!(value["message"].is_string());
            answer.header("x-amzn-errortype").split(':').next().unwrap().to_owned()
        }
    };
    assert_eq!(answer.ended, Ended::Well);
    name
}

/// Status and name of the error for a fault that is a refusal: OpenAI, Azure, Anthropic, Bedrock.
const REFUSALS: [(&str, [(u16, &str); 4]); 8] = [
    (
        "rate",
        [(429, "rate_limit_exceeded"), (429, "429"), (429, "rate_limit_error"), (429, "ThrottlingException")],
    ),
    (
        "rate_date",
        [(429, "rate_limit_exceeded"), (429, "429"), (429, "rate_limit_error"), (429, "ThrottlingException")],
    ),
    (
        "server",
        [(500, "server_error"), (500, "server_error"), (500, "api_error"), (500, "InternalServerException")],
    ),
    (
        "unavailable",
        [
            (503, "service_unavailable"),
            (503, "service_unavailable"),
            (503, "api_error"),
            (503, "ServiceUnavailableException"),
        ],
    ),
    (
        "overloaded",
        [
            (503, "server_error"),
            (503, "server_error"),
            (529, "overloaded_error"),
            (503, "ServiceUnavailableException"),
        ],
    ),
    (
        "filter",
        [
            (400, "invalid_prompt"),
            (400, "content_filter"),
            (400, "invalid_request_error"),
            (400, "ValidationException"),
        ],
    ),
    (
        "overlong",
        [
            (400, "context_length_exceeded"),
            (400, "context_length_exceeded"),
            (400, "invalid_request_error"),
            (400, "ValidationException"),
        ],
    ),
    (
        "auth",
        [
            (401, "invalid_api_key"),
            (401, "401"),
            (401, "authentication_error"),
            (403, "UnrecognizedClientException"),
        ],
    ),
];

#[tokio::test]
async fn refusals_have_each_providers_status_and_words() {
    let server = echo().await;
    for case in Case::all() {
        for (fault, expected) in REFUSALS {
            if case.stream && fault == "overloaded" {
                continue;
            }
            let column = match case.family {
                Family::Chat => 0,
                Family::Azure => 1,
                Family::Messages => 2,
                Family::Invoke | Family::Converse => 3,
            };
            let answer = case.ask_for_fault(&server, fault).await.unwrap();
            let (status, name) = expected[column];
            assert_eq!(
                (answer.status, error_name(case, &answer).as_str()),
                (status, name),
                "{case:?} {fault}"
            );
            let wait = answer.header("retry-after");
            match fault {
                "rate_date" => assert!(httpdate::parse_http_date(wait).is_ok(), "{case:?} {wait}"),
                "rate" if !case.is_bedrock() => assert_eq!(wait, "1"),
                _ => assert_eq!(wait, ""),
            }
        }
    }
    let overlong =
        Case { family: Family::Messages, stream: false }.ask_for_fault(&server, "overlong").await.unwrap();
    assert!(overlong.json()["error"]["message"].as_str().unwrap().starts_with("prompt is too long: "));
    let stats = server.stats();
    assert_eq!((stats.faults["rate"], stats.statuses[&529]), (10, 1));
}

#[tokio::test]
async fn an_overloaded_stream_ends_with_an_error_event() {
    let server = echo().await;
    for case in Case::all().into_iter().filter(|case| case.stream) {
        let answer = case.ask_for_fault(&server, "overloaded").await.unwrap();
        assert_eq!((answer.status, &answer.ended), (200, &Ended::Well));
        match case.family {
            Family::Chat | Family::Azure => {
                assert_eq!(answer.data().last().unwrap()["error"]["type"], "server_error");
                assert_ne!(answer.events().last().unwrap().1, "[DONE]");
            }
            Family::Messages => {
                let (name, data) = answer.events().pop().unwrap();
                assert_eq!((name.as_str(), data.contains("overloaded_error")), ("error", true));
            }
            Family::Invoke | Family::Converse => {
                let (name, value) = answer.frames().unwrap().pop().unwrap();
                assert_eq!(name, "serviceUnavailableException");
                assert!(value["message"].is_string());
            }
        }
        assert_eq!(tokens(case, &answer), 3, "{case:?}: half of the answer came first");
    }
}

/// The number of text tokens in a stream.
fn tokens(case: Case, answer: &Answer) -> usize {
    match case.family {
        Family::Chat | Family::Azure => {
            let texts = answer.data().into_iter().filter_map(|chunk| {
                let text = chunk["choices"].get(0)?["delta"].get("content")?.as_str()?.to_owned();
                (!text.is_empty()).then_some(text)
            });
            texts.count()
        }
        Family::Messages => answer.data().iter().filter(|event| event["delta"]["text"].is_string()).count(),
        Family::Invoke => {
            invoke_events(answer).iter().filter(|event| event["delta"]["text"].is_string()).count()
        }
        Family::Converse => {
            answer.frames().unwrap().iter().filter(|(_, value)| value["delta"]["text"].is_string()).count()
        }
    }
}

fn invoke_events(answer: &Answer) -> Vec<Value> {
    let frames = answer.frames().unwrap().into_iter();
    let chunks = frames.filter(|(name, _)| name == "chunk").map(|(_, value)| value);
    chunks
        .map(|value| {
            let bytes = BASE64_STANDARD.decode(value["bytes"].as_str().unwrap()).unwrap();
            serde_json::from_slice(&bytes).unwrap()
        })
        .collect()
}

/// Whether the closing event of a stream arrived.
fn is_closed(case: Case, answer: &Answer) -> bool {
    match case.family {
        Family::Chat | Family::Azure => answer.events().last().is_some_and(|(_, data)| data == "[DONE]"),
        Family::Messages => answer.events().last().is_some_and(|(name, _)| name == "message_stop"),
        Family::Invoke => invoke_events(answer).last().is_some_and(|event| event["type"] == "message_stop"),
        Family::Converse => answer.frames().unwrap().last().is_some_and(|(name, _)| name == "metadata"),
    }
}

#[tokio::test]
async fn answers_that_are_cut_off_or_broken() {
    let server = echo().await;
    for case in Case::all() {
        let complete = case.ask(&server, "one two three four five six", &serde_json::json!({})).await;
        assert_eq!(complete.ended, Ended::Well);
        let cut = case.ask_for_fault(&server, "cut").await.unwrap();
        let broken = case.ask_for_fault(&server, "broken").await;
        if case.stream {
            assert!(is_closed(case, &complete) && !is_closed(case, &cut), "{case:?}");
            assert_eq!((cut.ended, tokens(case, &complete)), (Ended::Well, 6));
        } else {
            assert_eq!((&cut.ended, cut.body.len()), (&Ended::Broken, complete.body.len() / 2), "{case:?}");
            assert_eq!(cut.header("content-length"), complete.body.len().to_string());
        }
        // A reset may overtake the bytes sent before it.
        if let Ok(broken) = broken {
            assert_eq!((broken.status, broken.ended), (200, Ended::Broken), "{case:?}");
        }
    }
    assert_eq!(server.stats().disconnects, 0, "the server did this itself");
}

#[tokio::test]
async fn connections_closed_without_an_answer() {
    let server = echo().await;
    for case in Case::all() {
        assert!(case.ask_for_fault(&server, "reset").await.is_err(), "{case:?}");
    }
    let stats = server.stats();
    assert_eq!((stats.faults["reset"], stats.in_flight, stats.disconnects), (10, 0, 0));
}

#[tokio::test]
async fn requests_that_are_never_answered() {
    let server = echo().await;
    for (round, case) in (1..).zip(Case::all()) {
        let asking = case.ask_for_fault(&server, "timeout");
        tokio::select! {
            answer = asking => panic!("{case:?} was answered: {answer:?}"),
            () = until(|| server.stats().faults.get("timeout") == Some(&round)) => {}
        }
        // Leaving the select drops the request and its connection.
        until(|| server.stats().in_flight == 0).await;
        assert_eq!(server.stats().disconnects, round, "{case:?}");
    }
}

#[tokio::test]
async fn answers_that_stop_in_their_middle_and_stay_open() {
    let server = echo().await;
    for (round, case) in (1..).zip(Case::all()) {
        let complete = case.ask(&server, "one two three four five six", &serde_json::json!({})).await;
        let cut = case.ask_for_fault(&server, "cut").await.unwrap();
        let open = send(&server, case.request_with_fault(&server, "stall")).await.unwrap();
        let mut body = open.response.into_body();
        let mut seen = BytesMut::new();
        while seen.len() < cut.body.len() {
            seen.extend_from_slice(&body.frame().await.unwrap().unwrap().into_data().unwrap());
        }
        assert!(seen.len() < complete.body.len(), "{case:?}");
        assert_eq!(server.stats().in_flight, 1, "{case:?}");
        open.connection.abort();
        drop(body);
        until(|| server.stats().in_flight == 0).await;
        assert_eq!(server.stats().disconnects, round, "{case:?}: it was still open");
    }
}

#[tokio::test]
async fn answers_that_are_not_what_they_should_be() {
    let server = echo().await;
    for case in Case::all() {
        let garbage = case.ask_for_fault(&server, "garbage").await.unwrap();
        let malformed = case.ask_for_fault(&server, "malformed").await.unwrap();
        assert_eq!((garbage.status, malformed.status), (200, 200));
        if !case.stream {
            assert!(serde_json::from_slice::<Value>(&garbage.body).is_err());
            let value = malformed.json();
            let field = match case.family {
                Family::Chat | Family::Azure => value["choices"].is_object(),
                Family::Messages | Family::Invoke => value["content"].is_string(),
                Family::Converse => value["output"].is_array(),
            };
            assert!(field, "{case:?} {value}");
            continue;
        }
        if case.is_bedrock() {
            assert!(garbage.frames().is_err(), "{case:?}");
        } else {
            assert!(serde_json::from_str::<Value>(&garbage.events().last().unwrap().1).is_err(), "{case:?}");
        }
        let wrong = match case.family {
            Family::Chat | Family::Azure => malformed.data().iter().any(|chunk| chunk["choices"].is_object()),
            Family::Messages => malformed.data().iter().any(|event| event["delta"].is_string()),
            Family::Invoke => invoke_events(&malformed).iter().any(|event| event["delta"].is_string()),
            Family::Converse => {
                malformed.frames().unwrap().iter().any(|(_, value)| value["delta"].is_array())
            }
        };
        assert!(wrong && is_closed(case, &malformed), "{case:?}");
    }
}

/// Why an answer ended, and its number of tokens.
fn ending(case: Case, answer: &Answer) -> (String, u64) {
    let value = match (case.family, case.stream) {
        (_, false) => answer.json(),
        (Family::Chat | Family::Azure, true) => answer.data().pop().unwrap(),
        (Family::Messages, true) => answer.data().into_iter().rev().nth(1).unwrap(),
        (Family::Invoke, true) => invoke_events(answer).into_iter().rev().nth(1).unwrap(),
        (Family::Converse, true) => {
            let mut frames = answer.frames().unwrap();
            let mut metadata = frames.pop().unwrap().1;
            metadata["stopReason"] = frames.pop().unwrap().1["stopReason"].clone();
            metadata
        }
    };
    let (reason, count) = match (case.family, case.stream) {
        (Family::Chat | Family::Azure, false) => {
            (&value["choices"][0]["finish_reason"], value["usage"]["completion_tokens"].as_u64())
        }
        (Family::Chat | Family::Azure, true) => {
            (&value["choices"][0]["finish_reason"], Some(tokens(case, answer) as u64))
        }
        (Family::Messages | Family::Invoke, false) => {
            (&value["stop_reason"], value["usage"]["output_tokens"].as_u64())
        }
        (Family::Messages | Family::Invoke, true) => {
            (&value["delta"]["stop_reason"], value["usage"]["output_tokens"].as_u64())
        }
        (Family::Converse, _) => (&value["stopReason"], value["usage"]["outputTokens"].as_u64()),
    };
    (reason.as_str().unwrap().to_owned(), count.unwrap())
}

#[tokio::test]
async fn answers_that_end_early_or_say_nothing() {
    let server = echo().await;
    for case in Case::all() {
        let expected = match case.family {
            Family::Chat | Family::Azure => ["stop", "content_filter", "length"],
            Family::Messages | Family::Invoke => ["end_turn", "refusal", "max_tokens"],
            Family::Converse => ["end_turn", "content_filtered", "max_tokens"],
        };
        for ((fault, reason), count) in
            ["empty", "filter_stop", "length"].into_iter().zip(expected).zip([0, 3, 3])
        {
            let answer = case.ask_for_fault(&server, fault).await.unwrap();
            assert_eq!(ending(case, &answer), (reason.to_owned(), count), "{case:?} {fault}");
        }
    }
}

#[tokio::test]
async fn every_kind_of_fault_was_tried_and_unknown_ones_are_refused() {
    let server = echo().await;
    let case = Case { family: Family::Chat, stream: false };
    let refused = case.ask_for_fault(&server, "nonsense").await.unwrap();
    assert_eq!(refused.status, 400);
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("rate_date"));
    let tried = [
        &REFUSALS.map(|(name, _)| name)[..],
        &[
            "timeout",
            "reset",
            "cut",
            "broken",
            "stall",
            "garbage",
            "malformed",
            "empty",
            "filter_stop",
            "length",
        ],
    ]
    .concat();
    for kind in FaultKind::ALL {
        assert!(tried.contains(&kind.name()), "{}", kind.name());
    }
}
