//! Environments that crash, hang and print, in real interpreters: what they cost, and which problems are reported.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::worker::world::{Scripted, asked, generate, interpreter, job, play, said, setup, values};
use aec_eval::worker::{
    Cause, ModelCall, ModelCaller, ModelFuture, Stage, WorkerCount, WorkerError, WorkerPool,
};
use serde_json::json;

const VERSION: &str = "0.3.1";

/// Answers with the requested word, except that example 5 gets the text that makes the environment misbehave.
fn words() -> Arc<Scripted> {
    Scripted::new(|call| {
        let word = asked(call).replace("Say ", "").replace('.', "");
        said(if word == "word 5" { "crash" } else { &word })
    })
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
async fn a_crash_costs_only_its_own_rollouts() {
    let python = interpreter(VERSION);
    let (mut setup, _logs) = setup(&python, "my-env", &json!({"misbehave": "crash"}));
    setup.workers = WorkerCount::Exactly(2);
    let pool = WorkerPool::start(setup).await.unwrap();
    assert_eq!(pool.workers(), 2);
    let caller = words();
    // One job each, so that the least busy worker is always the other one.
    let bystander = generate(&pool, job(&[(0, 0)], false), &caller).await.unwrap();
    let crashing = generate(&pool, job(&[(5, 0)], false), &caller).await.unwrap();
    let companion = generate(&pool, job(&[(1, 0)], false), &caller).await.unwrap();
    let error = pool.score(crashing).await.unwrap_err();
    let WorkerError::Died(death) = &error else { panic!("{error}") };
    assert_eq!((death.worker, &death.cause), (1, &Cause::Exited(3)));
    assert!(death.last_lines.iter().any(|line| line == "about to end"), "{:?}", death.last_lines);
    let problem = error.problem();
    assert_eq!(problem.id.as_deref(), Some("R045"));
    assert!(problem.what.contains("worker 1 ended with exit code 3"), "{problem}");
    assert!(problem.fix.unwrap().contains("env_worker_1.log"));
    for kept in [bystander, companion] {
        assert_eq!(pool.score(kept).await.unwrap().len(), 1);
    }
    // The dead worker was restarted: it has less to do than the other one.
    let rows = play(&pool, job(&[(2, 0)], false), &caller).await.unwrap();
    assert_eq!(rows[0]["reward"], 1.0);
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
async fn restarts_come_to_an_end() {
    let python = interpreter(VERSION);
    let (mut setup, _logs) = setup(&python, "my-env", &json!({"misbehave": "crash"}));
    setup.limits.restarts = 1;
    let pool = WorkerPool::start(setup).await.unwrap();
    let caller = words();
    for _ in 0..2 {
        // The second job waits until the worker is restarted.
        let error = play(&pool, job(&[(5, 0)], false), &caller).await.unwrap_err();
        assert!(matches!(error, WorkerError::Died(_)), "{error}");
    }
    let error = play(&pool, job(&[(1, 0)], false), &caller).await.unwrap_err();
    assert!(matches!(&error, WorkerError::NoWorkers { restarts: 1, last: Some(_) }), "{error}");
    assert_eq!(error.problem().id.as_deref(), Some("R048"));
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
async fn a_job_that_hangs_is_given_up_and_its_worker_stays() {
    let python = interpreter(VERSION);
    let (mut setup, _logs) = setup(&python, "my-env", &json!({"misbehave": "hang"}));
    setup.limits.scoring = Some(Duration::from_secs(5));
    setup.limits.restarts = 0;
    let pool = WorkerPool::start(setup).await.unwrap();
    let caller = words();
    let error = play(&pool, job(&[(5, 0)], false), &caller).await.unwrap_err();
    assert!(matches!(error, WorkerError::TimedOut { stage: Stage::Scoring, .. }), "{error}");
    assert_eq!(error.problem().id.as_deref(), Some("R047"));
    assert_eq!(play(&pool, job(&[(1, 0)], false), &caller).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
async fn a_worker_that_is_stuck_is_ended_and_started_again() {
    let python = interpreter(VERSION);
    let (mut setup, _logs) = setup(&python, "my-env", &json!({"misbehave": "block"}));
    setup.limits.scoring = Some(Duration::from_secs(5));
    setup.limits.drop = Duration::from_millis(500);
    let pool = WorkerPool::start(setup).await.unwrap();
    let caller = words();
    let bystander = generate(&pool, job(&[(0, 0)], false), &caller).await.unwrap();
    let error = play(&pool, job(&[(5, 0)], false), &caller).await.unwrap_err();
    assert!(matches!(error, WorkerError::TimedOut { stage: Stage::Scoring, .. }), "{error}");
    let error = pool.score(bystander).await.unwrap_err();
    assert!(matches!(&error, WorkerError::Died(death) if death.cause == Cause::Stuck), "{error}");
    assert_eq!(play(&pool, job(&[(1, 0)], false), &caller).await.unwrap()[0]["reward"], 1.0);
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
async fn a_call_without_answer_ends_with_the_time_of_the_rollout() {
    let python = interpreter(VERSION);
    let (mut setup, _logs) = setup(&python, "gsm8k", &json!({}));
    setup.environment.timeout = Some(0.3);
    let pool = WorkerPool::start(setup).await.unwrap();
    let caller = Scripted::delayed(Duration::from_hours(1), |_| said("2"));
    let rows = play(&pool, job(&[(0, 0)], false), &caller).await.unwrap();
    assert_eq!((&rows[0]["stop_condition"], &rows[0]["reward"]), (&json!("timeout_reached"), &json!(0.0)));
}

/// Reports when a call begins, and when it is dropped.
struct Endless(tokio::sync::mpsc::UnboundedSender<&'static str>);

struct Told(tokio::sync::mpsc::UnboundedSender<&'static str>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.send("dropped").ok();
    }
}

impl ModelCaller for Endless {
    fn call(&self, _: ModelCall) -> ModelFuture<'_> {
        let told = Told(self.0.clone());
        Box::pin(async move {
            told.0.send("asked").ok();
            std::future::pending().await
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
async fn a_job_that_nobody_waits_for_asks_for_nothing_more() {
    let python = interpreter(VERSION);
    let (setup, _logs) = setup(&python, "gsm8k", &json!({}));
    let pool = Arc::new(WorkerPool::start(setup).await.unwrap());
    let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    let waiting = tokio::spawn({
        let pool = Arc::clone(&pool);
        async move { pool.generate(job(&[(0, 0)], false), Arc::new(Endless(sender))).await.map(drop) }
    });
    assert_eq!(events.recv().await, Some("asked"));
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    assert_eq!(events.recv().await, Some("dropped"));
    let caller = Scripted::new(|_| said("2"));
    assert_eq!(play(&pool, job(&[(0, 0)], false), &caller).await.unwrap()[0]["reward"], 1.0);
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
async fn errors_of_environments_are_told_apart() {
    let python = interpreter(VERSION);
    let caller = words();
    let (mut surroundings, _logs) = setup(&python, "my-env", &json!({"misbehave": "setup"}));
    surroundings.environment.max_retries = 1;
    let pool = WorkerPool::start(surroundings).await.unwrap();
    let start = Instant::now();
    let rows = play(&pool, job(&[(0, 0)], true), &caller).await.unwrap();
    assert_eq!(rows[0]["error"]["error"], "InfraError");
    assert!(start.elapsed() >= Duration::from_secs(1), "it is tried again after a second");
    let (unexpected, _logs) = setup(&python, "my-env", &json!({"misbehave": "unexpected"}));
    let pool = WorkerPool::start(unexpected).await.unwrap();
    let error = play(&pool, job(&[(0, 0), (0, 1)], false), &caller).await.unwrap_err();
    let WorkerError::Job { error: class, traceback, .. } = &error else { panic!("{error}") };
    assert_eq!(class, "KeyError");
    assert!(traceback.contains("my_env.py"), "{traceback}");
    assert_eq!(error.problem().id.as_deref(), Some("R046"));
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
async fn an_environment_with_its_own_way_is_not_taken_apart() {
    let python = interpreter(VERSION);
    let (setup, _logs) = setup(&python, "my-env", &json!({"misbehave": "own way"}));
    let pool = WorkerPool::start(setup).await.unwrap();
    assert!(pool.loaded().generates_and_scores_at_once);
    for independent in [false, true] {
        let generated = generate(&pool, job(&[(1, 0), (1, 1)], independent), &words()).await.unwrap();
        assert!(generated.scored);
        let rows = values(&pool.score(generated).await.unwrap());
        assert_eq!(rows.iter().map(|row| &row["reward"]).collect::<Vec<_>>(), [&json!(1.0), &json!(1.0)]);
    }
}

async fn refusal(python: &Path, env_id: &str, arguments: &serde_json::Value) -> WorkerError {
    let (mut setup, _logs) = setup(python, env_id, arguments);
    setup.workers = WorkerCount::Exactly(2);
    match WorkerPool::start(setup).await {
        Ok(_) => panic!("{env_id} was loaded"),
        Err(error) => error,
    }
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
async fn what_cannot_be_loaded_says_why() {
    let python = interpreter(VERSION);
    let error = refusal(&python, "my-env", &json!({"misbehave": "load"})).await;
    assert!(error.to_string().contains("the data of this environment is not there"), "{error}");
    let problem = error.problem();
    assert_eq!(problem.id.as_deref(), Some("R043"));
    assert!(problem.why.unwrap().contains("the data of this environment is not there"));
    let error = refusal(&python, "my-env", &json!({"unknown": 1})).await;
    assert!(error.to_string().contains("unexpected keyword argument 'unknown'"), "{error}");
    let error = refusal(&python, "nobody-has-this", &json!({})).await;
    assert!(error.to_string().contains("nobody"), "{error}");
    let error = refusal(&python, "my-env", &json!({"misbehave": "exit on load"})).await;
    assert!(matches!(&error, WorkerError::Died(death) if death.cause == Cause::Exited(7)), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
async fn a_pool_ends_its_processes() {
    let python = interpreter(VERSION);
    let (setup, _logs) = setup(&python, "my-env", &json!({"misbehave": "block", "at": "word 0"}));
    let marker = setup.logs.clone();
    let pool = Arc::new(WorkerPool::start(setup).await.unwrap());
    let stuck = tokio::spawn({
        let pool = Arc::clone(&pool);
        async move { play(&pool, job(&[(0, 0)], false), &words()).await }
    });
    while !std::fs::read_to_string(marker.join("env_worker_0.log"))
        .unwrap_or_default()
        .contains("scoring word 0")
    {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stuck.abort();
    assert!(stuck.await.unwrap_err().is_cancelled());
    let start = Instant::now();
    Arc::into_inner(pool).unwrap().shutdown().await;
    assert!(start.elapsed() < Duration::from_secs(20), "a stuck worker is not waited for");
}
