//! `aec-bench prime train-config`.

use std::path::PathBuf;

use aec_base::text::printable;
use aec_prime::service::train_config::{Difficulties, DifficultyFiltering, Target, TrainOptions};
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::commands::prime::{SliceArguments, environment_name, unusable};
use crate::commands::report::write;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench prime train-config --environment acme/cables --target prime-rl -o rl.toml")]
pub(crate) struct PrimeTrainConfigArguments {
    /// The published environment, as owner/name
    #[arg(long, value_name = "OWNER/NAME")]
    pub(crate) environment: String,
    /// File to write
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Model to train
    #[arg(long, short, value_name = "MODEL", default_value = "Qwen/Qwen3.5-0.8B")]
    pub(crate) model: String,
    #[command(flatten)]
    pub(crate) slice: SliceArguments,
    /// One difficulty and its share, such as easy=0.45; if repeated, they form a suite
    #[arg(long, value_name = "DIFFICULTY=RATIO", conflicts_with = "difficulty")]
    pub(crate) difficulty_ratio: Vec<String>,
    /// Tasks of each difficulty view
    #[arg(long, value_name = "N")]
    pub(crate) num_examples: Option<u32>,
    /// Training steps
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) max_steps: u32,
    /// Rollouts per step
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub(crate) batch_size: u32,
    /// Rollouts per example
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) rollouts_per_example: u32,
    /// Most tokens per answer
    #[arg(long, value_name = "N", default_value_t = 2048)]
    pub(crate) max_tokens: u32,
    /// Steps between evaluations
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) eval_interval: u32,
    /// Examples per evaluation
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) eval_num_examples: u32,
    /// Rollouts per example of an evaluation
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) eval_rollouts_per_example: u32,
    /// Do not evaluate the model before training
    #[arg(long)]
    pub(crate) no_eval_base_model: bool,
    /// Leave out examples that are too easy or too hard while training
    #[arg(long)]
    pub(crate) online_difficulty_filtering: bool,
    /// Mean reward from which an example counts as easy
    #[arg(long, value_name = "REWARD", default_value_t = 0.8, requires = "online_difficulty_filtering")]
    pub(crate) easy_threshold: f64,
    /// Mean reward up to which an example counts as hard
    #[arg(long, value_name = "REWARD", default_value_t = 0.2, requires = "online_difficulty_filtering")]
    pub(crate) hard_threshold: f64,
    /// Share of easy examples to keep
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, requires = "online_difficulty_filtering")]
    pub(crate) easy_fraction: f64,
    /// Share of hard examples to keep
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, requires = "online_difficulty_filtering")]
    pub(crate) hard_fraction: f64,
    /// Number of adapters to keep
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) adapters_keep_last: u32,
    /// Trainer that the file is for
    #[arg(long, value_name = "TARGET", default_value = "shared-lora",
          value_parser = PossibleValuesParser::new(["shared-lora", "prime-rl"]))]
    pub(crate) target: String,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Serialize)]
struct Data {
    file: PathBuf,
    target: String,
    text: String,
    notes: Vec<String>,
}

pub(crate) fn train_config(
    context: &Context,
    arguments: &PrimeTrainConfigArguments,
) -> Result<Outcome, Failure> {
    let refuse = |error: &dyn std::fmt::Display| unusable(error, "see `aec-bench prime train-config --help`");
    let target: Target = arguments.target.parse().map_err(|why: String| refuse(&why))?;
    let difficulties = Difficulties::from_flags(&arguments.slice.difficulty, &arguments.difficulty_ratio)
        .map_err(|error| refuse(&error))?;
    let options = TrainOptions {
        environment: environment_name(&arguments.environment)?,
        model: arguments.model.clone(),
        split: arguments.slice.split.clone().unwrap_or_else(|| "train".to_owned()),
        difficulties,
        harness: arguments.slice.harness.clone(),
        num_examples: arguments.num_examples,
        max_steps: arguments.max_steps,
        batch_size: arguments.batch_size,
        rollouts_per_example: arguments.rollouts_per_example,
        max_tokens: arguments.max_tokens,
        eval_interval: arguments.eval_interval,
        eval_num_examples: arguments.eval_num_examples,
        eval_rollouts_per_example: arguments.eval_rollouts_per_example,
        eval_base_model: !arguments.no_eval_base_model,
        filtering: arguments.online_difficulty_filtering.then_some(DifficultyFiltering {
            easy_threshold: arguments.easy_threshold,
            hard_threshold: arguments.hard_threshold,
            easy_fraction: arguments.easy_fraction,
            hard_fraction: arguments.hard_fraction,
        }),
        keep_last: arguments.adapters_keep_last,
    };
    let written = options.write(target).map_err(|error| refuse(&error))?;
    let file = context.absolute(&arguments.output)?;
    write(&file, written.text.as_bytes(), arguments.force)?;
    let data = Data {
        file: arguments.output.clone(),
        target: arguments.target.clone(),
        text: written.text,
        notes: written.notes,
    };
    let mut outcome = Outcome::new(context.format, &data, String::new)?;
    outcome = outcome.remark(format!("Wrote {}.", printable(&arguments.output.to_string_lossy())));
    for note in &data.notes {
        outcome = outcome.remark(format!("Note: {note}."));
    }
    Ok(outcome)
}
