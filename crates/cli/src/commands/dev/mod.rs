//! `aec-bench dev`.

pub(crate) mod reference;
pub(crate) mod serve_model;

use clap::Subcommand;

use crate::commands::dev::reference::ReferenceArguments;
use crate::commands::dev::serve_model::ServeModelArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum DevCommand {
    /// Serve a free test model in the formats of OpenAI, Azure, Anthropic and Bedrock
    ServeModel(ServeModelArguments),
    /// Write the pages of docs/reference
    #[command(hide = true)]
    Reference(ReferenceArguments),
}

impl DevCommand {
    pub(crate) fn execute(self, context: &Context) -> Result<Outcome, Failure> {
        match self {
            Self::ServeModel(arguments) => serve_model::serve_model(context, &arguments),
            Self::Reference(arguments) => reference::reference(context, &arguments),
        }
    }
}
