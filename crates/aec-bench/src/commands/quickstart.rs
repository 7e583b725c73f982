//! `aec-bench quickstart`: the loop as far as this version goes, in a project of its own.

use std::path::{Path, PathBuf};

use aec_author::library::Library;
use aec_author::single::{self, TaskRequest};
use aec_base::problem::Problem;
use aec_base::project::PROJECT_FILE;
use aec_task::catalogue::Catalogue;
use aec_task::file::Visibility;
use aec_task::validate;
use serde::Serialize;

use crate::arguments::{QuickstartArguments, SandboxArgument, SandboxLevel};
use crate::commands::generate_task::engines;
use crate::commands::{init, verify};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Outcome, STRONG};

#[derive(Serialize)]
struct Data {
    root: PathBuf,
    created: bool,
    tasks_generated: usize,
    tasks_checked: usize,
    tasks_with_problems: usize,
    golden_judged: usize,
    golden_as_expected: usize,
    next: Vec<String>,
}

pub(crate) fn quickstart(context: &Context, arguments: &QuickstartArguments) -> Result<Outcome, Failure> {
    let root = context.absolute(&arguments.directory)?;
    let created = !root.join(PROJECT_FILE).exists();
    if created {
        init::scaffold(&root, false, true)?;
    }
    let generated = generate(context, &root)?;
    let report = validate::check_all(&root.join("tasks"));
    let mut problems = report.problems;
    problems.extend(report.tasks.iter().flat_map(|task| task.problems.iter().cloned()));
    problems.retain(Problem::counts);
    let tasks = Catalogue::load(&root.join("tasks")).tasks;
    let sandbox = SandboxArgument { sandbox: SandboxLevel::Namespaces };
    let rows = verify::judge_golden(&verify::judge(context, &sandbox), &tasks)?;
    problems.extend(rows.iter().filter(|row| !row.as_expected).map(verify::unexpected));
    let shown = arguments.directory.display();
    let data = Data {
        created,
        tasks_generated: generated,
        tasks_checked: report.tasks.len(),
        tasks_with_problems: report
            .tasks
            .iter()
            .filter(|task| task.problems.iter().any(Problem::counts))
            .count(),
        golden_judged: rows.len(),
        golden_as_expected: rows.iter().filter(|row| row.as_expected).count(),
        next: vec![
            format!("cd {shown}"),
            "aec-bench generate list-templates".to_owned(),
            "aec-bench task show electrical/voltage-drop".to_owned(),
            "aec-bench audit --all --cheat".to_owned(),
            "aec-bench task new civil/culvert-capacity".to_owned(),
            "aec-bench doctor".to_owned(),
        ],
        root,
    };
    let outcome = Outcome::new(context.format, &data, || {
        let made = if created { "Created a project" } else { "Using the project" };
        let mut text = format!(
            "{made} in {shown}\nGenerated {} from the library\nChecked {}: {} with problems\nJudged {} in clean rooms: {} as expected\n\n\
             {STRONG}Next{STRONG:#}\n",
            aec_base::text::count(data.tasks_generated, "task"),
            aec_base::text::count(data.tasks_checked, "task"),
            data.tasks_with_problems,
            aec_base::text::count(data.golden_judged, "golden answer"),
            data.golden_as_expected,
        );
        for command in &data.next {
            text.push_str(&format!("  {command}\n"));
        }
        text.push_str("\nStill to come in this version: run, evaluate, prime export.\n");
        text
    })?;
    Ok(outcome.problems(problems))
}

/// Some tasks from a template of the library, one of each tier.
fn generate(context: &Context, root: &Path) -> Result<usize, Failure> {
    const TEMPLATE: &str = "structural/bolt-group-loading";
    let library = Library::load(&[]);
    let template = library.find(TEMPLATE).map_err(|problem| *problem)?;
    let request = TaskRequest {
        difficulties: Vec::new(),
        instances: 3,
        seed: 42,
        start_index: 0,
        tool_mode: None,
        visibility: Visibility::Public,
        output: root.join("tasks"),
        replace: false,
    };
    let sandbox = SandboxArgument { sandbox: SandboxLevel::Namespaces };
    let production = single::make(&engines(context, &sandbox), template, &request)?;
    Ok(production.instances.len())
}
