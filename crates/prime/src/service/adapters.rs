//! Adapters of training runs, and which of them can be used with a model.
//!
//! Three records are easily confused. A training run makes checkpoints, which cannot be used for inference; it uploads
//! adapters; and an adapter answers only once it is deployed. Evaluations take the id of a deployed adapter, so a user
//! who gives another id gets a message that tells what the id is.

use std::collections::HashSet;
use std::fmt;

use serde_json::Value;

use crate::service::client::{ApiError, Client, segment};
use crate::service::training;

const PAGE_SIZE: u64 = 100;

/// Most adapters that are read before the service counts as broken.
const MOST_ADAPTERS: usize = 100_000;

/// Status of an adapter whose files are complete.
const READY: &str = "READY";

/// Status of an adapter that answers.
const DEPLOYED: &str = "DEPLOYED";

#[derive(Clone, Debug, PartialEq)]
pub struct Adapter {
    pub id: String,
    /// Display name.
    pub display_name: Option<String>,
    pub run_id: Option<String>,
    pub base_model: Option<String>,
    pub step: Option<u64>,
    /// State of its files: `PENDING`, `UPLOADING`, `READY` or `FAILED`.
    pub status: String,
    /// State of its deployment: `NOT_DEPLOYED`, `DEPLOYING`, `DEPLOYED`, `UNLOADING` or a failure.
    pub deployment_status: String,
    pub deployment_error: Option<String>,
    pub deployed_at: Option<String>,
    pub updated_at: Option<String>,
    pub created_at: Option<String>,
    /// The whole record.
    pub raw: Value,
}

impl Adapter {
    /// Whether it can answer.
    pub fn answers(&self) -> bool {
        self.status == READY && self.deployment_status == DEPLOYED
    }

    fn of(raw: Value, call: &str) -> Result<Self, ApiError> {
        // The API writes `rftRunId`, but some of its answers have `rft_run_id`.
        let field = |camel: &str, snake: &str| raw.get(camel).or_else(|| raw.get(snake));
        let text = |camel: &str, snake: &str| field(camel, snake).and_then(Value::as_str).map(str::to_owned);
        let Some(id) = text("id", "id") else {
            return Err(ApiError::malformed(call, "an adapter has no id"));
        };
        Ok(Self {
            id,
            display_name: text("displayName", "display_name"),
            run_id: text("rftRunId", "rft_run_id"),
            base_model: text("baseModel", "base_model"),
            step: raw.get("step").and_then(Value::as_u64),
            status: text("status", "status").unwrap_or_default(),
            deployment_status: text("deploymentStatus", "deployment_status")
                .unwrap_or_else(|| "NOT_DEPLOYED".to_owned()),
            deployment_error: text("deploymentError", "deployment_error"),
            deployed_at: text("deployedAt", "deployed_at"),
            updated_at: text("updatedAt", "updated_at"),
            created_at: text("createdAt", "created_at"),
            raw,
        })
    }

    /// Sort key by deployment, the latest last.
    fn age(&self) -> (String, String, String, &str) {
        // Times come as `2026-01-01T…` or `2026-01-01 …`; make them comparable.
        let time = |time: &Option<String>| time.as_deref().unwrap_or_default().replacen('T', " ", 1);
        (time(&self.deployed_at), time(&self.updated_at), time(&self.created_at), &self.id)
    }
}

/// Which step of a training run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdapterStep {
    /// The one deployed last.
    #[default]
    Latest,
    Number(u64),
}

impl std::str::FromStr for AdapterStep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "latest" => Ok(Self::Latest),
            number => number
                .parse()
                .map(Self::Number)
                .map_err(|_| format!("{text:?} is not a training step: write `latest` or a number")),
        }
    }
}

impl fmt::Display for AdapterStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => formatter.write_str("latest"),
            Self::Number(number) => write!(formatter, "{number}"),
        }
    }
}

/// What an id names if it is not an adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OtherRecord {
    Run {
        status: String,
    },
    Checkpoint {
        run_id: String,
        step: Option<u64>,
    },
    /// Nothing was found.
    Nothing,
}

