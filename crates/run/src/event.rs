//! What happens during a run: one stream of events. Progress lines, bars, the full-screen view and the index are all
//! readers of it; nothing in the runner prints.

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

/// A trial and which try at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrialRef {
    pub trial_id: Name,
    pub task_id: String,
    /// The short name of the task among the tasks of the plan.
    pub task: String,
    pub agent: Name,
    /// Which repetition, from 1.
    pub repetition: u32,
    /// Which try, from 1.
    pub attempt: u32,
}

/// Where a trial is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Its files are being put in place.
    Staged,
    /// The agent works.
    Running,
    /// What the agent left is being frozen.
    Frozen,
    /// The judge has spoken; the record is being made durable.
    Judged,
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub enum RunEvent {
    /// The run begins.
    Started(RunStarted),
    /// An attempt begins.
    TrialStarted(Arc<TrialRef>),
    /// An attempt goes on.
    Stage(Arc<TrialRef>, Stage),
    /// Something happened in an attempt, as its trajectory has it. Only sent when somebody wants to look on.
    Trace(Arc<TrialRef>, Arc<Event>),
    /// An attempt is recorded and durable.
    TrialEnded(Box<TrialEnded>),
    /// Time passes: sent a few times a second, with what was spent so far.
    Tick(Tick),
    /// No further trial is started.
    Stopping(StopReason),
    /// The run is over.
    Ended(Box<RunEnded>),
}

/// What is about to be done.
#[derive(Clone, Debug, Serialize)]
pub struct RunStarted {
    pub experiment_id: Name,
    /// The session of this process.
    pub session: String,
    /// Trials of the plan, or of this shard of it.
    pub planned: usize,
    /// Trials that are done already.
    pub done_before: usize,
    /// Attempts left over by a session that was killed; their calls are accounted for.
    pub interrupted: usize,
    /// Trials to be run now.
    pub to_run: usize,
    /// Agents, in the order of the plan.
    pub agents: Vec<Name>,
    /// Trials at once.
    pub concurrency: usize,
    /// The most that the run may cost.
    pub max_cost: Option<MicroDollars>,
    /// What agents that work by plan are expected to take.
    pub forecasts: Vec<AgentForecast>,
}

/// An attempt that is recorded.
#[derive(Clone, Debug)]
pub struct TrialEnded {
    pub trial: Arc<TrialRef>,
    /// What became of it.
    pub outcome: Outcome,
    /// The reward of a scored one.
    pub reward: Option<f64>,
    /// What went wrong.
    pub fault: Option<Fault>,
    /// What it cost; absent when a model without a price took part.
    pub cost: Option<MicroDollars>,
    pub tokens: u64,
    /// How long it took.
    pub duration: Duration,
    /// Whether another attempt follows.
    pub retried: bool,
}

impl TrialEnded {
    /// What a record says, of an attempt that no other follows.
    pub fn of(record: &TrialRecord, trial: Arc<TrialRef>, duration: Duration) -> Self {
        let cost = &record.cost;
        Self {
            trial,
            outcome: record.outcome,
            reward: record.reward(),
            fault: record.fault.clone(),
            cost: cost.estimated_cost_usd.and_then(MicroDollars::from_dollars),
            tokens: cost.tokens_in.unwrap_or(0) + cost.tokens_out.unwrap_or(0) + cost.unconfirmed_tokens,
            duration,
            retried: false,
        }
    }
}

/// What was spent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tick {
    /// Money, calls under way not included.
    pub spent: MicroDollars,
    /// Money set aside for calls under way.
    pub reserved: MicroDollars,
    pub tokens: u64,
    /// Model calls under way.
    pub open_calls: u64,
    /// Trials under way.
    pub running: usize,
}

/// Why no further trial is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", content = "message", rename_all = "snake_case")]
pub enum StopReason {
    /// Somebody asked for it: Ctrl-C, `runs stop`, the full-screen view.
    Asked,
    /// Somebody insists: running trials are cancelled.
    Insisted,
    /// The budget is used up.
    Budget(String),
    /// `--max-time` is over.
    Time,
    /// Too many faults that are not the agents' in a row.
    Faults(String),
    /// The disk or the ledger cannot take more.
    Storage(String),
}

/// What was done.
#[derive(Clone, Debug, Serialize)]
pub struct RunEnded {
    pub experiment_id: Name,
    /// Planned against executed, for the whole plan or this shard of it, agent by agent.
    pub agents: Vec<AgentTally>,
    /// The same for all agents.
    pub all: AgentTally,
    /// Attempts recorded by this session.
    pub recorded: usize,
    /// Money that this session spent.
    pub spent: MicroDollars,
    /// Tokens that this session took.
    pub tokens: u64,
    /// Model calls of this session.
    pub calls: u64,
    /// Calls that were under way when an earlier session was killed.
    pub unsettled_calls: u64,
    /// Why it stopped before its end.
    pub stopped: Option<StopReason>,
    /// The head of the experiment's chain, to be kept elsewhere.
    pub head: Option<aec_base::digest::Digest>,
    /// How long it took.
    #[serde(skip)]
    pub duration: Duration,
}
