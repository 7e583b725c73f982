//! Runs on a real Slurm cluster of four virtual nodes: the same verdicts as locally, whatever is killed meanwhile.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod budget;
mod cluster;
mod equal;
mod everywhere;
mod k8s;
mod loss;
mod refusals;
mod secrets;

use std::collections::BTreeMap;

use crate::run::world::Project;
use aec_judge::verdict::Outcome;
use cluster::Cluster;

/// A project with this many tasks, whose runs use a cluster.
fn project_on(cluster: &Cluster, tasks: usize) -> Project {
    let mut project = Project::with_tasks(tasks);
    project.env.set("SLURM_CONF", cluster.config().to_str().unwrap());
    project
}

/// Makes solutions slow enough that the test can kill something while agents work.
fn slow_solutions(project: &Project, tasks: usize, seconds: f64) {
    for index in 0..tasks {
        project.env.write(
            format!("tasks/civil/channel-{index:03}/solution/solve.sh"),
            format!(
                "#!/usr/bin/env bash\nsleep {seconds}\ncat /solution/answer.json > /workspace/output.json\n"
            ),
        );
    }
}

/// The result of each trial: its latest attempt, and how many attempts had a result.
fn results(project: &Project, experiment: &str) -> BTreeMap<String, (Outcome, Option<f64>, usize)> {
    let mut found: BTreeMap<String, (u32, Outcome, Option<f64>, usize)> = BTreeMap::new();
    for record in project.records(experiment).into_values() {
        let entry = found.entry(record.key.to_string()).or_insert((0, record.outcome, None, 0));
        if record.outcome.is_settled() {
            entry.3 += 1;
        }
        if record.attempt > entry.0 {
            (entry.0, entry.1, entry.2) = (record.attempt, record.outcome, record.reward());
        }
    }
    found.into_iter().map(|(key, (_, outcome, reward, settled))| (key, (outcome, reward, settled))).collect()
}

/// Checks that every planned trial has exactly one result, the same as locally.
fn assert_like_local(project: &Project, experiment: &str, local: &str) {
    let (there, here) = (results(project, experiment), results(project, local));
    assert!(!here.is_empty());
    assert_eq!(there, here);
    assert!(there.values().all(|(outcome, _, settled)| outcome.is_settled() && *settled == 1), "{there:?}");
    project.assert_sound(experiment);
}