#[derive(Debug, thiserror::Error)]
pub enum AdapterError {
    #[error("the model {model:?} names an adapter already; give the base model alone, or no adapter")]
    ModelHasAdapter { model: String },
    #[error("{id} is not a deployed adapter: {}", Explained(record))]
    NotAnAdapter { id: String, record: OtherRecord },
    #[error("adapter {id} changes {actual}, not {asked}; give --model {actual}")]
    OtherModel {
        id: String,
        actual: String,
        /// The requested model.
        asked: String,
    },
    #[error("adapter {id} does not answer yet: {}", Unanswering(status, deployment_status, error.as_deref()))]
    NotDeployed { id: String, status: String, deployment_status: String, error: Option<String> },
    #[error("{id} is an adapter, not a training run; give it as --adapter-id")]
    NotARun { id: String },
    #[error("training run {run_id} has no adapters{}", RunState(status.as_deref()))]
    RunWithoutAdapters {
        run_id: String,
        /// Absent if the run does not exist.
        status: Option<String>,
    },
    #[error("training run {run_id} has no adapter that answers for {model}, step {step}; it has: {}", found.join(", "))]
    NoneFits { run_id: String, model: String, step: AdapterStep, found: Vec<String> },
    #[error("there are more than {MOST_ADAPTERS} adapters; the service gives pages without end")]
    Endless,
    #[error(transparent)]
    Api(#[from] ApiError),
}

pub fn compose(base_model: &str, adapter_id: &str) -> Result<String, AdapterError> {
    if base_model.contains(':') {
        return Err(AdapterError::ModelHasAdapter { model: base_model.to_owned() });
    }
    segment("adapter id", adapter_id)?;
    Ok(format!("{base_model}:{adapter_id}"))
}

/// All adapters of the account or team.
pub async fn list(client: &Client) -> Result<Vec<Adapter>, AdapterError> {
    let call = "GET /api/v1/rft/adapters";
    let mut adapters: Vec<Adapter> = Vec::new();
    let mut ids = HashSet::new();
    let mut offset = 0;
    loop {
        let mut query = vec![("limit", PAGE_SIZE.to_string()), ("offset", offset.to_string())];
        if let Some(team) = &client.settings().team_id {
            query.push(("team_id", team.clone()));
        }
        let mut answer = client.get(&["rft", "adapters"], &query).await?;
        let Some(Value::Array(page)) = answer.get_mut("adapters").map(Value::take) else {
            return Err(ApiError::malformed(call, "it has no list `adapters`").into());
        };
        let total = answer.get("total").and_then(Value::as_u64);
        let received = page.len() as u64;
        let before = adapters.len();
        for raw in page {
            let adapter = Adapter::of(raw, call)?;
            if ids.insert(adapter.id.clone()) {
                adapters.push(adapter);
            }
        }
        if adapters.len() > MOST_ADAPTERS {
            return Err(AdapterError::Endless);
        }
        offset += received;
        // A service that ignores the offset returns the first page again.
        let nothing_new = adapters.len() == before;
        let ended = match total {
            Some(total) => offset >= total,
            None => received < PAGE_SIZE,
        };
        if received == 0 || nothing_new || ended {
            return Ok(adapters);
        }
    }
}

/// Checks that an id is a deployed adapter of a model, and returns the model string.
pub async fn by_id(client: &Client, base_model: &str, adapter_id: &str) -> Result<String, AdapterError> {
    let model = compose(base_model, adapter_id)?;
    let call = format!("GET /api/v1/rft/adapters/{adapter_id}");
    let raw = match client.get(&["rft", "adapters", adapter_id], &[]).await {
        Ok(raw) => raw,
        Err(error) if error.is_not_found() => {
            let record = other_record(client, adapter_id).await?;
            return Err(AdapterError::NotAnAdapter { id: adapter_id.to_owned(), record });
        }
        Err(error) => return Err(error.into()),
    };
    let adapter = Adapter::of(raw.get("adapter").cloned().unwrap_or(raw), &call)?;
    check(&adapter, base_model)?;
    Ok(model)
}

fn check(adapter: &Adapter, base_model: &str) -> Result<(), AdapterError> {
    if let Some(actual) = adapter.base_model.as_deref().filter(|actual| *actual != base_model) {
        let (id, asked) = (adapter.id.clone(), base_model.to_owned());
        return Err(AdapterError::OtherModel { id, actual: actual.to_owned(), asked });
    }
    if !adapter.answers() {
        return Err(AdapterError::NotDeployed {
            id: adapter.id.clone(),
            status: adapter.status.clone(),
            deployment_status: adapter.deployment_status.clone(),
            error: adapter.deployment_error.clone(),
        });
    }
    Ok(())
}

/// The adapter of a training run that answers for a model: the one deployed last, or that of a step.
pub async fn of_run(
    client: &Client,
    run_id: &str,
    base_model: &str,
    step: AdapterStep,
) -> Result<Adapter, AdapterError> {
    if base_model.contains(':') {
        return Err(AdapterError::ModelHasAdapter { model: base_model.to_owned() });
    }
    segment("training run id", run_id)?;
    let all = list(client).await?;
    let of_run: Vec<&Adapter> =
        all.iter().filter(|adapter| adapter.run_id.as_deref() == Some(run_id)).collect();
    if of_run.is_empty() {
        return Err(no_adapters(client, &all, run_id).await?);
    }
    let fits = |adapter: &&&Adapter| {
        let step_fits = match step {
            AdapterStep::Latest => true,
            AdapterStep::Number(number) => adapter.step == Some(number),
        };
        step_fits && adapter.answers() && adapter.base_model.as_deref() == Some(base_model)
    };
    match of_run.iter().filter(fits).max_by(|a, b| a.age().cmp(&b.age())) {
        Some(adapter) => Ok((**adapter).clone()),
        None => Err(AdapterError::NoneFits {
            run_id: run_id.to_owned(),
            model: base_model.to_owned(),
            step,
            found: of_run.iter().map(|adapter| describe(adapter)).collect(),
        }),
    }
}

fn describe(adapter: &Adapter) -> String {
    let step = adapter.step.map_or_else(|| "?".to_owned(), |step| step.to_string());
    let model = adapter.base_model.as_deref().unwrap_or("unknown model");
    format!("{} (step {step}, {model}, {}, {})", adapter.id, adapter.status, adapter.deployment_status)
}

/// Why a run has no adapters: the id may not be a run, or it may be that of an adapter.
async fn no_adapters(client: &Client, all: &[Adapter], run_id: &str) -> Result<AdapterError, AdapterError> {
    if let Some(adapter) = all.iter().find(|adapter| adapter.id == run_id) {
        return Ok(AdapterError::NotARun { id: adapter.id.clone() });
    }
    let status = match training::get(client, run_id).await {
        Ok(run) => Some(run.status),
        Err(error) if error.is_not_found() => None,
        Err(error) => return Err(error.into()),
    };
    Ok(AdapterError::RunWithoutAdapters { run_id: run_id.to_owned(), status })
}

/// Looks an id up among training runs and their checkpoints.
async fn other_record(client: &Client, id: &str) -> Result<OtherRecord, ApiError> {
    match training::get(client, id).await {
        Ok(run) => return Ok(OtherRecord::Run { status: run.status }),
        Err(error) if error.is_not_found() => {}
        Err(error) => return Err(error),
    }
    // Checkpoints can only be listed by run; users most likely have one of the latest runs at hand.
    for run in training::list(client, RUNS_SEARCHED).await? {
        let checkpoints = match training::checkpoints(client, &run.id).await {
            Ok(checkpoints) => checkpoints,
            Err(error) if error.is_not_found() => continue,
            Err(error) => return Err(error),
        };
        if let Some(checkpoint) = checkpoints.into_iter().find(|checkpoint| checkpoint.id == id) {
            return Ok(OtherRecord::Checkpoint { run_id: run.id, step: checkpoint.step });
        }
    }
    Ok(OtherRecord::Nothing)
}

/// Training runs whose checkpoints are searched for an unknown id.
const RUNS_SEARCHED: u64 = 20;

struct Explained<'a>(&'a OtherRecord);

