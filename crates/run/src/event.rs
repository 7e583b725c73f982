//! The events of a run, as one stream. Progress lines, bars, the full-screen view and the index all read it; the runner
//! itself prints nothing.

use std::sync::Arc;
use std::time::Duration;

use aec_base::name::Name;
use aec_judge::settle::outcome::Fault;
use aec_judge::verdict::Outcome;
use aec_ledger::record::TrialRecord;
use aec_ledger::transcript::Event;
use aec_model::money::MicroDollars;
use serde::{Deserialize, Serialize};

use crate::forecast::AgentForecast;
use crate::tally::AgentTally;

/// An attempt at a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrialRef {
    pub trial_id: Name,
    pub task_id: String,
    /// The short name of the task among the tasks of the plan.
    pub task: String,
    pub agent: Name,
    /// From 1.
    pub repetition: u32,
    /// From 1.
    pub attempt: u32,
}

/// The progress of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Its files are being placed.
    Staged,
    /// The agent works.
    Running,
    /// The agent's files are being frozen.
    Frozen,
    /// The verdict is given; the record is being made durable.
    Judged,
}

/// An event of a run.
#[derive(Clone, Debug)]
pub enum RunEvent {
    /// The run begins.
    Started(RunStarted),
    /// An attempt begins.
    TrialStarted(Arc<TrialRef>),
    /// An attempt reached another stage.
    Stage(Arc<TrialRef>, Stage),
    /// An event of an attempt's trajectory. Only sent when an observer wants traces.
    Trace(Arc<TrialRef>, Arc<Event>),
    /// An attempt is recorded and durable.
    TrialEnded(Box<TrialEnded>),
    /// Sent a few times a second, with the spending so far.
    Tick(Tick),
    /// No further trial is started.
    Stopping(StopReason),
    /// The run is over.
    Ended(Box<RunEnded>),
}

/// The work ahead.
#[derive(Clone, Debug, Serialize)]
pub struct RunStarted {
    pub experiment_id: Name,
    pub session: String,
    /// Trials of the plan, or of this shard of it.
    pub planned: usize,
    pub done_before: usize,
    /// Attempts that were running when a session was killed; their calls are accounted for.
    pub interrupted: usize,
    pub to_run: usize,
    /// Agents, in the order of the plan.
    pub agents: Vec<Name>,
    /// Concurrent trials.
    pub concurrency: usize,
    pub max_cost: Option<MicroDollars>,
    /// Forecasts for agents that work by plan.
    pub forecasts: Vec<AgentForecast>,
}

#[derive(Clone, Debug)]
pub struct TrialEnded {
    pub trial: Arc<TrialRef>,
    pub outcome: Outcome,
    /// The reward of a scored attempt.
    pub reward: Option<f64>,
    pub fault: Option<Fault>,
    /// The cost; absent when a model without a price was called.
    pub cost: Option<MicroDollars>,
    pub tokens: u64,
    pub duration: Duration,
    /// Whether another attempt follows.
    pub retried: bool,
}

impl TrialEnded {
    /// The event for a record after which there is no further attempt.
    pub fn of(record: &TrialRecord, trial: Arc<TrialRef>, duration: Duration) -> Self {
        let cost = &record.cost;
        Self {
            trial,
            outcome: record.outcome,
            reward: record.reward(),
            fault: record.fault.clone(),
            cost: cost.estimated_cost_usd.and_then(MicroDollars::from_dollars),
            tokens: cost.tokens(),
            duration,
            retried: false,
        }
    }
}

/// The spending so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tick {
    /// Money, without calls in flight.
    pub spent: MicroDollars,
    /// Money reserved for calls in flight.
    pub reserved: MicroDollars,
    pub tokens: u64,
    /// Model calls in flight.
    pub open_calls: u64,
    /// Running trials.
    pub running: usize,
}

/// Why no further trial is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", content = "message", rename_all = "snake_case")]
pub enum StopReason {
    /// The user asked for it: Ctrl-C, `runs stop`, the full-screen view.
    Asked,
    /// The user insists: running trials are cancelled.
    Insisted,
    /// The budget is used up.
    Budget(String),
    /// `--max-time` is over.
    Time,
    /// Too many consecutive faults that the agents did not cause.
    Faults(String),
    /// The disk or the ledger is full or failing.
    Storage(String),
}

/// The result of a run.
#[derive(Clone, Debug, Serialize)]
pub struct RunEnded {
    pub experiment_id: Name,
    /// Planned and executed trials of the whole plan or this shard of it, by agent.
    pub agents: Vec<AgentTally>,
    /// The same for all agents.
    pub all: AgentTally,
    pub recorded: usize,
    /// The money of what has a price; absent if nothing had one.
    pub spent: Option<MicroDollars>,
    /// Attempts whose cost is not known.
    pub unpriced: u64,
    pub tokens: u64,
    pub calls: u64,
    /// Calls that were in flight when an earlier session was killed.
    pub unsettled_calls: u64,
    /// Why it stopped early.
    pub stopped: Option<StopReason>,
    /// The head of the experiment's chain, which the user can keep elsewhere.
    pub head: Option<aec_base::digest::Digest>,
    #[serde(skip)]
    pub duration: Duration,
}
