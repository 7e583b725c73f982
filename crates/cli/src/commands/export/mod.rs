//! `aec-bench export`.

pub(crate) mod preferences;
pub(crate) mod sft;
pub(crate) mod training_data;

use clap::Subcommand;

use crate::commands::export::preferences::ExportPreferencesArguments;
use crate::commands::export::sft::ExportSftArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum ExportCommand {
    /// Write conversations with a high enough reward, for supervised fine-tuning
    Sft(ExportSftArguments),
    /// Write pairs of a better and a worse answer to the same prompt
    Preferences(ExportPreferencesArguments),
}

impl ExportCommand {
    pub(crate) fn execute(self, context: &Context) -> Result<Outcome, Failure> {
        match self {
            Self::Sft(arguments) => sft::sft(context, &arguments),
            Self::Preferences(arguments) => preferences::preferences(context, &arguments),
        }
    }
}
