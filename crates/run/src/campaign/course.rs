//! The loop that runs trials: it alone knows which trials wait, which are recorded and why no more are started. An
//! executor makes the attempts and reports to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aec_base::decimal::known_sum;
use aec_base::label::Labels;
use aec_base::problem::Problem;
use aec_judge::settle::blame::may_be_replaced;
use aec_judge::settle::outcome::{Fault, is_crash};
use aec_judge::verdict::Outcome;
use aec_ledger::record::TrialRecord;
use aec_ledger::writer::CommitError;
use aec_model::money::MicroDollars;
use tokio::time::Instant;

use super::faults::FaultsInARow;
use super::queue::Queue;
use super::tasks::TaskCache;
use super::{Campaign, Options, Waiting, Work};
use crate::control::Wish;
use crate::event::{RunEnded, RunEvent, RunStarted, StopReason, Tick, TrialEnded, TrialRef};
use crate::forecast::forecasts;
use crate::harness::TRACEBACK;
use crate::plan::{PlannedTask, PlannedTrial};
use crate::resume::PastTrial;
use crate::tally::tallies;
use crate::trial::Shared;

/// Time between ticks.
const TICK: Duration = Duration::from_millis(200);

/// Makes attempts. It takes waiting attempts from a course, and returns finished ones.
pub trait Executor {
    /// Whether model calls are made in another process, so that only records show what was spent.
    const CALLS_ELSEWHERE: bool;

