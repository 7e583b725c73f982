//! `aec-bench quickstart`: the loop as far as this version goes, in a project of its own.

use std::path::PathBuf;

use aec_base::problem::Problem;
use aec_base::project::PROJECT_FILE;
use aec_task::validate;
use serde::Serialize;

use crate::arguments::QuickstartArguments;
use crate::commands::init;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Outcome, STRONG};

#[derive(Serialize)]
struct Data {
    root: PathBuf,
    created: bool,
    tasks_checked: usize,
    tasks_with_problems: usize,
    next: Vec<String>,
}

pub(crate) fn quickstart(context: &Context, arguments: &QuickstartArguments) -> Result<Outcome, Failure> {
    let root = context.absolute(&arguments.directory)?;
    let created = !root.join(PROJECT_FILE).exists();
    if created {
        init::scaffold(&root, false, true)?;
    }
    let report = validate::check_all(&root.join("tasks"));
    let mut problems = report.problems;
    problems.extend(report.tasks.iter().flat_map(|task| task.problems.iter().cloned()));
    problems.retain(Problem::counts);
    let shown = arguments.directory.display();
    let data = Data {
        created,
        tasks_checked: report.tasks.len(),
        tasks_with_problems: report
            .tasks
            .iter()
            .filter(|task| task.problems.iter().any(Problem::counts))
            .count(),
        next: vec![
            format!("cd {shown}"),
            "aec-bench task show electrical/voltage-drop".to_owned(),
            "aec-bench task new civil/culvert-capacity".to_owned(),
            "aec-bench doctor".to_owned(),
        ],
        root,
    };
    let outcome = Outcome::new(context.format, &data, || {
        let made = if created { "Created a project" } else { "Using the project" };
        let mut text = format!(
            "{made} in {shown}\nChecked {}: {} with problems\n\n{STRONG}Next{STRONG:#}\n",
            aec_base::text::count(data.tasks_checked, "task"),
            data.tasks_with_problems,
        );
        for command in &data.next {
            text.push_str(&format!("  {command}\n"));
        }
        text.push_str("\nStill to come in this version: verify, generate, run, evaluate, prime export.\n");
        text
    })?;
    Ok(outcome.problems(problems))
}
