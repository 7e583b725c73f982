//! Several addresses for one model.

use aec_model::event::CallEvent;
use aec_model::failure::FailureKind;
use aec_xtest::port::ClosedPort;

use super::{ask, ask_many, client, echo, model, plain, quick, row, scope, start};

/// How often each endpoint was called.
fn asked(called: &[aec_model::client::Called], label: &str) -> usize {
    let events = called.iter().flat_map(|called| &called.events);
    events.filter(|event| matches!(event, CallEvent::Attempt { endpoint, .. } if endpoint == label)).count()
}

#[tokio::test]
async fn work_is_shared() {
    let (one, two) = (echo().await, echo().await);
    let rows = format!("{}{}", plain(&one, ""), plain(&two, ""));
    let client = client(&rows, quick());
    let texts = (0..200).map(|number| format!("{number}")).collect();
    let called = ask_many(&model(&client), &scope(), texts).await;
    assert!(called.iter().all(|called| called.outcome.is_ok()));
    for label in ["m", "m#2"] {
        assert!((60..=140).contains(&asked(&called, label)), "{label}: {}", asked(&called, label));
    }
}

#[tokio::test]
async fn a_dead_replica_is_left_alone_and_comes_back() {
    // A port without a listener, which gets one later.
    let nobody = ClosedPort::take();
    let port = nobody.address.port();
    let alive = echo().await;
    let rows = format!("{}{}", row(&format!("http://127.0.0.1:{port}/v1"), ""), plain(&alive, ""));
    let client = client(&rows, quick());
    let model = model(&client);
    let mut called = Vec::new();
    for number in 0..100 {
        called.push(model.call(&ask(&format!("{number}")), &scope()).await);
    }
    assert!(called.iter().all(|called| called.outcome.is_ok()));
    let tries = asked(&called, "m");
    assert!((10..40).contains(&tries), "ten failures in a row are enough: {tries}");
    let options = aec_model_server::Options {
        port,
        answers: aec_model_server::Answers::Echo,
        ..aec_model_server::Options::default()
    };
    drop(nobody);
    let back = start(options).await;
    let mut number = 0;
    while back.stats().connections == 0 {
        number += 1;
        assert!(number < 100_000, "nobody looks after it");
        model.call(&ask(&format!("again {number}")), &scope()).await.outcome.unwrap();
    }
    let mut called = Vec::new();
    for number in 0..100 {
        called.push(model.call(&ask(&format!("later {number}")), &scope()).await);
    }
    assert!(asked(&called, "m") > 20, "{}", asked(&called, "m"));
}

#[tokio::test]
async fn a_key_that_one_replica_refuses_is_not_the_end() {
    let alive = echo().await;
    let refusing = echo().await;
    let rows = format!("{}{}", plain(&refusing, "headers = { x-test-fault = \"auth\" }"), plain(&alive, ""));
    let both = client(&rows, quick());
    let mut called = Vec::new();
    for number in 0..50 {
        called.push(model(&both).call(&ask(&format!("{number}")), &scope()).await);
    }
    assert!(called.iter().all(|called| called.outcome.is_ok()));
    assert_eq!(asked(&called, "m"), 1, "once is enough");
    let alone = client(&plain(&refusing, "headers = { x-test-fault = \"auth\" }"), quick());
    let failure = model(&alone).call(&ask("x"), &scope()).await.outcome.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Auth);
}
