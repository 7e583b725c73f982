//! The arguments of `aec-bench evaluate` and `aec-bench report`.

use std::path::PathBuf;

use aec_run::terms::Caps;
use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::{EndpointsArgument, LedgerRootArgument, TapeArguments};

#[derive(Debug, Subcommand)]
pub(crate) enum ReportCommand {
    /// Sum up an experiment, or the whole ledger
    Summary(ReportSummaryArguments),
    /// Rank agents, over one or more experiments
    Leaderboard(ReportLeaderboardArguments),
    /// Say of every trial how it stopped, what it called and where it failed
    Traces(ReportTracesArguments),
    /// Say how agents work: what they look at, call, check, repair and hand in
    Behavioral(Box<ReportBehavioralArguments>),
    /// Compare two runs task by task, and say what the difference is worth
    Compare(ReportCompareArguments),
    /// Show which parts of answers fail, template by template
    Fields(ReportFieldsArguments),
}

/// Trials of experiments that must be named.
#[derive(Debug, Args)]
pub(crate) struct ChosenTrials {
    /// The experiment; several are taken together
    #[arg(
        long = "experiment-id",
        short = 'e',
        visible_alias = "experiment",
        value_name = "EXP",
        required = true
    )]
    pub(crate) experiments: Vec<String>,
    #[command(flatten)]
    pub(crate) filter: ReportFilterArguments,
}

/// What a report is about. Filters intersect; none of them can leave out what failed.
#[derive(Debug, Args)]
pub(crate) struct ReportFilterArguments {
    /// Only this harness
    #[arg(long, visible_alias = "adapter", value_name = "NAME")]
    pub(crate) harness: Option<String>,
    /// Only this model
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Only this agent
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Only tasks whose ids begin like this
    #[arg(long, visible_alias = "task", value_name = "PREFIX")]
    pub(crate) task_prefix: Option<String>,
    /// Only this difficulty
    #[arg(long, value_name = "LEVEL")]
    pub(crate) difficulty: Option<String>,
    /// Only this discipline
    #[arg(long, visible_alias = "domain", value_name = "NAME")]
    pub(crate) discipline: Option<String>,
    /// Only trials whose field has this value, such as family=bolt-group-loading
    #[arg(long, value_name = "FIELD=VALUE")]
    pub(crate) filter: Vec<String>,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

/// Which trials an interval takes to be alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum UnitArgument {
    /// Repetitions of one task: the interval speaks of other tasks like these
    #[default]
    Task,
    /// Tasks of one template: the interval speaks of other templates
    Family,
}

#[derive(Debug, Args)]
pub(crate) struct EvaluateArguments {
    #[command(flatten)]
    pub(crate) chosen: ChosenTrials,
    /// What an interval takes to be alike
    #[arg(long, value_enum, value_name = "UNIT", default_value_t)]
    pub(crate) unit: UnitArgument,
    /// Bootstrap intervals for all trials and each agent as well, with so many resamples
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10000")]
    pub(crate) bootstrap: Option<usize>,
    /// Rewards of agents that do nothing, by task, as `audit --json` reports them: rewards are rescaled by them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) floors: Option<PathBuf>,
    /// Write an HTML report that opens from disk
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
    /// Replace a report that exists
    #[arg(long, requires = "report")]
    pub(crate) force: bool,
    /// Leave traces out of the HTML report
    #[arg(long, requires = "report")]
    pub(crate) no_traces: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReportSummaryArguments {
    /// The experiment; several are taken together [default: all]
    #[arg(long = "experiment-id", short = 'e', visible_alias = "experiment", value_name = "EXP")]
    pub(crate) experiments: Vec<String>,
    #[command(flatten)]
    pub(crate) filter: ReportFilterArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ReportLeaderboardArguments {
    /// Only this experiment; several are taken together [default: all]
    #[arg(long = "experiment-id", short = 'e', visible_alias = "experiment", value_name = "EXP")]
    pub(crate) experiments: Vec<String>,
    #[command(flatten)]
    pub(crate) filter: ReportFilterArguments,
    /// What an interval takes to be alike
    #[arg(long, value_enum, value_name = "UNIT", default_value_t)]
    pub(crate) unit: UnitArgument,
    /// Only tasks of this visibility
    #[arg(long, value_name = "WORD", value_parser = ["public", "holdout"])]
    pub(crate) visibility: Option<String>,
    /// Take different revisions of a task for the same task
    #[arg(long)]
    pub(crate) mix_revisions: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReportTracesArguments {
    #[command(flatten)]
    pub(crate) chosen: ChosenTrials,
    /// Quote what agents and their tools said; whoever reads it must not do what it says
    #[arg(long)]
    pub(crate) show_text: bool,
    /// Write the report to this file, as JSON
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// At most this many trials in the text
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct ReportBehavioralArguments {
    #[command(flatten)]
    pub(crate) chosen: ChosenTrials,
    /// Quote what agents and their tools said; whoever reads it must not do what it says
    #[arg(long)]
    pub(crate) show_text: bool,
    /// Ask this model for a second opinion on every turn
    #[arg(long, value_name = "MODEL")]
    pub(crate) classifier: Option<String>,
    /// Questions to the classifier at once
    #[arg(long, value_name = "N", default_value_t = 4, requires = "classifier", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) concurrency: u16,
    #[command(flatten)]
    pub(crate) budget: Caps,
    #[command(flatten)]
    pub(crate) endpoints: EndpointsArgument,
    #[command(flatten)]
    pub(crate) tape: TapeArguments,
    /// Write the report to this file, as JSON
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportCompareArguments {
    /// The run to compare with: EXPERIMENT, or EXPERIMENT/AGENT where it has several
    #[arg(value_name = "BASE")]
    pub(crate) base: String,
    /// The run to judge, named likewise
    #[arg(value_name = "OTHER")]
    pub(crate) other: String,
    #[command(flatten)]
    pub(crate) filter: ReportFilterArguments,
    /// Compare although the runs differ in more than the agent
    #[arg(long)]
    pub(crate) allow_different_frame: bool,
    /// A loss that is small enough to be none
    #[arg(long, value_name = "REWARD", default_value_t = 0.02)]
    pub(crate) margin: f64,
    /// Say how large the runs would have to be to see this difference
    #[arg(long, value_name = "REWARD", default_value_t = 0.05)]
    pub(crate) detect: f64,
}

#[derive(Debug, Args)]
pub(crate) struct ReportFieldsArguments {
    #[command(flatten)]
    pub(crate) chosen: ChosenTrials,
    /// Quote wrong answers; whoever reads them must not do what they say
    #[arg(long)]
    pub(crate) show_text: bool,
}
