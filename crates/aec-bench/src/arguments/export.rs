//! The arguments of `aec-bench export`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::ChosenTrials;

#[derive(Debug, Subcommand)]
pub(crate) enum ExportCommand {
    /// Write conversations that earned enough, to imitate them
    Sft(ExportSftArguments),
    /// Write pairs of a better and a worse answer to the same prompt
    Preferences(ExportPreferencesArguments),
}

#[derive(Debug, Args)]
pub(crate) struct TrainingDataArguments {
    #[command(flatten)]
    pub(crate) chosen: ChosenTrials,
    /// File to write
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Also write what models thought, as far as providers show it
    #[arg(long)]
    pub(crate) thoughts: bool,
    /// Replace a file that is there
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportSftArguments {
    #[command(flatten)]
    pub(crate) data: TrainingDataArguments,
    /// What a conversation must have earned
    #[arg(long, value_name = "REWARD", default_value_t = 1.0)]
    pub(crate) min_reward: f64,
}

#[derive(Debug, Args)]
pub(crate) struct ExportPreferencesArguments {
    #[command(flatten)]
    pub(crate) data: TrainingDataArguments,
    /// How much more the better answer must have earned
    #[arg(long, value_name = "REWARD", default_value_t = 0.5)]
    pub(crate) min_gap: f64,
    /// Pairs of one task at most
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) max_pairs: usize,
}
