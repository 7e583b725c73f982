//! The state of a run, built from its events. Nothing here prints or reads the clock. Memory grows with the number of
//! running trials, not with the number of ended ones.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use aec_base::name::Name;
use aec_base::secret::Redactor;
use aec_judge::settle::outcome::Fault;
use aec_judge::verdict::Outcome;
use aec_model::money::MicroDollars;
use aec_run::event::{RunEnded, RunEvent, RunStarted, Stage, StopReason, Tick, TrialEnded, TrialRef};
use aec_run::tally::AgentTally;
use indexmap::IndexMap;

use super::pace::{Left, Pace};
use super::trace::{Entry, Trace};
use crate::progress::text::{clean_line, clip};

/// Ended attempts kept for the list, and as many again with a fault.
const RECENT: usize = 200;

const ENDED_TRACES: usize = 16;

/// Most text kept of a fault.
const MESSAGE: usize = 1_000;

/// A trial that sent an event more recently than this is never stuck.
const PATIENCE: Duration = Duration::from_mins(1);

/// The same before any trial has ended, when it is unknown how long trials take.
const FIRST_PATIENCE: Duration = Duration::from_mins(5);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) trial: Name,
    pub(crate) attempt: u32,
}

impl Key {
    pub(crate) fn of(trial: &TrialRef) -> Self {
        Self { trial: trial.trial_id.clone(), attempt: trial.attempt }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub(crate) trial: Arc<TrialRef>,
    pub(crate) stage: Stage,
    pub(crate) began: Instant,
    /// When it sent its last event.
    pub(crate) heard: Instant,
    pub(crate) trace: Trace,
}

#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) trial: Arc<TrialRef>,
    pub(crate) outcome: Outcome,
    pub(crate) reward: Option<f64>,
    pub(crate) cost: Option<MicroDollars>,
    pub(crate) duration: Duration,
    pub(crate) retried: bool,
    /// What went wrong, safe to show.
    pub(crate) message: Option<String>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Row<'a> {
    Running(&'a Running),
    Ended(&'a Ended),
}

impl<'a> Row<'a> {
    pub(crate) fn trial(self) -> &'a TrialRef {
        match self {
            Self::Running(running) => &running.trial,
            Self::Ended(ended) => &ended.trial,
        }
    }
}

pub(crate) struct State {
    redactor: Redactor,
    /// What the run is about to do; absent before the beginning.
    pub(crate) started: Option<RunStarted>,
    pub(crate) began: Instant,
    /// Trials of this session by agent, in the order of the plan.
    pub(crate) agents: Vec<AgentTally>,
    pub(crate) all: AgentTally,
    /// Attempts that another attempt follows.
    pub(crate) retried: usize,
    /// Attempts without a known price.
    pub(crate) unpriced: u64,
    /// The latest reason why no further trial is started.
    pub(crate) stopping: Option<StopReason>,
    pub(crate) ended: Option<Box<RunEnded>>,
    pub(crate) tick: Tick,
    running: IndexMap<Name, Running>,
    recent: VecDeque<Arc<Ended>>,
    faults: VecDeque<Arc<Ended>>,
    traces: VecDeque<(Key, Trace)>,
    cost: MicroDollars,
    tokens: u64,
    pace: Pace,
    changes: u64,
}

impl State {
    pub(crate) fn new(redactor: Redactor, now: Instant) -> Self {
        Self {
            redactor,
            started: None,
            began: now,
            agents: Vec::new(),
            all: AgentTally::default(),
            retried: 0,
            unpriced: 0,
            stopping: None,
            ended: None,
            tick: Tick::default(),
            running: IndexMap::new(),
            recent: VecDeque::new(),
            faults: VecDeque::new(),
            traces: VecDeque::new(),
            cost: MicroDollars::ZERO,
            tokens: 0,
            pace: Pace::new(now),
            changes: 0,
        }
    }

    pub(crate) fn apply(&mut self, event: &RunEvent, now: Instant) {
        self.changes += 1;
        match event {
            RunEvent::Started(started) => {
                self.began = now;
                self.pace = Pace::new(now);
                let tally = |name: &Name| AgentTally { agent: Some(name.clone()), ..AgentTally::default() };
                self.agents = started.agents.iter().map(tally).collect();
                self.started = Some(started.clone());
            }
            RunEvent::TrialStarted(trial) => {
                self.heard_of(trial, now);
            }
            RunEvent::Stage(trial, stage) => self.heard_of(trial, now).stage = *stage,
            RunEvent::Trace(trial, event) => {
                let entry = Entry::of(event, &self.redactor);
                let running = self.running.len();
                self.heard_of(trial, now).trace.push(entry, running);
            }
            RunEvent::TrialEnded(ended) => self.trial_ended(ended, now),
            RunEvent::Tick(tick) => self.tick = *tick,
            RunEvent::Stopping(reason) => self.stopping = Some(reason.clone()),
            RunEvent::Ended(ended) => {
                self.running.clear();
                self.ended = Some(ended.clone());
            }
        }
    }

    /// The running attempt of an event. A later attempt replaces an earlier one.
    fn heard_of(&mut self, trial: &Arc<TrialRef>, now: Instant) -> &mut Running {
        let new = || Running {
            trial: Arc::clone(trial),
            stage: Stage::Staged,
            began: now,
            heard: now,
            trace: Trace::default(),
        };
        let running = self.running.entry(trial.trial_id.clone()).or_insert_with(new);
        if running.trial.attempt != trial.attempt {
            *running = new();
        }
        running.heard = now;
        running
    }

