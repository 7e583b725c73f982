//! Each typed failure, each retry rule.

use std::time::Duration;

use aec_model::client::{Called, Scope};
use aec_model::event::CallEvent;
use aec_model::failure::FailureKind;
use aec_model::retry::RetryPolicy;
use aec_model_server::{Answers, Fault, FaultKind, Options};
use aec_xtest::port::ClosedPort;

use super::{account, ask, client, echo, model, plain, quick, row, scope, start, until};

/// The waits between attempts.
fn waits(called: &Called) -> Vec<u64> {
    called
        .events
        .iter()
        .filter_map(|event| match event {
            CallEvent::Failed { wait_ms, .. } => *wait_ms,
            _ => None,
        })
        .collect()
}

fn attempts(called: &Called) -> usize {
    called.events.iter().filter(|event| matches!(event, CallEvent::Attempt { .. })).count()
}

#[tokio::test]
async fn each_fault_has_its_kind_and_is_tried_again_only_if_it_can_pass() {
    use FailureKind as K;
    let server = echo().await;
    // The kinds for whole and streamed answers, and how often each is tried.
    let cases = [
        (FaultKind::Server, [K::Server, K::Server], 3),
        (FaultKind::Unavailable, [K::Server, K::Server], 3),
        (FaultKind::Overloaded, [K::Server, K::Server], 3),
        (FaultKind::Timeout, [K::Network, K::Network], 3),
        (FaultKind::Reset, [K::Network, K::Network], 3),
        (FaultKind::Broken, [K::Network, K::Network], 3),
        (FaultKind::Cut, [K::Network, K::Truncated], 3),
        (FaultKind::Stall, [K::Network, K::Network], 3),
        (FaultKind::Garbage, [K::Protocol, K::Protocol], 3),
        (FaultKind::Malformed, [K::Protocol, K::Protocol], 3),
        (FaultKind::Empty, [K::Empty, K::Empty], 3),
        (FaultKind::Filter, [K::ContentFilter, K::ContentFilter], 1),
        (FaultKind::FilterStop, [K::ContentFilter, K::ContentFilter], 1),
        (FaultKind::Overlong, [K::Overlong, K::Overlong], 1),
        (FaultKind::Auth, [K::Auth, K::Auth], 1),
        (FaultKind::Length, [K::Truncated, K::Truncated], 1),
    ];
    let policy = RetryPolicy { attempts: 3, ..quick() };
    for (fault, kinds, tries) in cases {
        for (mode, kind) in ["never", "always"].into_iter().zip(kinds) {
            for (dialect, below) in [("openai_chat_completions", "/v1"), ("anthropic_messages", "")] {
                let more = format!(
                    "api_client_type = \"{dialect}\"\nstream = \"{mode}\"\nheaders = {{ x-test-fault = \"{}\" }}",
                    fault.name()
                );
                let mut rows = row(&format!("{}{below}", server.url()), &more);
                if matches!(fault, FaultKind::Timeout | FaultKind::Stall) {
                    rows.push_str("timeout_sec = 1\nidle_timeout_sec = 1\n");
                }
                let policy = if matches!(fault, FaultKind::Timeout | FaultKind::Stall) {
                    RetryPolicy { attempts: 1, ..policy }
                } else {
                    policy
                };
                let tries = if policy.attempts == 1 { 1 } else { tries };
                let called =
                    model(&client(&rows, policy)).call(&ask("hello there, how are you?"), &scope()).await;
                let what = format!("{} {mode} {dialect}: {called:?}", fault.name());
                match called.outcome {
                    // An answer cut short by the limit or the filter counts as an answer if it has content.
                    Ok(ref reply) if matches!(fault, FaultKind::Length | FaultKind::FilterStop) => {
                        assert!(
                            reply.says_something() && reply.stop != aec_model::message::Stop::End,
                            "{what}"
                        );
                    }
                    Ok(_) => panic!("{what}"),
                    Err(ref failure) => {
                        assert_eq!(failure.kind, kind, "{what}");
                        assert_eq!(attempts(&called), tries, "{what}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn waits_are_as_long_as_the_provider_asks() {
    for (kind, least, most) in [(FaultKind::Rate, 30, 1300), (FaultKind::RateDate, 0, 3000)] {
        let server = start(Options {
            answers: Answers::Echo,
            faults: vec![Fault { kind, probability: 0.5 }],
            retry_after: Duration::from_millis(30),
            ..Options::default()
        })
        .await;
        let client = client(&plain(&server, "stream = \"never\""), quick());
        let mut waited = Vec::new();
        for number in 0..12 {
            let called = model(&client).call(&ask(&format!("question {number}")), &scope()).await;
            assert!(called.outcome.is_ok(), "{called:?}");
            waited.extend(waits(&called));
        }
        assert!(!waited.is_empty() && waited.iter().all(|wait| (least..=most).contains(wait)), "{waited:?}");
    }
}

#[tokio::test]
async fn rates_are_waited_for_longer_than_other_failures_are_tried() {
    let server = start(Options {
        answers: Answers::Echo,
        faults: vec![Fault { kind: FaultKind::Rate, probability: 1.0 }],
        retry_after: Duration::from_millis(2),
        ..Options::default()
    })
    .await;
    let policy = RetryPolicy { attempts: 2, patience: Duration::from_millis(60), ..quick() };
    let called = model(&client(&plain(&server, ""), policy)).call(&ask("x"), &scope()).await;
    assert_eq!(called.outcome.as_ref().unwrap_err().kind, FailureKind::Rate);
    assert!(attempts(&called) > 4, "{called:?}");
}

#[tokio::test]
async fn a_missing_key_and_a_closed_port_are_told_apart() {
    let nobody = ClosedPort::take();
    let rows = row(&format!("http://{}/v1", nobody.address), "");
    let closed = client(&rows, RetryPolicy { attempts: 2, ..quick() });
    let account = account(aec_model::meter::Budget::default());
    let called = model(&closed).call(&ask("x"), &Scope::new("t", account.clone())).await;
    let failure = called.outcome.unwrap_err();
    assert_eq!((failure.kind, failure.retryable), (FailureKind::Network, true), "{failure}");
    assert!(failure.message.contains("refused"), "{failure}");
    assert_eq!(account.totals().all.calls, 0, "nothing was sent, so nothing was billed");
    let keyless = super::client_with(&rows, &[], quick(), aec_model::tape::Tape::Live);
    let failure = model(&keyless).call(&ask("x"), &scope()).await.outcome.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Auth);
    assert!(failure.message.contains("set KEY"), "{failure}");
}

#[tokio::test]
async fn giving_up_ends_the_call_at_the_provider() {
    let server = start(Options {
        answers: Answers::Drawn,
        output_tokens: "4000".parse().unwrap(),
        tokens_per_second: Some(20.0),
        ..Options::default()
    })
    .await;
    let client = client(&plain(&server, "stream = \"always\""), quick());
    let account = account(aec_model::meter::Budget::default());
    let (model, scope) = (model(&client), Scope::new("t", account.clone()));
    let mut request = ask("tell me everything");
    request.sampling.max_tokens = Some(4000);
    let task = tokio::spawn(async move { model.call(&request, &scope).await });
    until(|| server.stats().in_flight == 1).await;
    task.abort();
    until(|| server.stats().disconnects == 1).await;
    assert_eq!(server.stats().in_flight, 0);
    let totals = account.totals();
    assert_eq!((totals.open_calls, totals.all.calls), (0, 1), "it is settled: {totals:?}");
    assert!(totals.all.unconfirmed.0 > 0, "{totals:?}");
}

#[tokio::test]
async fn a_stream_that_stops_may_have_cost_everything() {
    let server = start(Options { answers: Answers::Echo, ..Options::default() }).await;
    let more = "stream = \"always\"\nidle_timeout_sec = 1\nheaders = { x-test-fault = \"stall\" }";
    let client = client(&plain(&server, more), RetryPolicy { attempts: 1, ..quick() });
    let mut request = ask("tell me everything there is to know about this beam");
    request.sampling.max_tokens = Some(100_000);
    let called = model(&client).call(&request, &scope()).await;
    let Some(CallEvent::Failed { charged: Some(charged), .. }) = called.events.last() else {
        panic!("{called:?}")
    };
    assert!(
        charged.tokens > 100_000 && charged.usage.is_none(),
        "thoughts may be billed that nobody saw: {charged:?}"
    );
    let CallEvent::Failed { failure, .. } = called.events.last().unwrap() else { panic!() };
    assert!(failure.message.contains("bytes of answer"), "{failure}");
}

#[tokio::test]
async fn a_deadline_is_a_deadline() {
    let server = start(Options {
        faults: vec![Fault { kind: FaultKind::Timeout, probability: 1.0 }],
        ..Options::default()
    })
    .await;
    let client = client(&plain(&server, ""), quick());
    let mut scope = scope();
    scope.deadline = Some(tokio::time::Instant::now() + Duration::from_secs(2));
    let failure = model(&client).call(&ask("x"), &scope).await.outcome.unwrap_err();
    assert_eq!((failure.kind, failure.retryable), (FailureKind::Cancelled, false));
    until(|| server.stats().disconnects == 1).await;
}

#[tokio::test]
async fn redirects_are_not_followed_with_the_key() {
    // A server that redirects everything, and counts who follows.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let elsewhere = echo().await;
    let target = format!("{}/v1/chat/completions", elsewhere.url());
    let router = axum::Router::new().fallback(move || {
        let target = target.clone();
        async move { ([("location", target)], http::StatusCode::TEMPORARY_REDIRECT) }
    });
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let called =
        model(&client(&row(&format!("http://{address}/v1"), ""), quick())).call(&ask("x"), &scope()).await;
    assert_eq!(called.outcome.unwrap_err().kind, FailureKind::Protocol);
    assert_eq!(elsewhere.stats().connections, 0);
    server.abort();
}

#[tokio::test]
async fn an_endpoint_that_is_dead_fails_everybody_soon() {
    let nobody = ClosedPort::take();
    let client = client(&row(&format!("http://{}/v1", nobody.address), ""), quick());
    let texts = (0..200).map(|number| format!("{number}")).collect();
    let called = super::ask_many(&model(&client), &scope(), texts).await;
    assert!(called.iter().all(|called| {
        let failed = called.outcome.as_ref().is_err_and(|failure| failure.kind == FailureKind::Network);
        failed && (1..=8).contains(&attempts(called))
    }));
}

#[tokio::test]
async fn a_key_in_an_error_is_scrubbed_wherever_it_stands() {
    // The error repeats the key across every position where a message could be cut.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().fallback(|headers: http::HeaderMap| async move {
        let key = headers["authorization"].to_str().unwrap().trim_start_matches("Bearer ").to_owned();
        let text: String = (0..400).flat_map(|number| [" ".repeat(number % 7), key.clone()]).collect();
        (http::StatusCode::UNAUTHORIZED, text)
    });
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let called =
        model(&client(&row(&format!("http://{address}/v1"), ""), quick())).call(&ask("x"), &scope()).await;
    let failure = called.outcome.clone().unwrap_err();
    assert_eq!(failure.kind, FailureKind::Auth);
    let said = format!("{called:?}");
    for length in 6.."sk-test-value".len() {
        assert!(!said.contains(&"sk-test-value"[..length]), "{said}");
    }
    server.abort();
}
