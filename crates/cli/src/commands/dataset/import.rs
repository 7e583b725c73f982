//! `aec-bench dataset import`.

use std::path::PathBuf;

use aec_base::digest::Digest;
use aec_base::settings::Setting;
use aec_base::text;
use aec_task::dataset::import::{Destination, Imported, Mode, import as import_dataset};
use aec_task::dataset::store::Store;
use aec_task::id::TaskId;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::arguments::TasksRootArgument;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench dataset import electrical-v1.tar.zst --dry-run\n  \
                        aec-bench dataset import electrical-v1.tar.zst")]
pub(crate) struct DatasetImportArguments {
    /// File written by `dataset export`
    #[arg(value_name = "FILE.tar.zst", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Check everything and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

#[derive(Serialize)]
struct Data {
    dataset: String,
    content_hash: Digest,
    dry_run: bool,
    /// Whether the dataset did not exist here before.
    is_new: bool,
    added: Vec<TaskId>,
    kept: Vec<TaskId>,
}

pub(crate) fn import(context: &Context, arguments: &DatasetImportArguments) -> Result<Outcome, Failure> {
    let project = context.project(arguments.tasks_root.overrides(context)?)?;
    let store = Store::new(project.settings.path(Setting::Datasets));
    let tasks_root = project.settings.path(Setting::Tasks);
    let to = Destination { project_root: &project.root, tasks_root: &tasks_root, store: &store };
    let mode = if arguments.dry_run { Mode::Try } else { Mode::Take };
    let Imported { manifest, added, kept, is_new } =
        import_dataset(&context.absolute(&arguments.file)?, &to, mode)?;
    let data = Data {
        dataset: manifest.reference(),
        content_hash: manifest.content_hash,
        dry_run: arguments.dry_run,
        is_new,
        added,
        kept,
    };
    let line = format!(
        "{}  {} added, {} kept  {}\n",
        data.dataset,
        text::count(data.added.len(), "task"),
        data.kept.len(),
        data.content_hash
    );
    let outcome = Outcome::new(context.format, &data, || line)?;
    Ok(match (arguments.dry_run, is_new) {
        (true, _) => outcome.remark("Everything would be taken; nothing was written (--dry-run)."),
        (false, true) => outcome,
        (false, false) => outcome.remark("The same dataset was already here."),
    })
}
