//! Recorded, replayed, cached.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aec_base::secret::Redactor;
use aec_model::cassette::{Cache, Player, Recorder};
use aec_model::client::{Called, Client, Scope, Source};
use aec_model::event::CallEvent;
use aec_model::failure::FailureKind;
use aec_model::meter::{Budget, Totals};
use aec_model::money::MicroDollars;
use aec_model::tape::Tape;
use aec_model_server::{Fault, FaultKind, Options};

use super::{account, ask, client_with, model, plain, quick, start};

const KEY: [(&str, &str); 1] = [("KEY", "sk-test-value")];

/// A run of several concurrent trials, each asking the same questions twice; the results by trial.
async fn run(client: &Client) -> (Vec<(Vec<Called>, Vec<CallEvent>)>, Totals) {
    let run = account(Budget::of_money(MicroDollars(150_000)));
    let trials: Vec<_> = (0..6)
        .map(|trial| {
            let (model, account) = (model(client), run.clone());
            tokio::spawn(async move {
                let heard = Arc::new(Mutex::new(Vec::new()));
                let hearing = Arc::clone(&heard);
                let mut scope = Scope::new(format!("trial-{trial}"), account);
                scope.observer = Some(Arc::new(move |event| hearing.lock().unwrap().push(event.clone())));
                let mut called = Vec::new();
                for question in [0, 1, 2, 0, 1] {
                    called.push(model.call(&ask(&format!("question {question}")), &scope).await);
                }
                let heard = heard.lock().unwrap().clone();
                (called, heard)
            })
        })
        .collect();
    let mut results = Vec::new();
    for trial in trials {
        results.push(trial.await.unwrap());
    }
    (results, run.totals())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_makes_no_connection_and_tells_the_same_story() {
    let server = start(Options {
        seed: 3,
        faults: vec![
            Fault { kind: FaultKind::Server, probability: 0.2 },
            Fault { kind: FaultKind::Cut, probability: 0.1 },
            Fault { kind: FaultKind::Overlong, probability: 0.1 },
        ],
        retry_after: Duration::from_millis(1),
        ..Options::default()
    })
    .await;
    let rows = plain(&server, "");
    let dir = tempfile::tempdir().unwrap();
    let redactor = Arc::new(Redactor::default());
    let recorder = Recorder::create(dir.path(), redactor).unwrap();
    let (live, live_totals) = run(&client_with(&rows, &KEY, quick(), Tape::Record(recorder))).await;
    let failed = live.iter().flat_map(|(called, _)| called).filter(|called| called.outcome.is_err()).count();
    assert!(failed > 0, "a story with failures in it");
    let before = server.stats();
    let replay = || {
        let (player, problems) = Player::open(dir.path()).unwrap();
        assert!(problems.is_empty(), "{problems:?}");
        Tape::Replay(player)
    };
    // With the server running, to see that it gets no calls; and then without a key.
    for variables in [&KEY[..], &[]] {
        let (replayed, totals) = run(&client_with(&rows, variables, quick(), replay())).await;
        for ((live, heard_live), (played, heard)) in live.iter().zip(&replayed) {
            assert_eq!(heard_live, heard);
            for (live, played) in live.iter().zip(played) {
                assert_eq!((&live.outcome, &live.events), (&played.outcome, &played.events));
                assert_eq!((live.source, played.source), (Source::Live, Source::Replay));
            }
        }
        assert_eq!(totals.all, live_totals.all, "it costs what it cost");
    }
    assert_eq!(server.stats(), before, "nobody came");
}

#[tokio::test]
async fn a_miss_says_what_differs_and_never_goes_live() {
    let server = super::echo().await;
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::create(dir.path(), Arc::new(Redactor::default())).unwrap();
    let rows = plain(&server, "");
    let scope = Scope::new("trial", account(Budget::default()));
    model(&client_with(&rows, &KEY, quick(), Tape::Record(recorder)))
        .call(&ask("the beam is 6 m long"), &scope)
        .await
        .outcome
        .unwrap();
    let before = server.stats();
    let (player, _) = Player::open(dir.path()).unwrap();
    let replaying = client_with(&rows, &KEY, quick(), Tape::Replay(player));
    let failure = model(&replaying).call(&ask("the beam is 8 m long"), &scope).await.outcome.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Replay);
    assert!(failure.message.contains("6 m") && failure.message.contains("8 m"), "{failure}");
    assert_eq!(server.stats(), before);
}

#[tokio::test]
async fn a_cache_answers_what_it_knows_for_nothing() {
    let server = super::echo().await;
    let dir = tempfile::tempdir().unwrap();
    let rows = plain(&server, "");
    for (round, source) in [Source::Live, Source::Cache, Source::Cache].into_iter().enumerate() {
        let (cache, _) = Cache::open(dir.path(), Arc::new(Redactor::default())).unwrap();
        let client = client_with(&rows, &KEY, quick(), Tape::Cache(cache));
        let account = account(Budget::default());
        let scope = Scope::new("trial", account.clone());
        let called = model(&client).call(&ask("what is the moment?"), &scope).await;
        assert_eq!((called.outcome.unwrap().text().as_str(), called.source), ("what is the moment?", source));
        let spent = account.totals().all.spent;
        assert_eq!(spent > MicroDollars::ZERO, round == 0, "{spent}");
    }
    assert_eq!(server.stats().requests.values().sum::<u64>(), 1);
}
