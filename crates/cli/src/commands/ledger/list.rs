//! `aec-bench ledger list`.

use std::path::PathBuf;

use aec_base::decimal::rounded;
use aec_ledger::expected::Absent;
use aec_ledger::imported::WithheldTrial;
use aec_ledger::index::{Attempts, Row, Totals};
use aec_ledger::layout::stem;
use clap::Args;
use serde::Serialize;

use crate::arguments::LedgerRootArgument;
use crate::commands::ledger::{RecordFilterArguments, ask_filtered, number, open, totals_text, withheld};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::progress::figures::UNPRICED;
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench ledger list --experiment-id pilot\n  \
                        aec-bench ledger list --agent hasty --outcome scored --limit 10\n  \
                        aec-bench ledger list --filter difficulty=easy --json")]
pub(crate) struct LedgerListArguments {
    #[command(flatten)]
    pub(crate) filter: RecordFilterArguments,
    /// Every attempt at each trial, instead of the latest one
    #[arg(long)]
    pub(crate) all_attempts: bool,
    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) table: TableArguments,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

#[derive(Serialize)]
struct Data {
    ledger: PathBuf,
    /// Totals over all matching records; `records` may hold fewer because of the limit.
    totals: Totals,
    records: Vec<Row>,
    /// Trials that packages withheld; they are part of the totals.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    withheld: Vec<Absent>,
}

const COLUMNS: [&str; 9] =
    ["RECORD", "TASK", "AGENT", "MODEL", "OUTCOME", "REWARD", "USD", "SECONDS", "BEGAN"];

pub(crate) fn list(context: &Context, arguments: &LedgerListArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&COLUMNS])?;
    let (project, ledger) = open(context, &arguments.ledger_root)?;
    let attempts = if arguments.all_attempts { Attempts::All } else { Attempts::Latest };
    let mut filter = arguments.filter.filter(&ledger, attempts)?;
    filter.limit = Some(arguments.limit);
    let ((records, mut totals), problems) = ask_filtered(&project, &ledger, &filter, |index, filter| {
        Ok((index.query(filter)?, index.totals(filter)?))
    })?;
    let withheld = withheld(&ledger, &filter)?;
    totals.note_withheld(withheld.len());
    let data = Data { ledger: ledger.root().to_path_buf(), totals, records, withheld };
    let noun = if arguments.all_attempts { "attempt" } else { "trial" };
    let mut outcome = Outcome::new(context.format, &data, || list_text(&data, noun))?;
    if data.totals.count == 0 && data.withheld.is_empty() {
        let place = project.shown(&data.ledger).display();
        outcome = outcome.remark(format!("No records in {place} match these filters."));
    } else if data.records.len() < data.totals.count {
        let shown = data.records.len();
        outcome = outcome.remark(format!("The newest {shown} are shown; --limit shows more."));
    }
    Ok(outcome.problems(problems))
}

/// Rows of withheld trials that are shown.
const WITHHELD_SHOWN: usize = 50;

/// The id of a withheld attempt and its task, as far as it is known.
fn named(absent: &Absent) -> (String, String) {
    let WithheldTrial { experiment_id, trial_id, attempt } = &absent.trial;
    let task = absent.planned.as_ref().map_or_else(|| "-".to_owned(), |planned| planned.task_id.clone());
    (format!("{experiment_id}/{}", stem(trial_id, *attempt)), task)
}

fn list_text(data: &Data, noun: &str) -> String {
    if data.totals.count == 0 && data.withheld.is_empty() {
        return String::new();
    }
    let spare = ["BEGAN", "SECONDS", "USD", "MODEL"];
    let mut table = Table::new(COLUMNS).spare(spare).cut_front(["TASK"]).cut(["AGENT", "MODEL"]);
    for row in &data.records {
        table.row([
            row.file().id(),
            row.task_id.clone(),
            row.agent.to_string(),
            row.model.clone().unwrap_or_else(|| "-".to_owned()),
            row.outcome.name().to_owned(),
            number(row.reward, 3),
            row.cost_usd.map_or_else(|| UNPRICED.to_owned(), |dollars| rounded(dollars, 4)),
            rounded(row.total_seconds, 1),
            row.timestamp.to_string(),
        ]);
    }
    let none = || "-".to_owned();
    for absent in data.withheld.iter().take(WITHHELD_SHOWN) {
        let (id, task) = named(absent);
        let planned = absent.planned.as_ref();
        table.row([
            id,
            task,
            planned.map_or_else(none, |planned| planned.agent.clone()),
            planned.and_then(|planned| planned.model.clone()).unwrap_or_else(none),
            "withheld".to_owned(),
            none(),
            none(),
            none(),
            none(),
        ]);
    }
    table.label_tasks("TASK");
    table.label_trials("RECORD");
    format!("{}\n{}\n", table.render(), totals_text(&data.totals, noun))
}
