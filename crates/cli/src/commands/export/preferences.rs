//! `aec-bench export preferences`.

use aec_prime::rollouts::training::{Pairing, preferences as write_pairs};
use clap::Args;

use crate::commands::export::training_data::{TrainingDataArguments, export, share, thoughts};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench export preferences -e pilot --output pairs.jsonl\n  \
                        aec-bench export preferences -e pilot --min-gap 0.3 --max-pairs 8 -o more.jsonl")]
pub(crate) struct ExportPreferencesArguments {
    #[command(flatten)]
    pub(crate) data: TrainingDataArguments,
    /// Smallest difference between the rewards of the better and the worse answer
    #[arg(long, value_name = "REWARD", default_value_t = 0.5)]
    pub(crate) min_gap: f64,
    /// Most pairs of one task
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) max_pairs: usize,
}

pub(crate) fn preferences(
    context: &Context,
    arguments: &ExportPreferencesArguments,
) -> Result<Outcome, Failure> {
    let pairing = Pairing {
        min_gap: share("--min-gap", arguments.min_gap)?,
        max_pairs: arguments.max_pairs,
        thoughts: thoughts(&arguments.data),
    };
    export(context, &arguments.data, |examples| write_pairs(examples, pairing))
}
