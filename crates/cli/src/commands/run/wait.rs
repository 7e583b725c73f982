//! Waits for workers on a cluster: adds up their progress and reports the end. The user may stop waiting at any time.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use aec_base::decimal::rounded;
use aec_base::problem::Problem;
use aec_base::text;
use aec_cluster::contract::{Contract, Folder, Jobs};
use aec_cluster::merge;
use aec_cluster::overview::{Sum, sum};
use aec_cluster::slurm::Slurm;
use aec_ledger::layout::Ledger;
use aec_run::status::{State, status};
use aec_run::tally::AgentTally;
use serde::Serialize;

use crate::commands::models;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::output::{Format, Outcome};
use crate::progress::outlet::Outlet;
use crate::progress::run::tally_table;
use crate::signals::Signals;

/// How often the progress of the shards is added up.
const LOOK: Duration = Duration::from_millis(500);

/// How often Slurm is asked for its queue.
const ASK: Duration = Duration::from_secs(3);

/// Shortest time between two lines of progress.
const APART: Duration = Duration::from_secs(5);

/// After this many answers of the queue in a row without a live job, the jobs are taken to be over.
const GONE: u32 = 2;

pub(crate) struct Submission {
    pub(crate) folder: Folder,
    pub(crate) contract: Contract,
    pub(crate) jobs: Jobs,
    pub(crate) ledger: Ledger,
    pub(crate) jobs_root: PathBuf,
}

#[derive(Serialize)]
struct Data {
    experiment_id: String,
    engine: &'static str,
    shards: usize,
    trials: usize,
    to_run: usize,
    folder: PathBuf,
    array_job: Option<u64>,
    merge_job: Option<u64>,
    /// `submitted`, or the final state of the experiment.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agents: Option<Vec<AgentTally>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    all: Option<AgentTally>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
}

/// Waits for the end, unless the user passed `--detach`.
pub(crate) fn wait(
    context: &Context,
    slurm: &Slurm,
    submission: &Submission,
    detach: bool,
    problems: Vec<Problem>,
) -> Result<Outcome, Failure> {
    let experiment = &submission.contract.experiment_id;
    let array = submission.jobs.array.map(|id| id.to_string()).unwrap_or_default();
    let follow = format!(
        "Follow it with `aec-bench runs status {experiment}`, stop it with `aec-bench runs stop {experiment}`."
    );
    if detach {
        let outcome = submitted(context, submission, problems)?;
        return Ok(outcome.remark(follow));
    }
    let runtime = models::runtime()?;
    // The user may send a signal as soon as the next line is printed.
    let signals = Signals::catch_in(&runtime)?;
    let mut outlet = match context.format {
        Format::Text if !context.quiet => Some(Outlet::stderr(context.color)?),
        _ => None,
    };
    if let Some(outlet) = &mut outlet {
        outlet.print(format!(
            "{experiment}: {} as job {array} with {}. Ctrl-C stops waiting, not the run.",
            text::count(submission.contract.to_run, "trial"),
            text::count(submission.contract.shards, "shard"),
        ));
    }
    let interrupted = runtime.block_on(until_merged(slurm, submission, signals, &mut outlet))?;
    drop(outlet);
    if interrupted {
        let outcome = submitted(context, submission, problems)?.exit(Exit::Interrupted);
        return Ok(outcome.remark(format!("The run goes on. {follow}")));
    }
    ended(context, submission, problems)
}

