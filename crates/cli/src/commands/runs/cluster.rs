//! Clusters for `runs status` and `runs stop`. Both work without a cluster, from records and locks.

use aec_base::problem::Problem;
use aec_base::text;
use aec_cluster::contract::{Contract, Engine, Jobs};
use aec_cluster::overview::{Overview, latest, overview as put_together};
use aec_cluster::queue::Entry;
use aec_cluster::slurm::Which;
use aec_ledger::layout::ExperimentDirectory;
use aec_run::control::Wish;
use aec_run::session::{Shard, is_live};
use aec_run::status::Status;

use crate::context::Context;
use crate::failure::Failure;
use crate::table::Table;

/// Shards shown as text; JSON has all of them.
const SHOWN: usize = 64;

pub(crate) const COLUMNS: [&str; 6] = ["SHARD", "DONE", "STATE", "NODE", "RESTARTS", "REASON"];

/// The state of the shards of the latest submission, if there is one.
pub(crate) fn overview(
    context: &Context,
    directory: &ExperimentDirectory,
    status: &Status,
    problems: &mut Vec<Problem>,
) -> Option<Overview> {
    let (folder, contract, jobs) = latest(directory)?;
    let plan = status.plan.as_ref()?;
    let queue = queue(context, &contract, &jobs, problems);
    let past = |trial: &aec_run::plan::PlannedTrial| status.past.trials.get(&trial.id).copied();
    let held = |index: usize| is_live(directory, Shard { index, count: contract.shards });
    Some(put_together(&folder, &contract, &jobs, plan, &past, &held, &queue))
}

/// The answer of the cluster, or an empty queue if it does not answer.
fn queue(context: &Context, contract: &Contract, jobs: &Jobs, problems: &mut Vec<Problem>) -> Vec<Entry> {
    if contract.engine != Engine::Slurm || jobs.array.is_none() {
        return Vec::new();
    }
    // A machine without Slurm still sees records and locks, so this is not a problem.
    let Ok(slurm) = context.slurm() else { return Vec::new() };
    match slurm.queue(&jobs.ids(), contract.shards) {
        Ok(queue) => queue,
        Err(mut problem) => {
            problem.severity = aec_base::problem::Severity::Note;
            problems.push(problem);
            Vec::new()
        }
    }
}

/// Whether the cluster still has work to do for the experiment.
pub(crate) fn is_expected(overview: &Overview) -> bool {
    const WAITING: [&str; 6] =
        ["PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "RUNNING", "COMPLETING"];
    overview.merged.is_none()
        && overview
            .shards
            .iter()
            .any(|shard| shard.state.as_deref().is_some_and(|state| WAITING.contains(&state)))
}

/// The flags to continue with the same engine. Kubernetes needs more flags than the folder knows, so it gets none.
pub(crate) fn flags(engine: Engine, shards: usize) -> String {
    match engine {
        Engine::Slurm => format!(" --engine slurm --shards {shards}"),
        Engine::K8s => String::new(),
    }
}

pub(crate) fn text(overview: &Overview) -> String {
    let mut text = String::new();
    let jobs = match (overview.array_job, overview.merge_job) {
        (Some(array), Some(merge)) => format!(", array {array}, merge {merge}"),
        _ => String::new(),
    };
    let merged = match (overview.merged, &overview.merge_state) {
        (Some(true), _) => ", merged".to_owned(),
        (Some(false), _) => ", merged with trials missing".to_owned(),
        (None, Some(state)) => format!(" ({state})"),
        (None, None) => String::new(),
    };
    let count = text::count(overview.shards.len(), "shard");
    text.push_str(&format!("\n{} on {}{jobs}{merged}\n", count, overview.engine.name()));
    let mut table = Table::new(COLUMNS).keyed().spare(["NODE", "RESTARTS"]).cut(["NODE"]).wrap(["REASON"]);
    for shard in overview.shards.iter().take(SHOWN) {
        let state = match (&shard.state, shard.live) {
            (Some(state), _) => state.clone(),
            (None, true) => "live".to_owned(),
            (None, false) => "-".to_owned(),
        };
        table.row([
            shard.shard.to_string(),
            format!("{} of {}", shard.done, shard.planned),
            state,
            shard.node.clone().unwrap_or_else(|| "-".to_owned()),
            shard.restarts.map_or_else(|| "-".to_owned(), |count| count.to_string()),
            shard.reason.clone().unwrap_or_default(),
        ]);
    }
    text.push_str(&table.render());
    if overview.shards.len() > SHOWN {
        text.push_str(&format!("and {} more; --json has all of them\n", overview.shards.len() - SHOWN));
    }
    text
}

#[derive(Default)]
pub(crate) struct Stopped {
    pub(crate) jobs: Vec<u64>,
    pub(crate) problems: Vec<Problem>,
}

/// Asks the shards of the latest submission to stop, including those that have not begun.
pub(crate) fn stop(
    context: &Context,
    directory: &ExperimentDirectory,
    wish: Wish,
    busy: bool,
) -> Result<Stopped, Failure> {
    let mut stopped = Stopped::default();
    let Some((folder, contract, jobs)) = latest(directory) else { return Ok(stopped) };
    let queue = queue(context, &contract, &jobs, &mut stopped.problems);
    let waits = queue.iter().any(|entry| !entry.is_over());
    if busy || waits {
        folder.ask_to_stop(wish)?;
    }
    let Some(array) = jobs.array.filter(|_| waits) else { return Ok(stopped) };
    if let Ok(slurm) = context.slurm() {
        let which = if wish == Wish::GiveUp { Which::All } else { Which::Waiting };
        stopped.jobs.push(array);
        stopped.problems.extend(slurm.cancel(array, which).err());
    }
    Ok(stopped)
}