impl fmt::Display for Explained<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            OtherRecord::Run { status } => write!(
                formatter,
                "it is a training run ({status}); give it as --adapter-from-run to use its deployed adapter"
            ),
            OtherRecord::Checkpoint { run_id, step } => {
                let step = step.map_or_else(|| "latest".to_owned(), |step| step.to_string());
                write!(
                    formatter,
                    "it is a checkpoint of training run {run_id}; give --adapter-from-run {run_id} --adapter-step {step}"
                )
            }
            OtherRecord::Nothing => formatter.write_str(
                "no adapter, training run or recent checkpoint has this id; `aec-bench prime adapters` lists adapters",
            ),
        }
    }
}

struct Unanswering<'a>(&'a str, &'a str, Option<&'a str>);

impl fmt::Display for Unanswering<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self(status, _, _) if *status != READY => {
                write!(formatter, "its files are {status}, not {READY}")?;
            }
            Self(_, deployment, _) => {
                write!(formatter, "it is {deployment}; deploy it on Prime's adapters page")?;
            }
        }
        self.2.iter().try_for_each(|error| write!(formatter, " ({error})"))
    }
}

struct RunState<'a>(Option<&'a str>);

impl fmt::Display for RunState<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(status) => write!(
                formatter,
                " (the run is {status}); adapters are uploaded while it trains or at its end"
            ),
            None => formatter.write_str(", and no such run exists; check the id and the team"),
        }
    }
}
