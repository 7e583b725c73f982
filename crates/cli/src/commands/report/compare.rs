//! `aec-bench report compare`.

use std::collections::BTreeSet;

use aec_base::decimal::{self, rounded};
use aec_base::problem::Problem;
use aec_base::text::printable;
use aec_report::compare::{Arm, Comparison, Metric, Part, Question, Sample, Side, compare as weigh};
use aec_report::faults::FaultRate;
use aec_report::glance::each_record;
use aec_report::selection::Selection;
use clap::Args;

use crate::commands::ledger::number;
use crate::commands::report::{ReportFilterArguments, Source};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::output::{Outcome, STRONG};
use crate::table::{Table, TableArguments, paragraph};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench report compare pilot/hasty pilot/careful\n  \
                        aec-bench report compare pilot/hasty pilot/careful --difficulty easy --detect 0.1")]
pub(crate) struct ReportCompareArguments {
    /// Run to compare with: EXPERIMENT, or EXPERIMENT/AGENT if it has several agents
    #[arg(value_name = "BASE")]
    pub(crate) base: String,
    /// Run to judge, named in the same way
    #[arg(value_name = "OTHER")]
    pub(crate) other: String,
    #[command(flatten)]
    pub(crate) filter: ReportFilterArguments,
    /// Compare even if the runs differ in more than the agent
    #[arg(long)]
    pub(crate) allow_different_frame: bool,
    /// Largest loss that still counts as no loss
    #[arg(long, value_name = "REWARD", default_value_t = 0.02)]
    pub(crate) margin: f64,
    /// Estimate how large the runs must be to detect this difference
    #[arg(long, value_name = "REWARD", default_value_t = 0.05)]
    pub(crate) detect: f64,
    #[command(flatten)]
    pub(crate) table: TableArguments,
}

/// What is compared in parts, a table for each.
const PARTS: [&str; 3] = ["DIFFICULTY", "FAMILY", "TASK"];
const METRIC_COLUMNS: [&str; 7] = ["METRIC", "BASE", "OTHER", "DIFFERENCE", "95 % INTERVAL", "P", "P (HOLM)"];
const PART_COLUMNS: [&str; 7] =
    ["TASKS", "BASE", "OTHER", "NONZERO", "DIFFERENCE", "95 % INTERVAL", "P (HOLM)"];

/// Most parts shown.
const SHOWN: usize = 20;

pub(crate) fn compare(context: &Context, arguments: &ReportCompareArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&METRIC_COLUMNS, &PARTS, &PART_COLUMNS])?;
    let (question, mut problems) = (question(arguments)?, Vec::new());
    let base = arm(context, arguments, &arguments.base, &mut problems)?;
    let other = arm(context, arguments, &arguments.other, &mut problems)?;
    let orders = base.samples.iter().chain(&other.samples).map(|sample| sample.answer_order).collect();
    problems.extend(Selection::mixed_orders(&orders).map(Problem::note));
    let comparison = weigh(&base, &other, &question);
    if !arguments.allow_different_frame && !comparison.frame.is_empty() {
        return Err(different(&comparison));
    }
    let exit = if comparison.verdict.kind.is_fine() { Exit::Success } else { Exit::Found };
    let outcome = Outcome::new(context.format, &comparison, || comparison_text(&comparison))?;
    Ok(outcome.problems(problems).exit(exit))
}

fn question(arguments: &ReportCompareArguments) -> Result<Question, Failure> {
    for (flag, value) in [("--margin", arguments.margin), ("--detect", arguments.detect)] {
        if !(value > 0.0 && value < 1.0) {
            let problem = Problem::error(format!("{flag} {value} is not a difference of rewards"));
            return Err(Failure::usage(problem.fix("give a number between 0 and 1")));
        }
    }
    Ok(Question { margin: arguments.margin, detect: arguments.detect, ..Question::default() })
}

/// The trials of one side. If the experiment has several agents, the agent must be named too.
fn arm(
    context: &Context,
    arguments: &ReportCompareArguments,
    named: &str,
    problems: &mut Vec<Problem>,
) -> Result<Arm, Failure> {
    let (experiment, agent) = match named.split_once('/') {
        Some((experiment, agent)) => (experiment, Some(agent.to_owned())),
        None => (named, None),
    };
    let mut source = Source::open(context, &[experiment.to_owned()], &arguments.filter)?;
    if agent.is_some() {
        source.filter.agent = agent;
    }
    let (selection, _) = source.selection()?;
    problems.extend(selection.foreign().map(Problem::note));
    let contents = source.ledger.contents();
    let ((samples, unread), more) = source.ask(|index, filter| {
        each_record(&source.ledger, index, filter, |record| Sample::read(record, &contents))
    })?;
    problems.extend(unread);
    problems.extend(more);
    let withheld = source.withheld()?.into_iter().map(|absent| absent.planned);
    let withheld = withheld.map(|planned| planned.map(|planned| (planned.task_id, planned.task_revision)));
    let agents: BTreeSet<&str> = samples.iter().map(|sample| sample.facts.agent.as_str()).collect();
    if agents.len() > 1 {
        let names: Vec<String> = agents.iter().map(|agent| format!("{experiment}/{agent}")).collect();
        let problem = Problem::error(format!("`{}` has several agents", printable(named)))
            .why(format!("they are {}", names.join(", ")))
            .fix("name one of them");
        return Err(Failure::usage(problem));
    }
    Ok(Arm { name: named.to_owned(), samples, withheld: withheld.collect() })
}

