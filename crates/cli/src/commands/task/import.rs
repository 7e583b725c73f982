//! `aec-bench task import`: reads tasks in the formats of other programs.

use std::path::PathBuf;

use aec_base::problem::Problem;
use aec_base::settings::Setting;
use aec_base::text;
use aec_harbor::FAMILY;
use aec_harbor::task::import::{Destination, find, import as import_task, is_what_it_was};
use aec_task::id::TaskId;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::arguments::TasksRootArgument;
use crate::commands::task::format::{TaskFormat, name};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench task import out --format harbor --tasks-root imported\n  \
                        aec-bench task import out/electrical.voltage-drop --format harbor --id lv/pump")]
pub(crate) struct TaskImportArguments {
    /// Directory of one task, or of several tasks
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
    /// Format of the tasks
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: TaskFormat,
    /// Id of the task in this project, if there is only one task
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// First segment of the ids of tasks that do not name a discipline
    #[arg(long, value_name = "SEGMENT", default_value = "harbor", conflicts_with = "id")]
    pub(crate) below: String,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

#[derive(Serialize)]
struct Imported {
    task_id: TaskId,
    path: PathBuf,
    /// Whether it was exported from here earlier and is unchanged.
    restored: bool,
}

#[derive(Serialize)]
struct ImportData {
    format: &'static str,
    tasks: Vec<Imported>,
    refused: usize,
}

pub(crate) fn import(context: &Context, arguments: &TaskImportArguments) -> Result<Outcome, Failure> {
    let project = context.project(arguments.tasks_root.overrides(context)?)?;
    let directory = context.absolute(&arguments.directory)?;
    let found = find(&directory)?;
    let id = match &arguments.id {
        Some(id) => Some(TaskId::parse(id).map_err(|error| {
            Failure::usage(Problem::error(error.to_string()).fix("write DISCIPLINE/NAME"))
        })?),
        None => None,
    };
    if found.is_empty() {
        let problem = Problem::error("there is no task here").id(FAMILY.number(45));
        return Err(problem
            .fix("name a directory with a task.toml, or a directory of such")
            .in_file(directory)
            .into());
    }
    if id.is_some() && found.len() > 1 {
        let what = format!("--id names one task, and there are {}", found.len());
        return Err(Failure::usage(
            Problem::error(what).fix("name one of their directories, or use --below"),
        ));
    }
    let tasks_root = project.settings.path(Setting::Tasks);
    let to = Destination { tasks: &tasks_root, id: id.as_ref(), below: &arguments.below };
    let mut data = ImportData { format: name(arguments.format), tasks: Vec::new(), refused: 0 };
    let mut problems = Vec::new();
    for place in &found {
        match import_task(place, &to) {
            Ok(task) => {
                if task.restored && is_what_it_was(place, &task.path) == Some(false) {
                    let what = format!("`{}` was changed since it was exported", task.id);
                    problems.push(Problem::note(what).id(FAMILY.number(46)).about(task.id.as_str()));
                }
                problems.extend(task.problems.into_iter().map(|problem| problem.about(task.id.as_str())));
                let path = project.shown(&task.path).to_path_buf();
                data.tasks.push(Imported { task_id: task.id, path, restored: task.restored });
            }
            Err(found) => {
                data.refused += 1;
                let shown = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
                problems.extend(found.into_iter().map(|problem| match &problem.about {
                    Some(_) => problem,
                    None => problem.about(text::printable(&shown)),
                }));
            }
        }
    }
    if data.tasks.is_empty() {
        return Err(Failure::input(problems));
    }
    let lines = || {
        let lines = data.tasks.iter().map(|task| format!("{}  {}\n", task.task_id, task.path.display()));
        lines.collect::<String>()
    };
    let outcome = Outcome::new(context.format, &data, lines)?.problems(problems);
    Ok(outcome.remark("Next: aec-bench task validate, then aec-bench audit"))
}
