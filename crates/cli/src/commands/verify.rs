//! `aec-bench verify`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use aec_base::content::ContentStore;
use aec_base::decimal::rounded;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_base::staging::Staging;
use aec_base::text;
use aec_eval::native::LazyJudge;
use aec_judge::golden::{Expectation, golden_answers, submission_from};
use aec_judge::judge::{Isolation, Judge, Surface};
use aec_judge::submission::{FreezeError, Submission};
use aec_judge::verdict::{CausedBy, Outcome as TrialOutcome, Verdict};
use aec_run::plan::SandboxChoice;
use aec_sandbox::python;
use aec_task::catalogue::Catalogue;
use aec_task::task::Task;
use clap::{Args, ValueHint};
use serde::Serialize;
use serde_json::Value;

use crate::arguments::{SandboxArgument, TasksRootArgument};
use crate::commands::selection::tasks_of_dataset;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Outcome, STRONG};
use crate::progress::steps::{Steps, Words};
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench verify electrical/voltage-drop\n  \
                        aec-bench verify electrical/voltage-drop --submission answer.json\n  \
                        aec-bench verify --all")]
pub(crate) struct VerifyArguments {
    /// Task ids, or directories that contain ids
    #[arg(value_name = "TASK")]
    pub(crate) tasks: Vec<String>,
    /// Submission to judge: a file is taken as the primary output, a directory as the workspace
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, conflicts_with = "all")]
    pub(crate) submission: Option<PathBuf>,
    /// Judge the golden answers of every task
    #[arg(long, conflicts_with = "tasks")]
    pub(crate) all: bool,
    /// Judge the golden answers of the tasks of this dataset
    #[arg(long, value_name = "NAME@VERSION", conflicts_with_all = ["tasks", "all", "submission"])]
    pub(crate) dataset: Option<String>,
    #[command(flatten)]
    pub(crate) table: TableArguments,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

const COLUMNS: [&str; 6] = ["TASK", "SUBMISSION", "REWARD", "EXPECTED", "OUTCOME", "SECONDS"];
pub(crate) const FIELD_COLUMNS: [&str; 2] = ["FIELD", "RESULT"];

#[derive(Serialize)]
struct Data {
    judged: usize,
    as_expected: usize,
    verdicts: Vec<Row>,
}

/// A verdict, and whether it is the expected one.
#[derive(Serialize)]
pub(crate) struct Row {
    task_id: String,
    submission: String,
    expected: Option<&'static str>,
    pub(crate) as_expected: bool,
    verdict: Verdict,
}

pub(crate) fn verify(context: &Context, arguments: &VerifyArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&COLUMNS, &FIELD_COLUMNS])?;
    if !arguments.all && arguments.tasks.is_empty() && arguments.dataset.is_none() {
        let problem = Problem::error("no task was named").fix("name a task, or pass --all or --dataset");
        return Err(Failure::usage(problem));
    }
    let project = context.project(arguments.tasks_root.overrides(context)?)?;
    let (tasks, mut problems) = find_tasks(&project, &arguments.tasks, arguments.dataset.as_deref())?;
    let judge = judge(context, &arguments.sandbox);
    let rows = match &arguments.submission {
        Some(path) => judge_path(context, &project, &judge, &tasks, path)?,
        None => judge_golden(context, &judge, &tasks)?,
    };
    let without = tasks.iter().filter(|task| golden_answers(task).is_empty()).count();
    problems.extend(rows.iter().filter(|row| !row.as_expected).map(unexpected));
    problems.extend(rows.iter().filter(|row| row.as_expected).filter_map(broken_by));
    let data = Data {
        judged: rows.len(),
        as_expected: rows.iter().filter(|row| row.as_expected).count(),
        verdicts: rows,
    };
    let mut outcome = Outcome::new(context.format, &data, || verdicts_text(&data))?;
    if without > 0 && arguments.submission.is_none() {
        let tasks = text::count(without, "task");
        outcome = outcome.remark(format!(
            "{tasks} without golden answers: add tests/fixtures/golden_pass.* and golden_fail.*"
        ));
    }
    if judge.isolation == Isolation::None {
        outcome = outcome.remark("Verifiers ran on this machine itself (--sandbox none), without isolation.");
    }
    Ok(outcome.problems(problems))
}

