//! `aec-bench evolve history`.

use std::path::PathBuf;

use aec_base::decimal::rounded;
use aec_base::name::Name;
use aec_base::text;
use aec_base::timestamp::Timestamp;
use aec_evolve::event::Kind;
use aec_evolve::run::RunDirectory;
use aec_evolve::view::{RunState, View};
use aec_evolve::workspace::Version;
use aec_model::money::MicroDollars;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::commands::evolve::{feedback, workspace};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::progress::figures::cost;
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench evolve history\n  \
                        aec-bench evolve history workspaces/cables")]
pub(crate) struct EvolveHistoryArguments {
    /// Workspace whose candidates are listed [default: all runs are listed]
    #[arg(value_name = "WORKSPACE", value_hint = ValueHint::DirPath)]
    pub(crate) workspace: Option<PathBuf>,
    /// Show at most this many, the latest
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) table: TableArguments,
}

const CANDIDATES: [&str; 6] = ["", "CANDIDATE", "FROM", "LABELS", "COMMITTED", "WHAT"];
pub(crate) const RUNS: [&str; 8] =
    ["RUN", "STATE", "CYCLES", "ACCEPTED", "BEST", "MEAN REWARD", "COST", "STARTED"];

#[derive(Serialize)]
pub(crate) struct Runs {
    total: usize,
    runs: Vec<RunRow>,
}

#[derive(Serialize)]
pub(crate) struct RunRow {
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
    /// Trials and calls without a known price; the dollars do not include them.
    unpriced: u64,
    started_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Serialize)]
pub(crate) struct Lineage {
    workspace: PathBuf,
    current: Name,
    candidates: Vec<Version>,
}

pub(crate) fn history(context: &Context, arguments: &EvolveHistoryArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[if arguments.workspace.is_some() { &CANDIDATES[..] } else { &RUNS }])?;
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
        let mut table = Table::new(CANDIDATES).spare(["COMMITTED", "FROM"]).cut(["LABELS"]).wrap(["WHAT"]);
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

pub(crate) fn list(context: &Context, kind: Kind, limit: usize) -> Result<Outcome, Failure> {
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
        let mut table = Table::new(RUNS)
            .spare(["STARTED", "CYCLES", "COST", "ACCEPTED"])
            .cut(["RUN"])
            .cut_front(["BEST"]);
        for run in &data.runs {
            table.row([
                run.run.to_string(),
                run.state.name().to_owned(),
                run.cycles.to_string(),
                run.accepted.to_string(),
                run.best.to_string(),
                run.best_mean.map_or_else(|| "-".to_owned(), |mean| rounded(mean, 3)),
                cost(MicroDollars::from_dollars(run.cost_usd).unwrap_or_default(), run.unpriced),
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

pub(crate) fn row(view: &View) -> RunRow {
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
