//! `aec-bench audit`.

pub(crate) mod page;

use std::path::PathBuf;

use aec_base::content::ContentStore;
use aec_base::decimal::rounded;
use aec_base::problem::Problem;
use aec_base::staging::Staging;
use aec_base::text;
use aec_judge::audit::{Audit, AuditOptions, Tally};
use aec_judge::cheat::CHEATERS;
use aec_task::task::Task;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::arguments::{SandboxArgument, TasksRootArgument};
use crate::commands::verify;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Outcome, problem_text};
use crate::progress::steps::{Steps, Words};
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench audit electrical/voltage-drop\n  \
                        aec-bench audit --dataset electrical-v1@1.0.0 --report audit.html")]
pub(crate) struct AuditArguments {
    /// Task ids, or directories that contain task ids
    #[arg(value_name = "TASK")]
    pub(crate) tasks: Vec<String>,
    /// Audit every task
    #[arg(long, conflicts_with = "tasks")]
    pub(crate) all: bool,
    /// Audit the tasks of this dataset
    #[arg(long, value_name = "NAME@VERSION", conflicts_with_all = ["tasks", "all"])]
    pub(crate) dataset: Option<String>,
    /// Also run the built-in cheating agents against the verifiers
    #[arg(long)]
    pub(crate) cheat: bool,
    /// Write an HTML page with all results
    #[arg(long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) table: TableArguments,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

const COLUMNS: [&str; 6] = ["TASK", "MUTANTS LOST", "EQUALS KEPT", "FLOOR", "DETERMINISTIC", "CHEATERS HELD"];

#[derive(Serialize)]
struct Data {
    audited: usize,
    audits: Vec<Audit>,
    /// Low findings; the others are in the envelope's `errors`.
    notes: Vec<Problem>,
}

pub(crate) fn audit(context: &Context, arguments: &AuditArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&COLUMNS])?;
    if !arguments.all && arguments.tasks.is_empty() && arguments.dataset.is_none() {
        let problem = Problem::error("no task was named").fix("name a task, or pass --all or --dataset");
        return Err(Failure::usage(problem));
    }
    let project = context.project(arguments.tasks_root.overrides(context)?)?;
    let (tasks, mut problems) = verify::find_tasks(&project, &arguments.tasks, arguments.dataset.as_deref())?;
    let judge = verify::judge(context, &arguments.sandbox);
    let store = Staging::scratch()?;
    let (everything, _) = verify::find_tasks(&project, &[], None)?;
    let mut audits = Vec::new();
    let steps = Steps::begin(context, Words { done: "audited", noun: "task" }, tasks.len())?;
    let cheated = |done: usize, all: usize| steps.part(format!("{done} of {}", text::count(all, "cheater")));
    for task in &tasks {
        steps.at(task.id.as_str());
        let siblings: Vec<&Task> = everything
            .iter()
            .filter(|other| other.id != task.id && kind_of(other) == kind_of(task))
            .collect();
        let cheaters = if arguments.cheat { CHEATERS } else { &[] };
        let options = AuditOptions { cheaters, siblings: &siblings, cheated: Some(&cheated) };
        let done = aec_judge::audit::audit(&judge, task, options, &ContentStore::new(store.path()))
            .map_err(|error| verify::freeze_failure(&error, task.id.as_str()))?;
        audits.push(done);
    }
    drop(steps);
    for audit in &mut audits {
        for finding in &mut audit.findings {
            finding.file = finding.file.take().map(|file| project.shown(&file).to_path_buf());
        }
        problems.extend(audit.findings.iter().cloned());
    }
    if let Some(path) = &arguments.report {
        let path = context.absolute(path)?;
        aec_base::file::write_atomic(&path, page::page(&audits).as_bytes())?;
    }
    let (problems, notes): (Vec<Problem>, Vec<Problem>) = problems.into_iter().partition(Problem::counts);
    let data = Data { audited: audits.len(), audits, notes };
    let outcome = Outcome::new(context.format, &data, || {
        let mut shown: String = problems.iter().chain(&data.notes).map(problem_text).collect();
        shown.push_str(&audits_text(&data.audits));
        shown.push_str(&format!(
            "{} audited, {}\n",
            text::count(data.audited, "task"),
            text::count(problems.len(), "finding")
        ));
        shown
    })?;
    Ok(outcome.problems_in_text(problems))
}

/// The directory that contains a task: tasks of one kind share it.
fn kind_of(task: &Task) -> &str {
    task.id.as_str().rsplit_once('/').map_or("", |(above, _)| above)
}

fn audits_text(audits: &[Audit]) -> String {
    let mut table = Table::new(COLUMNS).spare(["CHEATERS HELD"]).cut_front(["TASK"]);
    for audit in audits {
        table.row([
            audit.task_id.clone(),
            tally(audit.mutants),
            tally(audit.equivalents),
            audit.floor.map_or_else(|| "-".to_owned(), |floor| rounded(floor, 3)),
            audit.deterministic.map_or("-", |same| if same { "yes" } else { "no" }).to_owned(),
            tally(audit.cheaters),
        ]);
    }
    table.label_tasks("TASK");
    if audits.is_empty() { String::new() } else { table.render() }
}

pub(crate) fn tally(tally: Tally) -> String {
    if tally.all == 0 { "-".to_owned() } else { format!("{} of {}", tally.good, tally.all) }
}
