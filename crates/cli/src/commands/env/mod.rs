//! `aec-bench env`.

use clap::Subcommand;

use crate::commands::eval::install::EvalInstallArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum EnvCommand {
    /// Install an environment into a Python interpreter; the same as `eval install`
    Install(EvalInstallArguments),
}

impl EnvCommand {
    pub(crate) fn execute(self, context: &Context) -> Result<Outcome, Failure> {
        match self {
            Self::Install(arguments) => crate::commands::eval::install::install(context, &arguments),
        }
    }
}
