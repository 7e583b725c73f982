//! Arguments of `aec-bench eval` and `aec-bench env`.

use std::path::PathBuf;

use aec_eval::config::EvalOptions;
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
    #[command(flatten)]
    pub(crate) options: EvalOptions,
    /// Show the evaluation on the full screen
    #[arg(long, short = 'u', visible_aliases = ["fullscreen"], conflicts_with_all = ["disable_tui", "quiet"])]
    #[arg(help_heading = "Pace")]
    pub(crate) tui: bool,
    /// Go on with an evaluation: the newest one that is not complete, or the one at PATH
    #[arg(long, short = 'R', value_name = "PATH", num_args = 0..=1, value_hint = ValueHint::DirPath)]
    #[arg(help_heading = "Results")]
    #[expect(clippy::option_option, reason = "absent, alone, and with a path are three things")]
    pub(crate) resume: Option<Option<PathBuf>>,
    /// With --resume: run rollouts again that ended in an error
    #[arg(long, requires = "resume", help_heading = "Results")]
    pub(crate) rerun_errors: bool,
    #[command(flatten)]
    pub(crate) tasks: EvalTaskArguments,
    #[command(flatten)]
    pub(crate) tape: TapeArguments,
    #[command(flatten)]
    pub(crate) budget: Caps,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
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
