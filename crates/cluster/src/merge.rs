//! The last step: moves records of killed workers to their places, builds the index, and looks for every planned
//! trial. Removes the keys when no trial is missing.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::timestamp::Timestamp;
use aec_judge::settle::outcome::is_crash;
use aec_judge::verdict::Outcome;
use aec_ledger::index::{Attempts, Filter, Index};
use aec_ledger::journal;
use aec_ledger::layout::Ledger;
use aec_run::plan::PlannedTrial;
use aec_run::resume::PastTrial;
use aec_run::session::{current_plan, hold};
use aec_run::tally::{AgentTally, tallies};
use serde::{Deserialize, Serialize};

use crate::FAMILY;
use crate::contract::{Folder, read_json, write_json};

/// How many missing trials the summary names; further ones are only counted.
const NAMED: usize = 100;

/// The result of a merge.
#[derive(Debug, Serialize)]
pub struct Summary {
    pub schema_version: u32,
    pub experiment_id: Name,
    /// Whether every planned trial has a result.
    pub complete: bool,
    /// Planned against executed.
    pub all: AgentTally,
    /// The same, agent by agent.
    pub agents: Vec<AgentTally>,
    /// Dollars of all attempts, as far as known.
    pub cost_usd: f64,
    /// Records that killed workers left behind and that this merge moved to their places.
    pub recovered: usize,
    /// Planned trials without a result.
    pub missing: usize,
    /// The first of the missing trials.
    pub missing_trials: Vec<Name>,
    /// Trials with more than one result. Only `--rerun` makes these.
    pub repeated: usize,
    pub head: Option<aec_base::digest::Digest>,
    pub merged_at: Timestamp,
}

/// The part of a written summary that status needs.
#[derive(Debug, Deserialize)]
pub struct Merged {
    /// Whether every planned trial has a result.
    pub complete: bool,
}

/// The result of a submission's merge, if it has ended.
pub fn merged(folder: &Folder) -> Result<Option<Merged>, Problem> {
    read_json(&folder.summary())
}

/// Merges an experiment that no process is running.
pub fn merge(ledger: &Ledger, jobs: &Path, experiment: &Name) -> Result<Summary, Vec<Problem>> {
    let directory = ledger.experiment(experiment);
    let _held = hold(&directory)?;
    let cannot = |error: &dyn std::fmt::Display| {
        let problem =
            Problem::error(format!("the experiment cannot be merged: {error}")).id(FAMILY.number(2));
        vec![problem.fix("check the disk, then try again").in_file(directory.path())]
    };
    let plan = current_plan(&directory)?.ok_or_else(|| {
        let problem = Problem::error(format!("the experiment `{experiment}` has no plan in this ledger"));
        vec![problem.id(FAMILY.number(14)).fix("merge where it was run")]
    })?;
    let recovered = journal::recover(ledger, experiment, jobs).map_err(|error| cannot(&error))?;
    let filter =
        Filter { experiments: vec![experiment.to_string()], attempts: Attempts::All, ..Filter::default() };
    let (rows, refreshed) =
        Index::ask(ledger, |index| index.query(&filter)).map_err(|error| cannot(&error))?;
    let broken: Vec<Problem> = refreshed
        .problems
        .into_iter()
        .filter(|problem| problem.file.as_ref().is_some_and(|file| file.starts_with(directory.path())))
        .collect();
    if !broken.is_empty() {
        return Err(broken);
    }
    let mut latest: HashMap<Name, PastTrial> = HashMap::with_capacity(rows.len());
    let mut results: HashMap<Name, usize> = HashMap::with_capacity(rows.len());
    let mut cost_usd = 0.0;
    for row in rows {
        cost_usd += row.cost_usd.unwrap_or(0.0);
        // The dispatcher repeats an attempt with such an outcome, so the next attempt is not a second result.
        let passing = matches!(row.outcome, Outcome::InfraFault | Outcome::VerifierFault);
        if row.outcome.is_settled() && !passing {
            *results.entry(row.trial_id.clone()).or_default() += 1;
        }
        let crashed = is_crash(row.outcome, row.fault_kind.as_deref());
        let found = PastTrial { attempt: row.attempt, outcome: row.outcome, reward: row.reward, crashed };
        let known = latest.entry(row.trial_id).or_insert(found);
        if known.attempt < found.attempt {
            *known = found;
        }
    }
    let trials = plan.trials();
    let counted = |trial: &PlannedTrial| latest.get(&trial.id).copied();
    let (agents, all) = tallies(&plan, trials.iter().map(|trial| (trial, counted(trial))));
    let (mut missing, mut missing_trials, mut repeated) = (0, Vec::new(), 0);
    for trial in &trials {
        let found = latest.get(&trial.id);
        if !found.is_some_and(|past| past.outcome.is_settled()) {
            missing += 1;
            if missing_trials.len() < NAMED {
                missing_trials.push(trial.id.clone());
            }
        }
        repeated += usize::from(results.get(&trial.id).is_some_and(|count| *count > 1));
    }
    Ok(Summary {
        schema_version: 1,
        experiment_id: experiment.clone(),
        complete: missing == 0,
        all,
        agents,
        cost_usd,
        recovered: recovered.records.len(),
        missing,
        missing_trials,
        repeated,
        head: directory.seal(jobs).map_err(|error| cannot(&error))?,
        merged_at: Timestamp::now_in_milliseconds(),
    })
}

/// Writes the summary into the folder of a submission, and removes the keys if no worker needs them any more.
pub fn close(folder: &Folder, summary: &Summary) -> io::Result<()> {
    if summary.complete {
        match fs_err::remove_file(folder.environment()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    write_json(&folder.summary(), summary)
}
