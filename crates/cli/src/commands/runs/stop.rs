//! `aec-bench runs stop`.

use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_run::control::Wish;
use aec_run::session::{ask_to_stop, sessions};
use clap::Args;
use serde::Serialize;

use crate::arguments::LedgerRootArgument;
use crate::commands::ledger::{find_experiment, open};
use crate::commands::runs::cluster;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench runs stop pilot\n  \
                        aec-bench runs stop pilot --force")]
pub(crate) struct RunsStopArguments {
    /// Experiment, or the unique beginning of its id
    #[arg(value_name = "EXPERIMENT")]
    pub(crate) experiment: String,
    /// Cancel the trials under way, and the jobs of a cluster, instead of waiting for them
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

#[derive(Serialize)]
struct StopData {
    experiment_id: Name,
    asked: &'static str,
    /// Cluster jobs that were cancelled, wholly or only their waiting tasks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    jobs: Vec<u64>,
}

pub(crate) fn stop(context: &Context, arguments: &RunsStopArguments) -> Result<Outcome, Failure> {
    let (_, ledger) = open(context, &arguments.ledger_root)?;
    let experiment = find_experiment(&ledger, &arguments.experiment)?;
    let directory = ledger.experiment(&experiment);
    let (_, busy) = sessions(&directory)?;
    let wish = if arguments.force { Wish::GiveUp } else { Wish::Finish };
    let stopped = cluster::stop(context, &directory, wish, busy)?;
    if !busy && stopped.jobs.is_empty() {
        let problem = Problem::error(format!("`{experiment}` is not running"));
        return Err(problem.fix("see `aec-bench runs status`").into());
    }
    if busy {
        ask_to_stop(&directory, wish)?;
    }
    let data = StopData {
        experiment_id: experiment,
        asked: if arguments.force { "give up" } else { "finish" },
        jobs: stopped.jobs,
    };
    let outcome = Outcome::new(context.format, &data, || {
        let what = if arguments.force { "cancel its trials" } else { "finish the trials under way" };
        format!("Asked {} to {what} and stop\n", data.experiment_id)
    })?;
    Ok(outcome.problems(stopped.problems))
}
