//! Determinism, time, limits, counters and the end of the server.

use std::time::Duration;

use aec_model::transport::allow_many_connections;
use aec_model_server::{Answers, Fault, Options, Range, TestServer};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::client::{Answer, Case, Ended, Family, request, send, start, until};

const WHOLE: Case = Case { family: Family::Chat, stream: false };
const STREAM: Case = Case { family: Family::Chat, stream: true };

/// The outcome of a request for each text.
async fn outcomes(server: &TestServer, texts: &[String]) -> Vec<String> {
    let mut outcomes = Vec::new();
    for text in texts {
        let answer = WHOLE.ask(server, text, &json!({})).await;
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        outcomes.push(format!("{text} {} {body}", answer.status));
    }
    outcomes.sort();
    outcomes
}

#[tokio::test]
async fn the_same_seed_gives_the_same_bytes_in_any_order() {
    let faults: Vec<Fault> = ["server=0.3", "rate=0.2"].map(|fault| fault.parse().unwrap()).to_vec();
    let server = async |seed| start(Options { seed, faults: faults.clone(), ..Options::default() }).await;
    let texts: Vec<String> = (0..40).flat_map(|number| vec![format!("text {number}"); 2]).collect();
    let backwards: Vec<String> = texts.iter().rev().cloned().collect();
    let first = outcomes(&server(7).await, &texts).await;
    assert_eq!(first, outcomes(&server(7).await, &texts).await);
    assert_eq!(first, outcomes(&server(7).await, &backwards).await);
    assert_ne!(first, outcomes(&server(8).await, &texts).await);
    for status in [" 200 ", " 429 ", " 500 "] {
        assert!(first.iter().any(|outcome| outcome.contains(status)), "{status}");
    }
}

#[tokio::test]
async fn the_same_request_gets_the_same_words_again_with_another_id() {
    let server = start(Options::default()).await;
    let mut answers = Vec::new();
    for _ in 0..2 {
        answers.push(WHOLE.ask(&server, "hello", &json!({})).await.json());
    }
    assert_eq!(answers[0]["choices"], answers[1]["choices"]);
    assert_ne!(answers[0]["id"], answers[1]["id"]);
    let streamed: String = STREAM
        .ask(&server, "other", &json!({}))
        .await
        .data()
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .collect();
    assert!(!streamed.is_empty());
}

#[tokio::test(start_paused = true)]
async fn answers_take_as_long_as_asked() {
    let hour = Duration::from_hours(1);
    let server =
        start(Options { latency: Range { least: hour, most: hour * 2 }, ..Options::default() }).await;
    let began = Instant::now();
    WHOLE.ask(&server, "hello", &json!({})).await;
    let took = began.elapsed();
    assert!((hour..=hour * 2 + Duration::from_secs(1)).contains(&took), "{took:?}");
    let headers = [WHOLE.headers(), &[("x-test-latency-ms", "5000")]].concat();
    let began = Instant::now();
    let request = request(&server, WHOLE.path(), &headers, &WHOLE.body("hello", &json!({})));
    Answer::read(send(&server, request).await.unwrap().response).await;
    assert_eq!(began.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn streams_flow_as_fast_as_asked() {
    let server =
        start(Options { answers: Answers::Echo, tokens_per_second: Some(2.0), ..Options::default() }).await;
    let began = Instant::now();
    let answer = STREAM.ask(&server, "1 2 3 4 5 6 7 8 9 10 11", &json!({})).await;
    assert_eq!(answer.data().len(), 13);
    assert_eq!(began.elapsed().as_secs(), 5, "eleven tokens, half a second from one to the next");
}

#[tokio::test]
async fn no_more_than_so_many_at_a_time() {
    let server = start(Options { limit_in_flight: Some(2), ..Options::default() }).await;
    let mut hanging = JoinSet::new();
    for _ in 0..2 {
        let request = WHOLE.request_with_fault(&server, "timeout");
        let address = server.url();
        hanging.spawn(async move {
            let stream = TcpStream::connect(address.strip_prefix("http://").unwrap()).await.unwrap();
            let io = hyper_util::rt::TokioIo::new(stream);
            let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
            drop(tokio::join!(connection, sender.send_request(request)));
        });
    }
    until(|| server.stats().in_flight == 2).await;
    let refused = WHOLE.ask(&server, "third", &json!({})).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, "1"));
    hanging.shutdown().await;
    until(|| server.stats().in_flight == 0).await;
    assert_eq!(WHOLE.ask(&server, "fourth", &json!({})).await.status, 200);
    let stats = server.stats();
    assert_eq!((stats.limited, stats.highest_in_flight, stats.disconnects), (1, 3, 2));
}

#[tokio::test(start_paused = true)]
async fn no_more_than_so_many_per_minute() {
    let server = start(Options { requests_per_minute: Some(3), ..Options::default() }).await;
    let case = Case { family: Family::Messages, stream: false };
    for left in ["2", "1", "0"] {
        let answer = case.ask(&server, "hello", &json!({})).await;
        assert_eq!((answer.status, answer.header("anthropic-ratelimit-requests-remaining")), (200, left));
    }
    let refused = case.ask(&server, "hello", &json!({})).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, "20"));
    tokio::time::advance(Duration::from_secs(21)).await;
    assert_eq!(case.ask(&server, "hello", &json!({})).await.status, 200);
}

