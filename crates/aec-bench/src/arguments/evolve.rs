//! Arguments of `aec-bench evolve` and `aec-bench swarm`.

use std::path::PathBuf;

use aec_run::terms::Caps;
use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args, Subcommand, ValueHint};

use super::{EndpointsArgument, LedgerRootArgument, SandboxArgument, TapeArguments, TasksRootArgument};

#[derive(Debug, Subcommand)]
pub(crate) enum EvolveCommand {
    /// Make a workspace: a prompt and skills, versioned with git
    Init(EvolveInitArguments),
    /// Improve a workspace: propose changes, measure them, accept what is shown to be better
    Run(Box<EvolveRunArguments>),
    /// Go on with a run that was stopped or killed
    Resume(Box<EvolveResumeArguments>),
    /// Ask a run to stop: it finishes the trials under way, or with --force cancels them
    Stop(EvolveStopArguments),
    /// List runs, or the candidates of a workspace with their lineage
    History(EvolveHistoryArguments),
    /// Show a candidate: what an agent is told, where it comes from
    Show(EvolveShowArguments),
    /// Show what tells two candidates apart
    Diff(EvolveDiffArguments),
    /// Put a candidate back into the workspace: exactly its files
    Rollback(EvolveRollbackArguments),
    /// Write the files of a candidate, or its whole system prompt, somewhere else
    Export(EvolveExportArguments),
    /// Say what a run did: lineage, scores with intervals, accepted and rejected changes, cost
    Report(EvolveReportArguments),
}

#[derive(Debug, Subcommand)]
pub(crate) enum SwarmCommand {
    /// Improve a workspace with many agents at once, over one archive and one budget
    Run(Box<SwarmRunArguments>),
    /// Go on with a swarm that was stopped or killed
    Resume(Box<EvolveResumeArguments>),
    /// Ask a swarm, or one of its agents, to stop
    Stop(SwarmStopArguments),
    /// Show where a swarm stands: agents, archive, budget
    Status(SwarmStatusArguments),
    /// List swarms
    History(SwarmHistoryArguments),
    /// Show the best candidates of a swarm, and export the best
    Best(SwarmBestArguments),
}

#[derive(Debug, Args)]
pub(crate) struct EvolveInitArguments {
    /// Directory of the workspace; it must be empty or absent
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) path: PathBuf,
    /// Name of the workspace [default: that of its directory]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The harness that the prompt is for
    #[arg(long, short = 'a', visible_alias = "adapter", value_name = "NAME", default_value = "tool_loop", value_parser = harness_names())]
    pub(crate) harness: String,
}

fn harness_names() -> PossibleValuesParser {
    PossibleValuesParser::new(aec_run::experiment::Harness::ALL.map(aec_run::experiment::Harness::name))
}

/// How a run is carried out. Nothing here changes what it searches for.
#[derive(Debug, Args)]
pub(crate) struct CarryArguments {
    /// Trials at once, instead of what the file says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) concurrency: Option<u32>,
    #[command(flatten)]
    pub(crate) tape: TapeArguments,
    #[command(flatten)]
    pub(crate) budget: Caps,
    #[command(flatten)]
    pub(crate) endpoints: EndpointsArgument,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

#[derive(Debug, Args)]
pub(crate) struct EvolveRunArguments {
    /// The evolution file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: PathBuf,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
    #[command(flatten)]
    pub(crate) carry: CarryArguments,
}

#[derive(Debug, Args)]
pub(crate) struct SwarmRunArguments {
    /// The swarm file
    #[arg(value_name = "FILE", required_unless_present = "file", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// The same
    #[arg(long = "config", short = 'c', value_name = "FILE", conflicts_with = "config", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
    #[command(flatten)]
    pub(crate) carry: CarryArguments,
}

#[derive(Debug, Args)]
pub(crate) struct EvolveResumeArguments {
    /// The run, or a beginning of its id that fits only one
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) carry: CarryArguments,
}

#[derive(Debug, Args)]
pub(crate) struct EvolveStopArguments {
    /// The run, or a beginning of its id that fits only one
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Cancel the trials under way instead of waiting for them
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SwarmStopArguments {
    #[command(flatten)]
    pub(crate) stop: EvolveStopArguments,
    /// Stop this agent alone, at once
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct EvolveHistoryArguments {
    /// A workspace; all runs are listed when absent
    #[arg(value_name = "WORKSPACE", value_hint = ValueHint::DirPath)]
    pub(crate) workspace: Option<PathBuf>,
    /// At most this many, the latest
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct EvolveShowArguments {
    /// The workspace
    #[arg(value_name = "WORKSPACE", value_hint = ValueHint::DirPath)]
    pub(crate) workspace: PathBuf,
    /// A candidate or a label [default: what lies in the workspace]
    #[arg(value_name = "CANDIDATE")]
    pub(crate) candidate: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct EvolveDiffArguments {
    /// The workspace
    #[arg(value_name = "WORKSPACE", value_hint = ValueHint::DirPath)]
    pub(crate) workspace: PathBuf,
    /// A candidate or a label
    #[arg(value_name = "CANDIDATE")]
    pub(crate) first: String,
    /// Another one [default: the first is compared with its parent]
    #[arg(value_name = "CANDIDATE")]
    pub(crate) second: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct EvolveRollbackArguments {
    /// The workspace
    #[arg(value_name = "WORKSPACE", value_hint = ValueHint::DirPath)]
    pub(crate) workspace: PathBuf,
    /// A candidate or a label
    #[arg(value_name = "CANDIDATE")]
    pub(crate) candidate: String,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").args(["output", "prompt"]).required(true).multiple(true)))]
pub(crate) struct EvolveExportArguments {
    /// The workspace
    #[arg(value_name = "WORKSPACE", value_hint = ValueHint::DirPath)]
    pub(crate) workspace: PathBuf,
    /// A candidate or a label [default: what lies in the workspace]
    #[arg(value_name = "CANDIDATE")]
    pub(crate) candidate: Option<String>,
    /// Directory to write its files into, which must not exist
    #[arg(long, short, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    /// File to write the whole system prompt into, which must not exist, for `system_prompt_file` of an experiment
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) prompt: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct EvolveReportArguments {
    /// The run, of an evolution or a swarm, or a beginning of its id that fits only one
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Write a page with everything
    #[arg(long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
    /// Show the changes of every candidate
    #[arg(long)]
    pub(crate) diffs: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SwarmStatusArguments {
    /// The swarm, or a beginning of its id that fits only one
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
}

#[derive(Debug, Args)]
pub(crate) struct SwarmHistoryArguments {
    /// At most this many, the latest
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct SwarmBestArguments {
    /// The swarm, or a beginning of its id that fits only one
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) limit: usize,
    /// Directory to write the files of the best into, which must not exist
    #[arg(long, short, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
}
