//! `aec-bench runs list`, `status`, `stop` and `clean`.

use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::settings::Setting;
use aec_base::text;
use aec_cluster::overview::Overview;
use aec_ledger::garbage::{self, Swept};
use aec_ledger::journal::recover;
use aec_run::control::Wish;
use aec_run::session::{ask_to_stop, hold, sessions};
use aec_run::status::{Purse, State, Status, UnderWay, status as status_of};
use aec_run::terms;
use serde::Serialize;

use crate::arguments::{RunsCleanArguments, RunsListArguments, RunsStatusArguments, RunsStopArguments};
use crate::commands::containers;
use crate::commands::ledger::{find_experiment, open};
use crate::commands::modal;
use crate::commands::models;
use crate::commands::runs_cluster;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Outcome, STRONG};
use crate::progress::tally_table;
use crate::table::Table;

#[derive(Serialize)]
struct ListData {
    /// Experiments of the ledger; `runs` may hold fewer because of the limit.
    total: usize,
    runs: Vec<Status>,
}

pub(crate) fn list(context: &Context, arguments: &RunsListArguments) -> Result<Outcome, Failure> {
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
    let mut table =
        Table::new(["EXPERIMENT", "STATE", "EXECUTED", "SCORED", "MEAN REWARD", "COST", "STARTED"]);
    for run in &data.runs {
        let planned =
            if run.state == State::Unplanned { "?".to_owned() } else { run.all.planned.to_string() };
        table.row([
            run.experiment_id.to_string(),
            run.state.name().to_owned(),
            format!("{} of {planned}", run.all.executed),
            run.all.scored().to_string(),
            run.all.mean_reward().map_or_else(|| "-".to_owned(), |mean| format!("{mean:.3}")),
            format!("${:.2}", run.cost_usd),
            run.sessions.last().map_or_else(|| "-".to_owned(), |session| session.started_at.to_string()),
        ]);
    }
    table.render()
}

pub(crate) fn status(context: &Context, arguments: &RunsStatusArguments) -> Result<Outcome, Failure> {
    let (project, ledger) = open(context, &arguments.ledger_root)?;
    let experiment = find_experiment(&ledger, &arguments.experiment)?;
    let status = status_of(&ledger, &project.settings.path(Setting::Jobs), &experiment)?;
    let mut problems = status.problems.clone();
    let cluster = runs_cluster::overview(context, &ledger.experiment(&experiment), &status, &mut problems);
    let budget = status.terms.caps.budget(models::experiment_budget(&project));
    let data = StatusData { status: &status, budget: Purse::new(status.past.spent, budget), cluster };
    let outcome = Outcome::new(context.format, &data, || {
        let mut text = status_text(&status, &data.budget);
        if let Some(cluster) = &data.cluster {
            text.push_str(&runs_cluster::text(cluster));
        }
        text
    })?;
    let outcome = outcome.problems(problems);
    let waiting = data.cluster.as_ref().is_some_and(runs_cluster::is_expected);
    Ok(match status.state {
        State::Incomplete if waiting => outcome.remark("Its shards are waiting for the cluster."),
        State::Incomplete => {
            let flags = |cluster: &Overview| runs_cluster::flags(cluster.engine, cluster.shards.len());
            let how = data.cluster.as_ref().map(flags).unwrap_or_default();
            outcome.remark(format!("Go on with `aec-bench run --resume {experiment}{how}`."))
        }
        _ => outcome,
    })
}

#[derive(Serialize)]
struct StatusData<'a> {
    #[serde(flatten)]
    status: &'a Status,
    /// What was spent, may be spent and is left, over all sessions.
    budget: Purse,
    /// How the shards of the latest submission to a cluster stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<Overview>,
}