/// Waits until the merge has ended. Returns whether the user interrupted the wait.
async fn until_merged(
    slurm: &Slurm,
    submission: &Submission,
    mut signals: Signals,
    outlet: &mut Option<Outlet>,
) -> Result<bool, Failure> {
    let Submission { folder, contract, jobs, .. } = submission;
    let begun = Instant::now();
    let (mut asked, mut missed, mut told) = (Instant::now(), 0, (Instant::now(), Sum::default()));
    let mut silent = false;
    loop {
        tokio::select! {
            () = signals.next() => return Ok(true),
            () = tokio::time::sleep(LOOK) => {}
        }
        if merge::merged(folder).map_err(Failure::environment)?.is_some() {
            return Ok(false);
        }
        let now = sum(folder, contract.shards);
        if now != told.1 && told.0.elapsed() >= APART {
            told = (Instant::now(), now);
            if let Some(outlet) = outlet {
                outlet.print(line(contract, &now, begun.elapsed()));
            }
        }
        if asked.elapsed() < ASK {
            continue;
        }
        asked = Instant::now();
        match slurm.queue(&jobs.ids(), contract.shards) {
            Ok(queue) => {
                silent = false;
                // Slurm forgets jobs some time after their end, and a killed merge leaves no result.
                missed = if queue.iter().all(aec_cluster::queue::Entry::is_over) { missed + 1 } else { 0 };
                if missed >= GONE {
                    return Ok(false);
                }
            }
            Err(problem) => {
                if !silent && let Some(outlet) = outlet {
                    outlet.print(format!("{}: {}", problem.what, problem.why.unwrap_or_default()));
                }
                silent = true;
            }
        }
    }
}

fn line(contract: &Contract, sum: &Sum, elapsed: Duration) -> String {
    let mut line = format!(
        "{}/{} trials after {} s, {} under way on {}",
        sum.done,
        contract.trials,
        elapsed.as_secs(),
        sum.running,
        text::count(sum.workers, "worker"),
    );
    if sum.spent > 0 {
        #[expect(clippy::cast_precision_loss, reason = "dollars for people")]
        line.push_str(&format!(", ${}", rounded(sum.spent as f64 / 1e6, 2)));
    }
    line
}

fn data(submission: &Submission) -> Data {
    let contract = &submission.contract;
    Data {
        experiment_id: contract.experiment_id.to_string(),
        engine: contract.engine.name(),
        shards: contract.shards,
        trials: contract.trials,
        to_run: contract.to_run,
        folder: submission.folder.path().to_path_buf(),
        array_job: submission.jobs.array,
        merge_job: submission.jobs.merge,
        state: "submitted",
        agents: None,
        all: None,
        cost_usd: None,
    }
}

fn submitted(context: &Context, submission: &Submission, problems: Vec<Problem>) -> Result<Outcome, Failure> {
    let data = data(submission);
    let outcome = Outcome::new(context.format, &data, || {
        format!(
            "{}: {} of {} as job {}, merged by job {}\n",
            data.experiment_id,
            text::count(data.shards, "shard"),
            text::count(data.to_run, "trial"),
            data.array_job.unwrap_or_default(),
            data.merge_job.unwrap_or_default(),
        )
    })?;
    Ok(outcome.problems(problems))
}

fn ended(context: &Context, submission: &Submission, mut problems: Vec<Problem>) -> Result<Outcome, Failure> {
    let Submission { folder, contract, ledger, jobs_root, .. } = submission;
    let experiment = &contract.experiment_id;
    if merge::merged(folder).map_err(Failure::environment)?.is_none() {
        // The merge job was killed or never began.
        let summary = merge::merge(ledger, jobs_root, experiment)?;
        merge::close(folder, &summary)?;
    }
    let status = status(ledger, jobs_root, experiment)?;
    problems.extend(status.problems.iter().cloned());
    let missing = status.all.planned - status.all.executed;
    if missing > 0 {
        let problem = Problem::error(format!("{} not run", text::count(missing, "trial"))).id("J030");
        let problem = problem.why(format!("workers say why in {}", folder.logs().display()));
        problems.push(problem.fix(format!(
            "go on with `aec-bench run --resume {experiment} --engine slurm --shards {}`",
            contract.shards
        )));
    }
    let data = Data {
        state: if missing == 0 { State::Complete.name() } else { State::Incomplete.name() },
        agents: Some(status.agents),
        all: Some(status.all),
        cost_usd: status.cost_usd,
        ..data(submission)
    };
    let outcome = Outcome::new(context.format, &data, || {
        let none = AgentTally::default();
        tally_table(data.agents.as_deref().unwrap_or_default(), data.all.as_ref().unwrap_or(&none))
    })?;
    Ok(outcome.problems(problems))
}
