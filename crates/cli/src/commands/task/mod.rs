//! `aec-bench task`.

pub(crate) mod export;
pub(crate) mod format;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod new;
pub(crate) mod show;
pub(crate) mod validate;

use clap::Subcommand;

use crate::commands::task::export::TaskExportArguments;
use crate::commands::task::import::TaskImportArguments;
use crate::commands::task::list::TaskListArguments;
use crate::commands::task::new::TaskNewArguments;
use crate::commands::task::show::TaskShowArguments;
use crate::commands::task::validate::TaskValidateArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// List tasks
    List(Box<TaskListArguments>),
    /// Show everything about one task
    Show(TaskShowArguments),
    /// Check tasks without running them
    Validate(TaskValidateArguments),
    /// Create a task for you to fill in
    New(TaskNewArguments),
    /// Write tasks in the format of another program
    Export(TaskExportArguments),
    /// Read tasks in the format of another program
    Import(TaskImportArguments),
}

impl TaskCommand {
    pub(crate) fn execute(self, context: &Context) -> Result<Outcome, Failure> {
        match self {
            Self::List(arguments) => list::list(context, &arguments),
            Self::Show(arguments) => show::show(context, &arguments),
            Self::Validate(arguments) => validate::validate(context, &arguments),
            Self::New(arguments) => new::new(context, &arguments),
            Self::Export(arguments) => export::export(context, &arguments),
            Self::Import(arguments) => import::import(context, &arguments),
        }
    }
}
