//! `aec-bench prime train-config`.

use std::path::PathBuf;

use aec_base::text::printable;
use aec_prime::service::train_config::{Difficulties, DifficultyFiltering, Target, TrainOptions};
use serde::Serialize;

use super::prime::{environment_name, unusable};
use super::report::write;
use crate::arguments::PrimeTrainConfigArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

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