fn status_text(status: &Status, budget: &Purse) -> String {
    let mut text = format!("{STRONG}{}{STRONG:#}  {}\n\n", status.experiment_id, status.state.name());
    text.push_str(&tally_table(&status.agents, &status.all));
    text.push_str(&match (budget.max_usd, budget.left_usd) {
        (Some(most), Some(left)) => {
            format!("\ncost so far: ${:.4} of ${most:.4}, ${left:.4} left\n", budget.spent_usd)
        }
        _ => format!("\ncost so far: ${:.2}\n", budget.spent_usd),
    });
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

fn under_way_text(state: State, under_way: &[UnderWay]) -> String {
    let what = if state == State::Running { "under way" } else { "left in the middle of their work" };
    let mut text = format!("{} {what}\n", text::count(under_way.len(), "attempt"));
    for attempt in under_way.iter().take(20) {
        let silent = attempt
            .silent_seconds
            .map(|seconds| format!(", last event {seconds:.0} s ago"))
            .unwrap_or_default();
        text.push_str(&format!("  {} attempt {}{silent}\n", attempt.trial_id, attempt.attempt));
    }
    text
}

#[derive(Serialize)]
struct StopData {
    experiment_id: Name,
    asked: &'static str,
    /// Jobs of a cluster that were cancelled, or whose waiting tasks were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    jobs: Vec<u64>,
}

pub(crate) fn stop(context: &Context, arguments: &RunsStopArguments) -> Result<Outcome, Failure> {
    let (_, ledger) = open(context, &arguments.ledger_root)?;
    let experiment = find_experiment(&ledger, &arguments.experiment)?;
    let directory = ledger.experiment(&experiment);
    let (_, busy) = sessions(&directory)?;
    let wish = if arguments.force { Wish::GiveUp } else { Wish::Finish };
    let stopped = runs_cluster::stop(context, &directory, wish, busy)?;
    if !busy && stopped.jobs.is_empty() {
        let problem = Problem::error(format!("nobody is running `{experiment}`"));
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

pub(crate) fn clean(context: &Context, arguments: &RunsCleanArguments) -> Result<Outcome, Failure> {
    let (project, ledger) = open(context, &arguments.ledger_root)?;
    // What a run writes is not referred to by a record yet, and what a killed one had recorded is in its journal.
    let mut held = Vec::new();
    for experiment in ledger.experiments()? {
        held.push(hold(&ledger.experiment(&experiment))?);
        recover(&ledger, &experiment, &project.settings.path(Setting::Jobs))?;
    }
    let swept = garbage::sweep(&ledger, arguments.dry_run)?;
    let left = containers::clean(&project, arguments.images, arguments.dry_run)?;
    let (sandboxes, problems) = match modal::clean(context, &project, arguments.dry_run) {
        Ok(count) => (count, Vec::new()),
        // Everything else is done, and waits for nobody.
        Err(problem) => (0, vec![*problem]),
    };
    let data = CleanData { swept: &swept, left, sandboxes };
    let outcome = Outcome::new(context.format, &data, || clean_text(&data, arguments.dry_run))?;
    Ok(outcome.problems(problems))
}

#[derive(Serialize)]
struct CleanData<'a> {
    #[serde(flatten)]
    swept: &'a Swept,
    #[serde(flatten)]
    left: containers::Left,
    /// Sandboxes of Modal whose keeper is gone.
    sandboxes: usize,
}

fn clean_text(data: &CleanData<'_>, dry_run: bool) -> String {
    let verb = if dry_run { "Would remove" } else { "Removed" };
    let mut shown = format!(
        "{verb} {} ({} bytes) that no record refers to\n",
        text::count(data.swept.removed, "content"),
        data.swept.bytes
    );
    for (count, noun) in
        [(data.left.containers, "container that was left behind"), (data.left.images, "image of tasks")]
    {
        if count > 0 {
            let (first, rest) = noun.split_once(' ').unwrap_or((noun, ""));
            shown.push_str(&format!("{verb} {} {rest}\n", text::count(count, first)));
        }
    }
    if data.sandboxes > 0 {
        let verb = if dry_run { "Would end" } else { "Ended" };
        shown.push_str(&format!("{verb} {} at Modal that nobody keeps\n", modal::counted(data.sandboxes)));
    }
    shown
}
