//! `aec-bench evolve history` and `stop`, and the same of `swarm`.

use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::text;
use aec_base::timestamp::Timestamp;
use aec_evolve::FAMILY;
use aec_evolve::event::Kind;
use aec_evolve::run::RunDirectory;
use aec_evolve::view::{RunState, View};
use aec_evolve::workspace::Version;
use aec_run::control::Wish;
use serde::Serialize;

use crate::arguments::{
    EvolveHistoryArguments, EvolveStopArguments, SwarmHistoryArguments, SwarmStopArguments,
};
use crate::commands::evolve::{feedback, run, workspace};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::Table;

#[derive(Serialize)]
struct Runs {
    total: usize,
    runs: Vec<RunRow>,
}

#[derive(Serialize)]
struct RunRow {
    run: Name,
    state: RunState,
    reason: Option<String>,
    workspace: String,
    cycles: usize,
    accepted: usize,
    baseline: Name,
    best: Name,
    best_mean: Option<f64>,
    cost_usd: f64,
    /// Trials and calls without a known price, which the dollars leave out.
    unpriced: u64,
    started_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Serialize)]
struct Lineage {
    workspace: std::path::PathBuf,
    current: Name,
    candidates: Vec<Version>,
}

pub(crate) fn history(context: &Context, arguments: &EvolveHistoryArguments) -> Result<Outcome, Failure> {
    let Some(path) = &arguments.workspace else {
        return list(context, Kind::Evolution, arguments.limit);
    };
    let workspace = workspace(context, path)?;
    let mut candidates = workspace.history()?;
    let skipped = candidates.len().saturating_sub(arguments.limit);
    let data = Lineage {
        workspace: workspace.path().to_owned(),
        current: workspace.here()?.name(),
        candidates: candidates.split_off(skipped),
    };
    Outcome::new(context.format, &data, || {
        let mut table = Table::new(["", "CANDIDATE", "FROM", "LABELS", "COMMITTED", "WHAT"]);
        for version in &data.candidates {
            let mark = if version.name == data.current { "*" } else { "" };
            let parents: Vec<String> = version
                .parents
                .iter()
                .map(|id| aec_evolve::workspace::candidate::name(*id).to_string())
                .collect();
            table.row([
                mark.to_owned(),
                version.name.to_string(),
                parents.join(" "),
                version.labels.join(" "),
                Timestamp::from_seconds(version.committed_at).to_string(),
                text::printable(&version.summary).into_owned(),
            ]);
        }
        table.render()
    })
}

pub(crate) fn swarm_history(
    context: &Context,
    arguments: &SwarmHistoryArguments,
) -> Result<Outcome, Failure> {
    list(context, Kind::Swarm, arguments.limit)
}

fn list(context: &Context, kind: Kind, limit: usize) -> Result<Outcome, Failure> {
    let project = context.project(Vec::new())?;
    let directories = RunDirectory::all(&feedback(&project), kind)?;
    let mut problems = Vec::new();
    let mut runs = Vec::new();
    for directory in &directories {
        match View::read(directory) {
            Ok(view) => runs.push(row(&view)),
            Err(found) => problems.extend(found),
        }
    }
    runs.sort_by(|one: &RunRow, other: &RunRow| other.started_at.as_str().cmp(one.started_at.as_str()));
    runs.truncate(limit);
    let data = Runs { total: directories.len(), runs };
    let outcome = Outcome::new(context.format, &data, || {
        if data.runs.is_empty() {
            return String::new();
        }
        let mut table =
            Table::new(["RUN", "STATE", "CYCLES", "ACCEPTED", "BEST", "MEAN REWARD", "COST", "STARTED"]);
        for run in &data.runs {
            table.row([
                run.run.to_string(),
                run.state.name().to_owned(),
                run.cycles.to_string(),
                run.accepted.to_string(),
                run.best.to_string(),
                run.best_mean.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.3}")),
                match run.unpriced {
                    0 => format!("${:.2}", run.cost_usd),
                    unpriced => format!("${:.2} and {unpriced} unpriced", run.cost_usd),
                },
                run.started_at.to_string(),
            ]);
        }
        table.render()
    })?
    .problems(problems);
    Ok(if data.total == 0 {
        outcome.remark(format!("No runs yet. `aec-bench {} run` makes one.", kind.name()))
    } else {
        outcome
    })
}

fn row(view: &View) -> RunRow {
    let best = view.candidates.iter().find(|candidate| candidate.name == view.best);
    RunRow {
        run: view.run.clone(),
        state: view.state,
        reason: view.reason.clone(),
        workspace: view.workspace.clone(),
        cycles: view.cycles.len(),
        accepted: view.accepted,
        baseline: view.baseline.clone(),
        best: view.best.clone(),
        best_mean: best.and_then(|best| best.mean),
        cost_usd: view.cost.total_usd,
        unpriced: view.cost.unpriced_trials + view.cost.unpriced_calls,
        started_at: view.started_at.clone(),
        updated_at: view.updated_at.clone(),
    }
}

#[derive(Serialize)]
struct Stopping {
    run: Name,
    agent: Option<String>,
    force: bool,
    running: bool,
}

pub(crate) fn stop(context: &Context, arguments: &EvolveStopArguments) -> Result<Outcome, Failure> {
    ask_to_stop(context, Kind::Evolution, arguments, None)
}

pub(crate) fn stop_swarm(context: &Context, arguments: &SwarmStopArguments) -> Result<Outcome, Failure> {
    ask_to_stop(context, Kind::Swarm, &arguments.stop, arguments.agent.as_deref())
}

fn ask_to_stop(
    context: &Context,
    kind: Kind,
    arguments: &EvolveStopArguments,
    agent: Option<&str>,
) -> Result<Outcome, Failure> {
    let project = context.project(Vec::new())?;
    let directory = run(&project, kind, &arguments.run)?;
    if let Some(agent) = agent {
        let view = View::read(&directory)?;
        if !view.agents.iter().any(|known| known.name == agent) {
            let names: Vec<&str> = view.agents.iter().map(|agent| agent.name.as_str()).collect();
            let what = format!("`{}` is no agent of {}", text::printable(agent), directory.run);
            let problem = Problem::error(what).id(FAMILY.number(36));
            return Err(problem.fix(format!("name {}", text::one_of(&names))).into());
        }
    }
    let running = directory.is_carried_out();
    if running {
        let wish = if arguments.force { Wish::GiveUp } else { Wish::Finish };
        directory.ask_to_stop(wish, agent)?;
    }
    let data =
        Stopping { run: directory.run, agent: agent.map(str::to_owned), force: arguments.force, running };
    let outcome = Outcome::new(context.format, &data, String::new)?;
    Ok(outcome.remark(match (running, agent) {
        (false, _) => format!("Nobody carries out {}.", data.run),
        (true, Some(agent)) => format!("Asked {agent} of {} to stop.", data.run),
        (true, None) => {
            format!("Asked {} to stop. Go on with `aec-bench {} resume {}`.", data.run, kind.name(), data.run)
        }
    }))
}
