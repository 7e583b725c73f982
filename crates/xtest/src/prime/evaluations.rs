//! Hosted evaluations, which advance with each request about their status.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::answer;
use super::state::StandInState;
use crate::stand_in::{Answer, RecordedRequest};

#[derive(Clone)]
pub enum SampleSource {
    Given(Vec<Value>),
    /// Makes the whole answer from page and limit.
    Scripted(Arc<dyn Fn(u64, u64) -> Value + Send + Sync>),
}

impl fmt::Debug for SampleSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(samples) => write!(formatter, "Given({} samples)", samples.len()),
            Self::Scripted(_) => formatter.write_str("Scripted"),
        }
    }
}

#[derive(Clone, Debug)]
pub struct HostedRun {
    /// The request that started it.
    pub request: Value,
    /// Statuses, one for each status request; the last one stays.
    pub statuses: Vec<String>,
    /// Lines of the log; each request shows one more.
    pub log: Vec<String>,
    pub samples: SampleSource,
    /// Number of status requests so far.
    pub questions: usize,
}

impl HostedRun {
    /// An evaluation that completes at the fourth request.
    pub fn new(request: Value) -> Self {
        let number = |key: &str| request["eval_config"][key].as_u64().unwrap_or(1);
        let samples = (0..number("num_examples")).flat_map(|example| {
            (0..number("rollouts_per_example")).map(move |rollout| sample(example, rollout))
        });
        Self {
            samples: SampleSource::Given(samples.collect()),
            statuses: ["PENDING", "RUNNING", "RUNNING", "COMPLETED"].map(str::to_owned).to_vec(),
            log: (1..=6).map(|line| format!("line {line}")).collect(),
            questions: 0,
            request,
        }
    }

    fn status(&self) -> &str {
        let at = self.questions.saturating_sub(1).min(self.statuses.len().saturating_sub(1));
        self.statuses.get(at).map_or("UNKNOWN", String::as_str)
    }

    fn log(&self) -> String {
        let done = matches!(self.status(), "COMPLETED" | "FAILED" | "TIMEOUT" | "CANCELLED");
        let shown = if done { self.log.len() } else { self.questions.min(self.log.len()) };
        self.log[..shown].join("\n")
    }

    fn describe(&self, id: &str, root: &str) -> Value {
        let total = match &self.samples {
            SampleSource::Given(samples) => samples.len(),
            SampleSource::Scripted(_) => 0,
        };
        json!({
            "evaluation_id": id,
            "name": self.request["name"],
            "status": self.status(),
            "environment_ids": self.request["environment_ids"],
            "environment_names": ["demo"],
            "model_name": self.request["inference_model"],
            "inference_model": self.request["inference_model"],
            "is_hosted": true,
            "eval_config": self.request["eval_config"],
            "total_samples": total,
            "avg_score": 0.5,
            "viewer_url": format!("{root}/view/{id}"),
        })
    }
}

/// A sample in the format of hosted evaluations.
fn sample(example: u64, rollout: u64) -> Value {
    let call = json!({"id": "c1", "type": "function", "function": {
        "name": "submit_answer", "arguments": json!({"content": "42"}).to_string()}});
    json!({
        "sample_id": format!("s-{example}-{rollout}"),
        "example_id": example,
        "rollout_number": rollout,
        "prompt": [{"role": "user", "content": format!("question {example}")}],
        "completion": [{"role": "assistant", "content": "", "tool_calls": [call.to_string()]}],
        "answer": "electrical/x",
        "reward": 1.0,
        "metrics": {"aec_bench_reward": 1.0, "num_turns": 1.0},
        "timing": {"total": 1.5, "generation": {"start": 1, "end": 2, "duration": 1.0},
                   "scoring": {"start": 2, "end": 2.5, "duration": 0.5}},
        "token_usage": {"input_tokens": 10, "output_tokens": 5},
        "stop_condition": "has_final_env_response",
        "is_completed": true,
        "is_truncated": false,
        "created_at": "2026-11-15T00:00:00Z",
        "info": {"task_id": "electrical/x"},
    })
}