/// Verdicts on one submission, for each task.
fn judge_path(
    context: &Context,
    project: &Project,
    judge: &Judge,
    tasks: &[Task],
    path: &Path,
) -> Result<Vec<Row>, Failure> {
    let store = Staging::scratch()?;
    let path = context.absolute(path)?;
    let shown = project.shown(&path).to_string_lossy().into_owned();
    let mut rows = Vec::new();
    for task in tasks {
        let submission = submission_from(task, &path, &ContentStore::new(store.path()))
            .map_err(|error| freeze_failure(&error, &shown))?;
        rows.push(row(judge, task, shown.clone(), &submission, None));
    }
    Ok(rows)
}

fn judge_golden(context: &Context, judge: &Judge, tasks: &[Task]) -> Result<Vec<Row>, Failure> {
    let store = Staging::scratch()?;
    let mut rows = Vec::new();
    let steps = Steps::begin(context, Words { done: "verified", noun: "task" }, tasks.len())?;
    for task in tasks {
        steps.at(task.id.as_str());
        for answer in golden_answers(task) {
            let submission = answer
                .submission(task, &ContentStore::new(store.path()))
                .map_err(|error| freeze_failure(&error, &answer.name))?;
            rows.push(row(judge, task, answer.name, &submission, Some(answer.expectation)));
        }
    }
    Ok(rows)
}

/// The tasks that the user named, those of a dataset, or all tasks, and the problems of those that do not load.
pub(crate) fn find_tasks(
    project: &Project,
    queries: &[String],
    dataset: Option<&str>,
) -> Result<(Vec<Task>, Vec<Problem>), Failure> {
    let catalogue = Catalogue::load(&project.settings.path(Setting::Tasks));
    if let Some(reference) = dataset {
        return tasks_of_dataset(project, reference, catalogue);
    }
    if queries.is_empty() {
        let problems = catalogue.problems.into_iter().filter(Problem::counts).collect();
        return Ok((catalogue.tasks, problems));
    }
    let mut tasks: Vec<Task> = Vec::new();
    for query in queries {
        for task in catalogue.find(query)? {
            if !tasks.iter().any(|known| known.id == task.id) {
                tasks.push(task.clone());
            }
        }
    }
    Ok((tasks, Vec::new()))
}

pub(crate) fn judge(context: &Context, sandbox: &SandboxArgument) -> Judge {
    judge_with(context.search_path().as_deref(), isolation(sandbox))
}

/// A judge that is created on first use, because looking for an interpreter takes longer than most commands.
pub(crate) fn judge_later(context: &Context, sandbox: &SandboxArgument) -> LazyJudge {
    let (path, isolation) = (context.search_path(), isolation(sandbox));
    Arc::new(LazyLock::new(Box::new(move || judge_with(path.as_deref(), isolation))))
}

pub(crate) fn isolation(sandbox: &SandboxArgument) -> Isolation {
    isolation_of(sandbox.choice())
}

pub(crate) fn isolation_of(choice: SandboxChoice) -> Isolation {
    match choice {
        SandboxChoice::Namespaces => Isolation::Room,
        SandboxChoice::WeakerLimits => {
            aec_sandbox::accept_weaker_limits();
            Isolation::Room
        }
        SandboxChoice::None => Isolation::None,
    }
}

fn judge_with(search_path: Option<&OsStr>, isolation: Isolation) -> Judge {
    let python = python::find(search_path).filter(|python| python.recent_enough);
    Judge {
        isolation,
        python,
        surface: Surface::default(),
        pool: Some(Arc::default()),
        native: true,
        containers: None,
    }
}

pub(crate) fn freeze_failure(error: &FreezeError, what: &str) -> Failure {
    let problem = Problem::error(format!("cannot take {} as a submission: {error}", text::printable(what)));
    Failure::input(vec![problem.fix("name a file or a directory of ordinary size")])
}