    /// Records attempts that killed sessions left behind, before the course begins.
    fn recover(&mut self, course: &mut Course<'_>) -> impl Future<Output = Result<(), Vec<Problem>>> + Send;

    /// Starts as many attempts as possible. An error ends the run at once.
    fn start(&mut self, course: &mut Course<'_>) -> Result<(), Vec<Problem>>;

    /// Whether nothing is in progress, including records that are not on disk yet.
    fn is_idle(&self) -> bool;

    /// Number of running attempts.
    fn at_work(&self) -> usize;

    /// Waits for the next event and reports it to the course. Dropping the future loses nothing.
    fn next(&mut self, course: &mut Course<'_>) -> impl Future<Output = ()> + Send;

    /// Called a few times a second.
    fn look(&mut self, _course: &mut Course<'_>) {}
}

/// An attempt that has ended, with its record or why there is none.
pub struct Finished {
    pub waiting: Waiting,
    /// The same attempt as events refer to it.
    pub reference: Arc<TrialRef>,
    pub duration: Duration,
    /// Its record, which is durable.
    pub result: Result<TrialRecord, Lost>,
}

/// Why an attempt has no record.
pub enum Lost {
    /// The ledger or the disk failed.
    Storage(String),
    /// Its task can no longer be used.
    Task(Box<Problem>),
}

impl From<CommitError> for Lost {
    fn from(error: CommitError) -> Self {
        Self::Storage(error.to_string())
    }
}

/// A set of trials being run.
pub struct Course<'a> {
    /// The campaign to which it belongs.
    pub campaign: &'a Campaign,
    pub shared: Arc<Shared>,
    pub trials: Vec<PlannedTrial>,
    pub tasks: Arc<TaskCache>,
    /// Short names of the plan's tasks, in its order.
    labels: Vec<String>,
    /// How they are carried out.
    pub options: Options,
    pub(super) queue: Queue,
    /// Further problems to report at the end.
    pub problems: Vec<Problem>,
    /// The latest attempt of each trial.
    latest: &'a mut [Option<PastTrial>],
    /// The last attempt of each trial before this course.
    before: Vec<u32>,
    stop: Option<StopReason>,
    faults: FaultsInARow,
    begun: Instant,
    /// Whether the start was reported. Earlier records belong to previous sessions.
    is_told: bool,
    recorded: usize,
    pub(super) interrupted: usize,
    pub(super) unsettled_calls: u64,
    /// Money, tokens and calls of recorded attempts.
    taken: (MicroDollars, u64, u64),
    /// Recorded attempts whose cost is not known.
    unpriced: u64,
    /// What a crashed program of each agent printed last.
    crashes: BTreeMap<usize, String>,
    observe: &'a mut (dyn FnMut(&RunEvent) + Send),
}

impl<'a> Course<'a> {
    pub(super) fn new(
        campaign: &'a Campaign,
        work: Work,
        latest: &'a mut [Option<PastTrial>],
        observe: &'a mut (dyn FnMut(&RunEvent) + Send),
    ) -> Self {
        let Work { shared, tasks, trials, options } = work;
        let models = shared.plan.agents.iter().map(|agent| agent.model.clone()).collect();
        let labels = Labels::of(shared.plan.tasks.iter().map(|task| task.task_id.as_str()));
        let label = |task: &PlannedTask| labels.get(&task.task_id).to_owned();
        Self {
            campaign,
            labels: shared.plan.tasks.iter().map(label).collect(),
            tasks: Arc::new(TaskCache::new(Arc::clone(&shared.plan), tasks)),
            queue: Queue::new(models, options.terms.model_concurrency()),
            problems: Vec::new(),
            latest,
            before: Vec::new(),
            stop: None,
            faults: FaultsInARow::new(options.terms.max_faults()),
            begun: Instant::now(),
            is_told: false,
            recorded: 0,
            interrupted: 0,
            unsettled_calls: 0,
            taken: (MicroDollars::ZERO, 0, 0),
            unpriced: 0,
            crashes: BTreeMap::new(),
            observe,
            shared,
            trials,
            options,
        }
    }

    fn to_do(&self) -> Vec<Waiting> {
        self.options.rerun.choose(&self.trials, |trial, _| self.latest[trial])
    }

    /// Queues the attempts, repetition by repetition, so that a run that is stopped early is balanced.
    pub(super) fn begin(&mut self) {
        self.before = self.latest.iter().map(|past| past.map_or(0, |past| past.attempt)).collect();
        let mut wanted = self.to_do();
        wanted.sort_by_key(|one| {
            let trial = &self.trials[one.trial];
            (trial.repetition, trial.task, trial.agent)
        });
        for one in wanted {
            self.queue.push(self.trials[one.trial].agent, one);
        }
        self.is_told = true;
    }

    /// The event that reports the start.
    pub(super) fn started(&self) -> RunStarted {
        let (plan, wanted) = (&self.shared.plan, self.to_do());
        let planned: Vec<&PlannedTrial> = wanted.iter().map(|one| &self.trials[one.trial]).collect();
        RunStarted {
            experiment_id: plan.experiment_id.clone(),
            session: self.campaign.session().to_owned(),
            planned: self.trials.len(),
            done_before: self.trials.len() - wanted.len(),
            interrupted: self.interrupted,
            to_run: wanted.len(),
            agents: plan.agents.iter().map(|agent| agent.name.clone()).collect(),
            concurrency: self.options.terms.concurrency(),
            max_cost: self.shared.account.totals().remaining,
            forecasts: forecasts(plan, self.tasks.tasks(), &self.shared.agents, &planned),
        }
    }

    /// Runs until nothing is left or nothing more may be started, and every started attempt has ended.
    pub(super) async fn run(&mut self, executor: &mut impl Executor) -> Result<(), Vec<Problem>> {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let control = self.shared.control.clone();
        let mut heard = Wish::GoOn;
        loop {
            executor.start(self)?;
            if executor.is_idle() && (self.queue.len() == 0 || self.stop.is_some()) {
                return Ok(());
            }
            let next_wish = if heard == Wish::GoOn { Wish::Finish } else { Wish::GiveUp };
            tokio::select! {
                biased;
                () = executor.next(self) => {}
                () = control.reached(next_wish), if heard < Wish::GiveUp => {
                    heard = control.wish();
                    self.stop_for(if heard == Wish::GiveUp { StopReason::Insisted } else { StopReason::Asked });
                }
                _ = ticks.tick() => {
                    let tick = self.tick(executor);
                    self.tell(&RunEvent::Tick(tick));
                    if self.options.terms.max_time().is_some_and(|limit| self.begun.elapsed() >= limit) {
                        self.stop_for(StopReason::Time);
                    }
                    match self.campaign.wish() {
                        Wish::GoOn => {}
                        wish => control.wish_for(wish),
                    }
                    executor.look(self);
                }
            }
        }
    }

    /// Sends an event to the observers. They do not receive events from before the start.
    pub fn tell(&mut self, event: &RunEvent) {
        if self.is_told {
            (self.observe)(event);
        }
    }

    pub fn stop_for(&mut self, reason: StopReason) {
        if self.stop.is_none() || reason == StopReason::Insisted {
            self.tell(&RunEvent::Stopping(reason.clone()));
            self.stop = Some(reason);
        }
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// Whether trials may be started. This also checks wishes that the loop has not handled yet, so that slots freed by
    /// cancelled attempts are not reused.
    pub(super) fn goes_on(&self) -> bool {
        self.stop.is_none() && self.shared.control.wish() == Wish::GoOn
    }

    /// The strongest wish, from the user or from a rule.
    pub fn wish(&self) -> Wish {
        let least = if self.stop.is_some() { Wish::Finish } else { Wish::GoOn };
        self.shared.control.wish().max(least)
    }

    /// Takes all waiting attempts.
    pub fn take_waiting(&mut self) -> Vec<Waiting> {
        self.queue.drain()
    }

    /// The last recorded attempt of a trial; 0 if there is none.
    pub fn last_attempt(&self, trial: usize) -> u32 {
        self.latest[trial].map_or(0, |past| past.attempt)
    }

    /// The number of an attempt within this session.
    pub(super) fn tries(&self, waiting: Waiting) -> u32 {
        waiting.attempt - self.before[waiting.trial]
    }

    /// An attempt as events refer to it.
    pub fn reference(&self, waiting: Waiting) -> Arc<TrialRef> {
        let (plan, trial) = (&self.shared.plan, &self.trials[waiting.trial]);
        Arc::new(TrialRef {
            trial_id: trial.id.clone(),
            task_id: plan.tasks[trial.task].task_id.clone(),
            task: self.labels[trial.task].clone(),
            agent: plan.agents[trial.agent].name.clone(),
            repetition: trial.repetition,
            attempt: waiting.attempt,
        })
    }

    /// Counts a record that is in its place.
    pub(super) fn note(&mut self, waiting: Waiting, record: &TrialRecord) {
        let kind = record.fault.as_ref().and_then(|fault| fault.kind.as_deref());
        let crashed = is_crash(record.outcome, kind);
        if crashed {
            let agent = self.trials[waiting.trial].agent;
            let said = record.outputs.agent_result.get(TRACEBACK).and_then(|text| text.as_str());
            self.crashes.entry(agent).or_insert_with(|| said.unwrap_or_default().to_owned());
        }
        let attempt = waiting.attempt;
        let past = PastTrial { attempt, outcome: record.outcome, reward: record.reward(), crashed };
        self.latest[waiting.trial] = Some(past);
    }

    /// Handles an attempt that has ended: counts it, and retries it if that may help.
    pub fn finished(&mut self, finished: Finished) {
        let Finished { waiting, reference, duration, result } = finished;
        let record = match result {
            Ok(record) => record,
            Err(Lost::Storage(reason)) => return self.stop_for(StopReason::Storage(reason)),
            Err(Lost::Task(problem)) => {
                let reason = problem.what.clone();
                self.problems.push(*problem);
                return self.stop_for(StopReason::Faults(reason));
            }
        };
        self.note(waiting, &record);
        self.recorded += 1;
        let mut ended = TrialEnded::of(&record, reference, duration);
        let (spent, tokens, calls) = &mut self.taken;
        *spent = spent.plus(ended.cost.unwrap_or_default());
        *tokens += ended.tokens;
        *calls += record.cost.model_calls;
        self.unpriced += u64::from(ended.cost.is_none());
        ended.retried = self.is_told
            && self.stop.is_none()
            && may_be_replaced(record.outcome, record.fault.as_ref())
            && self.tries(waiting) < self.options.terms.max_attempts();
        if ended.retried {
            let again = Waiting { attempt: waiting.attempt + 1, ..waiting };
            self.queue.push_first(self.trials[waiting.trial].agent, again);
        }
        self.tell(&RunEvent::TrialEnded(Box::new(ended)));
    }

    /// Stops if the end of an attempt shows that continuing is pointless.
    pub fn consider(&mut self, outcome: Outcome, fault: Option<&Fault>) {
        if self.is_told
            && let Some(reason) = self.faults.after(outcome, fault)
        {
            self.stop_for(reason);
        }
    }

    fn tick<E: Executor>(&self, executor: &E) -> Tick {
        let totals = self.shared.account.totals();
        let mut tick = Tick {
            spent: totals.all.spent,
            reserved: totals.reserved,
            tokens: totals.all.tokens(),
            open_calls: totals.open_calls,
            running: executor.at_work(),
        };
        if E::CALLS_ELSEWHERE {
            (tick.spent, tick.tokens, _) = self.taken;
        }
        tick
    }

    /// Why it stopped. A reason that came when nothing was left stopped nothing, unless storage failed.
    pub(super) fn stopped(&self, is_done: impl Fn(Outcome) -> bool) -> Option<StopReason> {
        let unfinished = !self.latest.iter().all(|past| past.is_some_and(|past| is_done(past.outcome)));
        self.stop.clone().filter(|reason| unfinished || matches!(reason, StopReason::Storage(_)))
    }

    /// The result of the course.
    pub(super) fn end<E: Executor>(self, executor: &E) -> (RunEnded, Vec<Problem>) {
        let Tick { spent, tokens, .. } = self.tick(executor);
        let calls = if E::CALLS_ELSEWHERE { self.taken.2 } else { self.shared.account.totals().all.calls };
        let plan = &self.shared.plan;
        let (mut agents, all) = tallies(plan, self.trials.iter().zip(self.latest.iter().copied()));
        for (agent, said) in self.crashes.iter().filter(|(_, said)| !said.is_empty()) {
            agents[*agent].traceback = Some(said.clone());
        }
        let ended = RunEnded {
            experiment_id: plan.experiment_id.clone(),
            agents,
            all,
            recorded: self.recorded,
            spent: known_sum(spent, spent == MicroDollars::ZERO, self.unpriced),
            unpriced: self.unpriced,
            tokens,
            calls,
            unsettled_calls: self.unsettled_calls,
            stopped: self.stopped(Outcome::is_settled),
            head: None,
            duration: self.begun.elapsed(),
        };
        (ended, self.problems)
    }
}
