//! Runs an experiment whose trials are not known in advance. Results may determine the next trials, so there is no plan
//! of the whole, but one for each step. Each step is a course; all courses belong to one campaign and share one limit
//! of concurrent trials.
//!
//! A recorded trial is not run again: a step that asks for it gets its record.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_judge::verdict::Outcome;
use aec_ledger::read::RecordFile;
use aec_ledger::record::TrialRecord;
use aec_model::meter::Account;
use aec_task::task::Task;
use tokio::sync::{Notify, Semaphore};

use super::{Campaign, Course, Executor as _, InProcess, Options, Work};
use crate::control::Wish;
use crate::event::{RunEvent, StopReason};
use crate::harness::PreparedAgent;
use crate::plan::{Plan, PlannedTrial};
use crate::resume::{Past, PastTrial, Rerun};
use crate::terms::Terms;
use crate::trial::Shared;

/// Receives events.
pub type Observer = Arc<dyn Fn(&RunEvent) + Send + Sync>;

pub struct StepSetup {
    pub campaign: Campaign,
    /// Shared by all attempts; its plan is the experiment's own, without a task.
    pub shared: Shared,
    pub past: Past,
    /// Concurrent trials, over all steps.
    pub concurrency: u32,
    /// Most attempts at a trial whose faults are temporary and not the agent's.
    pub max_attempts: u32,
    pub observer: Option<Observer>,
}

/// Runs steps, several at once if need be.
pub struct StepRunner {
    campaign: Campaign,
    shared: Shared,
    known: Mutex<HashMap<Name, PastTrial>>,
    /// Trials being run: if two steps ask for the same trial, it runs once.
    claimed: Mutex<HashSet<Name>>,
    released: Notify,
    places: Arc<Semaphore>,
    options: Options,
    observer: Option<Observer>,
}

/// A step: some trials of a plan, with everything that they need.
pub struct Step {
    pub plan: Plan,
    pub agents: Vec<Arc<PreparedAgent>>,
    /// Its tasks, in its order.
    pub tasks: Vec<Task>,
    pub trials: Vec<PlannedTrial>,
    /// The account that pays.
    pub account: Account,
}

/// Why a step did not finish. Attempts recorded until then stay recorded.
#[derive(Debug)]
pub enum StepError {
    Stopped(StopReason),
    /// A task, a record or this machine is unusable.
    Problems(Vec<Problem>),
}

impl StepRunner {
    /// Prepares for steps. Attempts of killed sessions are recorded when their trials come up again.
    pub fn new(setup: StepSetup) -> Self {
        let StepSetup { campaign, shared, past, concurrency, max_attempts, observer } = setup;
        let terms = Terms {
            concurrency: Some(concurrency),
            max_attempts: Some(max_attempts),
            // The caller of the steps decides what faults mean.
            max_faults: Some(u32::MAX),
            ..Terms::default()
        };
        let places = Arc::new(Semaphore::new(terms.concurrency()));
        let options = Options {
            terms,
            // A trial whose fault was not its agent's runs again in every step that asks for it.
            rerun: Rerun { infra: true, ..Rerun::default() },
            traces: false,
            cluster: None,
        };
        Self {
            campaign,
            shared,
            known: Mutex::new(past.trials),
            claimed: Mutex::default(),
            released: Notify::new(),
            places,
            options,
            observer,
        }
    }

    /// Runs a step. The records come in the order of its trials.
    pub async fn carry_out(&self, step: Step) -> Result<Vec<TrialRecord>, StepError> {
        let Step { plan, agents, tasks, trials, account } = step;
        let storage = |error: io::Error| StepError::Stopped(StopReason::Storage(error.to_string()));
        self.campaign.session.keep_step(&plan).map_err(storage)?;
        let shared = Arc::new(Shared { plan: Arc::new(plan), agents, account, ..self.shared.clone() });
        let mut left = trials.clone();
        loop {
            let mut released = std::pin::pin!(self.released.notified());
            released.as_mut().enable();
            let mut claim = self.claim(&mut left);
            if !claim.trials.is_empty() {
                self.course(&shared, &tasks, &mut claim).await?;
            } else if left.is_empty() {
                break;
            } else {
                // Other steps are running the remaining trials. If they do not finish them, this step does.
                released.await;
            }
        }
        trials.iter().map(|trial| self.read(trial)).collect()
    }

