//! `aec-bench export sft`.

use aec_prime::rollouts::training::sft as write_examples;
use clap::Args;

use crate::commands::export::training_data::{TrainingDataArguments, export, share, thoughts};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench export sft -e pilot --output sft.jsonl\n  \
                        aec-bench export sft -e pilot --agent careful --min-reward 0.9 -o best.jsonl")]
pub(crate) struct ExportSftArguments {
    #[command(flatten)]
    pub(crate) data: TrainingDataArguments,
    /// Smallest reward of a conversation
    #[arg(long, value_name = "REWARD", default_value_t = 1.0)]
    pub(crate) min_reward: f64,
}

pub(crate) fn sft(context: &Context, arguments: &ExportSftArguments) -> Result<Outcome, Failure> {
    let min_reward = share("--min-reward", arguments.min_reward)?;
    let thoughts = thoughts(&arguments.data);
    export(context, &arguments.data, |examples| write_examples(examples, min_reward, thoughts))
}
