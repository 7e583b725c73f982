//! `aec-bench dev`.

pub(crate) mod serve_model;

use clap::Subcommand;

use crate::commands::dev::serve_model::ServeModelArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum DevCommand {
    /// Serve a model that costs nothing, in the formats of OpenAI, Azure, Anthropic and Bedrock
    ServeModel(ServeModelArguments),
}

impl DevCommand {
    pub(crate) fn execute(self, context: &Context) -> Result<Outcome, Failure> {
        match self {
            Self::ServeModel(arguments) => serve_model::serve_model(context, &arguments),
        }
    }
}
