//! `aec-bench evaluate`.

use std::path::{Path, PathBuf};

use aec_base::decimal::rounded;
use aec_base::file::{Links, read_text};
use aec_base::problem::Problem;
use aec_base::text::{count, printable};
use aec_report::evaluate::{Evaluation, evaluate as evaluate_selection};
use aec_report::floors::{Floors, Rescaled};
use aec_report::group::{Group, Unit};
use aec_report::html::{Budget, render};
use aec_report::page::{PageSource, document};
use aec_report::selection::Selection;
use aec_report::stats::{Confidence, Interval, bootstrap_bca};
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::commands::ledger::number;
use crate::commands::report::{ChosenTrials, Source, UnitArgument, dollars, mean, span, write};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::{Table, TableArguments, paragraph};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench evaluate -e pilot\n  \
                        aec-bench evaluate -e pilot --report report.html\n  \
                        aec-bench evaluate -e pilot --agent careful --bootstrap --json")]
pub(crate) struct EvaluateArguments {
    #[command(flatten)]
    pub(crate) chosen: ChosenTrials,
    /// Which trials the intervals treat as one group
    #[arg(long, value_enum, value_name = "UNIT", default_value_t)]
    pub(crate) unit: UnitArgument,
    /// Also compute bootstrap intervals, for all trials and for each agent, with this many resamples
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10000")]
    pub(crate) bootstrap: Option<usize>,
    /// Rescale rewards by those of agents that do nothing, as reported by `audit --json` for each task
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) floors: Option<PathBuf>,
    /// Write an HTML report that opens without a server
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
    /// Replace an existing report
    #[arg(long, requires = "report")]
    pub(crate) force: bool,
    /// Leave traces out of the HTML report
    #[arg(long, requires = "report")]
    pub(crate) no_traces: bool,
    #[command(flatten)]
    pub(crate) table: TableArguments,
}

/// More than the floors of a hundred thousand tasks take.
const FLOORS_LIMIT: u64 = 64 * 1024 * 1024;
/// Fixed, so that the same records give the same interval.
const SEED: u64 = 0x0b00_7a57;
/// Rows shown of tables that grow with the library.
const SHOWN: usize = 20;

/// What trials are grouped by, a table for each.
const GROUPS: [&str; 7] = ["AGENT", "MODEL", "HARNESS", "DIFFICULTY", "DISCIPLINE", "FAMILY", "TASK"];
/// What is shown of a group.
const FIGURES: [&str; 11] = [
    "MEAN",
    "95 % INTERVAL",
    "FAULTS AS 0",
    "SOLVED",
    "TRIALS",
    "TASKS",
    "UNCOUNTED",
    "FAULTS",
    "CRASHED",
    "USD",
    "USD/SOLVED",
];
/// The columns of the tables of groups.
pub(crate) const GROUP_COLUMNS: [&[&str]; 2] = [&GROUPS, &FIGURES];

#[derive(Serialize)]
struct Data {
    #[serde(flatten)]
    evaluation: Evaluation,
    #[serde(skip_serializing_if = "Option::is_none")]
    bootstrap: Option<Bootstrap>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rescaled: Option<Rescaled>,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<PathBuf>,
}

/// Bootstrap intervals of the mean, corrected for bias and skew.
#[derive(Serialize)]
struct Bootstrap {
    resamples: usize,
    overall: Option<Interval>,
    agent: Vec<(String, Option<Interval>)>,
}

