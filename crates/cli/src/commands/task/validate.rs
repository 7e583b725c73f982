//! `aec-bench task validate`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use aec_base::problem::{Problem, Severity};
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_base::text;
use aec_task::catalogue::{self, TaskDirectory, discover};
use aec_task::dataset::reference::DatasetRef;
use aec_task::dataset::store::Store;
use aec_task::id::TaskId;
use aec_task::task::{INSTRUCTION_FILE, TASK_FILE};
use aec_task::validate::{self, Report};
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::arguments::TasksRootArgument;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Outcome, problem_text};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench task validate electrical/voltage-drop\n  \
                        aec-bench task validate --all\n  \
                        aec-bench task validate --dataset electrical-v1@1.0.0")]
pub(crate) struct TaskValidateArguments {
    /// Task ids, directories that contain ids, or paths of task directories
    #[arg(value_name = "ID|PATH", value_hint = ValueHint::DirPath)]
    pub(crate) tasks: Vec<String>,
    /// Check every task
    #[arg(long, conflicts_with = "tasks")]
    pub(crate) all: bool,
    /// Check the tasks of this dataset
    #[arg(long, value_name = "NAME@VERSION", conflicts_with_all = ["tasks", "all"])]
    pub(crate) dataset: Option<String>,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

#[derive(Serialize)]
struct Data {
    checked: usize,
    passed: usize,
    failed: usize,
    tasks: Vec<Row>,
    /// Advice. Errors and warnings are in the envelope's `errors`.
    notes: Vec<Problem>,
}

#[derive(Serialize)]
struct Row {
    task_id: TaskId,
    path: PathBuf,
    passed: bool,
    errors: usize,
    warnings: usize,
    notes: usize,
}

pub(crate) fn validate(context: &Context, arguments: &TaskValidateArguments) -> Result<Outcome, Failure> {
    if !arguments.all && arguments.tasks.is_empty() && arguments.dataset.is_none() {
        return Err(Failure::usage(
            Problem::error("nothing to check was named")
                .fix("name a task or a directory, or pass --all or --dataset"),
        ));
    }
    let project = context.project(arguments.tasks_root.overrides(context)?)?;
    let root = project.settings.path(Setting::Tasks);
    let report = if arguments.all {
        validate::check_all(&root)
    } else if let Some(reference) = &arguments.dataset {
        check_dataset(&project, &root, reference)?
    } else {
        let mut problems = Vec::new();
        let mut directories = Vec::new();
        for query in &arguments.tasks {
            directories.extend(find(&project, &root, &context.directory()?, query, &mut problems)?);
        }
        directories.sort_by(|a, b| a.id.cmp(&b.id));
        directories.dedup_by(|a, b| a.path == b.path);
        Report { tasks: validate::check(&directories), problems }
    };
    let (data, problems) = summarise(&project, report);
    let outcome = Outcome::new(context.format, &data, || {
        let mut shown: String = problems.iter().map(problem_text).collect();
        shown.push_str(&format!(
            "{} checked: {} passed, {} with problems\n",
            text::count(data.checked, "task"),
            data.passed,
            data.failed
        ));
        shown
    })?;
    let outcome = data
        .notes
        .iter()
        .fold(outcome, |outcome, note| outcome.remark(problem_text(note).trim_end().to_owned()));
    Ok(outcome.problems_in_text(problems))
}

/// Checks the tasks of a dataset. A task that does not exist is a problem.
fn check_dataset(project: &Project, root: &Path, reference: &str) -> Result<Report, Failure> {
    let store = Store::new(project.settings.path(Setting::Datasets));
    let ids = store.task_ids(&DatasetRef::parse(reference)?)?.task_ids;
    let known = discover(root).directories;
    let by_dotted_id: HashMap<String, &TaskDirectory> =
        known.iter().map(|directory| (directory.id.dotted(), directory)).collect();
    let (mut directories, mut problems) = (Vec::new(), Vec::new());
    for id in ids {
        match by_dotted_id.get(&id.replace('/', ".")) {
            Some(directory) => directories.push((*directory).clone()),
            None => problems.push(
                Problem::warning(format!("the dataset names `{}`, which is not here", text::printable(&id)))
                    .fix("restore the task, or check without the dataset"),
            ),
        }
    }
    Ok(Report { tasks: validate::check(&directories), problems })
}

fn summarise(project: &Project, report: Report) -> (Data, Vec<Problem>) {
    let mut problems = report.problems;
    let mut tasks = Vec::with_capacity(report.tasks.len());
    for task in report.tasks {
        let count = |severity| task.problems.iter().filter(|problem| problem.severity == severity).count();
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        tasks.push(Row {
            path: project.shown(&task.path).to_path_buf(),
            passed: errors + warnings == 0,
            errors,
            warnings,
            notes: count(Severity::Note),
            task_id: task.id,
        });
        problems.extend(task.problems);
    }
    for problem in &mut problems {
        problem.file = problem.file.take().map(|file| project.shown(&file).to_path_buf());
    }
    let (problems, notes): (Vec<Problem>, Vec<Problem>) = problems.into_iter().partition(Problem::counts);
    let passed = tasks.iter().filter(|task| task.passed).count();
    (Data { checked: tasks.len(), passed, failed: tasks.len() - passed, tasks, notes }, problems)
}

/// The directories that the user means by an id or a path.
fn find(
    project: &Project,
    root: &Path,
    here: &Path,
    query: &str,
    problems: &mut Vec<Problem>,
) -> Result<Vec<TaskDirectory>, Failure> {
    let discovery = discover(root);
    let by_id = catalogue::find(&discovery.directories, |directory| &directory.id, query);
    let no_such_id = match by_id {
        Ok(found) => return Ok(found.into_iter().cloned().collect()),
        Err(problem) => problem,
    };
    let path = here.join(query);
    let Ok(path) = path.canonicalize() else { return Err(no_such_id.into()) };
    if path.join(TASK_FILE).symlink_metadata().is_ok() {
        let id = id_of(root, &path).map_err(|error| {
            Problem::error(format!("this directory cannot be a task: {error}"))
                .fix("name the directory with letters, digits, `.`, `_` and `-`")
                .in_file(&path)
        })?;
        let has_instruction = path.join(INSTRUCTION_FILE).symlink_metadata().is_ok_and(|file| !file.is_dir());
        return Ok(vec![TaskDirectory { id, has_instruction, path }]);
    }
    let below = discover(&path);
    if below.directories.is_empty() {
        return Err(Problem::error("there is no task here")
            .why(format!("a task is a directory with a {TASK_FILE}"))
            .fix("name a task directory, or create a task with `aec-bench task new`")
            .in_file(project.shown(&path))
            .into());
    }
    problems.extend(below.problems);
    let with_id = |directory: TaskDirectory| {
        // The same task gets the same id, however the user named it.
        let id = id_of(root, &directory.path).unwrap_or(directory.id);
        TaskDirectory { id, ..directory }
    };
    Ok(below.directories.into_iter().map(with_id).collect())
}

/// The id relative to the tasks root, or the last two names of the path if the task is elsewhere.
fn id_of(root: &Path, path: &Path) -> Result<TaskId, aec_task::id::TaskIdError> {
    let root = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    if let Ok(relative) = path.strip_prefix(&root) {
        return TaskId::from_relative_path(relative);
    }
    let names: Vec<_> = path.iter().collect();
    let last_two: PathBuf = names[names.len().saturating_sub(2)..].iter().collect();
    TaskId::from_relative_path(last_two.strip_prefix("/").unwrap_or(&last_two))
}
