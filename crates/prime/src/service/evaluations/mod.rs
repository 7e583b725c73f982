//! Hosted evaluations: start one, follow it, read its samples.

mod follow;
mod request;
mod samples;

use serde_json::{Value, json};

pub use follow::{FollowEnd, FollowEvent, follow};
pub use request::{EnvironmentArguments, HostedEvaluation, RequestError, parse_argument};
pub use samples::{SampleCount, SamplePage, SamplesError, SamplesOptions, samples};

use crate::service::client::{ApiError, Client, segment};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvaluationStatus {
    Pending,
    Running,
    Completed,
    Failed,
    Timeout,
    Cancelled,
    /// A status that this version does not know; treated as running.
    Other(String),
}

impl EvaluationStatus {
    fn of(text: &str) -> Self {
        match text.to_ascii_uppercase().as_str() {
            "PENDING" => Self::Pending,
            "RUNNING" => Self::Running,
            "COMPLETED" => Self::Completed,
            "FAILED" => Self::Failed,
            "TIMEOUT" => Self::Timeout,
            "CANCELLED" => Self::Cancelled,
            _ => Self::Other(text.to_owned()),
        }
    }

    pub fn is_final(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Timeout | Self::Cancelled)
    }
}

impl std::fmt::Display for EvaluationStatus {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Pending => "PENDING",
            Self::Running => "RUNNING",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Timeout => "TIMEOUT",
            Self::Cancelled => "CANCELLED",
            Self::Other(text) => text,
        })
    }
}

/// An evaluation as the service describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    pub id: String,
    pub name: Option<String>,
    pub status: EvaluationStatus,
    /// Includes the adapter.
    pub model: Option<String>,
    /// Number of samples so far.
    pub total_samples: Option<u64>,
    /// Mean score so far.
    pub average_score: Option<f64>,
    pub error_message: Option<String>,
    /// Web page of the evaluation.
    pub viewer_url: Option<String>,
    /// The whole answer.
    pub raw: Value,
}

impl Evaluation {
    fn of(raw: Value, call: &str) -> Result<Self, ApiError> {
        let text = |key: &str| raw.get(key).and_then(Value::as_str).map(str::to_owned);
        let Some(id) = text("evaluation_id").or_else(|| text("id")) else {
            return Err(ApiError::malformed(call, "it has no evaluation id"));
        };
        Ok(Self {
            id,
            name: text("name"),
            status: EvaluationStatus::of(text("status").as_deref().unwrap_or("UNKNOWN")),
            model: text("model_name").or_else(|| text("inference_model")),
            total_samples: raw.get("total_samples").and_then(Value::as_u64),
            average_score: raw.get("avg_score").and_then(Value::as_f64),
            error_message: text("error_message"),
            viewer_url: text("viewer_url"),
            raw,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// One id for each environment.
    pub ids: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("Prime could not start the evaluation ({}): {message}", ids.join(", "))]
    Failed {
        /// Ids of the records that the service created.
        ids: Vec<String>,
        message: String,
    },
    #[error(transparent)]
    Api(#[from] ApiError),
}

/// Starts a hosted evaluation of the latest published version of each environment.
pub async fn start(client: &Client, evaluation: &HostedEvaluation) -> Result<Started, StartError> {
    let mut body = evaluation.body()?;
    if evaluation.team_id.is_none()
        && let Some(team) = &client.settings().team_id
    {
        body["team_id"] = json!(team);
    }
    let answer = client.post(&["hosted-evaluations"], Some(&body)).await?;
    let mut ids: Vec<String> = answer
        .get("evaluation_ids")
        .and_then(Value::as_array)
        .map(|ids| ids.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    if let Some(id) = answer.get("evaluation_id").and_then(Value::as_str)
        && !ids.iter().any(|known| known == id)
    {
        ids.insert(0, id.to_owned());
    }
    if ids.is_empty() {
        return Err(ApiError::malformed("POST /api/v1/hosted-evaluations", "it has no evaluation id").into());
    }
    if answer.get("status").and_then(Value::as_str).map(EvaluationStatus::of)
        == Some(EvaluationStatus::Failed)
    {
        let said = ["error_message", "message", "error"].iter().find_map(|key| answer.get(*key)?.as_str());
        let message = said.unwrap_or("no reason given").to_owned();
        return Err(StartError::Failed { ids, message });
    }
    Ok(Started { ids })
}

pub async fn get(client: &Client, id: &str) -> Result<Evaluation, ApiError> {
    let id = segment("evaluation id", id)?;
    let raw = client.get(&["evaluations", id], &[]).await?;
    Evaluation::of(raw, &format!("GET /api/v1/evaluations/{id}"))
}

/// Stops an evaluation and returns the service's message.
pub async fn cancel(client: &Client, id: &str) -> Result<String, ApiError> {
    let id = segment("evaluation id", id)?;
    let answer = client.patch(&["hosted-evaluations", id, "cancel"]).await?;
    Ok(answer.get("message").and_then(Value::as_str).unwrap_or_default().to_owned())
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListOptions {
    pub skip: u64,
    pub limit: u64,
    pub environment_name: Option<String>,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self { skip: 0, limit: 20, environment_name: None }
    }
}

/// Evaluations of the account or team, newest first, and their total number.
pub async fn list(client: &Client, options: &ListOptions) -> Result<(Vec<Evaluation>, u64), ApiError> {
    let mut query = vec![("skip", options.skip.to_string()), ("limit", options.limit.to_string())];
    if let Some(name) = &options.environment_name {
        query.push(("environment_name", name.clone()));
    }
    if let Some(team) = &client.settings().team_id {
        query.push(("team_id", team.clone()));
    }
    let mut answer = client.get(&["evaluations", ""], &query).await?;
    let call = "GET /api/v1/evaluations/";
    let Some(Value::Array(rows)) = answer.get_mut("evaluations").map(Value::take) else {
        return Err(ApiError::malformed(call, "it has no list `evaluations`"));
    };
    let evaluations: Vec<Evaluation> =
        rows.into_iter().map(|row| Evaluation::of(row, call)).collect::<Result<_, _>>()?;
    let total = answer.get("total").and_then(Value::as_u64).unwrap_or(evaluations.len() as u64);
    Ok((evaluations, total))
}
