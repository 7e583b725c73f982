//! The settings of one evaluation: options with the built-in defaults filled in, checked, in the types that are used.

use std::path::PathBuf;
use std::time::Duration;

use aec_base::document::Shared;
use aec_base::problem::Problem;
use serde_json::{Map, Value, json};

use crate::config::options::{EvalOptions, Headers, Workers};
use crate::config::{Environment, FAMILY, check, display_name, module_name};

const MODEL: &str = "gpt-4.1-mini";
const NUM_EXAMPLES: i64 = 5;
const ROLLOUTS_PER_EXAMPLE: u32 = 3;
const MAX_CONCURRENT: i64 = 32;
const ENV_DIR_PATH: &str = "./environments";
const ENDPOINTS_PATH: &str = "./configs/endpoints.toml";

/// Rollouts that one worker process carries when their number is chosen for the user.
const ROLLOUTS_PER_WORKER: u64 = 256;

/// A number of things that may have no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// At most this many, one or more.
    AtMost(u64),
    /// All of them.
    Unlimited,
}

impl Limit {
    /// The limit that a number means: zero or less is none.
    pub fn of(number: i64) -> Self {
        match u64::try_from(number) {
            Ok(most) if most > 0 => Self::AtMost(most),
            _ => Self::Unlimited,
        }
    }

    /// The number, if there is a limit.
    pub fn most(self) -> Option<u64> {
        match self {
            Self::AtMost(most) => Some(most),
            Self::Unlimited => None,
        }
    }
}

/// What answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelChoice {
    /// A model; where the file of endpoints has an endpoint of this id, that one.
    Model(String),
    /// An endpoint, which the file of endpoints must have.
    Endpoint(String),
}

/// Whether an earlier run is continued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// A new run.
    No,
    /// The latest run that is incomplete, or a new one.
    Latest,
    /// The run in this directory.
    Path(PathBuf),
}

/// What one evaluation does. Fields are those of [`EvalOptions`]; what is still optional has no default.
#[derive(Clone, Debug, PartialEq)]
pub struct EvalSettings {
    /// The environment as it was named.
    pub env_id: String,
    /// What that name means.
    pub environment: Environment,
    /// Arguments of `load_environment`.
    pub env_args: Map<String, Value>,
    /// Arguments that are set on the environment.
    pub extra_env_kwargs: Map<String, Value>,
    /// Directory with the sources of environments.
    pub env_dir_path: PathBuf,
    /// File of endpoints.
    pub endpoints_path: PathBuf,
    /// Whether that file was named by somebody, so that its absence is an error.
    pub endpoints_path_is_said: bool,
    /// Provider.
    pub provider: Option<String>,
    /// What answers.
    pub model: ModelChoice,
    /// Wire format.
    pub api_client_type: Option<String>,
    /// Name of the variable that holds the key.
    pub api_key_var: Option<String>,
    /// Address of the model's interface.
    pub api_base_url: Option<String>,
    /// Further headers of each call.
    pub headers: Headers,
    /// Headers whose values are the state's.
    pub headers_from_state: Headers,
    /// Sampling parameters, with temperature and most tokens if they were said.
    pub sampling_args: Map<String, Value>,
    /// Number of examples.
    pub num_examples: Limit,
    /// Rollouts of each example, one or more.
    pub rollouts_per_example: u32,
    /// Most rollouts at once.
    pub max_concurrent: Limit,
    /// Most rollouts that generate at once.
    pub max_concurrent_generation: Limit,
    /// Most rollouts that are scored at once.
    pub max_concurrent_scoring: Limit,
    /// Whether each rollout is scored for itself.
    pub independent_scoring: bool,
    /// Whether scoring waits until all rollouts are complete.
    pub no_interleave_scoring: bool,
    /// How often a rollout that failed for reasons of infrastructure is tried again.
    pub max_retries: u32,
    /// Processes that run the environment, one or more.
    pub num_workers: u32,
    /// Time that one rollout may take.
    pub timeout: Option<Duration>,
    /// Python interpreter.
    pub python: Option<String>,
    /// Directory that results go to.
    pub output_dir: Option<PathBuf>,
    /// Further keys of the state that are saved.
    pub state_columns: Vec<String>,
    /// Whether results are saved.
    pub save_results: bool,
    /// Whether an earlier run is continued.
    pub resume: Resume,
    /// Whether results are published on the Hugging Face hub.
    pub save_to_hf_hub: bool,
    /// Dataset on the hub.
    pub hf_hub_dataset_name: Option<String>,
    /// Name of the evaluation.
    pub name: Option<String>,
    /// Whether examples are shuffled.
    pub shuffle: bool,
    /// Seed of the shuffling.
    pub shuffle_seed: i64,
    /// Seed of the sampling.
    pub seed: Option<i64>,
    /// Whether details are logged.
    pub verbose: bool,
    /// Whether plain log lines replace the live display.
    pub disable_tui: bool,
    /// Address that is called while the evaluation makes progress.
    pub heartbeat_url: Option<String>,
    /// Experiment of the ledger.
    pub ledger: Option<String>,
}

