//! `aec-bench config`.

pub(crate) mod check;
pub(crate) mod reset;
pub(crate) mod set;
pub(crate) mod user_file;
pub(crate) mod view;

use clap::Subcommand;

use crate::commands::config::check::ConfigCheckArguments;
use crate::commands::config::reset::ConfigResetArguments;
use crate::commands::config::set::ConfigSetArguments;
use crate::commands::config::view::ConfigViewArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every setting and where its value comes from
    View(ConfigViewArguments),
    /// Set a path default in the user file
    Set(ConfigSetArguments),
    /// Remove one path default from the user file, or all of them
    Reset(ConfigResetArguments),
    /// Check every configuration file and report all problems at once
    Check(ConfigCheckArguments),
}

impl ConfigCommand {
    pub(crate) fn execute(self, context: &Context) -> Result<Outcome, Failure> {
        match self {
            Self::View(arguments) => view::view(context, &arguments),
            Self::Set(arguments) => set::set(context, &arguments),
            Self::Reset(arguments) => reset::reset(context, &arguments),
            Self::Check(arguments) => check::check(context, &arguments),
        }
    }
}
