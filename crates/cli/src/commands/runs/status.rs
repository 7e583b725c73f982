//! `aec-bench runs status`.

use aec_base::decimal::{dollars, rounded};
use aec_base::settings::Setting;
use aec_base::text;
use aec_cluster::overview::Overview;
use aec_run::status::{Purse, State, Status, UnderWay, status as status_of};
use aec_run::terms;
use clap::Args;
use serde::Serialize;

use crate::arguments::LedgerRootArgument;
use crate::commands::ledger::{find_experiment, open};
use crate::commands::models;
use crate::commands::runs::cluster;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Outcome, STRONG};
use crate::progress::figures::cost;
use crate::progress::run::{TALLY_COLUMNS, tally_table};
use crate::table::{TableArguments, paragraph};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench runs status pilot")]
pub(crate) struct RunsStatusArguments {
    /// Experiment, or the unique beginning of its id
    #[arg(value_name = "EXPERIMENT")]
    pub(crate) experiment: String,
    #[command(flatten)]
    pub(crate) table: TableArguments,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

pub(crate) fn status(context: &Context, arguments: &RunsStatusArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&TALLY_COLUMNS, &cluster::COLUMNS])?;
    let (project, ledger) = open(context, &arguments.ledger_root)?;
    let experiment = find_experiment(&ledger, &arguments.experiment)?;
    let status = status_of(&ledger, &project.settings.path(Setting::Jobs), &experiment)?;
    let mut problems = status.problems.clone();
    let cluster = cluster::overview(context, &ledger.experiment(&experiment), &status, &mut problems);
    let budget = status.terms.caps.budget(models::experiment_budget(&project));
    let data = StatusData { status: &status, budget: Purse::new(&status.past, budget), cluster };
    let outcome = Outcome::new(context.format, &data, || {
        let mut text = status_text(&status, &data.budget);
        if let Some(cluster) = &data.cluster {
            text.push_str(&cluster::text(cluster));
        }
        paragraph(&text)
    })?;
    let outcome = outcome.problems(problems);
    let waiting = data.cluster.as_ref().is_some_and(cluster::is_expected);
    Ok(match status.state {
        State::Incomplete if waiting => outcome.remark("Its shards are waiting for the cluster."),
        State::Incomplete | State::Complete => {
            let flags = |cluster: &Overview| cluster::flags(cluster.engine, cluster.shards.len());
            let how = data.cluster.as_ref().map(flags).unwrap_or_default();
            match status.all.continuation(&experiment) {
                Some(command) => outcome.remark(format!("Go on with `{command}{how}`.")),
                None => outcome,
            }
        }
        State::Running | State::Unplanned => outcome,
    })
}

#[derive(Serialize)]
pub(crate) struct StatusData<'a> {
    #[serde(flatten)]
    status: &'a Status,
    /// What was spent, may be spent and is left, over all sessions.
    budget: Purse,
    /// The state of the shards of the latest submission to a cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<Overview>,
}

pub(crate) fn status_text(status: &Status, budget: &Purse) -> String {
    let mut text = format!("{STRONG}{}{STRONG:#}  {}\n\n", status.experiment_id, status.state.name());
    text.push_str(&tally_table(&status.agents, &status.all));
    text.push_str(&format!("\ncost so far: {}", cost(status.past.spent.money, status.unpriced)));
    if let (Some(most), Some(left)) = (budget.max_usd, budget.left_usd) {
        text.push_str(&format!(" of {}, {} left", dollars(most), dollars(left)));
    }
    text.push('\n');
    if let (Some(most), Some(left)) = (budget.max_tokens, budget.left_tokens) {
        text.push_str(&format!("tokens so far: {} of {most}, {left} left\n", budget.spent_tokens));
    }
    let terms = terms::flags(&status.terms).join(" ");
    if !terms.is_empty() {
        text.push_str(&format!("carried out with {terms}\n"));
    }
    if !status.under_way.is_empty() {
        text.push_str(&under_way_text(status.state, &status.under_way));
    }
    for session in &status.sessions {
        let end = match (&session.ended_at, &session.stopped) {
            (Some(at), None) => format!("ended {at}"),
            (Some(at), Some(_)) => format!("stopped {at}"),
            (None, _) if status.state == State::Running => "not ended".to_owned(),
            (None, _) => "killed".to_owned(),
        };
        let host = text::printable(&session.host);
        text.push_str(&format!(
            "session {} on {host}: began {}, {end}\n",
            session.session, session.started_at
        ));
    }
    text
}

pub(crate) fn under_way_text(state: State, under_way: &[UnderWay]) -> String {
    let what = if state == State::Running { "under way" } else { "left in the middle of their work" };
    let mut text = format!("{} {what}\n", text::count(under_way.len(), "attempt"));
    for attempt in under_way.iter().take(20) {
        let silent = attempt
            .silent_seconds
            .map(|seconds| format!(", last event {} s ago", rounded(seconds, 0)))
            .unwrap_or_default();
        text.push_str(&format!("  {} attempt {}{silent}\n", attempt.trial_id, attempt.attempt));
    }
    text
}
