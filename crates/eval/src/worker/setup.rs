//! The setup of a pool of workers.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::worker::protocol::Interface;

/// Concurrent rollouts that justify the memory of another worker.
const ROLLOUTS_PER_WORKER: usize = 256;

/// Variables of this process that workers inherit. None of them holds a key.
const INHERITED: [&str; 34] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "PYTHONPYCACHEPREFIX",
    "HF_HOME",
    "HF_DATASETS_CACHE",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "HF_DATASETS_OFFLINE",
    "TRANSFORMERS_OFFLINE",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "UV_CACHE_DIR",
    "VF_LOG_LEVEL",
    "DOCKER_HOST",
];

#[derive(Clone, Debug, PartialEq)]
pub struct EnvironmentRequest {
    /// `name`, `owner/name` or `owner/name@version`.
    pub env_id: String,
    /// Arguments of `load_environment`, or fields of the taskset.
    pub env_args: Map<String, Value>,
    /// Set on the environment after loading, or further tables of a v1 configuration.
    pub extra_env_kwargs: Map<String, Value>,
    /// A directory of environments that need not be installed.
    pub env_dir_path: Option<PathBuf>,
    pub interface: Interface,
    /// The number of examples from the start; 0 or less means all.
    pub num_examples: i64,
    pub shuffle_seed: Option<u64>,
    pub shuffle: bool,
    /// Keys of the state that become part of the rows; for tasksets also `trace` and `episode`.
    pub state_columns: Vec<String>,
    /// Keys of the state that are sent with each model call.
    pub state_keys: Vec<String>,
    /// How often a job is generated again after an infrastructure error.
    pub max_retries: u32,
    /// Seconds that generating a rollout may take, enforced by the library.
    pub timeout: Option<f64>,
    /// Whether rewards are computed.
    pub score: bool,
}

impl EnvironmentRequest {
    /// All examples of an environment, with default settings.
    pub fn new(env_id: impl Into<String>) -> Self {
        Self {
            env_id: env_id.into(),
            env_args: Map::new(),
            extra_env_kwargs: Map::new(),
            env_dir_path: None,
            interface: Interface::Auto,
            num_examples: -1,
            shuffle_seed: None,
            shuffle: false,
            state_columns: Vec::new(),
            state_keys: Vec::new(),
            max_retries: 0,
            timeout: None,
            score: true,
        }
    }
}

/// Receives the requests that environments make themselves, such as those of a judge.
#[derive(Clone, PartialEq, Eq)]
pub struct Gateway {
    /// The address of an endpoint for chat completions, ending in `/v1`.
    pub base_url: String,
    /// Accepted as its key.
    pub token: String,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("base_url", &self.base_url).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerCount {
    /// One for every 256 concurrent rollouts, and at most one per processor.
    Auto,
    /// This many, but at least one.
    Exactly(usize),
}

impl WorkerCount {
    /// The number of workers for this many concurrent rollouts.
    pub fn resolve(self, concurrency: usize) -> usize {
        match self {
            Self::Exactly(count) => count.max(1),
            Self::Auto => {
                let processors = std::thread::available_parallelism().map_or(1, usize::from);
                concurrency.div_ceil(ROLLOUTS_PER_WORKER).min(processors).max(1)
            }
        }
    }
}

/// Time limits and retry limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the start of a worker until its environment is loaded.
    pub load: Duration,
    /// To generate a job, in addition to the library's own limit on rollouts.
    pub generation: Option<Duration>,
    /// To score a job; the library has no such limit.
    pub scoring: Option<Duration>,
    /// How long a worker may take to cancel a job before it counts as stuck and is killed.
    pub drop: Duration,
    /// How often the workers of a pool may be restarted until another job is scored.
    pub restarts: u32,
    /// The wait before the first restart; it doubles each time, up to half a minute.
    pub backoff: Duration,
    /// Bytes of a worker's output that are kept on disk.
    pub log_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            load: Duration::from_mins(10),
            generation: None,
            scoring: None,
            drop: Duration::from_secs(5),
            restarts: 8,
            backoff: Duration::from_millis(500),
            log_bytes: 16 * 1024 * 1024,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Setup {
    /// The interpreter that has `verifiers` and the environment.
    pub python: PathBuf,
    pub environment: EnvironmentRequest,
    /// Concurrent rollouts, over all workers.
    pub concurrency: usize,
    pub workers: WorkerCount,
    /// The variables of this process; workers inherit some of them.
    pub surroundings: Vec<(OsString, OsString)>,
    /// Variables that workers get in any case.
    pub variables: BTreeMap<String, String>,
    pub gateway: Option<Gateway>,
    /// The directory for the workers' output, `env_worker_<i>.log`.
    pub logs: PathBuf,
    pub limits: Limits,
}

impl Setup {
    pub(crate) fn load_message(&self, workers: usize) -> Value {
        let environment = &self.environment;
        json!({
            "env_id": environment.env_id,
            "env_args": environment.env_args,
            "extra_env_kwargs": environment.extra_env_kwargs,
            "env_dir_path": environment.env_dir_path.as_deref().map(Path::to_string_lossy),
            "interface": environment.interface,
            "num_examples": environment.num_examples,
            "shuffle": environment.shuffle,
            "shuffle_seed": environment.shuffle_seed,
            "state_columns": environment.state_columns,
            "state_keys": environment.state_keys,
            "max_retries": environment.max_retries,
            "timeout": environment.timeout,
            "score": environment.score,
            "concurrency": (self.concurrency / workers.max(1)).max(1),
            "gateway": self.gateway.as_ref().map(|gateway| &gateway.base_url),
        })
    }
}

/// The variables of a worker: some of this process, those of the gateway, and the given ones.
pub fn worker_variables(setup: &Setup) -> BTreeMap<OsString, OsString> {
    let mut kept: BTreeMap<OsString, OsString> = setup
        .surroundings
        .iter()
        .filter(|(name, _)| is_inherited(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    // Programs beside the interpreter, such as `uv`, take precedence.
    if let Some(directory) = setup.python.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        let mut path = directory.as_os_str().to_owned();
        if let Some(rest) = kept.get(OsStr::new("PATH")).filter(|rest| !rest.is_empty()) {
            path.push(":");
            path.push(rest);
        }
        kept.insert("PATH".into(), path);
    }
    for (name, value) in [
        ("PYTHONUNBUFFERED", "1"),
        ("PYTHONFAULTHANDLER", "1"),
        ("PYTHONIOENCODING", "utf-8:backslashreplace"),
        ("HF_DATASETS_DISABLE_PROGRESS_BARS", "1"),
    ] {
        kept.insert(name.into(), value.into());
    }
    if let Some(gateway) = &setup.gateway {
        kept.insert("OPENAI_BASE_URL".into(), gateway.base_url.clone().into());
        kept.insert("OPENAI_API_KEY".into(), gateway.token.clone().into());
    }
    kept.extend(setup.variables.iter().map(|(name, value)| (name.into(), value.into())));
    kept
}

fn is_inherited(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| INHERITED.contains(&name) || name.starts_with("LC_"))
}
