//! `aec-bench runs merge`: the last step of a run in shards.

use std::path::PathBuf;

use aec_base::problem::Problem;
use aec_base::settings::Setting;
use aec_base::text;
use aec_cluster::FAMILY;
use aec_cluster::contract::{Contract, Folder};
use aec_cluster::merge::{Summary, close, merge as merge_experiment};
use aec_ledger::layout::Ledger;
use clap::Args;

use crate::arguments::LedgerRootArgument;
use crate::commands::ledger::{find_experiment, open};
use crate::commands::runs::cluster;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::progress::run::tally_table;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench runs merge pilot")]
pub(crate) struct RunsMergeArguments {
    /// Experiment, or the unique beginning of its id
    #[arg(value_name = "EXPERIMENT")]
    pub(crate) experiment: String,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
    /// Folder with the contract of the run; set by engines
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) contract: Option<PathBuf>,
}

pub(crate) fn merge(context: &Context, arguments: &RunsMergeArguments) -> Result<Outcome, Failure> {
    let (ledger, jobs, folder) = match &arguments.contract {
        Some(folder) => {
            let folder = Folder::at(context.absolute(folder)?);
            let contract = folder.contract().map_err(Failure::environment)?;
            (Ledger::new(contract.ledger), contract.jobs.into(), Some(folder))
        }
        None => {
            let (project, ledger) = open(context, &arguments.ledger_root)?;
            (ledger, project.settings.path(Setting::Jobs), None)
        }
    };
    let experiment = find_experiment(&ledger, &arguments.experiment)?;
    let directory = ledger.experiment(&experiment);
    let folder = match folder {
        Some(folder) => Some(folder),
        None => Folder::latest(&directory)?,
    };
    let summary = merge_experiment(&ledger, &jobs, &experiment)?;
    let contract = folder.as_ref().and_then(|folder| folder.contract().ok());
    if let Some(folder) = &folder {
        close(folder, &summary)?;
    }
    let mut problems = Vec::new();
    if summary.missing > 0 {
        let flags = |contract: Contract| cluster::flags(contract.engine, contract.shards);
        let how = contract.map(flags).unwrap_or_default();
        let problem =
            Problem::error(format!("{} without a result", text::count(summary.missing, "planned trial")));
        let problem = problem.id(FAMILY.number(30));
        let first: Vec<&str> =
            summary.missing_trials.iter().take(3).map(aec_base::name::Name::as_str).collect();
        let problem = problem.why(format!("the first: {}", first.join(", ")));
        problems.push(problem.fix(format!("go on with `aec-bench run --resume {experiment}{how}`")));
    }
    let outcome = Outcome::new(context.format, &summary, || merge_text(&summary))?;
    Ok(outcome.problems(problems))
}

fn merge_text(summary: &Summary) -> String {
    let mut text = tally_table(&summary.agents, &summary.all);
    if summary.recovered > 0 {
        text.push_str(&format!(
            "{} of killed workers put in their places\n",
            text::count(summary.recovered, "record")
        ));
    }
    if summary.repeated > 0 {
        text.push_str(&format!(
            "{} with more than one result, the latest counts\n",
            text::count(summary.repeated, "trial")
        ));
    }
    text
}
