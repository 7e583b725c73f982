//! Tens of thousands of calls, a fifth of them faulty: every call has one answer or typed failure, and is paid once.

use std::collections::BTreeMap;
use std::time::Duration;

use aec_http::pause::Rule;
use aec_model::client::Scope;
use aec_model::event::CallEvent;
use aec_model::meter::Budget;
use aec_model::retry::RetryPolicy;
use aec_model_server::{Answers, Fault, FaultKind, Options};

use super::{account, ask_many, client, model, plain, start};

/// Concurrent calls, so that the test itself does not hold everything.
const PORTION: usize = 10_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_is_accounted_for_exactly_once() {
    let total: usize = if aec_xtest::full() { 200_000 } else { 50_000 };
    let kinds = [
        (FaultKind::Rate, 0.04),
        (FaultKind::Server, 0.03),
        (FaultKind::Unavailable, 0.02),
        (FaultKind::Reset, 0.03),
        (FaultKind::Cut, 0.02),
        (FaultKind::Broken, 0.01),
        (FaultKind::Garbage, 0.01),
        (FaultKind::Malformed, 0.01),
        (FaultKind::Empty, 0.01),
        (FaultKind::Overlong, 0.005),
        (FaultKind::Filter, 0.005),
        (FaultKind::Timeout, 0.005),
        (FaultKind::Stall, 0.005),
    ];
    let server = start(Options {
        seed: 7,
        answers: Answers::Echo,
        faults: kinds.map(|(kind, probability)| Fault { kind, probability }).to_vec(),
        retry_after: Duration::from_millis(5),
        ..Options::default()
    })
    .await;
    let policy = RetryPolicy {
        attempts: 10,
        pauses: Rule {
            first: Duration::from_millis(1),
            longest: Duration::from_millis(10),
            ..RetryPolicy::default().pauses
        },
        ..RetryPolicy::default()
    };
    let client =
        client(&plain(&server, "timeout_sec = 1\nidle_timeout_sec = 1\nmax_concurrency = 512"), policy);
    let account = account(Budget::default());
    let scope = Scope::new("t", account.clone());
    let model = model(&client);
    let mut outcomes: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut answered, mut usage, mut attempts, mut charged_failures) = (0_u64, 0_u64, 0_u64, 0_u64);
    for portion in 0..total / PORTION {
        let texts: Vec<String> =
            (0..PORTION).map(|number| format!("call {} of many", portion * PORTION + number)).collect();
        let called = ask_many(&model, &scope, texts.clone()).await;
        assert_eq!(called.len(), texts.len());
        for (text, called) in texts.iter().zip(called) {
            let answers =
                called.events.iter().filter(|event| matches!(event, CallEvent::Answered { .. })).count();
            attempts +=
                called.events.iter().filter(|event| matches!(event, CallEvent::Attempt { .. })).count()
                    as u64;
            for event in &called.events {
                match event {
                    CallEvent::Answered { usage: Some(found), .. } => usage += found.total(),
                    CallEvent::Failed { charged: Some(charged), .. } => {
                        charged_failures += 1;
                        usage += charged.tokens;
                    }
                    _ => {}
                }
            }
            match called.outcome {
                Ok(reply) => {
                    assert_eq!((&reply.text(), answers), (text, 1), "the answer to this very question");
                    answered += 1;
                    *outcomes.entry("answered").or_default() += 1;
                }
                Err(failure) => {
                    assert_eq!(answers, 0, "{failure}");
                    *outcomes.entry(failure.kind.name()).or_default() += 1;
                }
            }
        }
    }
    assert_eq!(outcomes.values().sum::<u64>(), total as u64);
    let lasting: u64 = ["overlong", "content_filter"].iter().filter_map(|kind| outcomes.get(kind)).sum();
    assert!(answered + lasting >= total as u64 * 999 / 1000, "what can pass does pass: {outcomes:?}");
    assert!(lasting > total as u64 / 200, "the server was really faulty: {outcomes:?}");
    let totals = account.totals();
    assert_eq!(totals.open_calls, 0);
    assert_eq!(totals.all.tokens(), usage, "paid once: {totals:?}");
    assert_eq!(totals.all.calls, answered + charged_failures, "{totals:?}");
    assert_eq!(totals.all.calls + totals.all.unbilled_calls, attempts, "{totals:?}");
}
