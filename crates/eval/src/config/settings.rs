//! The checked settings of one evaluation: options with the built-in defaults filled in, in convenient types.

use std::path::PathBuf;
use std::time::Duration;

use aec_base::document::Shared;
use aec_base::problem::Problem;
use serde_json::json;

use crate::config::options::{EvalOptions, Headers, Object, Workers};
use crate::config::{Environment, FAMILY, check, display_name, module_name};

const MODEL: &str = "gpt-4.1-mini";
const NUM_EXAMPLES: i64 = 5;
const ROLLOUTS_PER_EXAMPLE: u32 = 3;
const MAX_CONCURRENT: i64 = 32;
const ENV_DIR_PATH: &str = "./environments";

/// Rollouts per worker process when the user does not choose the number of processes.
const ROLLOUTS_PER_WORKER: u64 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// At most this many, one or more.
    AtMost(u64),
    Unlimited,
}

impl Limit {
    /// Zero or less means no limit.
    pub fn of(number: i64) -> Self {
        match u64::try_from(number) {
            Ok(most) if most > 0 => Self::AtMost(most),
            _ => Self::Unlimited,
        }
    }

    pub fn most(self) -> Option<u64> {
        match self {
            Self::AtMost(most) => Some(most),
            Self::Unlimited => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelChoice {
    /// A model, or the endpoint of this id if the file of endpoints has one.
    Model(String),
    /// An endpoint that the file of endpoints must have.
    Endpoint(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    No,
    /// The latest incomplete run, or a new one.
    Latest,
    Path(PathBuf),
}

#[derive(Clone, Debug, PartialEq)]
pub struct EvalSettings {
    /// All options as given. Where this struct has a field for an option, use that field instead.
    pub said: EvalOptions,
    /// The environment as the user named it.
    pub env_id: String,
    pub environment: Environment,
    /// Arguments of `load_environment`.
    pub env_args: Object,
    pub extra_env_kwargs: Object,
    /// Directory with the sources of environments.
    pub env_dir_path: PathBuf,
    pub model: ModelChoice,
    pub headers: Headers,
    /// Sampling parameters, including temperature and most tokens if given.
    pub sampling_args: Object,
    pub num_examples: Limit,
    /// Rollouts of each example, one or more.
    pub rollouts_per_example: u32,
    pub max_concurrent: Limit,
    pub max_concurrent_generation: Limit,
    pub max_concurrent_scoring: Limit,
    /// Processes that run the environment, one or more.
    pub num_workers: u32,
    pub timeout: Option<Duration>,
    /// Additional keys of the state to save.
    pub state_columns: Vec<String>,
    /// The seed for shuffling; absent if the examples are not shuffled.
    pub shuffle: Option<i64>,
    pub resume: Resume,
}

impl EvalSettings {
    /// Name shown to the user: the evaluation's own, else the environment's.
    pub fn display_name(&self) -> String {
        self.said.name.clone().unwrap_or_else(|| display_name(&self.env_id))
    }

    pub fn module_name(&self) -> String {
        module_name(&self.env_id)
    }
}

impl EvalOptions {
    /// Checks the options and fills in the built-in defaults. Every problem is reported.
    pub fn resolve(self) -> Result<EvalSettings, Vec<Problem>> {
        let named = self.env_id.clone();
        let problems = match self.normal().map(Self::filled) {
            Ok(Ok(settings)) => return Ok(settings),
            Ok(Err(problem)) => vec![problem],
            Err(faults) => faults.into_iter().map(|fault| fault.problem).collect(),
        };
        let about = |problem: Problem| match &named {
            Some(env_id) => problem.about(env_id),
            None => problem,
        };
        Err(problems.into_iter().map(about).collect())
    }

    /// The settings of options without faults.
    fn filled(self) -> Result<EvalSettings, Problem> {
        let env_id = self.env_id.clone().ok_or_else(|| {
            Problem::error("no environment is named")
                .id(FAMILY.id(Shared::MissingKey))
                .fix("name one, such as my-env or ./environments/my_env")
        })?;
        let max_concurrent = Limit::of(self.max_concurrent.unwrap_or(MAX_CONCURRENT));
        Ok(EvalSettings {
            environment: Environment::parse(&env_id)?,
            env_id,
            env_args: self.env_args.clone().unwrap_or_default(),
            extra_env_kwargs: self.extra_env_kwargs.clone().unwrap_or_default(),
            env_dir_path: self.env_dir_path.clone().unwrap_or_else(|| PathBuf::from(ENV_DIR_PATH)),
            model: match (&self.endpoint_id, &self.model) {
                (Some(endpoint), _) => ModelChoice::Endpoint(endpoint.clone()),
                (None, model) => ModelChoice::Model(model.clone().unwrap_or_else(|| MODEL.to_owned())),
            },
            headers: self.headers.clone().unwrap_or_default(),
            sampling_args: self.sampling(),
            num_examples: Limit::of(self.num_examples.unwrap_or(NUM_EXAMPLES)),
            rollouts_per_example: self.rollouts_per_example.unwrap_or(ROLLOUTS_PER_EXAMPLE),
            max_concurrent,
            max_concurrent_generation: self.max_concurrent_generation.map_or(max_concurrent, Limit::of),
            max_concurrent_scoring: self.max_concurrent_scoring.map_or(max_concurrent, Limit::of),
            num_workers: self.workers(max_concurrent),
            timeout: self.timeout.map(|seconds| check::timeout("timeout", seconds)).transpose()?,
            state_columns: self.state_columns.clone().unwrap_or_default(),
            shuffle: self.shuffle.is_on().then(|| self.shuffle_seed.unwrap_or(0)),
            resume: match &self.resume_path {
                Some(path) => Resume::Path(path.clone()),
                None if self.resume.is_on() => Resume::Latest,
                None => Resume::No,
            },
            said: self,
        })
    }

    /// `sampling_args`, completed by the two plain fields.
    fn sampling(&self) -> Object {
        let mut sampling = self.sampling_args.clone().unwrap_or_default();
        if let Some(most) = self.max_tokens {
            sampling.entry("max_tokens").or_insert_with(|| json!(most));
        }
        if let Some(temperature) = self.temperature {
            sampling.entry("temperature").or_insert_with(|| json!(temperature));
        }
        sampling
    }

    fn workers(&self, max_concurrent: Limit) -> u32 {
        match self.num_workers {
            _ if self.disable_env_server.is_on() => 1,
            Some(Workers::Count(count)) => count,
            Some(Workers::Auto) | None => {
                let rollouts = max_concurrent.most().unwrap_or(1);
                u32::try_from(rollouts.div_ceil(ROLLOUTS_PER_WORKER)).unwrap_or(u32::MAX)
            }
        }
    }
}
