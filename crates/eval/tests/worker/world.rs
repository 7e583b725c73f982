//! Interpreters, fixtures and model callers for the tests.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aec_eval::worker::{
    EnvironmentRequest, FailureKind, Generated, Job, Member, ModelAnswer, ModelCall, ModelCaller,
    ModelFailure, ModelFuture, Row, Setup, ToolCall, Usage, WorkerCount, WorkerError, WorkerPool,
};
use serde_json::{Map, Value, json};

pub(crate) use aec_xtest::venv::with_verifiers as interpreter;

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/worker/environments")
}

/// One worker with an environment of the fixtures. The directory holds its output.
pub(crate) fn setup(python: &Path, env_id: &str, env_args: &Value) -> (Setup, tempfile::TempDir) {
    let logs = tempfile::tempdir().unwrap();
    let mut environment = EnvironmentRequest::new(env_id);
    environment.env_dir_path = Some(fixtures());
    environment.env_args.clone_from(env_args.as_object().unwrap());
    let setup = Setup {
        python: python.to_owned(),
        environment,
        concurrency: 64,
        workers: WorkerCount::Exactly(1),
        surroundings: std::env::vars_os().collect(),
        // The fixtures stay as they are; the library is compiled already.
        variables: [("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned())].into(),
        gateway: None,
        logs: logs.path().to_owned(),
        limits: aec_eval::worker::Limits { backoff: Duration::from_millis(50), ..Default::default() },
    };
    (setup, logs)
}

pub(crate) fn job(members: &[(usize, usize)], independent: bool) -> Job {
    let members = members.iter().map(|&(example, rollout)| Member { example, rollout }).collect();
    Job { members, independent, model: "scripted".to_owned(), sampling_args: Map::new() }
}

type Script = dyn Fn(&ModelCall) -> Result<ModelAnswer, ModelFailure> + Send + Sync;

/// A model caller that answers from a function, after a delay if one is given, and counts the calls.
pub(crate) struct Scripted {
    script: Box<Script>,
    pub(crate) delay: Duration,
    pub(crate) calls: AtomicUsize,
    pub(crate) most_at_once: AtomicUsize,
    now: AtomicUsize,
}

impl Scripted {
    pub(crate) fn new(
        script: impl Fn(&ModelCall) -> Result<ModelAnswer, ModelFailure> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Self::delayed(Duration::ZERO, script)
    }

    pub(crate) fn delayed(
        delay: Duration,
        script: impl Fn(&ModelCall) -> Result<ModelAnswer, ModelFailure> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            script: Box::new(script),
            delay,
            calls: AtomicUsize::new(0),
            most_at_once: AtomicUsize::new(0),
            now: AtomicUsize::new(0),
        })
    }

    pub(crate) fn replies(replies: &Value) -> Arc<Self> {
        let replies = replies.clone();
        Self::new(move |call| {
            let turn = turns(call);
            let first =
                call.messages.iter().find(|message| message.role == "user").map(|one| text(&one.content));
            let listed = match &replies {
                Value::Object(by_word) => {
                    by_word.iter().find(|(word, _)| first.as_ref().unwrap().contains(*word)).unwrap().1
                }
                list => list,
            };
            let listed = listed.as_array().unwrap();
            let reply = &listed[turn.min(listed.len() - 1)];
            if let Some(status) = reply["status"].as_u64() {
                let message = format!("Error code: {status} - {}", text(&reply["message"]));
                let kind = if status == 400 { FailureKind::Overlong } else { FailureKind::Provider };
                return Err(ModelFailure::new(kind, message).status(u16::try_from(status).unwrap()));
            }
            let calls = reply["tool_calls"].as_array().cloned().unwrap_or_default();
            let read = 10 + turn as u64;
            Ok(ModelAnswer {
                id: "reply".to_owned(),
                created: 1,
                model: call.model.clone(),
                content: reply["content"].clone(),
                reasoning_content: reply["reasoning_content"].as_str().map(str::to_owned),
                tool_calls: calls
                    .iter()
                    .map(|one| ToolCall {
                        id: text(&one["id"]),
                        name: text(&one["name"]),
                        arguments: text(&one["arguments"]),
                    })
                    .collect(),
                finish_reason: Some(reply["finish_reason"].as_str().unwrap_or("stop").to_owned()),
                usage: Some(Usage {
                    prompt_tokens: read,
                    completion_tokens: 5,
                    total_tokens: read + 5,
                    reasoning_tokens: 0,
                }),
                thinking_blocks: None,
            })
        })
    }
}

impl ModelCaller for Scripted {
    fn call(&self, call: ModelCall) -> ModelFuture<'_> {
        Box::pin(async move {
            self.calls.fetch_add(1, Ordering::SeqCst);
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_at_once.fetch_max(now, Ordering::SeqCst);
            if !self.delay.is_zero() {
                tokio::time::sleep(self.delay).await;
            }
            self.now.fetch_sub(1, Ordering::SeqCst);
            (self.script)(&call)
        })
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(crate) fn turns(call: &ModelCall) -> usize {
    call.messages.iter().filter(|message| message.role == "assistant").count()
}

#[expect(clippy::unnecessary_wraps, reason = "it is what a model caller answers")]
pub(crate) fn said(content: &str) -> Result<ModelAnswer, ModelFailure> {
    Ok(ModelAnswer {
        id: "reply".to_owned(),
        content: json!(content),
        finish_reason: Some("stop".to_owned()),
        ..ModelAnswer::default()
    })
}

pub(crate) fn asked(call: &ModelCall) -> String {
    text(&call.messages.last().unwrap().content)
}

pub(crate) async fn generate(
    pool: &WorkerPool,
    job: Job,
    caller: &Arc<Scripted>,
) -> Result<Generated, WorkerError> {
    let caller: Arc<dyn ModelCaller> = Arc::clone(caller) as Arc<dyn ModelCaller>;
    pool.generate(job, caller).await
}

pub(crate) async fn play(
    pool: &WorkerPool,
    job: Job,
    caller: &Arc<Scripted>,
) -> Result<Vec<Value>, WorkerError> {
    let generated = generate(pool, job, caller).await?;
    Ok(pool.score(generated).await?.iter().map(|row| row.value().unwrap()).collect())
}

pub(crate) fn values(rows: &[Row]) -> Vec<Value> {
    rows.iter().map(|row| row.value().unwrap()).collect()
}
