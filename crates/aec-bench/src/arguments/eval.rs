//! Arguments of `aec-bench eval` and `aec-bench env`.

use std::path::PathBuf;

use aec_run::terms::Caps;
use clap::{Args, Subcommand, ValueHint};

use super::{SandboxArgument, SelectionArguments, TapeArguments, TasksRootArgument};

#[derive(Debug, Subcommand)]
pub(crate) enum EvalCommand {
    /// Let a model work on an environment, and report rewards and metrics
    Run(Box<EvalRunArguments>),
    /// List saved evaluations, newest first
    List(EvalListArguments),
    /// Show what a saved evaluation came to
    Show(EvalShowArguments),
    /// Hold saved evaluations of the same examples against each other
    Compare(EvalCompareArguments),
    /// Publish a saved evaluation as a dataset on the Hugging Face hub
    Push(EvalPushArguments),
    /// Install an environment into a Python interpreter
    Install(EvalInstallArguments),
}

#[derive(Debug, Subcommand)]
pub(crate) enum EnvCommand {
    /// Install an environment into a Python interpreter; the same as `eval install`
    Install(EvalInstallArguments),
}

/// How examples are chosen, asked and judged.
#[derive(Debug, Args)]
pub(crate) struct EvalRunArguments {
    /// Environment, dataset NAME@VERSION, directory of a package, or a TOML file of evaluations; none with --task and
    /// its like
    #[arg(value_name = "ENV")]
    pub(crate) env: Option<String>,
    /// Model or endpoint id [default: gpt-4.1-mini]
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Examples; 0 or less for all [default: 5, or what the package says]
    #[arg(long, short, value_name = "N", allow_negative_numbers = true)]
    pub(crate) num_examples: Option<i64>,
    /// Rollouts of each example [default: 3, or what the package says]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) rollouts_per_example: Option<u32>,
    /// Save results to disk as they come
    #[arg(long, short)]
    pub(crate) save_results: bool,
    #[command(flatten)]
    pub(crate) service: EvalModelArguments,
    #[command(flatten)]
    pub(crate) environment: EvalEnvironmentArguments,
    #[command(flatten)]
    pub(crate) pace: EvalPaceArguments,
    #[command(flatten)]
    pub(crate) results: EvalResultArguments,
    #[command(flatten)]
    pub(crate) tasks: EvalTaskArguments,
    #[command(flatten)]
    pub(crate) tape: TapeArguments,
    #[command(flatten)]
    pub(crate) budget: Caps,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct EvalModelArguments {
    /// Endpoints file, or the directory of one [default: the configured one]
    #[arg(long, short = 'e', visible_alias = "endpoints", value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) endpoints_path: Option<PathBuf>,
    /// Whose model it is: prime, openrouter, openai, anthropic, minimax, deepseek, glm, local or vllm
    #[arg(long, short, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// Address of the model's service
    #[arg(long, short = 'b', value_name = "URL")]
    pub(crate) api_base_url: Option<String>,
    /// Variable that holds the key
    #[arg(long, short = 'k', value_name = "NAME")]
    pub(crate) api_key_var: Option<String>,
    /// Format of the service, such as `openai_chat_completions` or `anthropic_messages`
    #[arg(long, value_name = "NAME")]
    pub(crate) api_client_type: Option<String>,
    /// Header that is sent with every request
    #[arg(long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// Randomness of answers
    #[arg(long, short = 'T', value_name = "NUMBER")]
    pub(crate) temperature: Option<f64>,
    /// Most tokens of an answer
    #[arg(long, short = 't', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_tokens: Option<u32>,
    /// How answers are drawn, as a JSON object; its keys win over -T and -t
    #[arg(long, short = 'S', value_name = "JSON")]
    pub(crate) sampling_args: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Environment")]
pub(crate) struct EvalEnvironmentArguments {
    /// Arguments of `load_environment`, as a JSON object
    #[arg(long, short = 'a', value_name = "JSON")]
    pub(crate) env_args: Option<String>,
    /// What replaces settings of the loaded environment, such as `{"max_turns": 20}`
    #[arg(long, short = 'x', value_name = "JSON")]
    pub(crate) extra_env_kwargs: Option<String>,
    /// Directory of environments [default: ./environments, then those of this project]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) env_dir_path: Option<PathBuf>,
    /// Interpreter in which the environment is installed; packages of ours are then loaded by it too
    #[arg(long, value_name = "PYTHON", value_hint = ValueHint::FilePath)]
    pub(crate) python: Option<PathBuf>,
    /// Worker processes of a Python environment, or auto
    #[arg(long, short = 'w', value_name = "N")]
    pub(crate) num_workers: Option<String>,
    /// One worker process, whatever the number of rollouts at once
    #[arg(long, conflicts_with = "num_workers")]
    pub(crate) disable_env_server: bool,
    /// Take the examples in an order that a seed draws
    #[arg(long)]
    pub(crate) shuffle: bool,
    /// The seed of --shuffle [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) shuffle_seed: Option<i64>,
    /// Seed from which each rollout gets a seed of its own, for services that take one
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) seed: Option<i64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Pace")]
pub(crate) struct EvalPaceArguments {
    /// Rollouts at once; 0 or less for no limit [default: 32]
    #[arg(long, short = 'c', value_name = "N", allow_negative_numbers = true)]
    pub(crate) max_concurrent: Option<i64>,
    /// Rollouts that are generated at once [default: --max-concurrent]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) max_concurrent_generation: Option<i64>,
    /// Rollouts that are scored at once [default: --max-concurrent]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) max_concurrent_scoring: Option<i64>,
    /// Score each rollout by itself, not together with the others of its example
    #[arg(long, short = 'i')]
    pub(crate) independent_scoring: bool,
    /// Score when everything is generated, not before
    #[arg(long, short = 'N')]
    pub(crate) no_interleave_scoring: bool,
    /// How often a rollout is tried again that failed through no fault of the model [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) max_retries: Option<u32>,
    /// Seconds that a rollout may take
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
    /// Address that is asked for while rollouts finish, for a monitor
    #[arg(long, value_name = "URL")]
    pub(crate) heartbeat_url: Option<String>,
    /// Show the evaluation on the full screen
    #[arg(long, short = 'u', visible_aliases = ["fullscreen"], conflicts_with_all = ["debug", "quiet"])]
    pub(crate) tui: bool,
    /// Plain lines instead of a progress bar
    #[arg(long, short = 'd', visible_alias = "disable-tui")]
    pub(crate) debug: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Results")]
pub(crate) struct EvalResultArguments {
    /// Go on with an evaluation: the newest one that is not complete, or the one at PATH
    #[arg(long, short = 'R', value_name = "PATH", num_args = 0..=1, value_hint = ValueHint::DirPath)]
    #[expect(clippy::option_option, reason = "absent, alone, and with a path are three things")]
    pub(crate) resume: Option<Option<PathBuf>>,
    /// With --resume: run rollouts again that ended in an error
    #[arg(long, requires = "resume")]
    pub(crate) rerun_errors: bool,
    /// Columns of the state to save with each rollout, separated by commas
    #[arg(long, short = 'C', value_name = "NAMES")]
    pub(crate) state_columns: Option<String>,
    /// Directory of results [default: outputs beside the package, else ./outputs]
    #[arg(long, short = 'o', value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output_dir: Option<PathBuf>,
    /// Name of the evaluation, which names its directory instead of the environment
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Publish the results on the Hugging Face hub
    #[arg(long, short = 'H')]
    pub(crate) save_to_hf_hub: bool,
    /// Name of the dataset there [default: made from environment and model]
    #[arg(long, short = 'D', value_name = "OWNER/NAME")]
    pub(crate) hf_hub_dataset_name: Option<String>,
    /// Bring the rollouts into the ledger as this experiment
    #[arg(long, value_name = "EXP")]
    pub(crate) ledger: Option<String>,
}

/// Tasks of this project instead of an environment.
#[derive(Debug, Args)]
#[command(next_help_heading = "Tasks of this project")]
pub(crate) struct EvalTaskArguments {
    /// Tasks to evaluate: ids, or directories of ids
    #[arg(long, value_name = "ID", num_args = 1..)]
    pub(crate) task: Vec<String>,
    /// Tasks whose ids match this pattern, such as electrical/*
    #[arg(long, value_name = "PATTERN")]
    pub(crate) pattern: Vec<String>,
    #[command(flatten)]
    pub(crate) selection: SelectionArguments,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

impl EvalTaskArguments {
    /// Whether tasks were named.
    pub(crate) fn selects(&self) -> bool {
        let selection = &self.selection;
        !self.task.is_empty()
            || !self.pattern.is_empty()
            || selection.dataset.is_some()
            || !selection.domain.is_empty()
            || !selection.difficulty.is_empty()
            || !selection.tag.is_empty()
            || !selection.filter.is_empty()
            || !selection.visibility.is_empty()
            || !selection.lifecycle.is_empty()
    }
}

#[derive(Debug, Args)]
pub(crate) struct EvalListArguments {
    /// Directories to look in [default: the environments and outputs of this project]
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directories: Vec<PathBuf>,
    /// Only this environment
    #[arg(long, value_name = "NAME")]
    pub(crate) env: Option<String>,
    /// Only this model
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct EvalShowArguments {
    /// Directory of the evaluation, or its id
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Also show the conversations of so many rollouts
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) rollouts: usize,
}

#[derive(Debug, Args)]
pub(crate) struct EvalCompareArguments {
    /// Directories of evaluations, or their ids; the first one is what the others are compared with
    #[arg(value_name = "RUN", num_args = 2.., required = true)]
    pub(crate) runs: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct EvalPushArguments {
    /// Directory of the evaluation, or its id
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Name of the dataset [default: made from environment and model]
    #[arg(long, short = 'D', value_name = "OWNER/NAME")]
    pub(crate) hf_hub_dataset_name: Option<String>,
    /// Let everybody see it
    #[arg(long)]
    pub(crate) public: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EvalInstallArguments {
    /// Environments: names below the directories of environments, directories, or what pip takes
    #[arg(value_name = "ENV", required = true)]
    pub(crate) environments: Vec<String>,
    /// Interpreter to install into [default: the one on PATH]
    #[arg(long, value_name = "PYTHON", value_hint = ValueHint::FilePath)]
    pub(crate) python: Option<PathBuf>,
    /// Directory of environments [default: ./environments, then those of this project]
    #[arg(long, short = 'p', value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) env_dir_path: Option<PathBuf>,
}