#[tokio::test]
async fn requests_are_kept_when_asked() {
    let server = start(Options { keep_requests: 2, ..Options::default() }).await;
    for text in ["a", "b", "c"] {
        WHOLE.ask(&server, text, &json!({})).await;
    }
    let kept = server.requests();
    let texts: Vec<Value> = kept
        .iter()
        .map(|request| {
            serde_json::from_slice::<Value>(&request.body).unwrap()["messages"][0]["content"].clone()
        })
        .collect();
    assert_eq!(texts, ["b", "c"], "the oldest go first");
    assert_eq!(
        (kept[0].path.as_str(), kept[0].headers["authorization"].to_str().unwrap()),
        (WHOLE.path(), "Bearer k")
    );
}

#[tokio::test]
async fn counters_are_served_as_json() {
    let server = start(Options { answers: Answers::Echo, ..Options::default() }).await;
    for case in Case::all() {
        case.ask(&server, "1234", &json!({})).await;
    }
    let mut request = request(&server, "/stats", &[], &json!(null));
    *request.method_mut() = http::Method::GET;
    let stats = Answer::read(send(&server, request).await.unwrap().response).await.json();
    assert_eq!(stats["requests"]["chat_completions"], 2);
    assert_eq!(stats["requests"]["invoke_with_response_stream"], 1);
    assert_eq!(
        (&stats["statuses"]["200"], &stats["connections"], &stats["in_flight"]),
        (&json!(10), &json!(11), &json!(0))
    );
    assert_eq!((&stats["input_tokens"], &stats["output_tokens"]), (&json!(10), &json!(10)));
}

#[tokio::test]
async fn models_in_both_spellings() {
    let server = start(Options::default()).await;
    let list = async |headers: &[(&str, &str)]| {
        let mut request = request(&server, "/v1/models", headers, &json!(null));
        *request.method_mut() = http::Method::GET;
        Answer::read(send(&server, request).await.unwrap().response).await.json()
    };
    assert_eq!(list(&[]).await["data"][0]["object"], "model");
    assert_eq!(list(&[("anthropic-version", "2023-06-01")]).await["data"][0]["type"], "model");
}

#[tokio::test(start_paused = true)]
async fn stopping_lets_answers_end_and_refuses_new_ones() {
    let server =
        start(Options { answers: Answers::Echo, tokens_per_second: Some(2.0), ..Options::default() }).await;
    let address = server.url().strip_prefix("http://").unwrap().to_owned();
    let request =
        request(&server, STREAM.path(), STREAM.headers(), &STREAM.body("one two three four", &json!({})));
    let open = send(&server, request).await.unwrap();
    let (stats, answer) = tokio::join!(server.stop(), Answer::read(open.response));
    assert_eq!(answer.events().last().unwrap().1, "[DONE]");
    assert_eq!((stats.in_flight, stats.disconnects), (0, 0));
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn stopping_does_not_wait_for_what_never_ends() {
    let server = start(Options { answers: Answers::Echo, ..Options::default() }).await;
    let open = send(&server, STREAM.request_with_fault(&server, "stall")).await.unwrap();
    let mut body = open.response.into_body();
    drop(body.frame().await.unwrap().unwrap());
    let began = Instant::now();
    let stats = server.stop().await;
    assert!(began.elapsed() < Duration::from_secs(1), "the clock stands still unless somebody waits");
    assert_eq!(stats.disconnects, 0);
    assert!(body.frame().await.is_none_or(|frame| frame.is_err()));
}

#[tokio::test]
async fn dropping_closes_everything() {
    let server = start(Options::default()).await;
    let address = server.url().strip_prefix("http://").unwrap().to_owned();
    let open = send(&server, STREAM.request_with_fault(&server, "stall")).await.unwrap();
    drop(server);
    assert_eq!(Answer::read(open.response).await.ended, Ended::Broken);
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn contradictory_options_and_taken_ports_are_refused() {
    let faults = vec!["rate=0.7".parse().unwrap(), "cut=0.7".parse().unwrap()];
    let error = TestServer::start(Options { faults, ..Options::default() }).await.err().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    let server = start(Options::default()).await;
    let port = server.url().rsplit(':').next().unwrap().parse().unwrap();
    let error = TestServer::start(Options { port, ..Options::default() }).await.err().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
}

#[tokio::test]
async fn five_hundred_streams_at_a_time() {
    allow_many_connections();
    let output_tokens = Range { least: 4, most: 8 };
    let server = start(Options { tokens_per_second: Some(0.001), output_tokens, ..Options::default() }).await;
    let mut streams = Vec::new();
    for number in 0..500 {
        let body = STREAM.body(&format!("stream {number}"), &json!({}));
        let request = request(&server, STREAM.path(), STREAM.headers(), &body);
        streams.push(send(&server, request).await.unwrap());
    }
    assert_eq!(server.stats().in_flight, 500);
    // From here on the clock advances as soon as every task waits.
    tokio::time::pause();
    for open in streams {
        let answer = Answer::read(open.response).await;
        assert_eq!(
            (answer.ended == Ended::Well, answer.events().last().unwrap().1.as_str()),
            (true, "[DONE]")
        );
    }
    until(|| server.stats().in_flight == 0).await;
    let stats = server.stats();
    assert_eq!((stats.highest_in_flight, stats.disconnects, stats.statuses[&200]), (500, 0, 500));
}
