//! `aec-bench generate`.

pub(crate) mod list_templates;
pub(crate) mod replay;
pub(crate) mod suite;
pub(crate) mod task;
pub(crate) mod validate_template;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use crate::commands::generate::list_templates::ListTemplatesArguments;
use crate::commands::generate::replay::ReplayArguments;
use crate::commands::generate::suite::GenerateSuiteArguments;
use crate::commands::generate::task::GenerateTaskArguments;
use crate::commands::generate::validate_template::ValidateTemplateArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum GenerateCommand {
    /// Generate instances of one template
    Task(GenerateTaskArguments),
    /// Generate the suite described by a suite.toml
    Suite(GenerateSuiteArguments),
    /// List all available templates
    ListTemplates(ListTemplatesArguments),
    /// Check a template: engine, examples, tiers, prompts, calculator
    ValidateTemplate(ValidateTemplateArguments),
    /// Generate again what a manifest describes, and compare every byte
    Replay(ReplayArguments),
}

/// Directories of templates besides the library and `paths.templates`.
#[derive(Debug, Args)]
pub(crate) struct TemplatesArgument {
    /// Directory with further templates
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) user_dir: Vec<PathBuf>,
}

impl GenerateCommand {
    pub(crate) fn execute(self, context: &Context) -> Result<Outcome, Failure> {
        match self {
            Self::Task(arguments) => task::task(context, &arguments),
            Self::Suite(arguments) => suite::suite(context, &arguments),
            Self::ListTemplates(arguments) => list_templates::list(context, &arguments),
            Self::ValidateTemplate(arguments) => validate_template::validate(context, &arguments),
            Self::Replay(arguments) => replay::replay(context, &arguments),
        }
    }
}
