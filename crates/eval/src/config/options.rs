//! The options of one evaluation as somebody said them: on the command line, in a file or in a package. What was not
//! said stays open, so that layers of options can be laid over each other.

use std::path::PathBuf;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::config::headers;

/// Names and values of headers, in order.
pub type Headers = IndexMap<String, String>;

/// How many processes run the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// As many as the concurrency asks for.
    Auto,
    /// This many.
    Count(u32),
}

/// Declares the struct once, so that no field can be forgotten where all fields are walked through.
macro_rules! eval_options {
    ($($(#[$doc:meta])* $field:ident: $type:ty,)*) => {
        /// What was said about one evaluation. A field that is `None` was not said.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct EvalOptions {
            $($(#[$doc])* pub $field: Option<$type>,)*
        }

        impl EvalOptions {
            /// Names of the fields that were said, in the order of their declaration.
            pub fn said(&self) -> Vec<&'static str> {
                let mut names = Vec::new();
                $(if self.$field.is_some() {
                    names.push(stringify!($field));
                })*
                names
            }

            /// Each field of `self`, or of `base` where `self` says nothing.
            fn or(self, base: Self) -> Self {
                Self { $($field: self.$field.or(base.$field),)* }
            }
        }
    };
}

eval_options! {
    /// The environment: a name, `owner/name`, either with `@version`, or the path of a directory.
    env_id: String,
    /// Arguments of the environment's `load_environment`.
    env_args: Map<String, Value>,
    /// Arguments that are set on the environment after it was loaded.
    extra_env_kwargs: Map<String, Value>,
    /// Directory with the sources of environments.
    env_dir_path: PathBuf,
    /// File of endpoints.
    endpoints_path: PathBuf,
    /// Provider whose address and key variable are used.
    provider: String,
    /// An endpoint of the file of endpoints.
    endpoint_id: String,
    /// The model, or an endpoint's id.
    model: String,
    /// Wire format.
    api_client_type: String,
    /// Name of the variable that holds the key.
    api_key_var: String,
    /// Address of the model's interface.
    api_base_url: String,
    /// Further headers of each call.
    headers: Headers,
    /// Headers whose values are taken from the rollout's state: header name to state key.
    headers_from_state: Headers,
    /// Sampling parameters; they beat `max_tokens` and `temperature`.
    sampling_args: Map<String, Value>,
    /// Most tokens of an answer.
    max_tokens: u32,
    /// Temperature.
    temperature: f64,
    /// Number of examples; zero or less means all.
    num_examples: i64,
    /// Rollouts of each example.
    rollouts_per_example: u32,
    /// Most rollouts at once; zero or less means no limit.
    max_concurrent: i64,
    /// Most rollouts that generate at once; zero or less means no limit.
    max_concurrent_generation: i64,
    /// Most rollouts that are scored at once; zero or less means no limit.
    max_concurrent_scoring: i64,
    /// Whether each rollout is scored for itself instead of with its group.
    independent_scoring: bool,
    /// Whether scoring waits until all rollouts are complete.
    no_interleave_scoring: bool,
    /// How often a rollout that failed for reasons of infrastructure is tried again.
    max_retries: u32,
    /// Processes that run the environment.
    num_workers: Workers,
    /// Seconds that one rollout may take.
    timeout: f64,
    /// Python interpreter that runs the environment.
    python: String,
    /// Directory that results go to.
    output_dir: PathBuf,
    /// Further keys of the state that are saved with each rollout.
    state_columns: Vec<String>,
    /// Whether results are saved.
    save_results: bool,
    /// Whether the latest incomplete run is continued.
    resume: bool,
    /// The run that is continued.
    resume_path: PathBuf,
    /// Whether results are published on the Hugging Face hub.
    save_to_hf_hub: bool,
    /// Dataset on the hub that results are published as.
    hf_hub_dataset_name: String,
    /// Name of the evaluation where the environment's would not tell it apart.
    name: String,
    /// Whether examples are shuffled.
    shuffle: bool,
    /// Seed of the shuffling.
    shuffle_seed: i64,
    /// Seed of the sampling.
    seed: i64,
    /// Whether details are logged.
    verbose: bool,
    /// Whether plain log lines replace the live display.
    disable_tui: bool,
    /// Accepted from older command lines: one worker process.
    disable_env_server: bool,
    /// Address that is called while the evaluation makes progress.
    heartbeat_url: String,
    /// Experiment of the ledger that rollouts are recorded in.
    ledger: String,
}

impl EvalOptions {
    /// These options laid over `base`: what is said here wins, field by field. Headers merge, all other maps replace
    /// each other as a whole. `endpoint_id` and `model` exclude each other, so one said here removes the other there.
    #[must_use]
    pub fn over(mut self, mut base: Self) -> Self {
        if self.endpoint_id.is_some() {
            base.model = None;
        }
        if self.model.is_some() {
            base.endpoint_id = None;
        }
        // The same goes for a run to continue and the wish to continue none.
        if self.resume == Some(false) {
            base.resume_path = None;
        }
        if self.resume_path.is_some() && base.resume == Some(false) {
            base.resume = None;
        }
        // Within one layer `sampling_args` beats the two plain fields; an upper layer's plain field still beats a lower
        // layer's map, or an evaluation could not override what is said for all.
        if let Some(sampling) = &mut base.sampling_args {
            if self.max_tokens.is_some() {
                sampling.shift_remove("max_tokens");
            }
            if self.temperature.is_some() {
                sampling.shift_remove("temperature");
            }
        }
        self.headers = headers::merged(self.headers, base.headers.take());
        self.headers_from_state = headers::merged(self.headers_from_state, base.headers_from_state.take());
        self.or(base)
    }
}
