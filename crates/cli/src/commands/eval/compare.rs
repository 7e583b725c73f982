//! `aec-bench eval compare`.

use aec_base::decimal::{rounded, signed};
use aec_base::problem::Problem;
use aec_base::text::count;
use aec_eval::FAMILY;
use aec_eval::results::compare::{Comparison, MeanDifference, Paired, compare as compare_runs};
use clap::Args;

use crate::commands::eval::find;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench eval compare 1a2b3c4d 5e6f7a8b")]
pub(crate) struct EvalCompareArguments {
    /// Directories or ids of evaluations; the others are compared with the first one
    #[arg(value_name = "RUN", num_args = 2.., required = true)]
    pub(crate) runs: Vec<String>,
    #[command(flatten)]
    pub(crate) table: TableArguments,
}

const COLUMNS: [&str; 7] = ["RUN", "ENVIRONMENT", "MODEL", "ROLLOUTS", "REWARD", "TOKENS OUT", "COST"];

pub(crate) fn compare(context: &Context, arguments: &EvalCompareArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&COLUMNS])?;
    let project = context.project(Vec::new())?;
    let runs: Result<Vec<_>, Failure> =
        arguments.runs.iter().map(|run| find(context, &project, run)).collect();
    let mut comparison = compare_runs(&runs?)?;
    for run in &mut comparison.runs {
        run.path = project.shown(&run.path).to_path_buf();
    }
    let problems = comparison.against_first.iter().filter_map(|paired| unlike(paired, &comparison)).collect();
    Ok(Outcome::new(context.format, &comparison, || text(&comparison))?.problems(problems))
}

/// Warns about examples that cannot be compared, before the user draws conclusions.
fn unlike(paired: &Paired, comparison: &Comparison) -> Option<Problem> {
    let run = comparison.runs.get(paired.run)?;
    let apart = paired.only_first + paired.only_this + paired.other_prompt;
    (apart > 0).then(|| {
        let examples = usize::try_from(apart).unwrap_or(usize::MAX);
        let what =
            format!("{} could not be compared with `{}`", count(examples, "example"), run.path.display());
        Problem::warning(what)
            .id(FAMILY.number(104))
            .why("they are in one run only, or their prompts differ")
            .fix("compare evaluations of the same environment with the same arguments")
    })
}

fn text(comparison: &Comparison) -> String {
    let mut table = Table::new(COLUMNS).spare(["TOKENS OUT", "COST"]).cut(["ENVIRONMENT", "MODEL"]);
    for run in &comparison.runs {
        let reward = run.summary.reward.map_or_else(
            || "-".to_owned(),
            |reward| format!("{} ± {}", rounded(reward.mean, 3), rounded(reward.deviation, 3)),
        );
        let tokens =
            run.summary.usage.map_or_else(|| "-".to_owned(), |usage| rounded(usage.mean.output_tokens, 0));
        let cost = run.cost.map_or_else(|| "-".to_owned(), |cost| format!("${}", rounded(cost.total_usd, 4)));
        let id = run.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let env = run.name.clone().unwrap_or_else(|| run.env_id.clone());
        table.row([id, env, run.model.clone(), run.summary.rows.to_string(), reward, tokens, cost]);
    }
    let mut text = table.render();
    for paired in &comparison.against_first {
        let Some(run) = comparison.runs.get(paired.run) else { continue };
        let id = run.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        text.push_str(&format!("\n{id} against the first, over {} examples:\n", paired.pairs));
        if let Some(reward) = &paired.reward {
            text.push_str(&format!("  Reward: {}\n", difference(reward)));
        }
        for (name, metric) in &paired.metrics {
            text.push_str(&format!("  {name}: {}\n", difference(metric)));
        }
        for changed in &paired.configuration {
            text.push_str(&format!("  {changed}\n"));
        }
    }
    text
}

fn difference(difference: &MeanDifference) -> String {
    let interval = match (difference.low, difference.high) {
        (Some(low), Some(high)) => format!(", 95 % from {} to {}", signed(low, 3), signed(high, 3)),
        _ => String::new(),
    };
    format!(
        "{} instead of {}, {}{interval}",
        rounded(difference.this, 3),
        rounded(difference.first, 3),
        signed(difference.difference, 3)
    )
}
