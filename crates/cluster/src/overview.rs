//! The state of an experiment's shards: from the records, plus the cluster's view if it answers.

use aec_ledger::layout::ExperimentDirectory;
use aec_run::plan::{Plan, PlannedTrial};
use aec_run::resume::PastTrial;
use serde::Serialize;

use crate::contract::{Contract, Engine, Folder, Jobs};
use crate::queue::Entry;
use crate::segment::Segment;

/// The state of the latest submission's shards.
#[derive(Debug, Serialize)]
pub struct Overview {
    pub engine: Engine,
    pub folder: String,
    pub array_job: Option<u64>,
    pub merge_job: Option<u64>,
    /// The cluster's state of the job that merges.
    pub merge_state: Option<String>,
    /// Absent until the merge has ended; then whether no trial was missing.
    pub merged: Option<bool>,
    pub shards: Vec<ShardStatus>,
}

/// The state of one shard.
#[derive(Debug, Default, Serialize)]
pub struct ShardStatus {
    /// The number of the shard, from 0.
    pub shard: usize,
    pub planned: usize,
    pub done: usize,
    /// Whether a worker holds it now.
    pub live: bool,
    /// The cluster's state of the shard; absent when the cluster does not answer or has forgotten it.
    pub state: Option<String>,
    pub reason: Option<String>,
    pub node: Option<String>,
    /// How often the cluster started it again.
    pub restarts: Option<u64>,
}

/// Assembles an overview. `held` says whether a worker holds a shard.
pub fn overview(
    folder: &Folder,
    contract: &Contract,
    jobs: &Jobs,
    plan: &Plan,
    past: &dyn Fn(&PlannedTrial) -> Option<PastTrial>,
    held: &dyn Fn(usize) -> bool,
    queue: &[Entry],
) -> Overview {
    let count = contract.shards.max(1);
    let mut shards: Vec<ShardStatus> = (0..contract.shards)
        .map(|shard| {
            let entry =
                queue.iter().find(|entry| Some(entry.job) == jobs.array && entry.index == Some(shard));
            ShardStatus {
                shard,
                live: held(shard),
                state: entry.map(|entry| entry.state.clone()),
                reason: entry.and_then(|entry| entry.reason.clone()),
                node: entry.and_then(|entry| entry.node.clone()),
                restarts: entry.map(|entry| entry.restarts),
                ..ShardStatus::default()
            }
        })
        .collect();
    for (at, trial) in plan.trials().iter().enumerate() {
        if let Some(status) = shards.get_mut(at % count) {
            status.planned += 1;
            status.done += usize::from(past(trial).is_some_and(|past| past.outcome.is_settled()));
        }
    }
    Overview {
        engine: contract.engine,
        folder: folder.path().display().to_string(),
        array_job: jobs.array,
        merge_job: jobs.merge,
        merge_state: queue
            .iter()
            .find(|entry| jobs.merge.is_some() && Some(entry.job) == jobs.merge)
            .map(|entry| entry.state.clone()),
        merged: crate::merge::merged(folder).ok().flatten().map(|merged| merged.complete),
        shards,
    }
}

/// The sum of what all workers report about themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Trials that have a result.
    pub done: usize,
    /// Running attempts.
    pub running: usize,
    /// In millionths of a dollar.
    pub spent: u64,
    /// Workers that have begun and not ended.
    pub workers: usize,
    /// Workers that have ended.
    pub ended: usize,
}

/// Adds up what workers report about themselves. Unreadable reports are left out.
pub fn sum(folder: &Folder, shards: usize) -> Sum {
    let mut sum = Sum::default();
    for segment in (0..shards).filter_map(|shard| Segment::read(folder, shard).ok().flatten()) {
        sum.done += segment.done;
        sum.running += segment.running;
        sum.spent += segment.spent;
        sum.workers += usize::from(!segment.ended);
        sum.ended += usize::from(segment.ended);
    }
    sum
}

/// The latest submission of an experiment with its contract, if it can be read.
pub fn latest(directory: &ExperimentDirectory) -> Option<(Folder, Contract, Jobs)> {
    let folder = Folder::latest(directory).ok().flatten()?;
    let contract = folder.contract().ok()?;
    let jobs = folder.jobs().ok()?;
    Some((folder, contract, jobs))
}
