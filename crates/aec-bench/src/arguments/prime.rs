//! The arguments of `aec-bench prime`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueHint};

use super::{SelectionArguments, TasksRootArgument};

#[derive(Debug, Subcommand)]
pub(crate) enum PrimeCommand {
    /// Write tasks and their verifiers as a package that `verifiers` loads
    Export(PrimeExportArguments),
}

#[derive(Debug, Args)]
pub(crate) struct PackageArguments {
    /// Name of the environment, such as aec-voltage-drop
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,
    /// Take these tasks: ids, or directories of ids
    #[arg(long, value_name = "ID", num_args = 1..)]
    pub(crate) task: Vec<String>,
    /// Take tasks whose ids match this pattern, such as electrical/*
    #[arg(long, short, value_name = "PATTERN")]
    pub(crate) pattern: Vec<String>,
    #[command(flatten)]
    pub(crate) selection: SelectionArguments,
    /// Whether tasks are one question each or work in a workspace
    #[arg(long, value_name = "MODE", default_value = "auto",
          value_parser = PossibleValuesParser::new(["auto", "single-turn", "stateful"]))]
    pub(crate) harness_mode: String,
    /// Version of the package
    #[arg(long = "version", value_name = "VERSION", default_value = "0.1.0")]
    pub(crate) package_version: String,
    /// Directory of packages [default: environments below paths.prime]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

#[derive(Debug, Args)]
pub(crate) struct PrimeExportArguments {
    #[command(flatten)]
    pub(crate) package: PackageArguments,
}
