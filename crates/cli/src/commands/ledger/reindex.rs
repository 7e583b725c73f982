//! `aec-bench ledger reindex`.

use std::path::PathBuf;

use aec_base::text;
use aec_ledger::index::{Attempts, Filter, Index, Summary};
use clap::Args;
use serde::Serialize;

use crate::arguments::LedgerRootArgument;
use crate::commands::ledger::{index_failure, open, shorten, totals_text, withheld_in};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench ledger reindex")]
pub(crate) struct LedgerReindexArguments {
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

#[derive(Serialize)]
struct Data {
    /// Path of the index; absent if it could not be saved.
    index: Option<PathBuf>,
    records: usize,
    broken: usize,
    experiments: Vec<Summary>,
}

pub(crate) fn reindex(context: &Context, arguments: &LedgerReindexArguments) -> Result<Outcome, Failure> {
    let (project, ledger) = open(context, &arguments.ledger_root)?;
    let mut index = Index::open(&ledger).map_err(index_failure)?;
    let refreshed = index.rebuild().map_err(index_failure)?;
    let mut problems = refreshed.problems;
    shorten(&project, &mut problems);
    let mut summaries = index.summaries().map_err(index_failure)?;
    for summary in &mut summaries {
        let withheld = withheld_in(&ledger, &summary.experiment_id)?;
        summary.trials.note_withheld(withheld.len());
    }
    let data = Data {
        index: index.is_kept().then(|| project.shown(&ledger.index_file()).to_path_buf()),
        // Another process may have added some of them meanwhile.
        records: index
            .count(&Filter { attempts: Attempts::All, ..Filter::default() })
            .map_err(index_failure)?,
        broken: refreshed.broken,
        experiments: summaries,
    };
    let outcome = Outcome::new(context.format, &data, || {
        let line = |summary: &Summary| {
            format!("{}: {}\n", summary.experiment_id, totals_text(&summary.trials, "trial"))
        };
        data.experiments.iter().map(line).collect()
    })?;
    let records = text::count(data.records, "record");
    let remark = match &data.index {
        Some(index) => format!("Indexed {records} in {}.", index.display()),
        None => {
            format!("Read {records}; the index cannot be kept in {}.", project.shown(ledger.root()).display())
        }
    };
    Ok(outcome.remark(remark).problems(problems))
}
