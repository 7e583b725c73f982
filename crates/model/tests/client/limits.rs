//! Adaptive concurrency, and what the client learns from refusals.

use std::time::Duration;

use aec_model::event::CallEvent;
use aec_model_server::{Answers, Options, Range};

use super::{ask_many, client, model, plain, quick, scope, start};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrency_backs_off_below_what_the_server_allows_and_everything_is_answered() {
    let server = start(Options {
        answers: Answers::Echo,
        latency: Range::only(Duration::from_millis(3)),
        limit_in_flight: Some(12),
        retry_after: Duration::from_millis(20),
        ..Options::default()
    })
    .await;
    let client = client(&plain(&server, "stream = \"never\""), quick());
    let texts = (0..1500).map(|number| format!("call {number}")).collect();
    let called = ask_many(&model(&client), &scope(), texts).await;
    assert!(called.iter().all(|called| called.outcome.is_ok()));
    let refused = |range: std::ops::Range<usize>| {
        called[range]
            .iter()
            .flat_map(|called| &called.events)
            .filter(|event| matches!(event, CallEvent::Failed { .. }))
            .count()
    };
    let stats = server.stats();
    assert!(stats.limited > 0, "it was too much at first: {stats:?}");
    // Using all permits at once would cause about twenty refusals per answer; how far below that it stays depends on
    // how many rounds of answers this machine makes in a second.
    let all = refused(0..1500);
    assert!(all < 4 * 1500, "and less later: {all}");
}

#[tokio::test]
async fn a_limit_of_one_is_one() {
    let server = start(Options {
        answers: Answers::Echo,
        latency: Range::only(Duration::from_millis(2)),
        ..Options::default()
    })
    .await;
    let client = client(&plain(&server, "max_concurrency = 1"), quick());
    let texts = (0..20).map(|number| format!("call {number}")).collect();
    ask_many(&model(&client), &scope(), texts).await;
    assert_eq!(server.stats().highest_in_flight, 1);
}

/// Why a request is refused, if at all.
type Opinion = fn(&serde_json::Value) -> Option<&'static str>;

/// A server that refuses requests that have or lack a key, and says why.
async fn opinionated(refuses: Opinion) -> String {
    use axum::body::Bytes;
    use http::StatusCode;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().fallback(move |body: Bytes| async move {
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let answer = |text: &str| ([("content-type", "application/json")], text.to_owned());
        if let Some(why) = refuses(&body) {
            return (StatusCode::BAD_REQUEST, answer(&serde_json::json!({ "error": { "message": why } }).to_string()));
        }
        if body["stream"] == true {
            let chunk = r#"{"choices":[{"index":0,"delta":{"content":"fine"},"finish_reason":"stop"}]}"#;
            let kind = [("content-type", "text/event-stream")];
            return (StatusCode::OK, (kind, format!("data: {chunk}\n\ndata: [DONE]\n\n")));
        }
        let whole = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}]}"#;
        (StatusCode::OK, answer(whole))
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/v1")
}

#[tokio::test]
async fn servers_teach_how_they_want_to_be_asked() {
    let lessons: [(&str, Opinion); 4] = [
        ("stream = \"never\"", |body| {
            (body["stream"] != true).then_some("this model only supports streaming")
        }),
        ("stream = \"always\"", |body| {
            body.get("stream_options").map(|_| "Unknown parameter: stream_options")
        }),
        ("", |body| {
            body.get("max_tokens").map(|_| "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
        }),
        ("stream = \"auto\"", |body| (body["stream"] != true).then_some("please set 'stream': true")),
    ];
    for (more, refuses) in lessons {
        let url = opinionated(refuses).await;
        let client = client(&super::row(&url, more), quick());
        for round in 0..2 {
            let called = model(&client).call(&super::ask("x"), &scope()).await;
            assert_eq!(called.outcome.as_ref().unwrap().text(), "fine", "{more}: {called:?}");
            let failed =
                called.events.iter().filter(|event| matches!(event, CallEvent::Failed { .. })).count();
            assert_eq!(failed, 1 - round, "learned once: {called:?}");
        }
    }
}

#[tokio::test]
async fn an_echo_is_no_lesson() {
    // The refusal mentions the key of the output limit only because a tool has that name.
    let url = opinionated(|body| {
        let odd = body
            .get("tools")
            .map(|_| "Invalid schema for function 'set_max_tokens': 'oneOf' is not permitted");
        odd.or_else(|| {
            body.get("max_completion_tokens").map(|_| "this server wants max_tokens and nothing else")
        })
    })
    .await;
    let client = client(&super::row(&url, ""), quick());
    let mut odd = super::ask("x");
    odd.tools = vec![aec_model::message::Tool {
        name: "set_max_tokens".into(),
        description: String::new(),
        parameters: serde_json::json!({ "type": "object" }),
    }]
    .into();
    for _ in 0..3 {
        let called = model(&client).call(&odd, &scope()).await;
        assert_eq!(called.outcome.unwrap_err().kind, aec_model::failure::FailureKind::Request);
        let called = model(&client).call(&super::ask("x"), &scope()).await;
        assert_eq!(called.outcome.unwrap().text(), "fine");
        assert_eq!(called.events.len(), 2, "asked once, in the manner that it wants: {:?}", called.events);
    }
}
