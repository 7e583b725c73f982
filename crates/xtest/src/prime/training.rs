//! Training runs of both generations, checkpoints and adapters.

use serde_json::{Value, json};

use super::answer;
use super::state::{SharedTraining, StandInState};
use crate::stand_in::{Answer, RecordedRequest};

const TIME: &str = "2026-11-15T00:00:00Z";

#[derive(Clone, Debug)]
pub struct TrainingRun {
    /// The request that started it.
    pub request: Value,
    /// Statuses, one for each status request; the last one stays.
    pub statuses: Vec<String>,
    /// Number of status requests so far.
    pub questions: usize,
    /// Checkpoints in the format of the API.
    pub checkpoints: Vec<Value>,
    pub dedicated: bool,
}

impl TrainingRun {
    /// A run that completes at the fourth request.
    pub fn new(request: Value, dedicated: bool) -> Self {
        Self {
            request,
            statuses: ["QUEUED", "RUNNING", "RUNNING", "COMPLETED"].map(str::to_owned).to_vec(),
            questions: 0,
            checkpoints: Vec::new(),
            dedicated,
        }
    }

    fn status(&self) -> &str {
        let at = self.questions.saturating_sub(1).min(self.statuses.len().saturating_sub(1));
        self.statuses.get(at).map_or("UNKNOWN", String::as_str)
    }

    fn describe(&self, id: &str) -> Value {
        json!({
            "id": id,
            "name": self.request["name"],
            "userId": "u1",
            "teamId": null,
            "rftClusterId": "c1",
            "status": self.status(),
            "kind": if self.dedicated { "DEDICATED_FULL_FT" } else { "SHARED_RFT_HOSTED" },
            "rolloutsPerExample": 4,
            "seqLen": 4096,
            "maxSteps": 20,
            "maxTokens": 2048,
            "batchSize": 32,
            "baseModel": self.request["model"]["name"],
            "environments": [],
            "createdAt": TIME,
            "updatedAt": TIME,
        })
    }
}

pub(super) fn answer(
    state: &mut StandInState,
    request: &RecordedRequest,
    method: &str,
    rest: &[&str],
) -> Answer {
    match (method, rest) {
        ("GET", ["adapters"]) => adapters(state, request),
        ("GET", ["adapters", id]) => {
            match state.adapters.iter().find(|adapter| adapter["id"].as_str() == Some(*id)) {
                Some(adapter) => Answer::json(&json!({"adapter": adapter})),
                None => answer::refusal(404, "Adapter not found"),
            }
        }
        ("GET", ["deployable-models"]) => Answer::json(&json!({"models": ["Qwen/Qwen3.5-4B"]})),
        ("GET", ["models"]) => {
            Answer::json(&json!({"models": [{"name": "Qwen/Qwen3.5-4B", "atCapacity": false,
            "trainingPricePerMtok": 1.0, "inferenceInputPricePerMtok": 0.1, "inferenceOutputPricePerMtok": 0.2}]}))
        }
        ("GET", ["runs"]) => {
            let rows: Vec<Value> = state.runs.iter().map(|(id, run)| run.describe(id)).collect();
            Answer::json(&json!({"runs": rows, "total": rows.len()}))
        }
        ("POST", ["runs"]) => create_shared(state, request),
        (_, ["runs", id, rest @ ..]) => match state.runs.get_mut(*id) {
            Some(run) => of_run(id, run, request, method, rest),
            None => answer::refusal(404, "Run not found"),
        },
        _ => answer::refusal(404, "Not Found"),
    }
}

/// Twenty at a time unless the client asks for more, and never more than a hundred.
fn adapters(state: &StandInState, request: &RecordedRequest) -> Answer {
    let limit = request.number("limit", 20).min(100);
    let offset = request.number("offset", 0);
    let position = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let page: Vec<&Value> = state.adapters.iter().skip(position(offset)).take(position(limit)).collect();
    Answer::json(&json!({"adapters": page, "total": state.adapters.len()}))
}

fn create_shared(state: &mut StandInState, request: &RecordedRequest) -> Answer {
    if state.shared_training == SharedTraining::Retired {
        return answer::refusal(410, "Shared LoRA training no longer accepts new runs");
    }
    let body = request.json();
    if !body["model"]["name"].is_string() {
        return answer::invalid(&["model", "name"], "Field required");
    }
    if body["environments"].as_array().is_none_or(Vec::is_empty) {
        return answer::invalid(&["environments"], "List should have at least 1 item");
    }
    let id = format!("run_{}", state.runs.len() + 1);
    let run = TrainingRun::new(body, false);
    let described = run.describe(&id);
    state.runs.insert(id, run);
    Answer::json(&json!({"run": described}))
}

pub(super) fn create_dedicated(state: &mut StandInState, request: &RecordedRequest) -> Answer {
    let body = request.json();
    if !body["config"].is_object() {
        return answer::invalid(&["config"], "Field required");
    }
    let id = format!("run_{}", state.runs.len() + 1);
    let mut run = TrainingRun::new(body.clone(), true);
    run.request["model"] = body["config"]["model"].clone();
    state.runs.insert(id.clone(), run);
    Answer::json(&json!({
        "runId": id,
        "tokenValue": "token-of-the-run",
        "onDemand": true,
        "gpuType": "H100_80GB",
        "pricePerGpuHour": 2.0,
        "estimatedCostPerHour": 4.0,
        "isBeta": false,
    }))
}

fn of_run(id: &str, run: &mut TrainingRun, request: &RecordedRequest, method: &str, rest: &[&str]) -> Answer {
    match (method, rest) {
        ("GET", []) => {
            run.questions += 1;
            Answer::json(&json!({"run": run.describe(id)}))
        }
        ("PUT", ["stop"]) => {
            run.statuses = vec!["STOPPED".to_owned()];
            Answer::json(&json!({"run": run.describe(id)}))
        }
        ("GET", ["checkpoints"]) => Answer::json(&json!({"checkpoints": run.checkpoints})),
        ("GET", ["progress"]) => {
            Answer::json(&json!({"latest_step": run.questions, "steps_with_samples": [0],
            "steps_with_distributions": [0], "last_updated_at": TIME}))
        }
        ("GET", ["metrics"]) => {
            let first = request.number("min_step", 0);
            let rows: Vec<Value> = (first..run.questions as u64)
                .map(|step| json!({"step": step, "reward/mean": 0.25}))
                .collect();
            Answer::json(&json!({"metrics": rows}))
        }
        ("GET", ["logs"]) => {
            let lines: Vec<String> =
                (1..=run.questions).map(|step| format!("step {step} reward 0.3\n")).collect();
            Answer::json(&json!({"logs": lines.concat()}))
        }
        _ => answer::refusal(404, "Not Found"),
    }
}
