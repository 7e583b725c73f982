//! How the shards of an experiment stand: what records say, with what the cluster says where it answers.

use aec_ledger::layout::ExperimentDirectory;
use aec_run::plan::{Plan, PlannedTrial};
use aec_run::session::PastTrial;
use serde::Serialize;

use crate::contract::{Contract, Engine, Folder, Jobs};
use crate::queue::Entry;
use crate::segment::Segment;

/// How the shards of the latest submission stand.
#[derive(Debug, Serialize)]
pub struct Overview {
    /// Who starts workers.
    pub engine: Engine,
    /// The folder of the submission.
    pub folder: String,
    /// The array of shards.
    pub array_job: Option<u64>,
    pub merge_job: Option<u64>,
    /// What the cluster says about the job that merges.
    pub merge_state: Option<String>,
    /// Whether the merge has ended, and then whether nothing was missing.
    pub merged: Option<bool>,
    pub shards: Vec<ShardStatus>,
}

/// How one shard stands.
#[derive(Debug, Default, Serialize)]
pub struct ShardStatus {
    /// Which, from 0.
    pub shard: usize,
    /// Its trials.
    pub planned: usize,
    /// Those that have a result.
    pub done: usize,
    /// Whether a worker holds it now.
    pub live: bool,
    /// What the cluster says about it; absent when the cluster does not answer or has forgotten it.
    pub state: Option<String>,
    /// Why it waits or ended.
    pub reason: Option<String>,
    /// Where it runs or ran.
    pub node: Option<String>,
    /// How often the cluster started it again.
    pub restarts: Option<u64>,
}

/// Puts an overview together. `held` says whether a shard is held by a worker.
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

/// What all workers together say about themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Trials that have a result.
    pub done: usize,
    /// Attempts under way.
    pub running: usize,
    /// Millionths of a dollar.
    pub spent: u64,
    /// Workers that have begun and not ended.
    pub workers: usize,
    /// Workers that have ended.
    pub ended: usize,
}

/// Adds up what workers say about themselves. One that cannot be read is left out.
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

/// The latest submission of an experiment with its contract, if there is one that can be read.
pub fn latest(directory: &ExperimentDirectory) -> Option<(Folder, Contract, Jobs)> {
    let folder = Folder::latest(directory).ok().flatten()?;
    let contract = folder.contract().ok()?;
    let jobs = folder.jobs().ok()?;
    Some((folder, contract, jobs))
}
