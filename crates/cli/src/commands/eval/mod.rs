//! `aec-bench eval`, and how its commands find saved evaluations.

pub(crate) mod after;
pub(crate) mod compare;
pub(crate) mod environment;
pub(crate) mod install;
pub(crate) mod list;
pub(crate) mod push;
pub(crate) mod run;
pub(crate) mod show;

use std::path::{Path, PathBuf};

use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_base::text::printable;
use aec_eval::FAMILY;
use aec_eval::results::RESULTS_FILE;
use aec_eval::results::directory::{FoundRun, list};
use clap::{Args, Subcommand};

use crate::arguments::{SelectionArguments, TasksRootArgument};
use crate::commands::eval::compare::EvalCompareArguments;
use crate::commands::eval::install::EvalInstallArguments;
use crate::commands::eval::list::EvalListArguments;
use crate::commands::eval::push::EvalPushArguments;
use crate::commands::eval::run::EvalRunArguments;
use crate::commands::eval::show::EvalShowArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum EvalCommand {
    /// Run a model on an environment, and report rewards and metrics
    Run(Box<EvalRunArguments>),
    /// List saved evaluations, newest first
    List(EvalListArguments),
    /// Show the results of a saved evaluation
    Show(EvalShowArguments),
    /// Compare saved evaluations of the same examples
    Compare(EvalCompareArguments),
    /// Publish a saved evaluation as a dataset on the Hugging Face hub
    Push(EvalPushArguments),
    /// Install an environment into a Python interpreter
    Install(EvalInstallArguments),
}

/// Tasks of this project instead of an environment.
#[derive(Debug, Args)]
#[command(next_help_heading = "Tasks of this project")]
pub(crate) struct EvalTaskArguments {
    /// Tasks to evaluate: ids, or directories that contain ids
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
    /// Whether the user named tasks.
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

impl EvalCommand {
    pub(crate) fn execute(self, context: &Context) -> Result<Outcome, Failure> {
        match self {
            Self::Run(arguments) => run::run(context, &arguments),
            Self::List(arguments) => list::list(context, &arguments),
            Self::Show(arguments) => show::show(context, &arguments),
            Self::Compare(arguments) => compare::compare(context, &arguments),
            Self::Push(arguments) => push::push(context, &arguments),
            Self::Install(arguments) => install::install(context, &arguments),
        }
    }
}

/// The environment directories: the one in the current directory, then the project's.
pub(crate) fn places(context: &Context, project: &Project) -> Result<Vec<PathBuf>, Failure> {
    let own = project.settings.path(Setting::Prime).join("environments");
    Ok(vec![context.directory()?.join("environments"), own])
}

/// All saved evaluations in the usual directories, newest first.
pub(crate) fn all(context: &Context, project: &Project) -> Result<(Vec<FoundRun>, Vec<Problem>), Failure> {
    let mut bases = vec![context.directory()?.join("outputs"), project.root.join("outputs")];
    for place in places(context, project)? {
        let Ok(entries) = std::fs::read_dir(&place) else { continue };
        bases.extend(entries.filter_map(Result::ok).map(|entry| entry.path().join("outputs")));
    }
    bases.retain(|base| base.is_dir());
    bases.sort();
    bases.dedup();
    Ok(list(&bases))
}

/// The saved evaluation that the user named by a directory, an id, or the beginning of an id.
pub(crate) fn find(context: &Context, project: &Project, named: &str) -> Result<PathBuf, Failure> {
    let path = context.absolute(Path::new(named))?;
    if path.is_dir() {
        return Ok(path);
    }
    if path.file_name().is_some_and(|name| name == RESULTS_FILE) && path.is_file() {
        return Ok(path.parent().unwrap_or(&path).to_path_buf());
    }
    let (runs, _) = all(context, project)?;
    let mut fitting: Vec<&FoundRun> = runs.iter().filter(|run| run.id.starts_with(named)).collect();
    if fitting.len() > 1 {
        fitting.retain(|run| run.id == named);
    }
    match fitting.as_slice() {
        [one] => Ok(one.path.clone()),
        several => {
            let what =
                if several.is_empty() { "there is no saved evaluation" } else { "several evaluations fit" };
            let problem = Problem::error(format!("{what} `{}`", printable(named))).id(FAMILY.number(102));
            Err(problem.fix("see `aec-bench eval list`, or name the directory").into())
        }
    }
}
