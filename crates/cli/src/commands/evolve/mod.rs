//! Finding git, workspaces and runs, for the commands of `evolve` and `swarm`.

pub(crate) mod begin;
pub(crate) mod carry;
pub(crate) mod diff;
pub(crate) mod export;
pub(crate) mod history;
pub(crate) mod init;
pub(crate) mod report;
pub(crate) mod resume;
pub(crate) mod rollback;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod stop;
pub(crate) mod words;

use std::path::{Path, PathBuf};

use aec_base::digest::Digest;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_base::text;
use aec_evolve::FAMILY;
use aec_evolve::event::Kind;
use aec_evolve::run::RunDirectory;
use aec_evolve::workspace::Workspace;
use aec_evolve::workspace::candidate::Candidate;
use aec_evolve::workspace::git::GitProgram;
use aec_run::terms::Caps;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

use crate::arguments::{LedgerRootArgument, TasksRootArgument};
use crate::commands::evolve::diff::EvolveDiffArguments;
use crate::commands::evolve::export::EvolveExportArguments;
use crate::commands::evolve::history::EvolveHistoryArguments;
use crate::commands::evolve::init::EvolveInitArguments;
use crate::commands::evolve::report::EvolveReportArguments;
use crate::commands::evolve::resume::EvolveResumeArguments;
use crate::commands::evolve::rollback::EvolveRollbackArguments;
use crate::commands::evolve::run::EvolveRunArguments;
use crate::commands::evolve::show::EvolveShowArguments;
use crate::commands::evolve::stop::EvolveStopArguments;
use crate::commands::models::{EndpointsArgument, TapeArguments};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::progress::events::EventsArguments;

#[derive(Debug, Subcommand)]
pub(crate) enum EvolveCommand {
    /// Create a workspace: a prompt and skills, versioned with git
    Init(EvolveInitArguments),
    /// Improve a workspace: propose changes, measure them, accept those that are shown to be better
    Run(Box<EvolveRunArguments>),
    /// Continue a run that was stopped or killed
    Resume(Box<EvolveResumeArguments>),
    /// Ask a run to stop: it finishes the trials under way, or with --force cancels them
    Stop(EvolveStopArguments),
    /// List runs, or the candidates of a workspace with their lineage
    History(EvolveHistoryArguments),
    /// Show a candidate: its prompt and skills, and where it comes from
    Show(EvolveShowArguments),
    /// Show the differences between two candidates
    Diff(EvolveDiffArguments),
    /// Restore a candidate into the workspace: exactly its files
    Rollback(EvolveRollbackArguments),
    /// Write the files of a candidate, or its whole system prompt, somewhere else
    Export(EvolveExportArguments),
    /// Report on a run: lineage, scores with intervals, accepted and rejected changes, cost
    Report(EvolveReportArguments),
}

pub(crate) fn harness_names() -> PossibleValuesParser {
    PossibleValuesParser::new(aec_run::experiment::Harness::ALL.map(aec_run::experiment::Harness::name))
}

/// How a run is carried out. None of these changes what it searches for.
#[derive(Debug, Args)]
pub(crate) struct CarryArguments {
    /// Trials at once, instead of the number in the file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) concurrency: Option<u32>,
    #[command(flatten)]
    pub(crate) events: EventsArguments,
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

impl EvolveCommand {
    pub(crate) fn execute(self, context: &Context) -> Result<Outcome, Failure> {
        match self {
            Self::Init(arguments) => init::init(context, &arguments),
            Self::Run(arguments) => run::evolve(context, &arguments),
            Self::Resume(arguments) => resume::resume_evolution(context, &arguments),
            Self::Stop(arguments) => stop::stop(context, &arguments),
            Self::History(arguments) => history::history(context, &arguments),
            Self::Show(arguments) => show::show(context, &arguments),
            Self::Diff(arguments) => diff::diff(context, &arguments),
            Self::Rollback(arguments) => rollback::rollback(context, &arguments),
            Self::Export(arguments) => export::export(context, &arguments),
            Self::Report(arguments) => report::report(context, &arguments),
        }
    }
}

pub(crate) fn git(context: &Context) -> Result<GitProgram, Failure> {
    GitProgram::find(context.search_path()).map_err(|error| {
        Failure::environment(Problem::error(error.to_string()).id(FAMILY.number(16)).fix("install git"))
    })
}

/// A workspace that the user named: a path from the current directory, or a name in `paths.workspaces`.
pub(crate) fn workspace(context: &Context, path: &Path) -> Result<Workspace, Failure> {
    let place = context.absolute(path)?;
    let is_name = path.components().count() == 1 && path.symlink_metadata().is_err();
    let place = match context.project(Vec::new()) {
        Ok(project) if is_name => project.settings.path(Setting::Workspaces).join(path),
        _ => place,
    };
    Ok(Workspace::open(git(context)?, &place)?)
}

/// The candidate of a workspace that the user named, or else the current files.
pub(crate) fn candidate(workspace: &Workspace, word: Option<&str>) -> Result<Candidate, Failure> {
    Ok(match word {
        Some(word) => workspace.load(workspace.find(word)?)?,
        None => workspace.here()?,
    })
}

/// The directory in which runs store what they learned.
pub(crate) fn feedback(project: &Project) -> PathBuf {
    project.settings.path(Setting::Feedback)
}

/// The run that the user named.
pub(crate) fn run(project: &Project, kind: Kind, word: &str) -> Result<RunDirectory, Failure> {
    Ok(RunDirectory::find(&feedback(project), kind, word)?)
}

/// The run of either kind that the user named. If both kinds have a run with this id, the user must name the kind.
pub(crate) fn any_run(project: &Project, word: &str) -> Result<RunDirectory, Failure> {
    let feedback = feedback(project);
    for kind in [Kind::Evolution, Kind::Swarm] {
        if let Some(run) = word.strip_prefix(kind.name()).and_then(|rest| rest.strip_prefix('/')) {
            return Ok(RunDirectory::find(&feedback, kind, run)?);
        }
    }
    let evolution = RunDirectory::find(&feedback, Kind::Evolution, word);
    let swarm = RunDirectory::find(&feedback, Kind::Swarm, word);
    match (evolution, swarm) {
        (Ok(one), Ok(other)) => {
            let what = format!("`{}` is an evolution and a swarm", text::printable(word));
            let problem = Problem::error(what).id(FAMILY.number(34));
            Err(problem.fix(format!("write evolve/{} or swarm/{}", one.run, other.run)).into())
        }
        (Ok(one), _) | (_, Ok(one)) => Ok(one),
        (Err(problem), _) => Err(problem.into()),
    }
}

/// A candidate's id as text shows it: twelve digits are enough for people.
pub(crate) fn short(id: Digest) -> String {
    aec_evolve::workspace::candidate::name(id).to_string()
}