fn different(comparison: &Comparison) -> Failure {
    let lines: Vec<String> = comparison
        .frame
        .iter()
        .map(|part| format!("{}: {} against {}", part.what, part.base, part.other))
        .collect();
    let problem = Problem::error("the runs differ in more than the agent")
        .why(lines.join("; "))
        .fix("run both in the same frame, or pass --allow-different-frame and say so");
    Failure::input([problem])
}

fn comparison_text(comparison: &Comparison) -> String {
    let mut table = Table::new(METRIC_COLUMNS).keyed().spare(["P"]).wrap(["METRIC"]);
    for metric in &comparison.metrics {
        table.row([
            label(metric),
            side(&metric.base),
            side(&metric.other),
            signed(metric.difference),
            signed_span(metric.interval),
            chance(metric.p_value),
            chance(metric.adjusted_p_value),
        ]);
    }
    let mut sides = Table::facts();
    sides.row(["base", comparison.base.as_str()]);
    sides.row(["other", comparison.other.as_str()]);
    let verdict = format!(
        "{STRONG}{}{STRONG:#}: {}.\n",
        comparison.verdict.kind.name(),
        printable(&comparison.verdict.sentence)
    );
    let mut text = format!("{}\n{}\n{}", paragraph(&verdict), sides.render(), table.render());
    let parts = [&comparison.by.difficulty, &comparison.by.family, &comparison.by.task];
    for (title, parts) in PARTS.into_iter().zip(parts) {
        if parts.len() > 1 {
            text.push_str(&format!("\n{}", parts_table(title, parts)));
        }
    }
    text.push_str(&paragraph(&remarks(comparison)));
    text
}

/// What is said below the tables.
fn remarks(comparison: &Comparison) -> String {
    let mut text = String::new();
    if let Some(test) = &comparison.reward.mcnemar {
        text.push_str(&format!(
            "\nsolved by base alone {}, by other alone {}: McNemar p {}\n",
            test.base_only,
            test.other_only,
            chance(Some(test.p_value))
        ));
    }
    for rate in &comparison.fault_rates {
        text.push_str(&format!(
            "faults of {} that are not part of its mean: {} of {}\n",
            printable(&rate.agent),
            rate.faults,
            rate.trials
        ));
    }
    if let Some(rate) = comparison.fault_rates.first() {
        text.push_str(&format!("such a difference in faults by chance: p {}\n", chance(Some(rate.p_value))));
    }
    for note in comparison.fault_rates.iter().filter_map(FaultRate::note) {
        text.push_str(&format!("Note: {}.\n", printable(&note)));
    }
    let power = &comparison.power;
    if let Some(smallest) = power.minimal_detectable_effect {
        text.push_str(&format!(
            "a comparison of this size sees differences from {} ({} % of the time)\n",
            rounded(smallest, 3),
            rounded(power.power * 100.0, 0)
        ));
    }
    let repetitions = match power.repetitions_needed {
        Some(count) => format!("{count} repetitions of these tasks"),
        None => "more tasks, since no number of repetitions of these is enough".to_owned(),
    };
    let tasks = power
        .tasks_needed
        .map(|count| format!(", or {count} tasks with as many repetitions"))
        .unwrap_or_default();
    text.push_str(&format!("to see {} takes {repetitions}{tasks}\n", rounded(power.detect, 3)));
    for part in &comparison.frame {
        text.push_str(&format!(
            "not the same: {} is {} and {}\n",
            part.what,
            printable(&part.base),
            printable(&part.other)
        ));
    }
    text
}

fn parts_table(title: &'static str, parts: &[Part]) -> String {
    let header: Vec<&str> = [title].into_iter().chain(PART_COLUMNS).collect();
    let mut table = Table::new(header).keyed().spare(["TASKS", "NONZERO", "P (HOLM)"]).cut_front([title]);
    for part in parts.iter().take(SHOWN) {
        table.row([
            part.name.clone(),
            part.tasks.to_string(),
            side(&part.base),
            side(&part.other),
            format!("{}/{}, {}/{}", part.base_nonzero, part.base.of, part.other_nonzero, part.other.of),
            signed(part.difference),
            signed_span(part.interval),
            chance(part.adjusted_p_value),
        ]);
    }
    match title {
        "TASK" => table.label_tasks(title),
        "FAMILY" => table.label_families(title),
        _ => {}
    }
    let mut text = table.render();
    if parts.len() > SHOWN {
        text.push_str(&format!("and {} more; --json shows all\n", parts.len() - SHOWN));
    }
    text
}

fn label(metric: &Metric) -> String {
    match metric.name {
        "reward_mean" => "Reward mean",
        "nonzero_rollouts" => "Nonzero rollouts",
        "final_environment_response" => "Final environment response",
        "empty_response_errors" => "Empty response errors",
        "mean_tool_calls" => "Mean tool calls",
        "mean_submit_calls" => "Mean submit_answer calls",
        other => other,
    }
    .to_owned()
}

/// A probability as text; it is never shown as 0.
fn chance(chance: Option<f64>) -> String {
    match chance {
        Some(chance) if chance < 0.001 => "<0.001".to_owned(),
        chance => number(chance, 3),
    }
}

fn side(side: &Side) -> String {
    match (side.count, side.value) {
        (Some(count), _) => format!("{count}/{}", side.of),
        (None, value) => number(value, 3),
    }
}

fn signed(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| decimal::signed(value, 3))
}

fn signed_span(interval: Option<aec_report::stats::Interval>) -> String {
    interval.map_or_else(
        || "-".to_owned(),
        |span| format!("{} to {}", decimal::signed(span.low, 3), decimal::signed(span.high, 3)),
    )
}