fn row(
    judge: &Judge,
    task: &Task,
    submission_name: String,
    submission: &Submission,
    expectation: Option<Expectation>,
) -> Row {
    let verdict = judge.verdict(task, submission);
    let as_expected = match (verdict.reward, expectation) {
        // A golden answer, also one that must fail, does not make a sound verifier fail.
        (Some(_), Some(_)) if verdict.caused_by.is_some() => false,
        (Some(reward), Some(expectation)) => expectation.is_met(reward),
        (reward, None) => reward.is_some(),
        (None, Some(_)) => false,
    };
    Row {
        task_id: task.id.to_string(),
        submission: submission_name,
        expected: expectation.map(Expectation::text),
        as_expected,
        verdict,
    }
}

/// Tells that a submission earned nothing because the verifier failed on it.
fn broken_by(row: &Row) -> Option<Problem> {
    let fault = row.verdict.fault.as_ref().filter(|_| row.verdict.caused_by == Some(CausedBy::Submission))?;
    let what = format!("{} makes the verifier fail, so it earns nothing: {fault}", row.submission);
    let why = "in the same conditions the verifier gives the task's own answer a reward";
    Some(Problem::note(what).about(&row.task_id).why(why).fix("make the verifier read such an answer"))
}

/// The problem of an unexpected verdict.
pub(crate) fn unexpected(row: &Row) -> Problem {
    let outcome = match (row.verdict.reward, &row.verdict.fault) {
        (Some(_), Some(fault)) => format!("makes the verifier fail: {fault}"),
        (Some(reward), None) => format!("earns {reward}, expected {}", row.expected.unwrap_or("a reward")),
        (None, Some(fault)) => format!("has no reward ({}): {fault}", row.verdict.outcome.name()),
        (None, None) => format!("has no reward ({})", row.verdict.outcome.name()),
    };
    let fix = match row.verdict.outcome {
        TrialOutcome::InfraFault => "see `aec-bench doctor`",
        TrialOutcome::Scored => "correct the verifier or the golden answer",
        _ => "run the verifier by hand and read what it prints",
    };
    let problem = Problem::error(format!("{} {outcome}", row.submission)).about(&row.task_id).fix(fix);
    let said = row.verdict.stderr.trim();
    if said.is_empty() { problem } else { problem.why(format!("the verifier said: {}", last_lines(said))) }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(3)..].join(" / ")
}

fn verdicts_text(data: &Data) -> String {
    let mut table = Table::new(COLUMNS).spare(["SECONDS"]).cut_front(["TASK", "SUBMISSION"]);
    for row in &data.verdicts {
        let reward = row.verdict.reward.map_or_else(|| "-".to_owned(), |reward| reward.to_string());
        table.row([
            row.task_id.clone(),
            row.submission.clone(),
            reward,
            row.expected.unwrap_or("-").to_owned(),
            row.verdict.outcome.name().to_owned(),
            rounded(row.verdict.duration.as_secs_f64(), 2),
        ]);
    }
    table.label_tasks("TASK");
    let mut shown = if data.verdicts.is_empty() { String::new() } else { table.render() };
    if let [only] = data.verdicts.as_slice()
        && let Some(fields) = only.verdict.details.as_ref().and_then(fields_text)
    {
        shown.push_str(&format!("\n{STRONG}Fields{STRONG:#}\n{fields}"));
    }
    shown
}

/// The fields of the answer, if the verifier reports on them.
pub(crate) fn fields_text(details: &Value) -> Option<String> {
    let details = details.as_object()?;
    let fields = details.get("fields").and_then(Value::as_object).unwrap_or(details);
    let mut table = Table::new(FIELD_COLUMNS).keyed().wrap(["FIELD", "RESULT"]);
    for (name, result) in fields {
        let shown = match result {
            Value::Object(parts) => parts
                .iter()
                .map(|(key, value)| format!("{key}: {}", plain(value)))
                .collect::<Vec<_>>()
                .join("  "),
            other => plain(other),
        };
        table.row([name.clone(), shown]);
    }
    Some(table.render())
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
