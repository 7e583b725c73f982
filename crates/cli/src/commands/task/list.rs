//! `aec-bench task list`.

use std::path::PathBuf;

use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_base::text;
use aec_run::experiment::Experiment;
use aec_task::catalogue::Catalogue;
use aec_task::file::{Difficulty, Lifecycle, Visibility};
use aec_task::selection::{Selection, SelectionTable};
use aec_task::task::Task;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::arguments::{SelectionArguments, TasksRootArgument};
use crate::commands::config::view::outside;
use crate::commands::selection::missing;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench task list\n  \
                        aec-bench task list electrical --difficulty easy --json\n  \
                        aec-bench task list --config experiment.yaml")]
pub(crate) struct TaskListArguments {
    /// Only these tasks: ids, directories that contain ids, or patterns such as electrical/*
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Only tasks that this experiment selects
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) selection: SelectionArguments,
    /// Show at most this many
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    #[command(flatten)]
    pub(crate) table: TableArguments,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

#[derive(Serialize)]
struct Data<'a> {
    root: PathBuf,
    tasks_root: PathBuf,
    /// Number of selected tasks; `tasks` may hold fewer because of a limit.
    total: usize,
    tasks: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    task_id: &'a str,
    path: PathBuf,
    domain: &'a str,
    category: Option<&'a str>,
    difficulty: Option<Difficulty>,
    visibility: Option<Visibility>,
    lifecycle: Lifecycle,
    standard: Option<&'a str>,
    tags: &'a [String],
}

const COLUMNS: [&str; 6] = ["TASK", "DOMAIN", "DIFFICULTY", "VISIBILITY", "LIFECYCLE", "TAGS"];

pub(crate) fn list(context: &Context, arguments: &TaskListArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&COLUMNS])?;
    let filters = arguments.selection.filters()?;
    let project = context.project(arguments.tasks_root.overrides(context)?)?;
    let tasks_root = project.settings.path(Setting::Tasks);
    let datasets = project.settings.path(Setting::Datasets);
    let mut selections = vec![Selection::prepare(&table(arguments), &datasets)?];
    if let Some(file) = &arguments.config {
        let experiment = Experiment::read(&context.absolute(file)?, &project.env)?;
        selections.push(Selection::prepare(&experiment.tasks, &datasets)?);
    }
    let Catalogue { tasks, mut problems } = Catalogue::load(&tasks_root);
    for selection in &selections {
        problems.extend(missing(selection, &tasks));
    }
    problems.retain(Problem::counts);
    let selected: Vec<&Task> = tasks
        .iter()
        .filter(|task| selections.iter().all(|selection| selection.takes(task)))
        .filter(|task| filters.iter().all(|filter| filter.takes(task)))
        .collect();
    let hides_inactive =
        table(arguments).lifecycle.is_none() && tasks.iter().any(|task| task.lifecycle != Lifecycle::Active);
    let limit = arguments.limit.unwrap_or(usize::MAX);
    let data = Data {
        root: project.root.clone(),
        total: selected.len(),
        tasks: selected.iter().take(limit).map(|task| row(&project, task)).collect(),
        tasks_root,
    };
    let mut outcome = Outcome::new(context.format, &data, || list_text(&data))?;
    for remark in remarks(&project, &data, tasks.len(), hides_inactive) {
        outcome = outcome.remark(remark);
    }
    Ok(outcome.problems(problems))
}

/// The flags as a selection. With an experiment, the default lifecycle comes from its own block.
fn table(arguments: &TaskListArguments) -> SelectionTable {
    let mut table = arguments.selection.table(arguments.ids.clone());
    if arguments.config.is_some() {
        table.lifecycle.get_or_insert_default();
    }
    table
}

fn row<'a>(project: &Project, task: &'a Task) -> Row<'a> {
    Row {
        task_id: task.id.as_str(),
        path: project.shown(&task.path).to_path_buf(),
        domain: &task.domain,
        category: task.category.as_deref(),
        difficulty: task.difficulty,
        visibility: task.visibility,
        lifecycle: task.lifecycle,
        standard: task.standard.as_deref(),
        tags: &task.tags,
    }
}

fn list_text(data: &Data<'_>) -> String {
    if data.tasks.is_empty() {
        return String::new();
    }
    let mut table = Table::new(COLUMNS)
        .spare(["TAGS", "LIFECYCLE", "VISIBILITY", "DOMAIN"])
        .cut_front(["TASK"])
        .cut(["TAGS"]);
    for task in &data.tasks {
        table.row(
            [
                task.task_id,
                task.domain,
                task.difficulty.map_or("-", Difficulty::name),
                task.visibility.map_or("unknown", Visibility::name),
                task.lifecycle.name(),
                &task.tags.join(" "),
            ]
            .map(str::to_owned),
        );
    }
    table.label_tasks("TASK");
    table.render()
}

fn remarks(project: &Project, data: &Data<'_>, all: usize, only_active: bool) -> Vec<String> {
    let mut remarks = Vec::new();
    if all == 0 {
        remarks.push(format!(
            "No tasks in {}. `aec-bench task new DISCIPLINE/NAME` begins one.",
            project.shown(&data.tasks_root).display()
        ));
    } else if data.total < all {
        let inactive =
            if only_active { "; `--lifecycle any` also takes those that are not active" } else { "" };
        remarks.push(format!("{} of {} selected{inactive}.", data.total, text::count(all, "task")));
    }
    if data.tasks.len() < data.total {
        remarks.push(format!("The first {} are shown.", data.tasks.len()));
    }
    if project.file.is_none() {
        remarks.push(outside(project));
    }
    remarks
}
