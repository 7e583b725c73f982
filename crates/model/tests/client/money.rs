//! Budgets around real calls: never overdrawn, not even by a micro-dollar.

use std::time::Duration;

use aec_model::client::Scope;
use aec_model::failure::FailureKind;
use aec_model::meter::{Budget, Meter, Unpriced};
use aec_model::money::MicroDollars;
use aec_model_server::{Fault, FaultKind, Options, Range};

use super::{ask, ask_many, client, model, plain, quick, start};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_calls_cannot_overspend() {
    let server = start(Options {
        latency: Range { least: Duration::ZERO, most: Duration::from_millis(4) },
        output_tokens: Range { least: 1, most: 256 },
        faults: vec![
            Fault { kind: FaultKind::Server, probability: 0.1 },
            Fault { kind: FaultKind::Cut, probability: 0.1 },
            Fault { kind: FaultKind::Rate, probability: 0.05 },
        ],
        retry_after: Duration::from_millis(1),
        ..Options::default()
    })
    .await;
    let client = client(&plain(&server, ""), quick());
    // Enough for only a part of the calls.
    let cap = MicroDollars(400_000);
    let meter = Meter::new(Unpriced::Refuse);
    let run = meter.open(None, "the run", Budget::of_money(cap));
    let mut spent = MicroDollars::ZERO;
    let mut refused = 0;
    let mut answered = 0;
    for trial in 0..8 {
        let trial_cap = MicroDollars(60_000);
        let account = meter.open(Some(&run), &format!("trial {trial}"), Budget::of_money(trial_cap));
        let scope = Scope::new(format!("trial {trial}"), account.clone());
        let texts = (0..120).map(|number| format!("trial {trial}, question {number}")).collect();
        for called in ask_many(&model(&client), &scope, texts).await {
            match called.outcome {
                Ok(_) => answered += 1,
                Err(failure) if failure.kind == FailureKind::Budget => refused += 1,
                Err(_) => {}
            }
        }
        let totals = account.totals();
        assert!(totals.all.spent <= trial_cap, "{totals:?}");
        assert_eq!(totals.open_calls, 0);
        spent = spent.plus(totals.all.spent);
    }
    let totals = run.totals();
    assert_eq!(totals.all.spent, spent, "the parts are the whole");
    assert!(totals.all.spent <= cap, "{totals:?}");
    assert!(refused > 0 && answered > 0, "{refused} refused, {answered} answered");
}

#[tokio::test]
async fn an_unpriced_model_meets_a_budget_in_money() {
    let server = super::echo().await;
    let client = client(&plain(&server, "").replace("\"big\"", "\"nobody-knows\""), quick());
    let meter = Meter::new(Unpriced::Refuse);
    let budget = Budget::of_money(MicroDollars(1_000_000));
    let scope = Scope::new("t", meter.open(None, "the run", budget));
    let failure = model(&client).call(&ask("x"), &scope).await.outcome.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Budget);
    assert!(failure.message.contains("unpriced"), "{failure}");
    assert_eq!(server.stats().connections, 0, "refused before anything is sent");
    let free = Scope::new("t", meter.open(None, "no budget", Budget::default()));
    let called = model(&client).call(&ask("x"), &free).await;
    let cost = called.events.iter().find_map(|event| match event {
        aec_model::event::CallEvent::Answered { cost, .. } => Some(*cost),
        _ => None,
    });
    assert_eq!(cost, Some(None), "unpriced is not free: {called:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_money_does_not_stand_in_the_way() {
    let server =
        start(Options { latency: Range::only(Duration::from_millis(30)), ..Options::default() }).await;
    let client = client(&plain(&server, ""), quick());
    let meter = Meter::new(Unpriced::Refuse);
    // The poor trial can reserve one call at a time, and makes far more calls than the endpoint accepts at once.
    let poor = meter.open(None, "poor", Budget::of_money(MicroDollars(70_000)));
    let rich = meter.open(None, "rich", Budget::default());
    let crowd = {
        let (model, scope) = (model(&client), Scope::new("poor", poor.clone()));
        let mut request = ask("a question");
        request.sampling.max_tokens = Some(3500);
        tokio::spawn(async move {
            let calls = (0..300).map(|_| model.call(&request, &scope));
            futures_util::future::join_all(calls).await
        })
    };
    super::until(|| poor.totals().open_calls > 0).await;
    for number in 0..5 {
        let called = model(&client).call(&ask(&format!("{number}")), &Scope::new("rich", rich.clone())).await;
        assert!(called.outcome.is_ok());
    }
    assert!(!crowd.is_finished(), "five calls went by while three hundred wait");
    crowd.abort();
}

/// Before, 9e18 reported tokens were booked as eighteen trillion dollars.
#[tokio::test]
async fn a_usage_that_cannot_be_true_is_not_charged() {
    for (input, output, is_true) in [
        (12_u64, 3_u64, true),
        (1_500_000, 3, true),
        (9_000_000_000_000_000_000, 3, false),
        (12, u64::MAX, false),
        (3_000_000, 3, false),
    ] {
        let url = aec_xtest::fixed::provider(vec![serde_json::json!({
            "id": "x", "model": "m", "choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "hello"}}],
            "usage": {"prompt_tokens": input, "completion_tokens": output},
        })]);
        let client = client(&super::row(&format!("{url}/v1"), ""), quick());
        let account = Meter::new(Unpriced::Allow).open(None, "the run", Budget::default());
        let called = model(&client).call(&ask("x"), &Scope::new("t", account.clone())).await;
        let reply = called.outcome.unwrap();
        let noted = called.events.iter().find_map(|event| match event {
            aec_model::event::CallEvent::Answered { usage, implausible, .. } => Some((*usage, *implausible)),
            _ => None,
        });
        let (usage, implausible) = noted.unwrap();
        assert_eq!(reply.usage, usage);
        let totals = account.totals().all;
        if is_true {
            assert_eq!((usage.unwrap().total(), implausible), (input + output, None));
        } else {
            assert_eq!(usage, None, "{input}");
            assert!(implausible.unwrap().total() > 2_000_000);
            assert!(totals.tokens() < 2_000_000 && totals.unconfirmed_tokens > 0, "{totals:?}");
        }
    }
}
