//! The arguments of `aec-bench dataset`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::{SelectionArguments, TasksRootArgument};

#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "one value, made once per process")]
pub(crate) enum DatasetCommand {
    /// Freeze tasks as they are now under a name and a version
    Create(DatasetCreateArguments),
    /// List datasets
    List,
    /// Show everything about one dataset
    Show(DatasetShowArguments),
    /// Check that the tasks of datasets are still what they were
    Verify(DatasetVerifyArguments),
    /// Show which tasks were added, removed and changed from one dataset to another
    Diff(DatasetDiffArguments),
    /// Make two datasets of one, to train on and to evaluate on
    Split(DatasetSplitArguments),
    /// Write a dataset and its tasks into one file
    Export(DatasetExportArguments),
    /// Take a dataset and its tasks from a file
    Import(DatasetImportArguments),
}

#[derive(Debug, Args)]
pub(crate) struct DatasetCreateArguments {
    /// Name of the dataset
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,
    /// Semantic version, such as 1.0.0; written once and never changed
    #[arg(long, value_name = "VERSION")]
    pub(crate) version: String,
    /// Take these tasks: ids, or directories of ids
    #[arg(long, value_name = "ID", num_args = 1..)]
    pub(crate) task: Vec<String>,
    /// Take tasks whose ids match this pattern, such as electrical/*
    #[arg(long, short, value_name = "PATTERN")]
    pub(crate) pattern: Vec<String>,
    #[command(flatten)]
    pub(crate) selection: SelectionArguments,
    /// Take the tasks that this suite wrote, and record the suite
    #[arg(long, short, value_name = "SUITE.toml", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["SelectionArguments", "task", "pattern", "from_suite_output"])]
    pub(crate) config: Option<PathBuf>,
    /// Take the tasks that this manifest of a generated suite lists, and record it
    #[arg(long, value_name = "MANIFEST", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["SelectionArguments", "task", "pattern"])]
    pub(crate) from_suite_output: Option<PathBuf>,
    /// One line that says what it is
    #[arg(long, value_name = "TEXT")]
    pub(crate) summary: Option<String>,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    pub(crate) purpose: Option<String>,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

#[derive(Debug, Args)]
pub(crate) struct DatasetShowArguments {
    /// The dataset: NAME for its highest version, or NAME@VERSION
    #[arg(value_name = "NAME[@VERSION]")]
    pub(crate) reference: String,
    /// Say which of its tasks ask nearly the same
    #[arg(long)]
    pub(crate) near_duplicates: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DatasetVerifyArguments {
    /// The datasets: NAME for the highest version, or NAME@VERSION
    #[arg(value_name = "NAME[@VERSION]")]
    pub(crate) references: Vec<String>,
    /// Check every version of every dataset
    #[arg(long, conflicts_with = "references")]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DatasetDiffArguments {
    /// The dataset before: NAME or NAME@VERSION
    pub(crate) before: String,
    /// The dataset after: NAME or NAME@VERSION
    pub(crate) after: String,
}

#[derive(Debug, Args)]
pub(crate) struct DatasetSplitArguments {
    /// The dataset: NAME for its highest version, or NAME@VERSION
    #[arg(value_name = "NAME[@VERSION]")]
    pub(crate) reference: String,
    /// Share of tasks to train on
    #[arg(long, value_name = "SHARE", default_value_t = 0.8)]
    pub(crate) train_share: f64,
    /// Seed that decides which family goes to which side
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) seed: i64,
    /// Names of the two datasets [default: NAME-train,NAME-eval]
    #[arg(long, value_name = "TRAIN,EVAL")]
    pub(crate) names: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DatasetExportArguments {
    /// The dataset: NAME for its highest version, or NAME@VERSION
    #[arg(value_name = "NAME[@VERSION]")]
    pub(crate) reference: String,
    /// File to write; one that exists is replaced
    #[arg(long, short, value_name = "FILE.tar.zst", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct DatasetImportArguments {
    /// File that `dataset export` wrote
    #[arg(value_name = "FILE.tar.zst", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Check everything and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}
