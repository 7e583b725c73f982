//! `aec-bench swarm run`.

use std::path::PathBuf;

use aec_evolve::config::Swarm;
use aec_evolve::event::Kind;
use aec_evolve::run::Settings;
use aec_evolve::workspace::Workspace;
use clap::{Args, ValueHint};

use crate::arguments::SandboxArgument;
use crate::commands::evolve::begin::{Opened, begin, below_tasks, first, open_project};
use crate::commands::evolve::{CarryArguments, git};
use crate::commands::planning::{self};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench swarm run swarm.yaml --dry-run\n  \
                        aec-bench swarm run swarm.yaml --max-cost 20")]
pub(crate) struct SwarmRunArguments {
    /// Swarm file
    #[arg(value_name = "FILE", required_unless_present = "file", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Swarm file, as a flag
    #[arg(long = "config", short = 'c', value_name = "FILE", conflicts_with = "config", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Show what would be done, and do nothing
    #[arg(long, conflicts_with = "events")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
    #[command(flatten)]
    pub(crate) carry: CarryArguments,
}

pub(crate) fn swarm(context: &Context, arguments: &SwarmRunArguments) -> Result<Outcome, Failure> {
    let project = open_project(context, &arguments.carry)?;
    let file = arguments.config.as_ref().or(arguments.file.as_ref()).cloned().unwrap_or_default();
    let told = Swarm::read(&context.absolute(&file)?, &project.root, &project.env)?;
    let workspace = Workspace::open(git(context)?, &told.workspace)?;
    let held = (!arguments.dry_run).then(|| workspace.hold()).transpose()?;
    let baseline = first(&workspace, arguments.dry_run)?;
    let tasks = told.task_path.as_deref().map(|path| below_tasks(&project, path)).transpose()?;
    let sandbox = arguments.sandbox.choice();
    let backend = planning::backend(&project);
    let settings = Settings::of_swarm(&told, &baseline.manifest, tasks, backend, sandbox);
    let opened = Opened { project, workspace, held, settings, kind: Kind::Swarm, baseline };
    begin(context, opened, &arguments.carry, arguments.dry_run)
}