    async fn course(
        &self,
        shared: &Arc<Shared>,
        tasks: &[Task],
        claim: &mut Claim<'_>,
    ) -> Result<(), StepError> {
        let work = Work {
            shared: Arc::clone(shared),
            tasks: tasks.to_vec(),
            trials: claim.trials.clone(),
            options: self.options.clone(),
        };
        let mut observe = |event: &RunEvent| {
            if let Some(observer) = &self.observer {
                observer(event);
            }
        };
        let mut executor = InProcess::within(Arc::clone(&self.places), true);
        let mut course = Course::new(&self.campaign, work, &mut claim.latest, &mut observe);
        executor.recover(&mut course).await.map_err(StepError::Problems)?;
        course.begin();
        course.run(&mut executor).await.map_err(StepError::Problems)?;
        let stopped = course.stopped(Outcome::is_final);
        if !course.problems.is_empty() {
            return Err(StepError::Problems(course.problems));
        }
        let cancelled = |past: &Option<PastTrial>| past.is_none_or(|past| !past.outcome.is_settled());
        match stopped {
            Some(reason) => Err(StepError::Stopped(reason)),
            None if claim.latest.iter().any(cancelled) => Err(StepError::Stopped(StopReason::Insisted)),
            None => Ok(()),
        }
    }

    /// Ends the session. All steps must have ended.
    pub fn close(self, stopped: Option<StopReason>) -> io::Result<()> {
        self.campaign.end(0, stopped).map(drop)
    }

    /// What the user asked for with `runs stop` on the experiment.
    pub fn wish(&self) -> Wish {
        self.campaign.wish()
    }

    /// Claims the trials that must be run and that no other step runs. Removes finished trials from `left`.
    fn claim(&self, left: &mut Vec<PlannedTrial>) -> Claim<'_> {
        let (known, mut claimed) = (lock(&self.known), lock(&self.claimed));
        let mut claim = Claim { runner: self, trials: Vec::new(), latest: Vec::new() };
        left.retain(|trial| {
            let past = known.get(&trial.id).copied();
            let is_done = past.is_some_and(|past| past.outcome.is_final());
            let is_mine = !is_done && claimed.insert(trial.id.clone());
            if is_mine {
                claim.trials.push(trial.clone());
                claim.latest.push(past);
            }
            !is_done && !is_mine
        });
        claim
    }

    fn read(&self, trial: &PlannedTrial) -> Result<TrialRecord, StepError> {
        let attempt = lock(&self.known).get(&trial.id).map_or(1, |past| past.attempt);
        let experiment = self.shared.plan.experiment_id.clone();
        let file = RecordFile { experiment, trial: trial.id.clone(), attempt };
        match file.read(&self.campaign.ledger) {
            Ok(stored) => Ok(stored.record),
            Err(broken) => Err(StepError::Problems(vec![broken.problem])),
        }
    }
}

/// Trials that one step runs. When it ends, for whatever reason, other steps are notified.
struct Claim<'a> {
    runner: &'a StepRunner,
    trials: Vec<PlannedTrial>,
    latest: Vec<Option<PastTrial>>,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let (mut known, mut claimed) = (lock(&self.runner.known), lock(&self.runner.claimed));
        for (trial, past) in self.trials.drain(..).zip(&self.latest) {
            claimed.remove(&trial.id);
            known.extend(past.map(|past| (trial.id, past)));
        }
        drop((known, claimed));
        self.runner.released.notify_waiters();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