pub(crate) fn evaluate(context: &Context, arguments: &EvaluateArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&GROUP_COLUMNS)?;
    let mut source = Source::open(context, &arguments.chosen.experiments, &arguments.chosen.filter)?;
    if arguments.report.is_some() {
        // What is published must be what the records say.
        source.read_records()?;
    }
    let floors = arguments.floors.as_ref().map(|path| read_floors(context, path)).transpose()?;
    let (selection, problems) = source.selection()?;
    let unit = Unit::from(arguments.unit);
    let evaluation = evaluate_selection(&selection, unit);
    let mut problems = problems;
    problems.extend(missing(&evaluation));
    let report = match &arguments.report {
        Some(file) => {
            problems.extend(write_page(context, &source, &selection, &evaluation, arguments, file)?);
            Some(file.clone())
        }
        None => None,
    };
    let data = Data {
        bootstrap: arguments.bootstrap.map(|resamples| bootstrap(&selection, &evaluation, unit, resamples)),
        rescaled: floors.map(|floors| floors.evaluate(&selection, unit)),
        report,
        evaluation,
    };
    let mut outcome = Outcome::new(context.format, &data, || evaluation_text(&data))?.problems(problems);
    if let Some(file) = &data.report {
        outcome = outcome.remark(format!("Wrote {}.", printable(&file.to_string_lossy())));
    }
    Ok(outcome)
}

/// Planned trials without a record: a mean without them may be of another mix of tasks than the one that was planned.
pub(crate) fn missing(evaluation: &Evaluation) -> Option<Problem> {
    let Evaluation { planned, missing, experiments, .. } = evaluation;
    let what = format!("{missing} of {} have no record", count(*planned, "planned trial"));
    let problem =
        Problem::warning(what).id("E064").why("the mean is without them; the worst case counts them as 0");
    let fix = match experiments.as_slice() {
        [only] => format!("run them with `aec-bench run --resume {only}`"),
        _ => "run them with `aec-bench run --resume EXPERIMENT`; `aec-bench runs list` names the experiments"
            .to_owned(),
    };
    (*missing > 0).then(|| problem.fix(fix))
}

/// Writes the HTML report, and returns what could not be read for it as problems.
fn write_page(
    context: &Context,
    source: &Source,
    selection: &Selection,
    evaluation: &Evaluation,
    arguments: &EvaluateArguments,
    file: &Path,
) -> Result<Vec<Problem>, Failure> {
    let budget = Budget::default();
    let tool = format!("aec-bench {}", env!("CARGO_PKG_VERSION"));
    let ((document, unread), _) = source.ask(|index, filter| {
        let ledger = &source.ledger;
        let page = PageSource { ledger, index, filter, selection, evaluation };
        document(&page, &tool, (!arguments.no_traces).then_some(&budget))
    })?;
    let rendered = render(&document, &budget).map_err(|error| {
        let problem = Problem::error(format!("the report cannot be written: {error}"));
        Failure::input([problem.fix("narrow it down with filters, or name fewer experiments")])
    })?;
    let page = context.redactor().scrub(rendered.html);
    write(&context.absolute(file)?, page.as_bytes(), arguments.force)?;
    Ok(unread)
}

fn read_floors(context: &Context, path: &Path) -> Result<Floors, Failure> {
    let path = context.absolute(path)?;
    let refuse = |what: String| {
        let problem = Problem::error(format!("the floors cannot be used: {what}")).in_file(&path);
        Failure::input([problem.fix("write them with `aec-bench audit --all --json > FILE`")])
    };
    let text = read_text(&path, FLOORS_LIMIT, Links::Follow).map_err(|error| refuse(error.to_string()))?;
    Floors::parse(&text).map_err(refuse)
}

fn bootstrap(selection: &Selection, evaluation: &Evaluation, unit: Unit, resamples: usize) -> Bootstrap {
    let interval = |agent: Option<&str>| {
        bootstrap_bca(
            &aec_report::group::clusters(selection, unit, agent),
            resamples,
            Confidence::default(),
            SEED,
        )
    };
    let agents = evaluation.by.agent.iter().map(|group| group.name.clone());
    Bootstrap {
        resamples,
        overall: interval(None),
        agent: agents.map(|name| (name.clone(), interval(Some(&name)))).collect(),
    }
}

