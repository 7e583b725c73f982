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
use serde::Serialize;

use crate::arguments::TaskListArguments;
use crate::commands::config::outside;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::Table;

#[derive(Serialize)]
struct Data<'a> {
    root: PathBuf,
    tasks_root: PathBuf,
    /// Tasks that are selected; `tasks` may hold fewer because of a limit.
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

pub(crate) fn list(context: &Context, arguments: &TaskListArguments) -> Result<Outcome, Failure> {
    let filters =
        arguments.filter.iter().map(|filter| FieldFilter::parse(filter)).collect::<Result<Vec<_>, _>>()?;
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
        problems.extend(selection.missing_from(&tasks).into_iter().map(|id| {
            Problem::warning(format!("the dataset names `{}`, which is not here", text::printable(id)))
                .fix("restore the task, or select without the dataset")
        }));
    }
    problems.retain(Problem::counts);
    let selected: Vec<&Task> = tasks
        .iter()
        .filter(|task| selections.iter().all(|selection| selection.takes(task)))
        .filter(|task| filters.iter().all(|filter| filter.takes(task)))
        .collect();
    let hides_inactive =
        lifecycle(arguments).is_none() && tasks.iter().any(|task| task.lifecycle != Lifecycle::Active);
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

fn table(arguments: &TaskListArguments) -> SelectionTable {
    // The argument parser has checked the words.
    let difficulty = |name: &String| Difficulty::parse(name);
    let visibility = |name: &String| Visibility::parse(name);
    SelectionTable {
        dataset: arguments.dataset.clone(),
        include_patterns: arguments.ids.clone(),
        exclude_patterns: arguments.exclude.clone(),
        domains: arguments.domain.clone(),
        difficulties: arguments.difficulty.iter().filter_map(difficulty).collect(),
        lifecycle: lifecycle(arguments),
        lifecycle_filter: None,
        visibility: arguments.visibility.iter().filter_map(visibility).collect(),
        tags: arguments.tag.clone(),
    }
}

/// The stages that the flags allow: an empty list allows all, none at all means the usual default.
fn lifecycle(arguments: &TaskListArguments) -> Option<Vec<Lifecycle>> {
    let stages = &arguments.lifecycle;
    if stages.iter().any(|stage| stage == "any") {
        return Some(Vec::new());
    }
    // With an experiment, its own block has the default.
    let unfiltered = stages.is_empty() && arguments.config.is_none();
    (!unfiltered).then(|| stages.iter().filter_map(|stage| Lifecycle::parse(stage)).collect())
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
    let mut table = Table::new(["TASK", "DOMAIN", "DIFFICULTY", "VISIBILITY", "LIFECYCLE", "TAGS"]);
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

/// `FIELD=VALUE`: a field of the table, also one without a flag of its own.
struct FieldFilter {
    field: &'static str,
    value: String,
}

const FIELDS: [&str; 8] =
    ["task_id", "domain", "category", "difficulty", "visibility", "lifecycle", "standard", "tags"];

impl FieldFilter {
    fn parse(filter: &str) -> Result<Self, Failure> {
        let shown = text::printable(filter);
        let Some((field, value)) = filter.split_once('=') else {
            return Err(Failure::usage(
                Problem::error(format!("`{shown}` is not FIELD=VALUE"))
                    .fix("write, say, --filter category=reasoning"),
            ));
        };
        match FIELDS.iter().find(|known| **known == field) {
            Some(field) => Ok(Self { field, value: value.to_owned() }),
            None => {
                let problem = Problem::error(format!("tasks have no field `{}`", text::printable(field)))
                    .why(format!("the fields are {}", FIELDS.join(", ")));
                Err(Failure::usage(match text::nearest(field, &FIELDS) {
                    Some(near) => problem.fix(format!("did you mean `{near}`?")),
                    None => problem.fix("name one of them"),
                }))
            }
        }
    }

    fn takes(&self, task: &Task) -> bool {
        let value = self.value.as_str();
        match self.field {
            "task_id" => task.id.is(value),
            "domain" => task.domain == value,
            "category" => task.category.as_deref().unwrap_or("unknown") == value,
            "difficulty" => task.difficulty.map_or("unknown", Difficulty::name) == value,
            "visibility" => task.visibility.map_or("unknown", Visibility::name) == value,
            "lifecycle" => task.lifecycle.name() == value,
            "standard" => task.standard.as_deref().unwrap_or("unknown") == value,
            _ => task.tags.iter().any(|tag| tag == value),
        }
    }
}
