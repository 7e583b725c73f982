//! Training runs: starts one from a file, watches it, queries it, stops it.

mod config;
mod follow;
mod lora;

use serde_json::Value;

pub use config::{Generation, TrainConfig, TrainConfigError};
pub use follow::{TrainEnd, TrainEvent, follow};

use crate::service::client::{ApiError, ApiErrorKind, Client, segment};
use crate::service::hub::{self, EnvironmentName};
use crate::service::secrets::Secrets;

/// A training run as the service describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub id: String,
    pub name: Option<String>,
    /// `QUEUED`, `PENDING`, `RUNNING`, `COMPLETED`, `FAILED`, `STOPPED` or `PAUSED`.
    pub status: String,
    pub base_model: Option<String>,
    pub max_steps: Option<u64>,
    pub error_message: Option<String>,
    /// The whole record.
    pub raw: Value,
}

impl Run {
    fn of(raw: Value, call: &str) -> Result<Self, ApiError> {
        let field = |camel: &str, snake: &str| raw.get(camel).or_else(|| raw.get(snake));
        let text = |camel: &str, snake: &str| field(camel, snake).and_then(Value::as_str).map(str::to_owned);
        let Some(id) = text("id", "id") else {
            return Err(ApiError::malformed(call, "a training run has no id"));
        };
        Ok(Self {
            id,
            name: text("name", "name"),
            status: text("status", "status").unwrap_or_else(|| "UNKNOWN".to_owned()).to_ascii_uppercase(),
            base_model: text("baseModel", "base_model"),
            max_steps: field("maxSteps", "max_steps").and_then(Value::as_u64),
            error_message: text("errorMessage", "error_message"),
            raw,
        })
    }

    /// Whether nothing more will happen by itself.
    pub fn has_ended(&self) -> bool {
        matches!(self.status.as_str(), "COMPLETED" | "FAILED" | "STOPPED" | "PAUSED")
    }
}

/// A checkpoint of a run. It cannot be used for inference; see [`crate::service::adapters`].
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    pub id: String,
    pub step: Option<u64>,
    pub status: Option<String>,
    /// The whole record.
    pub raw: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StartedRun {
    pub id: String,
    pub generation: Generation,
    pub status: Option<String>,
    pub cost_per_hour: Option<f64>,
    pub gpu_type: Option<String>,
}

/// Whether a failed check of an environment by the hub prevents a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnvironmentCheck {
    /// A failed check prevents the start.
    #[default]
    Required,
    /// The run starts regardless.
    Skipped,
}

#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    #[error(transparent)]
    Config(#[from] TrainConfigError),
    #[error(
        "the hub's check of {environment} failed, so that training would fail too; look at its actions page, or skip the check"
    )]
    BrokenEnvironment { environment: String },
    #[error(
        "Prime no longer starts shared LoRA training runs ([[env]] configurations); write one for prime-rl with \
         `train-config --target prime-rl` and start that, here or on machines of your own{}",
        Said(detail)
    )]
    Retired { detail: String },
    #[error(transparent)]
    Api(#[from] ApiError),
}

struct Said<'a>(&'a str);

impl std::fmt::Display for Said<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(formatter, " (it says: {})", self.0) }
    }
}

pub async fn start(
    client: &Client,
    config: &TrainConfig,
    secrets: &Secrets,
    check: EnvironmentCheck,
) -> Result<StartedRun, TrainError> {
    let launch = config.launch(secrets, client.settings().team_id.as_deref())?;
    if check == EnvironmentCheck::Required {
        check_environments(client, &launch.environments).await?;
    }
    let call = format!("POST /api/v1/{}", launch.path.join("/"));
    let answer = match client.post_slow(launch.path, &launch.body).await {
        Ok(answer) => answer,
        Err(error) if config.generation == Generation::SharedLora && is_retirement(&error) => {
            return Err(TrainError::Retired { detail: error.detail().to_owned() });
        }
        Err(error) => return Err(error.into()),
    };
    let started = match config.generation {
        Generation::SharedLora => {
            let run = Run::of(answer.get("run").cloned().unwrap_or(answer), &call)?;
            let status = Some(run.status);
            StartedRun {
                id: run.id,
                generation: config.generation,
                status,
                cost_per_hour: None,
                gpu_type: None,
            }
        }
        Generation::Dedicated => {
            let text = |key: &str| answer.get(key).and_then(Value::as_str).map(str::to_owned);
            // The answer also contains a token of the run, which is dropped because nothing needs it.
            StartedRun {
                id: text("runId").ok_or_else(|| ApiError::malformed(&call, "it has no `runId`"))?,
                generation: config.generation,
                status: text("status"),
                cost_per_hour: answer.get("estimatedCostPerHour").and_then(Value::as_f64),
                gpu_type: text("gpuType"),
            }
        }
    };
    Ok(started)
}