pub(crate) fn evaluation_text(data: &impl AsEvaluation) -> String {
    let evaluation = data.evaluation();
    let mut text = paragraph(&overview(evaluation));
    let by = &evaluation.by;
    let groups = [&by.agent, &by.model, &by.harness, &by.difficulty, &by.discipline, &by.family, &by.task];
    for (title, groups) in GROUPS.into_iter().zip(groups) {
        if groups.len() > 1 || title == GROUPS[0] {
            text.push_str(&format!("\n{}", group_table(title, groups)));
        }
    }
    for note in &evaluation.notes {
        text.push_str(&paragraph(&format!("\nNote: {note}.\n")));
    }
    text
}

/// A type that contains an evaluation.
pub(crate) trait AsEvaluation {
    fn evaluation(&self) -> &Evaluation;
}

impl AsEvaluation for Data {
    fn evaluation(&self) -> &Evaluation {
        &self.evaluation
    }
}

impl AsEvaluation for Evaluation {
    fn evaluation(&self) -> &Evaluation {
        self
    }
}

pub(crate) fn overview(evaluation: &Evaluation) -> String {
    let all = &evaluation.overall;
    let outcomes: Vec<String> =
        all.outcomes.iter().map(|(outcome, count)| format!("{count} {}", outcome.name())).collect();
    let means = &all.denominators;
    let mut text = format!(
        "{}: {} of {} ({})\n",
        evaluation.experiments.join(", "),
        count(all.trials, "trial"),
        count(all.tasks, "task"),
        outcomes.join(", ")
    );
    if evaluation.missing > 0 {
        text.push_str(&format!(
            "{} of {} without a record\n",
            evaluation.missing,
            count(evaluation.planned, "planned trial")
        ));
    }
    text.push_str(&format!(
        "mean reward {} (95 % {}), {} of {} solved\n",
        mean(all),
        span(all.interval),
        all.solved,
        all.counted
    ));
    text.push_str(&format!(
        "counting every fault as 0: {}; counting what was not run as 0 too: {}\n",
        number(means.as_run, 3),
        number(means.worst_case, 3)
    ));
    if let Some(unknown) = all.unknown {
        text.push_str(&format!("*{}\n", unknown.text(all.counted)));
    }
    let passes: Vec<String> = all
        .pass
        .iter()
        .map(|pass| {
            format!(
                "pass@{} {}, pass^{} {}",
                pass.k,
                rounded(pass.pass_at_k, 3),
                pass.k,
                rounded(pass.pass_hat_k, 3)
            )
        })
        .collect();
    if !passes.is_empty() {
        text.push_str(&format!("{}\n", passes.join("; ")));
    }
    text
}

pub(crate) fn group_table(title: &'static str, groups: &[Group]) -> String {
    let header: Vec<&str> = [title].into_iter().chain(FIGURES).collect();
    let mut table = Table::new(header)
        .keyed()
        .spare(["USD/SOLVED", "USD", "UNCOUNTED", "CRASHED", "TASKS", "TRIALS", "FAULTS", "FAULTS AS 0"])
        .cut_front([title]);
    for group in groups.iter().take(SHOWN) {
        let withheld = group.unknown.map_or(0, |unknown| unknown.withheld);
        let uncounted = group.trials + withheld - group.counted;
        table.row([
            group.name.clone(),
            mean(group),
            span(group.interval),
            number(group.denominators.as_run, 3),
            format!("{} of {}", group.solved, group.counted),
            group.trials.to_string(),
            group.tasks.to_string(),
            uncounted.to_string(),
            group.faults.uncounted.to_string(),
            group.faults.crashed.to_string(),
            dollars(group),
            number(group.cost_per_solved, 4),
        ]);
    }
    match title {
        "TASK" => table.label_tasks(title),
        "FAMILY" => table.label_families(title),
        _ => {}
    }
    let mut text = table.render();
    if groups.len() > SHOWN {
        text.push_str(&format!("and {} more; --json shows all\n", groups.len() - SHOWN));
    }
    text
}
