//! `aec-bench evolve run`.

use std::path::PathBuf;

use aec_evolve::config::Evolution;
use aec_evolve::event::Kind;
use aec_evolve::run::Settings;
use aec_evolve::workspace::Workspace;
use clap::{Args, ValueHint};

use crate::arguments::SandboxArgument;
use crate::commands::evolve::begin::{Opened, begin, first, open_project};
use crate::commands::evolve::{CarryArguments, git};
use crate::commands::planning::{self};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench evolve run --config evolution.yaml --dry-run\n  \
                        aec-bench evolve run --config evolution.yaml --max-cost 10")]
pub(crate) struct EvolveRunArguments {
    /// Evolution file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: PathBuf,
    /// Show what would be done, and do nothing
    #[arg(long, conflicts_with = "events")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
    #[command(flatten)]
    pub(crate) carry: CarryArguments,
}

pub(crate) fn evolve(context: &Context, arguments: &EvolveRunArguments) -> Result<Outcome, Failure> {
    let project = open_project(context, &arguments.carry)?;
    let told = Evolution::read(&context.absolute(&arguments.config)?, &project.root, &project.env)?;
    let workspace = Workspace::open(git(context)?, &told.workspace)?;
    let held = (!arguments.dry_run).then(|| workspace.hold()).transpose()?;
    let baseline = first(&workspace, arguments.dry_run)?;
    let sandbox = arguments.sandbox.choice();
    let backend = planning::backend(&project);
    let settings = Settings::of_evolution(&told, &baseline.manifest, backend, sandbox);
    let opened = Opened { project, workspace, held, settings, kind: Kind::Evolution, baseline };
    begin(context, opened, &arguments.carry, arguments.dry_run)
}
