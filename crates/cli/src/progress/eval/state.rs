//! The state of evaluations while they run.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aec_base::secret::Redactor;
use aec_eval::event::{EvalEvent, EvalStarted};

use crate::progress::figures::{cost, span};

/// Rollouts that the full screen can scroll back to.
const KEPT: usize = 200;

pub(crate) struct State {
    pub(crate) evaluations: Vec<Tally>,
    /// The last rollouts, newest first.
    pub(crate) latest: VecDeque<Latest>,
    pub(crate) stopping: Option<String>,
    pub(crate) begun: Instant,
    pub(crate) redactor: Redactor,
    /// Grows with every event, so that the screen is redrawn only after changes.
    pub(crate) changes: u64,
}

pub(crate) struct Tally {
    pub(crate) started: EvalStarted,
    pub(crate) finished: usize,
    pub(crate) errors: usize,
    pub(crate) retries: usize,
    reward: f64,
    rewarded: u32,
    pub(crate) is_over: bool,
}

/// A rollout that finished recently.
pub(crate) struct Latest {
    pub(crate) evaluation: usize,
    pub(crate) example_id: i64,
    pub(crate) rollout_number: u32,
    pub(crate) reward: Option<f64>,
    pub(crate) stop: String,
    pub(crate) seconds: f64,
    pub(crate) row: Option<Arc<[u8]>>,
}

impl Tally {
    /// Rollouts that are done, including those of earlier runs.
    pub(crate) fn done(&self) -> usize {
        self.started.done_before + self.finished
    }

    /// The mean reward of this run so far.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.rewarded > 0).then(|| self.reward / f64::from(self.rewarded))
    }

    /// What it has spent.
    pub(crate) fn cost(&self) -> String {
        let all = self.started.account.totals().all;
        cost(all.spent, all.unpriced_calls)
    }
}

impl State {
    pub(crate) fn new(redactor: Redactor, now: Instant) -> Self {
        Self {
            evaluations: Vec::new(),
            latest: VecDeque::new(),
            stopping: None,
            begun: now,
            redactor,
            changes: 0,
        }
    }

    pub(crate) fn apply(&mut self, event: &EvalEvent, now: Instant) {
        self.changes += 1;
        match event {
            EvalEvent::Started(started) => {
                self.begun = now;
                let tally = |started: &EvalStarted| Tally {
                    started: started.clone(),
                    finished: 0,
                    errors: 0,
                    retries: 0,
                    reward: 0.0,
                    rewarded: 0,
                    is_over: false,
                };
                self.evaluations = started.iter().map(tally).collect();
            }
            EvalEvent::Finished(finished) => {
                let facts = &finished.facts;
                if let Some(tally) = self.evaluations.get_mut(finished.evaluation) {
                    tally.finished += 1;
                    tally.errors += usize::from(facts.error.is_some());
                    if let Some(reward) = facts.reward {
                        tally.reward += reward;
                        tally.rewarded += 1;
                    }
                }
                self.latest.truncate(KEPT - 1);
                self.latest.push_front(Latest {
                    evaluation: finished.evaluation,
                    example_id: facts.example_id,
                    rollout_number: facts.rollout_number.unwrap_or_default(),
                    reward: facts.reward,
                    stop: match (&facts.error, &facts.stop_condition) {
                        (Some(error), _) => error.chain.clone(),
                        (None, Some(stop)) => stop.to_string(),
                        (None, None) => String::new(),
                    },
                    seconds: facts.seconds.map_or(0.0, |seconds| seconds.total),
                    row: finished.row.clone(),
                });
            }
            EvalEvent::Retried { evaluation, .. } => {
                if let Some(tally) = self.evaluations.get_mut(*evaluation) {
                    tally.retries += 1;
                }
            }
            EvalEvent::Stopping(why) => self.stopping = Some(why.clone()),
            EvalEvent::Ended(evaluation) => {
                if let Some(tally) = self.evaluations.get_mut(*evaluation) {
                    tally.is_over = true;
                }
            }
            EvalEvent::Note { .. } => {}
        }
    }

    pub(crate) fn name(&self, evaluation: usize) -> &str {
        self.evaluations.get(evaluation).map_or("", |tally| &tally.started.env_id)
    }

    /// Rollouts that are done, and all.
    pub(crate) fn progress(&self) -> (usize, usize) {
        self.evaluations
            .iter()
            .fold((0, 0), |(done, all), tally| (done + tally.done(), all + tally.started.total()))
    }

    /// `1 m 05 s elapsed`.
    pub(crate) fn elapsed(&self, now: Instant) -> String {
        format!("{} elapsed", span(now.saturating_duration_since(self.begun)))
    }

    /// How long the rest will take, estimated from the rollouts so far.
    pub(crate) fn left(&self, now: Instant) -> Option<Duration> {
        let finished: usize = self.evaluations.iter().map(|tally| tally.finished).sum();
        let (done, all) = self.progress();
        let left = u32::try_from(all.saturating_sub(done)).ok()?;
        if finished == 0 || left == 0 {
            return None;
        }
        let each = now.saturating_duration_since(self.begun) / u32::try_from(finished).ok()?;
        Some(each.saturating_mul(left))
    }
}
