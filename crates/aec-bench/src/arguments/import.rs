//! The arguments of `aec-bench import` and `aec-bench import-prime-eval`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{SandboxArgument, TasksRootArgument};

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// Results: a job directory of Harbor, a directory of verifiers with results.jsonl or traces.jsonl, or such a file
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) path: PathBuf,
    #[command(flatten)]
    pub(crate) into: ImportInto,
}

#[derive(Debug, Args)]
pub(crate) struct ImportPrimeEvalArguments {
    /// The hosted evaluation
    #[arg(value_name = "ID", required_unless_present = "file")]
    pub(crate) id: Option<String>,
    /// Samples that were saved before, instead of asking the service for them
    #[arg(long, visible_alias = "samples-json", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// The evaluation that the saved samples belong to, as the service describes it
    #[arg(long, value_name = "FILE", requires = "file", value_hint = ValueHint::FilePath)]
    pub(crate) evaluation_json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) into: ImportInto,
}

#[derive(Debug, Args)]
pub(crate) struct ImportInto {
    /// The experiment that the records belong to [default: made from the evaluation's id]
    #[arg(long = "experiment", short = 'e', visible_alias = "experiment-id", value_name = "EXP")]
    pub(crate) experiment: Option<String>,
    /// Take rewards as they are, without judging answers again whose tasks are here
    #[arg(long)]
    pub(crate) no_verify: bool,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}
