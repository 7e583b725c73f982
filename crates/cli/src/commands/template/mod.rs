//! `aec-bench template`.

pub(crate) mod new;

use clap::Subcommand;

use crate::commands::template::new::TemplateNewArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum TemplateCommand {
    /// Create a template for you to fill in
    New(TemplateNewArguments),
}

impl TemplateCommand {
    pub(crate) fn execute(self, context: &Context) -> Result<Outcome, Failure> {
        match self {
            Self::New(arguments) => new::new(context, &arguments),
        }
    }
}