impl EvalSettings {
    /// Name for people: the evaluation's own, else the environment's.
    pub fn display_name(&self) -> String {
        self.name.clone().unwrap_or_else(|| display_name(&self.env_id))
    }

    /// Name of the environment's Python module.
    pub fn module_name(&self) -> String {
        module_name(&self.env_id)
    }
}

impl EvalOptions {
    /// Checks the options and fills in the built-in defaults. Every problem is reported.
    pub fn resolve(self) -> Result<EvalSettings, Vec<Problem>> {
        let mut problems = self.problems();
        let timeout = match self.timeout.map(|seconds| check::timeout("timeout", seconds)).transpose() {
            Ok(timeout) => timeout,
            Err(problem) => {
                problems.push(problem);
                None
            }
        };
        let environment = match self.env_id.as_deref().map(Environment::parse) {
            Some(Ok(environment)) => Some(environment),
            Some(Err(problem)) => {
                problems.push(problem);
                None
            }
            None => {
                let missing = Problem::error("no environment is named").id(FAMILY.id(Shared::MissingKey));
                problems.push(missing.fix("name one, such as my-env or ./environments/my_env"));
                None
            }
        };
        match (self.env_id.clone(), environment) {
            (Some(env_id), Some(environment)) if problems.is_empty() => {
                Ok(self.filled(env_id, environment, timeout))
            }
            (env_id, _) => Err(problems
                .into_iter()
                .map(|problem| match &env_id {
                    Some(env_id) => problem.about(env_id),
                    None => problem,
                })
                .collect()),
        }
    }

    /// The settings of options that have no problems.
    fn filled(self, env_id: String, environment: Environment, timeout: Option<Duration>) -> EvalSettings {
        let max_concurrent = Limit::of(self.max_concurrent.unwrap_or(MAX_CONCURRENT));
        EvalSettings {
            env_id,
            environment,
            sampling_args: self.sampling(),
            num_workers: self.workers(max_concurrent),
            resume: match self.resume_path {
                Some(path) => Resume::Path(path),
                None if self.resume == Some(true) => Resume::Latest,
                None => Resume::No,
            },
            model: match self.endpoint_id {
                Some(endpoint) => ModelChoice::Endpoint(endpoint),
                None => ModelChoice::Model(self.model.unwrap_or_else(|| MODEL.to_owned())),
            },
            env_args: self.env_args.unwrap_or_default(),
            extra_env_kwargs: self.extra_env_kwargs.unwrap_or_default(),
            env_dir_path: self.env_dir_path.unwrap_or_else(|| PathBuf::from(ENV_DIR_PATH)),
            endpoints_path_is_said: self.endpoints_path.is_some(),
            endpoints_path: self.endpoints_path.unwrap_or_else(|| PathBuf::from(ENDPOINTS_PATH)),
            provider: self.provider,
            api_client_type: self.api_client_type,
            api_key_var: self.api_key_var,
            api_base_url: self.api_base_url,
            headers: self.headers.unwrap_or_default(),
            headers_from_state: self.headers_from_state.unwrap_or_default(),
            num_examples: Limit::of(self.num_examples.unwrap_or(NUM_EXAMPLES)),
            rollouts_per_example: self.rollouts_per_example.unwrap_or(ROLLOUTS_PER_EXAMPLE),
            max_concurrent,
            max_concurrent_generation: self.max_concurrent_generation.map_or(max_concurrent, Limit::of),
            max_concurrent_scoring: self.max_concurrent_scoring.map_or(max_concurrent, Limit::of),
            independent_scoring: self.independent_scoring.unwrap_or(false),
            no_interleave_scoring: self.no_interleave_scoring.unwrap_or(false),
            max_retries: self.max_retries.unwrap_or(0),
            timeout,
            python: self.python,
            output_dir: self.output_dir,
            state_columns: self.state_columns.unwrap_or_default(),
            save_results: self.save_results.unwrap_or(false),
            save_to_hf_hub: self.save_to_hf_hub.unwrap_or(false),
            hf_hub_dataset_name: self.hf_hub_dataset_name,
            name: self.name,
            shuffle: self.shuffle.unwrap_or(false),
            shuffle_seed: self.shuffle_seed.unwrap_or(0),
            seed: self.seed,
            verbose: self.verbose.unwrap_or(false),
            disable_tui: self.disable_tui.unwrap_or(false),
            heartbeat_url: self.heartbeat_url,
            ledger: self.ledger,
        }
    }

