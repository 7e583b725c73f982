//! `aec-bench ledger repair`.

use std::path::Path;

use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_base::text;
use aec_ledger::index::Index;
use aec_ledger::repair::{Action, Mode, Repaired, repair as repair_ledger};
use clap::Args;
use serde::Serialize;

use crate::arguments::{JobsRootArgument, LedgerRootArgument};
use crate::commands::ledger::{experiments, index_failure, open_with_jobs, shorten};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench ledger repair --dry-run\n  \
                        aec-bench ledger repair --experiment-id pilot")]
pub(crate) struct LedgerRepairArguments {
    /// Only this experiment
    #[arg(long = "experiment-id", short = 'e', visible_alias = "experiment", value_name = "EXP")]
    pub(crate) experiments: Vec<String>,
    /// Show what would be repaired and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
    #[command(flatten)]
    pub(crate) jobs_root: JobsRootArgument,
}

#[derive(Serialize)]
struct Data {
    dry_run: bool,
    #[serde(flatten)]
    repaired: Repaired,
    /// Records in the index afterwards; absent in a dry run.
    indexed: Option<usize>,
}

pub(crate) fn repair(context: &Context, arguments: &LedgerRepairArguments) -> Result<Outcome, Failure> {
    let (project, ledger) = open_with_jobs(context, &arguments.ledger_root, &arguments.jobs_root)?;
    let experiments = experiments(&ledger, &arguments.experiments)?;
    let mode = if arguments.dry_run { Mode::DryRun } else { Mode::Repair };
    let mut repaired = repair_ledger(&ledger, &project.settings.path(Setting::Jobs), &experiments, mode)?;
    let mut problems = std::mem::take(&mut repaired.problems);
    shorten(&project, &mut problems);
    let indexed = match mode {
        Mode::Repair => {
            let mut index = Index::open(&ledger).map_err(index_failure)?;
            Some(index.rebuild().map_err(index_failure)?.added)
        }
        Mode::DryRun => None,
    };
    let data = Data { dry_run: arguments.dry_run, repaired, indexed };
    let mut outcome = Outcome::new(context.format, &data, || {
        data.repaired.actions.iter().map(|action| line(&project, action, mode)).collect()
    })?;
    if data.repaired.actions.is_empty() {
        outcome = outcome.remark("There was nothing to repair.");
    } else if arguments.dry_run {
        outcome = outcome.remark("Nothing was changed (--dry-run).");
    }
    if data.repaired.recent > 0 {
        let files = text::count(data.repaired.recent, "temporary file");
        outcome = outcome.remark(format!("{files} may still be in use by a writer and were left unchanged."));
    }
    if let Some(indexed) = data.indexed {
        outcome = outcome.remark(format!("The index was made anew with {}.", text::count(indexed, "record")));
    }
    Ok(outcome.problems(problems))
}

fn line(project: &Project, action: &Action, mode: Mode) -> String {
    let shown = |path: &Path| text::printable(&project.shown(path).to_string_lossy()).into_owned();
    let (done, planned, rest) = match action {
        Action::Cut { file, bytes } => {
            ("cut", "would cut", format!("{bytes} bytes off the torn end of {}", shown(file)))
        }
        Action::Removed { file } => ("removed", "would remove", format!("the leftover {}", shown(file))),
        Action::PutAside { file, to, reason } => {
            let rest = format!("{} aside as {}: {}", shown(file), shown(to), text::printable(reason));
            ("put", "would put", rest)
        }
        Action::Restored { file } => {
            ("restored", "would restore", format!("{} from the journal", shown(file)))
        }
        Action::LaidOut { directory } => {
            ("laid out", "would lay out", format!("{} again, from the contents", shown(directory)))
        }
    };
    format!("{} {rest}\n", if mode == Mode::DryRun { planned } else { done })
}
