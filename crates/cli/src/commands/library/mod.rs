//! `aec-bench library`.

pub(crate) mod export;

use clap::Subcommand;

use crate::commands::library::export::LibraryExportArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum LibraryCommand {
    /// Write the catalogue of templates and seeds as JSON
    Export(LibraryExportArguments),
}

impl LibraryCommand {
    pub(crate) fn execute(self, context: &Context) -> Result<Outcome, Failure> {
        match self {
            Self::Export(arguments) => export::export(context, &arguments),
        }
    }
}
