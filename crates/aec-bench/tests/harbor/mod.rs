//! Harbor from outside: the released program runs our jobs in a test environment, and job directories of every kind are
//! imported.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod config;
mod imports;
mod runs;
mod stops;
mod tasks;

use std::path::{Path, PathBuf};

use crate::run::world::Project;
use aec_ledger::record::TrialRecord;
use aec_xtest::files::names_in;

/// The version that most tests use.
const VERSION: &str = "0.25.0";
/// The Harbor environment of these tests.
const ROOM: &str = "local_room:LocalRoom";

/// A project with Harbor installed. The environment of these tests needs root.
fn project(tasks: usize) -> Project {
    project_of(VERSION, tasks)
}

fn project_of(version: &str, tasks: usize) -> Project {
    let programs = aec_xtest::venv::with_harbor(version);
    let mut project = Project::with_tasks(tasks);
    // Last on the path: verifiers must not run with Harbor's own Python.
    let path = std::env::var("PATH").unwrap();
    project.env.set("PATH", &format!("{path}:{}", programs.display()));
    project.env.set("PYTHONPATH", python().to_str().unwrap());
    project
}

fn python() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/harbor/python")
}

/// The jobs of Harbor that a run made, oldest first.
fn jobs(project: &Project, experiment: &str) -> Vec<PathBuf> {
    let below = project.jobs(experiment).join("_harbor");
    let mut found = Vec::new();
    for name in names_in(&below) {
        let jobs = below.join(name).join("jobs");
        found.extend(names_in(&jobs).into_iter().map(|name| jobs.join(name)));
    }
    found
}

/// What distinguishes verdicts: task, agent, repetition, outcome, reward and the frozen files.
fn verdicts(project: &Project, experiment: &str) -> Vec<String> {
    let line = |record: &TrialRecord| {
        let submission = record.outputs.submission.as_ref().map(|submission| submission.digest.to_string());
        format!(
            "{} {} {} {} {:?} {}",
            record.task.task_id,
            record.agent.name,
            record.repetition,
            record.outcome.name(),
            record.reward(),
            submission.unwrap_or_default()
        )
    };
    let mut lines: Vec<String> = project.records(experiment).values().map(line).collect();
    lines.sort();
    lines
}

/// The value of a key of the agent's result in a record.
fn told(record: &TrialRecord, key: &str) -> String {
    let value = record.outputs.agent_result.get(key);
    value.map_or_else(String::new, |value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}
