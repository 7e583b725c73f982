//! The status of an experiment: planned and executed trials, its sessions, and running attempts.

use std::path::Path;
use std::time::{Duration, SystemTime};

use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_ledger::jobs::LIVE;
use aec_ledger::layout::{Ledger, parse_record_name};
use aec_ledger::transcript::TRAJECTORY_FILE;
use aec_model::meter::Budget;
use aec_model::money::MicroDollars;
use serde::Serialize;

use crate::absent::withheld;
use crate::plan::{Plan, PlannedTrial};
use crate::resume::{Past, look_back};
use crate::session::{SessionFile, current_plan, sessions};
use crate::tally::{AgentTally, tallies};
use crate::terms::Terms;

#[derive(Debug, Serialize)]
pub struct Status {
    pub experiment_id: Name,
    pub name: Option<String>,
    pub state: State,
    /// Planned and executed trials, by agent.
    pub agents: Vec<AgentTally>,
    /// The same for all agents.
    pub all: AgentTally,
    /// The known cost of all attempts, in dollars; absent if no attempt has one.
    pub cost_usd: Option<f64>,
    /// Attempts whose cost is not known.
    pub unpriced: u64,
    /// The terms that the user set, by the names of flags.
    pub terms: Terms,
    /// Attempts that are running, or were running when a session was killed.
    pub under_way: Vec<UnderWay>,
    /// The sessions, oldest first.
    pub sessions: Vec<SessionFile>,
    /// Records that cannot be read or were removed.
    #[serde(skip)]
    pub problems: Vec<Problem>,
    #[serde(skip)]
    pub plan: Option<Plan>,
    /// The results of its trials.
    #[serde(skip)]
    pub past: Past,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A process is running it.
    Running,
    /// Every trial of its plan has a record.
    Complete,
    /// Trials are missing and no process is running.
    Incomplete,
    /// It has no plan here: its records were imported.
    Unplanned,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Incomplete => "incomplete",
            Self::Unplanned => "unplanned",
        }
    }
}

/// An attempt that is not recorded yet.
#[derive(Debug, Serialize)]
pub struct UnderWay {
    pub trial_id: Name,
    pub attempt: u32,
    /// Seconds since its last event.
    pub silent_seconds: Option<f64>,
}

/// What an experiment has spent, may spend and has left. Absent means unlimited.
#[derive(Debug, Serialize)]
pub struct Purse {
    /// The known cost of all sessions, in dollars; absent if no attempt has one.
    pub spent_usd: Option<f64>,
    /// Attempts whose cost is not known: no budget in dollars includes them.
    pub unpriced: u64,
    /// Dollars that all sessions together may cost.
    pub max_usd: Option<f64>,
    pub left_usd: Option<f64>,
    /// Tokens of all sessions.
    pub spent_tokens: u64,
    /// Tokens that all sessions together may use.
    pub max_tokens: Option<u64>,
    pub left_tokens: Option<u64>,
}

impl Purse {
    /// The purse for a budget.
    pub fn new(past: &Past, budget: Budget) -> Self {
        let spent = past.spent;
        Self {
            spent_usd: past.known_dollars(),
            unpriced: past.unpriced,
            max_usd: budget.money.map(MicroDollars::dollars),
            left_usd: budget.money.map(|most| most.minus(spent.money).dollars()),
            spent_tokens: spent.tokens,
            max_tokens: budget.tokens,
            left_tokens: budget.tokens.map(|most| most.saturating_sub(spent.tokens)),
        }
    }
}

/// The status of an experiment in a ledger.
pub fn status(ledger: &Ledger, jobs: &Path, experiment: &Name) -> Result<Status, Vec<Problem>> {
    let directory = ledger.experiment(experiment);
    let plan = current_plan(&directory)?;
    let (sessions, busy) = sessions(&directory)
        .map_err(|error| vec![Problem::error(error.to_string()).in_file(directory.run())])?;
    let (past, mut problems) = look_back(ledger, jobs, experiment)?;
    problems.extend(past.problems());
    let mut all = AgentTally::default();
    let mut agents = Vec::new();
    let stepwise = plan.as_ref().is_some_and(|plan| plan.tasks.is_empty());
    if let Some(plan) = plan.as_ref().filter(|_| !stepwise) {
        let latest = |trial: &PlannedTrial| past.trials.get(&trial.id).copied();
        (agents, all) = tallies(plan, plan.trials().iter().map(|trial| (trial, latest(trial))));
    } else {
        for found in past.trials.values() {
            all.add(found.outcome, found.reward);
            all.crashed += usize::from(found.crashed);
        }
        // An experiment without a plan of its trials counts the executed ones as planned.
        all.planned = if stepwise { all.executed } else { 0 };
    }
    // A trial whose agent no plan names may be of any.
    for absent in withheld(ledger, experiment).map_err(|problem| vec![*problem])? {
        all.withhold(1);
        let name = absent.planned.map(|planned| planned.agent);
        let is_its = |tally: &&mut AgentTally| {
            name.is_none() || tally.agent.as_ref().map(Name::as_str) == name.as_deref()
        };
        agents.iter_mut().filter(is_its).for_each(|tally| tally.withhold(1));
    }
    agents.iter_mut().chain([&mut all]).for_each(AgentTally::settle);
    let state = match &plan {
        _ if busy => State::Running,
        None => State::Unplanned,
        Some(_) if all.executed == all.planned && all.outcomes.keys().all(|outcome| outcome.is_settled()) => {
            State::Complete
        }
        Some(_) => State::Incomplete,
    };
    Ok(Status {
        experiment_id: experiment.clone(),
        name: plan.as_ref().and_then(|plan| plan.name.clone()),
        state,
        agents,
        all,
        cost_usd: past.known_dollars(),
        unpriced: past.unpriced,
        terms: Terms::kept(&directory).map_err(|problem| vec![problem])?,
        under_way: under_way(&jobs.join(experiment.as_str()).join(LIVE)),
        sessions,
        problems,
        plan,
        past,
    })
}

/// The unrecorded attempts of an experiment, from its directory of live files.
pub fn under_way(live: &Path) -> Vec<UnderWay> {
    let Ok(entries) = fs_err::read_dir(live) else { return Vec::new() };
    let mut found: Vec<UnderWay> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (trial_id, attempt) = parse_record_name(&format!("{name}.json"))?;
            let written = entry.path().join(TRAJECTORY_FILE).metadata().and_then(|found| found.modified());
            let silent = written.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
            Some(UnderWay { trial_id, attempt, silent_seconds: silent.as_ref().map(Duration::as_secs_f64) })
        })
        .collect();
    found.sort_by(|a, b| a.trial_id.cmp(&b.trial_id));
    found
}