async fn check_environments(client: &Client, environments: &[String]) -> Result<(), TrainError> {
    let mut checked: Vec<&String> = Vec::new();
    for environment in environments {
        if checked.contains(&environment) {
            continue;
        }
        checked.push(environment);
        // The check is optional: if the hub cannot be asked about an environment, the service decides.
        let Ok(name) = environment.parse::<EnvironmentName>() else { continue };
        let Ok(status) = hub::status(client, &name).await else { continue };
        if status.action.as_deref() == Some("FAILED") {
            return Err(TrainError::BrokenEnvironment { environment: environment.clone() });
        }
    }
    Ok(())
}

/// Whether a refusal means that such runs no longer exist.
fn is_retirement(error: &ApiError) -> bool {
    let said = error.detail().to_lowercase();
    let words = ["no longer", "retired", "discontinued", "deprecated", "sunset"];
    match error.kind {
        ApiErrorKind::Refused { status: 410, .. } | ApiErrorKind::MethodNotAllowed { .. } => true,
        ApiErrorKind::Refused { .. } | ApiErrorKind::Forbidden { .. } | ApiErrorKind::NotFound { .. } => {
            words.iter().any(|word| said.contains(word))
        }
        _ => false,
    }
}

pub async fn get(client: &Client, run_id: &str) -> Result<Run, ApiError> {
    let id = segment("training run id", run_id)?;
    let answer = client.get(&["rft", "runs", id], &[]).await?;
    run_of(answer, &format!("GET /api/v1/rft/runs/{id}"))
}

fn run_of(answer: Value, call: &str) -> Result<Run, ApiError> {
    Run::of(answer.get("run").cloned().unwrap_or(answer), call)
}

/// The latest runs of the account or team, at most `most` of them.
pub async fn list(client: &Client, most: u64) -> Result<Vec<Run>, ApiError> {
    let call = "GET /api/v1/rft/runs";
    let mut query = vec![("page", "1".to_owned()), ("limit", most.to_string())];
    if let Some(team) = &client.settings().team_id {
        query.push(("team_id", team.clone()));
    }
    let mut answer = client.get(&["rft", "runs"], &query).await?;
    let Some(Value::Array(rows)) = answer.get_mut("runs").map(Value::take) else {
        return Err(ApiError::malformed(call, "it has no list `runs`"));
    };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    rows.into_iter().take(most).map(|row| Run::of(row, call)).collect()
}

pub async fn checkpoints(client: &Client, run_id: &str) -> Result<Vec<Checkpoint>, ApiError> {
    let id = segment("training run id", run_id)?;
    let mut answer = client.get(&["rft", "runs", id, "checkpoints"], &[]).await?;
    let call = format!("GET /api/v1/rft/runs/{id}/checkpoints");
    let Some(Value::Array(rows)) = answer.get_mut("checkpoints").map(Value::take) else {
        return Err(ApiError::malformed(call, "it has no list `checkpoints`"));
    };
    let checkpoint = |raw: Value| {
        let text = |key: &str| raw.get(key).and_then(Value::as_str).map(str::to_owned);
        let id = text("id").ok_or_else(|| ApiError::malformed(&call, "a checkpoint has no id"))?;
        Ok(Checkpoint { id, step: raw.get("step").and_then(Value::as_u64), status: text("status"), raw })
    };
    rows.into_iter().map(checkpoint).collect()
}

/// The number of finished steps.
pub async fn progress(client: &Client, run_id: &str) -> Result<Option<u64>, ApiError> {
    let id = segment("training run id", run_id)?;
    let answer = client.get(&["rft", "runs", id, "progress"], &[]).await?;
    Ok(follow::latest_step(&answer))
}

pub async fn metrics(client: &Client, run_id: &str, first_step: u64) -> Result<Vec<Value>, ApiError> {
    let id = segment("training run id", run_id)?;
    let answer = client.get(&["rft", "runs", id, "metrics"], &[("min_step", first_step.to_string())]).await?;
    Ok(answer.get("metrics").and_then(Value::as_array).cloned().unwrap_or_default())
}

pub async fn stop(client: &Client, run_id: &str) -> Result<Run, ApiError> {
    let id = segment("training run id", run_id)?;
    let answer = client.put(&["rft", "runs", id, "stop"]).await?;
    run_of(answer, &format!("PUT /api/v1/rft/runs/{id}/stop"))
}
