//! `aec-bench dataset`.

pub(crate) mod create;
pub(crate) mod diff;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod show;
pub(crate) mod split;
pub(crate) mod verify;

use clap::Subcommand;

use crate::commands::dataset::create::DatasetCreateArguments;
use crate::commands::dataset::diff::DatasetDiffArguments;
use crate::commands::dataset::export::DatasetExportArguments;
use crate::commands::dataset::import::DatasetImportArguments;
use crate::commands::dataset::list::DatasetListArguments;
use crate::commands::dataset::show::DatasetShowArguments;
use crate::commands::dataset::split::DatasetSplitArguments;
use crate::commands::dataset::verify::DatasetVerifyArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "one value, made once per process")]
pub(crate) enum DatasetCommand {
    /// Freeze tasks in their current state under a name and a version
    Create(DatasetCreateArguments),
    /// List datasets
    List(DatasetListArguments),
    /// Show everything about one dataset
    Show(DatasetShowArguments),
    /// Check that the tasks of datasets have not changed
    Verify(DatasetVerifyArguments),
    /// Show which tasks were added, removed and changed between two datasets
    Diff(DatasetDiffArguments),
    /// Split a dataset into two, one for training and one for evaluation
    Split(DatasetSplitArguments),
    /// Write a dataset and its tasks into one file
    Export(DatasetExportArguments),
    /// Read a dataset and its tasks from a file
    Import(DatasetImportArguments),
}

impl DatasetCommand {
    pub(crate) fn execute(self, context: &Context) -> Result<Outcome, Failure> {
        match self {
            Self::Create(arguments) => create::create(context, &arguments),
            Self::List(arguments) => list::list(context, &arguments),
            Self::Show(arguments) => show::show(context, &arguments),
            Self::Verify(arguments) => verify::verify(context, &arguments),
            Self::Diff(arguments) => diff::diff(context, &arguments),
            Self::Split(arguments) => split::split(context, &arguments),
            Self::Export(arguments) => export::export(context, &arguments),
            Self::Import(arguments) => import::import(context, &arguments),
        }
    }
}
