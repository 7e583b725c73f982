//! Trials that were run and whose records are not here: packages withheld them. The plans say what they were.

use std::collections::{HashMap, HashSet};

use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_ledger::expected::{Absent, AbsentPlan};
use aec_ledger::imported::WithheldTrial;
use aec_ledger::layout::{ExperimentDirectory, Ledger};

use crate::plan::Plan;
use crate::session::current_plan;

/// The trials of an experiment that packages withheld, with what the plans say about them. A trial that a plan of a
/// package names and the package has not is withheld as well, whether the package says so or not.
pub fn withheld(ledger: &Ledger, experiment: &Name) -> Result<Vec<Absent>, Box<Problem>> {
    let mut trials = ledger.withheld(experiment)?;
    let is_package = ledger.is_package(experiment)?;
    if trials.is_empty() && !is_package {
        return Ok(Vec::new());
    }
    let planned = planned(&ledger.experiment(experiment));
    if is_package {
        let listing = ledger.list(experiment).map_err(|error| {
            Problem::error(error.to_string()).in_file(ledger.experiment(experiment).path())
        })?;
        let known: HashSet<Name> = listing.files.into_iter().map(|file| file.trial).collect();
        let named: HashSet<Name> = trials.iter().map(|trial| trial.trial_id.clone()).collect();
        let is_silent = |id: &&Name| !known.contains(*id) && !named.contains(*id);
        let silent = planned.keys().filter(is_silent).map(|id| WithheldTrial {
            experiment_id: experiment.clone(),
            trial_id: id.clone(),
            attempt: 1,
        });
        trials.extend(silent);
        trials.sort();
    }
    let absent = |trial: WithheldTrial| {
        let planned = planned.get(&trial.trial_id).cloned();
        Absent { trial, planned }
    };
    Ok(trials.into_iter().map(absent).collect())
}

/// The trials of the plans under which an experiment was run.
fn planned(directory: &ExperimentDirectory) -> HashMap<Name, AbsentPlan> {
    let mut planned = HashMap::new();
    for plan in stored_plans(directory) {
        for trial in plan.trials() {
            let (task, agent) = (&plan.tasks[trial.task], &plan.agents[trial.agent]);
            planned.entry(trial.id).or_insert_with(|| AbsentPlan {
                task_id: task.task_id.clone(),
                task_revision: task.revision,
                agent: agent.name.to_string(),
                harness: agent.harness.name().to_owned(),
                model: agent.model.clone(),
                agent_digest: agent.digest,
                repetition: trial.repetition,
            });
        }
    }
    planned
}

/// The plan that says which trials there should be: that of the experiment, or for one that came as a package the
/// largest of those that came along.
pub fn expected_plan(directory: &ExperimentDirectory) -> Result<Option<Plan>, Vec<Problem>> {
    if let Some(plan) = current_plan(directory)? {
        return Ok(Some(plan));
    }
    let size = |plan: &Plan| plan.tasks.len() * plan.agents.len() * plan.repetitions as usize;
    Ok(stored_plans(directory).into_iter().max_by_key(size))
}

/// The plans under which trials ran, as far as they can be read and belong to the experiment.
fn stored_plans(directory: &ExperimentDirectory) -> Vec<Plan> {
    let Ok(entries) = fs_err::read_dir(directory.run().join("plans")) else { return Vec::new() };
    let mut paths: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    paths.sort();
    let is_named = |path: &std::path::Path, plan: &Plan| {
        path.file_stem().and_then(|stem| stem.to_str()) == Some(plan.digest.hex().as_str())
    };
    let id = directory.path().file_name().and_then(|name| name.to_str());
    paths
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .filter_map(|path| Plan::read(path).ok().filter(|plan| is_named(path, plan)))
        .filter(|plan| Some(plan.experiment_id.as_str()) == id)
        .collect()
}
