//! What `export sft` and `export preferences` share.

use std::path::PathBuf;

use aec_base::problem::Problem;
use aec_base::text::{count, printable};
use aec_ledger::transcript::chat::Thoughts;
use aec_prime::FAMILY;
use aec_prime::rollouts::training::{Example, Written};
use aec_prime::training_data::{Conversation, Unfit};
use aec_report::glance::each_record;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::commands::report::{ChosenTrials, Source, write};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
pub(crate) struct TrainingDataArguments {
    #[command(flatten)]
    pub(crate) chosen: ChosenTrials,
    /// File to write
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Include the models' reasoning, if the provider returned it
    #[arg(long)]
    pub(crate) thoughts: bool,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Serialize)]
pub(crate) struct Data {
    file: PathBuf,
    rows: usize,
    trials: usize,
    /// Trials of tasks that are held out or not marked as public.
    not_public: usize,
    /// Trials without a reward, a conversation or an answer.
    unusable: usize,
    /// Trials whose reward is too small, or that have no counterpart for a pair.
    left_out: usize,
}

pub(crate) fn thoughts(arguments: &TrainingDataArguments) -> Thoughts {
    if arguments.thoughts { Thoughts::Kept } else { Thoughts::LeftOut }
}

pub(crate) fn share(flag: &str, number: f64) -> Result<f64, Failure> {
    if (0.0..=1.0).contains(&number) {
        return Ok(number);
    }
    Err(Failure::usage(
        Problem::error(format!("{flag} {number} is not from 0 to 1")).fix("write a reward such as 0.5"),
    ))
}

pub(crate) fn export(
    context: &Context,
    arguments: &TrainingDataArguments,
    rows: impl Fn(&[Example<'_>]) -> Written,
) -> Result<Outcome, Failure> {
    let source = Source::open(context, &arguments.chosen.experiments, &arguments.chosen.filter)?;
    let contents = source.ledger.contents();
    let ((read, problems), _) = source.ask(|index, filter| {
        each_record(&source.ledger, index, filter, |record| Conversation::read(record, &contents))
    })?;
    let unfit = |kind: Unfit| read.iter().filter(|one| one.as_ref().err() == Some(&kind)).count();
    let (not_public, unreadable) = (unfit(Unfit::NotPublic), unfit(Unfit::NoConversation));
    let examples: Vec<Example<'_>> = read.iter().flatten().map(Conversation::example).collect();
    let written = rows(&examples);
    let lines = context.redactor().scrub(written.lines);
    write(&context.absolute(&arguments.output)?, lines.as_bytes(), arguments.force)?;
    let data = Data {
        file: arguments.output.clone(),
        rows: written.rows,
        trials: read.len(),
        not_public,
        unusable: written.unusable + unreadable,
        left_out: written.left_out,
    };
    let mut problems = problems;
    if data.rows == 0 {
        let problem = Problem::warning("no trial is fit to train on").id(FAMILY.number(50));
        problems.push(problem.fix("lower --min-reward or --min-gap, or run more repetitions"));
    }
    let outcome = Outcome::new(context.format, &data, String::new)?.problems(problems);
    let remark = format!(
        "Wrote {} of {} to {}; {} not public, {} unusable, {} left out.",
        count(data.rows, "row"),
        count(data.trials, "trial"),
        printable(&data.file.to_string_lossy()),
        data.not_public,
        data.unusable,
        data.left_out
    );
    Ok(outcome.remark(remark))
}
