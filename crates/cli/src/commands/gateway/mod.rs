//! `aec-bench gateway`.

pub(crate) mod serve;

use clap::Subcommand;

use crate::commands::gateway::serve::GatewayServeArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum GatewayCommand {
    /// Serve models on loopback to programs that hold a token; keys stay in this process
    Serve(GatewayServeArguments),
}

impl GatewayCommand {
    pub(crate) fn execute(self, context: &Context) -> Result<Outcome, Failure> {
        match self {
            Self::Serve(arguments) => serve::serve(context, &arguments),
        }
    }
}
