//! `aec-bench task export`: writes tasks in the formats of other programs.

use std::path::PathBuf;

use aec_base::problem::Problem;
use aec_harbor::FAMILY;
use aec_harbor::task::export::{Purpose, translate};
use aec_task::id::TaskId;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::arguments::TasksRootArgument;
use crate::commands::task::format::{TaskFormat, name};
use crate::commands::verify::find_tasks;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench task export electrical --format harbor --output out")]
pub(crate) struct TaskExportArguments {
    /// Task ids, or directories that contain ids
    #[arg(value_name = "ID", required = true)]
    pub(crate) tasks: Vec<String>,
    /// Format to write
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: TaskFormat,
    /// Directory to write into; each task gets its own directory
    #[arg(long, short, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

#[derive(Serialize)]
struct Exported {
    task_id: TaskId,
    path: PathBuf,
    /// The digest that names the task in the other program's results.
    checksum: String,
}

#[derive(Serialize)]
struct ExportData {
    format: &'static str,
    tasks: Vec<Exported>,
}

pub(crate) fn export(context: &Context, arguments: &TaskExportArguments) -> Result<Outcome, Failure> {
    let project = context.project(arguments.tasks_root.overrides(context)?)?;
    let (tasks, problems) = find_tasks(&project, &arguments.tasks, None)?;
    let output = context.absolute(&arguments.output)?;
    // Harbor names tasks by their directories, so two tasks must not share one.
    let place = |id: &TaskId| output.join(id.dotted());
    for task in &tasks {
        if place(&task.id).symlink_metadata().is_ok() {
            let problem = Problem::error(format!("the destination of `{}` exists already", task.id));
            let problem = problem.id(FAMILY.number(44)).fix("choose another directory, or remove it");
            return Err(problem.in_file(place(&task.id)).into());
        }
    }
    let mut exported = Vec::new();
    for task in &tasks {
        let translated = translate(task, &Purpose::Share)?;
        let path = place(&task.id);
        translated.write(&path)?;
        exported.push(Exported { task_id: task.id.clone(), path, checksum: translated.checksums().whole });
    }
    let data = ExportData { format: name(arguments.format), tasks: exported };
    let line = || {
        let lines = data.tasks.iter().map(|task| format!("{}  {}\n", task.task_id, task.path.display()));
        lines.collect::<String>()
    };
    Ok(Outcome::new(context.format, &data, line)?.problems(problems))
}
