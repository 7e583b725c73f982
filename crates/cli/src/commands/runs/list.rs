//! `aec-bench runs list`.

use aec_base::decimal::rounded;
use aec_base::settings::Setting;
use aec_run::status::{State, Status, status as status_of};
use aec_run::tally::AgentTally;
use clap::Args;
use serde::Serialize;

use crate::arguments::LedgerRootArgument;
use crate::commands::ledger::open;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::progress::figures::cost;
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench runs list\n  \
                        aec-bench runs list --limit 5 --json")]
pub(crate) struct RunsListArguments {
    /// Show at most this many, the latest first
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) table: TableArguments,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

const COLUMNS: [&str; 7] = ["EXPERIMENT", "STATE", "EXECUTED", "SCORED", "MEAN REWARD", "COST", "STARTED"];

#[derive(Serialize)]
struct ListData {
    /// Number of experiments in the ledger; `runs` may hold fewer because of the limit.
    total: usize,
    runs: Vec<Status>,
}

pub(crate) fn list(context: &Context, arguments: &RunsListArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&COLUMNS])?;
    let (project, ledger) = open(context, &arguments.ledger_root)?;
    let jobs = project.settings.path(Setting::Jobs);
    let experiments = ledger.experiments()?;
    let mut problems = Vec::new();
    let mut runs: Vec<Status> = Vec::new();
    for experiment in &experiments {
        match status_of(&ledger, &jobs, experiment) {
            Ok(mut status) => {
                problems.append(&mut status.problems);
                runs.push(status);
            }
            Err(found) => problems.extend(found),
        }
    }
    let started = |status: &Status| status.sessions.last().map(|session| session.started_at.clone());
    runs.sort_by_key(|status| std::cmp::Reverse(started(status)));
    runs.truncate(arguments.limit);
    let data = ListData { total: experiments.len(), runs };
    let outcome = Outcome::new(context.format, &data, || list_text(&data))?.problems(problems);
    Ok(if data.total == 0 { outcome.remark("No runs yet. `aec-bench run` makes one.") } else { outcome })
}

fn list_text(data: &ListData) -> String {
    if data.runs.is_empty() {
        return String::new();
    }
    let mut table = Table::new(COLUMNS).spare(["STARTED", "SCORED", "COST"]).cut(["EXPERIMENT"]);
    for run in &data.runs {
        let planned =
            if run.state == State::Unplanned { "?".to_owned() } else { run.all.planned.to_string() };
        table.row([
            run.experiment_id.to_string(),
            run.state.name().to_owned(),
            format!("{} of {planned}", run.all.executed),
            run.all.scored().to_string(),
            mean_text(&run.all),
            cost(run.past.spent.money, run.unpriced),
            run.sessions.last().map_or_else(|| "-".to_owned(), |session| session.started_at.to_string()),
        ]);
    }
    let mut text = table.render();
    for run in &data.runs {
        if let Some(unknown) = run.all.unknown {
            text.push_str(&format!("*{}: {}\n", run.experiment_id, unknown.text(run.all.counted())));
        }
    }
    text
}

fn mean_text(tally: &AgentTally) -> String {
    let mark = if tally.unknown.is_some() { "*" } else { "" };
    tally.mean_reward().map_or_else(|| format!("-{mark}"), |mean| format!("{}{mark}", rounded(mean, 3)))
}
