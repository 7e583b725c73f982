//! Arguments of the runtime of agents.

use std::path::PathBuf;

use clap::{Args, ValueHint};

#[derive(Debug, Args)]
pub(crate) struct AgentEntryArguments {
    /// Directory to work in
    #[arg(long, value_name = "DIR", default_value = "/workspace", value_hint = ValueHint::DirPath)]
    pub(crate) workspace: PathBuf,
}
