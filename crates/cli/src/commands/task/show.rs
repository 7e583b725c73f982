//! `aec-bench task show`.

use std::path::PathBuf;

use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_base::text::printable;
use aec_task::catalogue::Catalogue;
use aec_task::file::{Difficulty, Visibility};
use aec_task::id::TaskId;
use aec_task::task::{TASK_FILE, Task, Tool, primary_output};
use clap::Args;
use serde::Serialize;

use crate::arguments::TasksRootArgument;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::Table;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench task show electrical/voltage-drop")]
pub(crate) struct TaskShowArguments {
    /// Task id, in either form, or its unique beginning
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

#[derive(Serialize)]
struct Data<'a> {
    task: &'a Task,
    tools: Vec<Tool>,
    verifier_entry: Option<&'static str>,
    output: String,
    files: Vec<&'static str>,
    instruction: String,
}

/// The optional parts of a task directory that are shown.
const PARTS: [&str; 10] = [
    "rlm.toml",
    "lambda-rlm.toml",
    "environment/Dockerfile",
    "environment/docker-compose.yaml",
    "environment/docker-compose.yml",
    "environment/compose.yaml",
    "environment/compose.yml",
    "tests/fixtures",
    "solution",
    "tools",
];

pub(crate) fn show(context: &Context, arguments: &TaskShowArguments) -> Result<Outcome, Failure> {
    let project = context.project(arguments.tasks_root.overrides(context)?)?;
    let mut task = find(&project, &arguments.id)?;
    let instruction = task.instruction().map_err(|error| {
        aec_base::document::unreadable(&task.path.join("instruction.md"), &error, aec_task::task::FAMILY)
    })?;
    let data = Data {
        tools: task.tools(),
        verifier_entry: task.verifier_entry(),
        output: primary_output(&instruction),
        files: PARTS.into_iter().filter(|part| task.path.join(part).exists()).collect(),
        task: {
            task.path = project.shown(&task.path).to_path_buf();
            &task
        },
        instruction,
    };
    Outcome::new(context.format, &data, || show_text(&data))
}

/// One task by id. For an exact id, the usual case, the catalogue is not read.
fn find(project: &Project, query: &str) -> Result<Task, Failure> {
    let root = project.settings.path(Setting::Tasks);
    if let Ok(id) = TaskId::parse(query) {
        let path: PathBuf = root.join(id.relative_path());
        if path.join(TASK_FILE).is_file() && !goes_through_link(&root, &path) {
            return Ok(Task::load(id, &path)?.task);
        }
    }
    let catalogue = Catalogue::load(&root);
    let found = match catalogue.find(query) {
        Ok(found) => found,
        // The task may exist, but be broken.
        Err(problem) => {
            let broken: Vec<Problem> = catalogue
                .problems
                .iter()
                .filter(|problem| {
                    problem
                        .about
                        .as_deref()
                        .and_then(|id| TaskId::parse(id).ok())
                        .is_some_and(|id| id.is(query))
                })
                .cloned()
                .collect();
            return Err(if broken.is_empty() { problem.into() } else { broken.into() });
        }
    };
    match found.as_slice() {
        [task] => Ok((*task).clone()),
        several => {
            let names: Vec<&str> = several.iter().take(5).map(|task| task.id.as_str()).collect();
            let more = if several.len() > 5 { ", …" } else { "" };
            Err(Problem::error(format!("`{}` is a directory of {} tasks", printable(query), several.len()))
                .why(format!("they are {}{more}", names.join(", ")))
                .fix("name one of them")
                .into())
        }
    }
}

fn goes_through_link(root: &std::path::Path, path: &std::path::Path) -> bool {
    path.ancestors().take_while(|above| *above != root).any(std::path::Path::is_symlink)
}

fn show_text(data: &Data<'_>) -> String {
    let task = data.task;
    let environment = &task.environment;
    let optional = |value: Option<&str>| value.unwrap_or("-").to_owned();
    let tools: Vec<String> =
        data.tools.iter().map(|tool| format!("{} ({})", tool.name, tool.source)).collect();
    let list = |items: &[String]| if items.is_empty() { "-".to_owned() } else { items.join(", ") };
    let files: Vec<String> = data.files.iter().map(ToString::to_string).collect();
    let mut lines = vec![
        ("task", task.id.to_string()),
        ("path", task.path.display().to_string()),
        ("domain", task.domain.clone()),
        ("category", optional(task.category.as_deref())),
        ("difficulty", optional(task.difficulty.map(Difficulty::name))),
        ("visibility", task.visibility.map_or("unknown", Visibility::name).to_owned()),
        ("lifecycle", task.lifecycle.name().to_owned()),
        ("tags", list(&task.tags)),
        ("standard", optional(task.standard.as_deref())),
        ("agent time", format!("{} s", task.agent.timeout_sec)),
        ("verifier time", format!("{} s", task.verifier.timeout_sec)),
        ("verifier", optional(data.verifier_entry)),
        ("output", data.output.clone()),
        ("build time", format!("{} s", environment.build_timeout_sec)),
        ("cpus", environment.cpus.to_string()),
        ("memory", format!("{} MiB", environment.memory_mb)),
        ("storage", format!("{} MiB", environment.storage_mb)),
        ("internet", if environment.allow_internet { "yes" } else { "no" }.to_owned()),
        ("extensions", list(&environment.extensions)),
        ("tools", list(&tools)),
        ("also has", list(&files)),
    ];
    if let Some(template) = task.generation.as_ref().and_then(|generation| generation.template.clone()) {
        lines.push(("template", template));
    }
    let mut facts = Table::facts();
    for (title, value) in lines {
        facts.row([title.to_owned(), value]);
    }
    format!("{}\n{}\n", facts.render(), printable(data.instruction.trim_end()))
}
