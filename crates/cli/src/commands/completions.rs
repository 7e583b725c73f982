//! `aec-bench completions`.

use clap::Args;
use serde_json::json;

use crate::context::Context;
use crate::entry::command_tree;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench completions bash\n  \
                        aec-bench completions zsh")]
pub(crate) struct CompletionsArguments {
    /// Shell to write the script for
    pub(crate) shell: clap_complete::Shell,
}

pub(crate) fn completions(context: &Context, arguments: &CompletionsArguments) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command_tree(), "aec-bench", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    Outcome::new(context.format, &json!({ "script": script }), || script.clone())
}
