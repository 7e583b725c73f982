//! Arguments of `aec-bench plan` and `aec-bench run`.

use std::path::PathBuf;

use aec_base::settings::Backend;
use aec_run::terms::{Caps, Terms};
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};

use super::{
    EndpointsArgument, EngineArguments, LedgerRootArgument, SandboxArgument, SelectionArguments,
    TapeArguments, TasksRootArgument,
};

/// What decides which trials there are: an experiment file, or flags that say the same.
#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    /// Tasks to run: ids, directories of ids, or patterns such as electrical/*
    #[arg(value_name = "TASK", conflicts_with = "config")]
    pub(crate) tasks: Vec<String>,
    /// Experiment file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Task to run; the same as naming it without the flag
    #[arg(long = "task", value_name = "TASK", conflicts_with = "config")]
    pub(crate) more_tasks: Vec<String>,
    #[command(flatten)]
    pub(crate) selection: SelectionArguments,
    /// Model or endpoint id; each one is an agent of its own
    #[arg(long, short, value_name = "MODEL", conflicts_with = "config")]
    pub(crate) model: Vec<String>,
    /// The program between model and task [default: `tool_loop`]
    #[arg(long, visible_alias = "adapter", value_name = "NAME", conflicts_with = "config", value_parser = harness_names())]
    pub(crate) harness: Option<String>,
    /// Parameter of the agents, such as `max_turns=12`; the value is JSON where possible
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "config")]
    pub(crate) parameter: Vec<String>,
    /// File with a system prompt for the agents, below the project root
    #[arg(long, value_name = "FILE", conflicts_with = "config", value_hint = ValueHint::FilePath)]
    pub(crate) system_prompt_file: Option<String>,
    /// How often each agent does each task
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) repetitions: Option<u32>,
    /// Id of the experiment, which names its directory in the ledger [default: made from the plan]
    #[arg(long, short = 'e', visible_alias = "experiment", value_name = "EXP")]
    pub(crate) experiment_id: Option<String>,
    /// Where trials run
    #[arg(long, short, value_name = "NAME", value_parser = Backend::NAMES)]
    pub(crate) backend: Option<String>,
    /// What Harbor runs trials in: docker, modal, daytona …, or module:Class [default: docker]
    #[arg(long, value_name = "TYPE")]
    pub(crate) harbor_environment: Option<String>,
    /// Seconds an agent may take, instead of the task's
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) timeout: Option<u32>,
    /// Memory in MiB, instead of the task's
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) memory_mb: Option<u32>,
    /// Keep submissions without scoring them
    #[arg(long)]
    pub(crate) no_verify: bool,
    /// Run agents whose prompts or files hold answers of the tasks; every record then tells
    #[arg(long)]
    pub(crate) allow_leaks: bool,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
    #[command(flatten)]
    pub(crate) endpoints: EndpointsArgument,
    #[command(flatten)]
    pub(crate) budget: Caps,
}

fn harness_names() -> PossibleValuesParser {
    PossibleValuesParser::new(aec_run::experiment::Harness::ALL.map(aec_run::experiment::Harness::name))
}

#[derive(Debug, Args)]
pub(crate) struct PlanCommandArguments {
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    /// Freeze the plan in this file; `run --plan FILE` then refuses whatever has changed
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) lock: Option<PathBuf>,
    /// Replace a plan file that exists
    #[arg(long, requires = "lock")]
    pub(crate) force: bool,
    /// Say how many trials, and how much money, it takes to see this difference between two agents
    #[arg(long, value_name = "REWARD")]
    pub(crate) detect: Option<f64>,
    /// Learn from this experiment how rewards scatter and what a trial costs
    #[arg(long, value_name = "EXP", requires = "detect")]
    pub(crate) pilot: Option<String>,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    /// Carry out a locked plan, and nothing but it
    #[arg(long = "plan", value_name = "FILE", conflicts_with_all = PLANNING, value_hint = ValueHint::FilePath)]
    pub(crate) locked: Option<PathBuf>,
    /// Go on with this experiment: whatever is missing of its plan
    #[arg(long, value_name = "EXP", conflicts_with_all = PLANNING, conflicts_with = "locked")]
    pub(crate) resume: Option<String>,
    /// Run trials again: `failed` (any fault), `infra` (faults that are not the agent's), or the id of a trial
    #[arg(long, value_name = "WHICH")]
    pub(crate) rerun: Vec<String>,
    /// Add to an experiment whose plan was another
    #[arg(long)]
    pub(crate) extend: bool,
    /// Show the plan, what it can cost and what is done already; run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Carry out part INDEX of COUNT, counted from 0
    #[arg(long, value_name = "INDEX/COUNT")]
    pub(crate) shard: Option<String>,
    #[command(flatten)]
    pub(crate) terms: Terms,
    /// Show the run on the full screen, with the trace of each trial
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) tui: bool,
    #[command(flatten)]
    pub(crate) tape: TapeArguments,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
    /// Directory of raw trial outputs to use instead of the configured one
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) jobs_root: Option<String>,
    #[command(flatten)]
    pub(crate) engine: EngineArguments,
}

/// Flags that make a plan, which one that is locked or under way does not need.
const PLANNING: [&str; 25] = [
    "tasks",
    "config",
    "more_tasks",
    "dataset",
    "exclude",
    "domain",
    "difficulty",
    "lifecycle",
    "visibility",
    "tag",
    "filter",
    "model",
    "harness",
    "parameter",
    "system_prompt_file",
    "repetitions",
    "backend",
    "harbor_environment",
    "timeout",
    "memory_mb",
    "no_verify",
    "allow_leaks",
    "experiment_id",
    "sandbox",
    "tasks_root",
];