    /// `sampling_args`, and the two plain fields where it does not have them.
    fn sampling(&self) -> Map<String, Value> {
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
            _ if self.disable_env_server == Some(true) => 1,
            Some(Workers::Count(count)) => count,
            Some(Workers::Auto) | None => {
                let rollouts = max_concurrent.most().unwrap_or(1);
                u32::try_from(rollouts.div_ceil(ROLLOUTS_PER_WORKER)).unwrap_or(u32::MAX)
            }
        }
    }

    /// What is wrong with the values, apart from the environment and the timeout.
    fn problems(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        for (key, text) in [
            ("provider", &self.provider),
            ("endpoint_id", &self.endpoint_id),
            ("model", &self.model),
            ("api_client_type", &self.api_client_type),
            ("python", &self.python),
            ("hf_hub_dataset_name", &self.hf_hub_dataset_name),
        ] {
            found.extend(text.as_ref().and_then(|text| check::not_empty(key, text).err()));
        }
        for (key, map) in [
            ("env_args", &self.env_args),
            ("extra_env_kwargs", &self.extra_env_kwargs),
            ("sampling_args", &self.sampling_args),
        ] {
            found.extend(map.as_ref().and_then(|map| check::arguments(key, map).err()));
        }
        for (name, value) in self.headers.iter().flatten() {
            found.extend(check::header("headers", name, value).err());
        }
        for (name, state_key) in self.headers_from_state.iter().flatten() {
            found.extend(check::header_from_state("headers_from_state", name, state_key).err());
        }
        if let Some(columns) = &self.state_columns {
            found.extend(check::columns("state_columns", columns));
        }
        if self.endpoint_id.is_some() && self.model.is_some() {
            let what = "`model` and `endpoint_id` exclude each other".to_owned();
            found.push(check::conflict(what, "keep one of them; an endpoint has its own model"));
        }
        if self.resume == Some(false) && self.resume_path.is_some() {
            found.push(check::resume_conflict());
        }
        let checks = [
            self.api_key_var.as_ref().map(|text| check::variable("api_key_var", text)),
            self.api_base_url.as_ref().map(|text| check::address("api_base_url", text)),
            self.heartbeat_url.as_ref().map(|text| check::address("heartbeat_url", text)),
            self.ledger.as_ref().map(|text| check::plain_name("ledger", text)),
            self.name.as_ref().map(|text| check::plain_name("name", text)),
            self.max_tokens.map(|number| check::positive("max_tokens", number)),
            self.temperature.map(|number| check::temperature("temperature", number)),
            self.rollouts_per_example.map(|number| check::positive("rollouts_per_example", number)),
            self.num_workers.map(|workers| check::workers("num_workers", workers)),
        ];
        found.extend(checks.into_iter().flatten().filter_map(Result::err));
        found
    }
}