    fn trial_ended(&mut self, ended: &TrialEnded, now: Instant) {
        let id = &ended.trial.trial_id;
        let is_this =
            self.running.get(id).is_some_and(|running| running.trial.attempt == ended.trial.attempt);
        if is_this
            && let Some(running) = self.running.shift_remove(id)
            && !running.trace.is_empty()
        {
            self.traces.push_back((Key::of(&ended.trial), running.trace));
            if self.traces.len() > ENDED_TRACES {
                self.traces.pop_front();
            }
        }
        match ended.cost {
            Some(cost) => self.cost = self.cost.plus(cost),
            None => self.unpriced += 1,
        }
        self.tokens = self.tokens.saturating_add(ended.tokens);
        self.pace.took(ended.duration);
        if ended.retried {
            self.retried += 1;
        } else {
            self.pace.done(now);
            self.all.add(ended.outcome, ended.reward);
            let agent = self.agents.iter_mut().find(|tally| tally.agent.as_ref() == Some(&ended.trial.agent));
            if let Some(agent) = agent {
                agent.add(ended.outcome, ended.reward);
            }
        }
        let row = Arc::new(Ended {
            trial: Arc::clone(&ended.trial),
            outcome: ended.outcome,
            reward: ended.reward,
            cost: ended.cost,
            duration: ended.duration,
            retried: ended.retried,
            message: ended.fault.as_ref().map(|fault| self.fault_text(fault)),
        });
        if ended.outcome != Outcome::Scored && ended.outcome != Outcome::Unverified {
            push_bounded(&mut self.faults, Arc::clone(&row));
        }
        push_bounded(&mut self.recent, row);
    }

    /// A fault in one line, safe to show: whose fault, which kind, and what happened.
    fn fault_text(&self, fault: &Fault) -> String {
        let side = serde_json::to_value(fault.boundary).ok();
        let side = side.as_ref().and_then(serde_json::Value::as_str).unwrap_or("unknown").to_owned();
        let kind = fault.kind.as_deref().map(|kind| format!(" {kind}")).unwrap_or_default();
        clip(&self.safe(&format!("{side}{kind}: {}", fault.message)), MESSAGE)
    }

    /// Foreign text on one line, safe to show.
    pub(crate) fn safe(&self, text: &str) -> String {
        clean_line(text, &self.redactor)
    }

    /// Grows with every event.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    pub(crate) fn done(&self) -> usize {
        self.all.executed
    }

    pub(crate) fn to_run(&self) -> usize {
        self.started.as_ref().map_or(0, |started| started.to_run).max(self.all.executed)
    }

    /// Trials by outcome, without scored ones.
    pub(crate) fn unscored(&self) -> impl Iterator<Item = (Outcome, usize)> {
        let outcomes: &BTreeMap<Outcome, usize> = &self.all.outcomes;
        outcomes
            .iter()
            .map(|(outcome, count)| (*outcome, *count))
            .filter(|(outcome, _)| *outcome != Outcome::Scored)
    }

    /// Running attempts, in the order in which they began.
    pub(crate) fn running(&self) -> impl ExactSizeIterator<Item = &Running> {
        self.running.values()
    }

    /// The latest attempt that ended.
    pub(crate) fn latest(&self) -> Option<&Ended> {
        self.recent.back().map(|ended| &**ended)
    }

    /// Attempts as listed: running ones, then ended ones, latest first; or only those with faults.
    pub(crate) fn rows(&self, faults_only: bool) -> Vec<Row<'_>> {
        if faults_only {
            return self.faults.iter().rev().map(|ended| Row::Ended(ended)).collect();
        }
        let running = self.running.values().map(Row::Running);
        running.chain(self.recent.iter().rev().map(|ended| Row::Ended(ended))).collect()
    }

    /// The latest events of an attempt, if they are still kept.
    pub(crate) fn trace(&self, key: &Key) -> Option<&Trace> {
        let running = self.running.get(&key.trial).filter(|running| running.trial.attempt == key.attempt);
        let ended = || self.traces.iter().rev().find(|(kept, _)| kept == key).map(|(_, trace)| trace);
        running.map(|running| &running.trace).or_else(ended)
    }

    /// Attempts that have sent no event for much longer than trials take, the quietest first.
    pub(crate) fn stuck(&self, now: Instant) -> Vec<&Running> {
        let patience =
            self.pace.median().map_or(FIRST_PATIENCE, |median| PATIENCE.max(median.saturating_mul(5)));
        let quiet = |running: &&Running| now.saturating_duration_since(running.heard) > patience;
        let mut stuck: Vec<&Running> = self.running.values().filter(quiet).collect();
        stuck.sort_by_key(|running| running.heard);
        stuck
    }

    /// Money spent on calls with a known price.
    pub(crate) fn spent(&self) -> MicroDollars {
        self.tick.spent.max(self.cost)
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.tick.tokens.max(self.tokens)
    }

    /// Trials per second at present.
    pub(crate) fn rate(&self, now: Instant) -> Option<f64> {
        self.pace.present(now)
    }

    pub(crate) fn overall_rate(&self, now: Instant) -> Option<f64> {
        self.pace.overall(now)
    }

    /// How long the rest may take, or `None` if too little is known.
    pub(crate) fn left(&self, now: Instant) -> Option<Duration> {
        let running = self.running.len();
        let queued = match self.stopping {
            Some(_) => 0,
            None => self.to_run().saturating_sub(self.done() + running),
        };
        let ages = self.running.values().map(|running| now.saturating_duration_since(running.began));
        let youngest = ages.min().unwrap_or_default();
        let concurrency = self.started.as_ref().map_or(1, |started| started.concurrency);
        self.pace.left(Left { queued, running, youngest, concurrency }, now)
    }
}

fn push_bounded(ring: &mut VecDeque<Arc<Ended>>, row: Arc<Ended>) {
    if ring.len() == RECENT {
        ring.pop_front();
    }
    ring.push_back(row);
}

#[cfg(test)]
mod tests;