pub(super) fn answer(
    state: &mut StandInState,
    request: &RecordedRequest,
    method: &str,
    rest: &[&str],
) -> Answer {
    let root = state.root.clone();
    match (method, rest) {
        ("GET", [""]) => {
            let all: Vec<Value> = state.evaluations.iter().map(|(id, run)| run.describe(id, &root)).collect();
            let (skip, limit) = (size(request.number("skip", 0)), size(request.number("limit", 20)));
            let page: Vec<&Value> = all.iter().skip(skip).take(limit).collect();
            Answer::json(&json!({"evaluations": page, "total": all.len(), "skip": skip, "limit": limit}))
        }
        ("GET", [id]) => match state.evaluations.get_mut(*id) {
            Some(run) => {
                run.questions += 1;
                Answer::json(&run.describe(id, &root))
            }
            None => answer::refusal(404, "Evaluation not found"),
        },
        ("GET", [id, "samples"]) => match state.evaluations.get(*id) {
            Some(run) => samples(id, run, request),
            None => answer::refusal(404, "Evaluation not found"),
        },
        _ => answer::refusal(404, "Not Found"),
    }
}

fn samples(id: &str, run: &HostedRun, request: &RecordedRequest) -> Answer {
    let (page, limit) = (request.number("page", 1), request.number("limit", 100));
    if page < 1 || !(1..=1000).contains(&limit) {
        return answer::invalid(&["limit"], "page must be at least 1 and limit from 1 to 1000");
    }
    match &run.samples {
        SampleSource::Scripted(script) => Answer::json(&script(page, limit)),
        SampleSource::Given(all) => {
            let start = size((page - 1).saturating_mul(limit));
            let rows: Vec<&Value> = all.iter().skip(start).take(size(limit)).collect();
            Answer::json(&json!({
                "evaluation_id": id,
                "samples": rows,
                "total": all.len(),
                "page": page,
                "limit": limit,
                "total_pages": all.len().div_ceil(size(limit)),
            }))
        }
    }
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

pub(super) fn answer_hosted(
    state: &mut StandInState,
    request: &RecordedRequest,
    method: &str,
    rest: &[&str],
) -> Answer {
    match (method, rest) {
        ("POST", []) => create(state, request),
        ("GET", [id, "logs"]) => match state.evaluations.get(*id) {
            Some(run) => Answer::json(&json!({"logs": run.log()})),
            None => answer::refusal(404, "Evaluation not found"),
        },
        ("PATCH", [id, "cancel"]) => match state.evaluations.get_mut(*id) {
            Some(run) => {
                run.statuses = vec!["CANCELLED".to_owned()];
                Answer::json(&json!({"message": "cancelled"}))
            }
            None => answer::refusal(404, "Evaluation not found"),
        },
        _ => answer::refusal(404, "Not Found"),
    }
}

fn create(state: &mut StandInState, request: &RecordedRequest) -> Answer {
    let body = request.json();
    let Some(environments) = body["environment_ids"].as_array().filter(|list| !list.is_empty()) else {
        return answer::invalid(&["environment_ids"], "Field required");
    };
    if !body["inference_model"].is_string() {
        return answer::invalid(&["inference_model"], "Field required");
    }
    if !body["eval_config"]["num_examples"].is_i64() {
        return answer::invalid(&["eval_config", "num_examples"], "Input should be a valid integer");
    }
    for environment in environments {
        if !state.environments.iter().any(|known| environment.as_str() == Some(&known.id)) {
            return answer::refusal(404, "Environment not found");
        }
    }
    let mut ids = Vec::new();
    for _ in environments {
        let id = format!("eval_{}", state.evaluations.len() + 1);
        state.evaluations.insert(id.clone(), HostedRun::new(body.clone()));
        ids.push(id);
    }
    Answer::json(&json!({"evaluation_id": ids[0], "evaluation_ids": ids, "status": "PENDING"}))
}
