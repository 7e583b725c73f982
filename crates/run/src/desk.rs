//! Trials as they come: an experiment whose trials are not known before the first has ended. What is tried next may
//! follow from what was measured, so there is no plan of the whole, but one for each step, and all steps are carried
//! out under one session, by one writer, within one limit of trials at once.
//!
//! A trial that is recorded is not run again: whoever asks for it gets its record.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_judge::settle::outcome::{Boundary, Fault};
use aec_judge::verdict::Outcome;
use aec_ledger::jobs::LIVE;
use aec_ledger::layout::Ledger;
use aec_ledger::read::RecordFile;
use aec_ledger::record::TrialRecord;
use aec_ledger::writer::{Writer, WriterSetup};
use aec_model::failure::FailureKind;
use aec_model::meter::Account;
use aec_task::task::Task;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::control::Wish;
use crate::dispatch::{commit, index_listener, interrupted, unchanged};
use crate::event::{RunEvent, StopReason, TrialEnded, TrialRef};
use crate::harness::PreparedAgent;
use crate::plan::{Plan, PlannedTrial};
use crate::recording::live_name;
use crate::salvage::salvage;
use crate::session::{Past, PastTrial, Session};
use crate::task::PreparedTask;
use crate::trial::{self, Attempt, Shared};

/// Hears what happens at a desk.
pub type Observer = Arc<dyn Fn(&RunEvent) + Send + Sync>;

/// What a desk is opened with.
pub struct DeskSetup {
    /// What all attempts share; its plan is the experiment's own, without a task.
    pub shared: Shared,
    /// The ledger.
    pub ledger: Ledger,
    /// The root of `jobs`.
    pub jobs: PathBuf,
    /// The session.
    pub session: Session,
    /// What earlier sessions did.
    pub past: Past,
    /// Trials at once, over all steps.
    pub concurrency: usize,
    /// Attempts at a trial, when faults are not the agent's and may pass.
    pub max_attempts: u32,
    /// Hears what happens.
    pub observer: Option<Observer>,
}

/// Takes trials step by step. Several steps may be under way at once.
pub struct Desk {
    shared: Shared,
    ledger: Ledger,
    session: Mutex<Session>,
    writer: Arc<Writer>,
    known: Mutex<HashMap<Name, PastTrial>>,
    /// Trials under way: two steps may ask for the same one, which is run once.
    under_way: Mutex<HashMap<Name, Arc<tokio::sync::Mutex<()>>>>,
    places: Semaphore,
    max_attempts: u32,
    observer: Option<Observer>,
}

/// A step: some trials of a plan, with everything that they need.
pub struct Step {
    /// The plan of this step.
    pub plan: Plan,
    /// Its agents, ready to work.
    pub agents: Vec<Arc<PreparedAgent>>,
    /// Its tasks, in its order.
    pub tasks: Vec<Task>,
    /// Its trials.
    pub trials: Vec<PlannedTrial>,
    /// Who pays.
    pub account: Account,
}

/// Why a step did not come to its end. What was recorded until then stays recorded.
#[derive(Debug)]
pub enum DeskError {
    /// No further trial is started.
    Stopped(StopReason),
    /// A task or a record cannot be used.
    Problem(Box<Problem>),
}

impl Desk {
    /// Opens a desk. Attempts of killed sessions are recorded when their trials come up again.
    pub fn open(setup: DeskSetup) -> io::Result<Self> {
        let DeskSetup { shared, ledger, jobs, session, past, concurrency, max_attempts, observer } = setup;
        let writer = Writer::open(
            WriterSetup {
                ledger: ledger.clone(),
                jobs,
                experiment: shared.plan.experiment_id.clone(),
                session: session.id.clone(),
                plan: shared.plan.digest,
            },
            index_listener(&ledger),
        )?;
        Ok(Self {
            shared,
            ledger,
            session: Mutex::new(session),
            writer: Arc::new(writer),
            known: Mutex::new(past.trials),
            under_way: Mutex::default(),
            places: Semaphore::new(concurrency.max(1)),
            max_attempts: max_attempts.max(1),
            observer,
        })
    }

    /// Carries out a step. The records come in the order of its trials.
    pub async fn carry_out(self: &Arc<Self>, step: Step) -> Result<Vec<TrialRecord>, DeskError> {
        self.keep(&step.plan).map_err(|error| storage(&error))?;
        let recorded = self.recorded(&step.trials);
        let tasks = self.prepare(&step, &recorded)?;
        let shared = Arc::new(Shared {
            plan: Arc::new(step.plan),
            agents: step.agents,
            account: step.account,
            ..self.shared.clone()
        });
        let mut records: Vec<Option<TrialRecord>> = (0..step.trials.len()).map(|_| None).collect();
        let mut running = JoinSet::new();
        let halt = Arc::new(AtomicBool::new(false));
        for (at, (trial, past)) in step.trials.into_iter().zip(recorded).enumerate() {
            let Some(task) = tasks[trial.task].as_ref().filter(|_| past.is_none()) else {
                let attempt = past.map_or(1, |past| past.attempt);
                records[at] = Some(self.read(&shared, &trial, attempt)?);
                continue;
            };
            let (desk, shared, task) = (Arc::clone(self), Arc::clone(&shared), Arc::clone(task));
            let halt = Arc::clone(&halt);
            running.spawn(async move {
                let made = desk.trial(&shared, trial, &task, &halt).await;
                // What keeps one trial from its end keeps the step from its end: the others need not begin.
                halt.fetch_or(made.is_err(), Ordering::Relaxed);
                (at, made)
            });
        }
        let mut failure = None;
        while let Some(ended) = running.join_next().await {
            match ended {
                Ok((at, Ok(record))) => records[at] = Some(record),
                Ok((_, Err(DeskError::Stopped(StopReason::Asked)))) if failure.is_some() => {}
                Ok((_, Err(error))) => failure = Some(error),
                Err(_) => {
                    let what = "a trial ended in a bug of this program";
                    failure =
                        failure.or_else(|| Some(DeskError::Stopped(StopReason::Faults(what.to_owned()))));
                }
            }
        }
        match failure {
            Some(failure) => Err(failure),
            None => Ok(records.into_iter().flatten().collect()),
        }
    }

    /// Ends the session. Steps must have ended.
    pub fn close(self: Arc<Self>, stopped: Option<StopReason>) -> io::Result<()> {
        let under_way = || io::Error::other("an attempt is still under way");
        let desk = Arc::into_inner(self).ok_or_else(under_way)?;
        let closed = Arc::into_inner(desk.writer).ok_or_else(under_way)?.close()?;
        let mut session = desk.session.into_inner().unwrap_or_else(PoisonError::into_inner);
        session.end(closed.records, stopped)
    }

    /// What somebody asked for through `runs stop` on the experiment.
    pub fn wish(&self) -> Wish {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).wish()
    }

    fn keep(&self, plan: &Plan) -> io::Result<()> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).keep_step(plan)
    }

    /// The attempts that trials ended with, where they did.
    fn recorded(&self, trials: &[PlannedTrial]) -> Vec<Option<PastTrial>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let ended =
            |trial: &PlannedTrial| known.get(&trial.id).copied().filter(|past| past.outcome.is_final());
        trials.iter().map(ended).collect()
    }

    /// Reads the tasks that somebody still has to work on.
    fn prepare(
        &self,
        step: &Step,
        recorded: &[Option<PastTrial>],
    ) -> Result<Vec<Option<Arc<PreparedTask>>>, DeskError> {
        let mut prepared: Vec<Option<Arc<PreparedTask>>> = vec![None; step.tasks.len()];
        for (trial, past) in step.trials.iter().zip(recorded) {
            let at = trial.task;
            if past.is_none() && prepared[at].is_none() {
                let (task, revision) = (&step.tasks[at], step.plan.tasks[at].revision);
                let read = PreparedTask::read(task.clone(), revision, &step.plan.conditions)
                    .and_then(|read| unchanged(task, revision).map(|()| read))
                    .map_err(|problem| DeskError::Problem(Box::new(problem)))?;
                prepared[at] = Some(Arc::new(read));
            }
        }
        Ok(prepared)
    }

    /// The record of a trial: the one that it has, or that of an attempt made now. Whoever asks for a trial that is
    /// under way waits for its record.
    async fn trial(
        &self,
        shared: &Arc<Shared>,
        trial: PlannedTrial,
        task: &Arc<PreparedTask>,
        halt: &AtomicBool,
    ) -> Result<TrialRecord, DeskError> {
        let id = trial.id.clone();
        let turn = {
            let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(under_way.entry(id.clone()).or_default())
        };
        let made = {
            let _turn = turn.lock().await;
            self.trial_in_turn(shared, trial, task, halt).await
        };
        drop(turn);
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if under_way.get(&id).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            under_way.remove(&id);
        }
        made
    }

    async fn trial_in_turn(
        &self,
        shared: &Arc<Shared>,
        trial: PlannedTrial,
        task: &Arc<PreparedTask>,
        halt: &AtomicBool,
    ) -> Result<TrialRecord, DeskError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&trial.id).copied();
        if let Some(past) = known.filter(|past| past.outcome.is_final()) {
            return self.read(shared, &trial, past.attempt);
        }
        let mut last = self.recorded_attempt(shared, &trial, task, known).await?;
        // Attempts that were cancelled never had their chance, so they are no tries.
        let mut tries = 0;
        loop {
            tries += 1;
            let record = self.attempt(shared, &trial, task, (last + 1, tries), halt).await?;
            last += 1;
            let passing = record.fault.as_ref().is_some_and(|fault| fault.retryable);
            let infra = matches!(record.outcome, Outcome::InfraFault | Outcome::VerifierFault);
            if record.outcome == Outcome::Cancelled {
                return Err(DeskError::Stopped(cancelled(&record)));
            }
            if !infra || !passing || tries >= self.max_attempts {
                return Ok(record);
            }
        }
    }

    /// The last attempt of a trial that is recorded; one that a killed session left is recorded first.
    async fn recorded_attempt(
        &self,
        shared: &Arc<Shared>,
        trial: &PlannedTrial,
        task: &Arc<PreparedTask>,
        known: Option<PastTrial>,
    ) -> Result<u32, DeskError> {
        let last = known.map_or(0, |past| past.attempt);
        let live = shared.jobs.join(LIVE).join(live_name(&trial.id, last + 1));
        if !live.is_dir() {
            return Ok(last);
        }
        let record = salvage(shared, trial, last + 1, task, &live, Outcome::Cancelled, interrupted())
            .map_err(|error| storage(&error))?;
        commit(&self.writer, record).await.map_err(|error| storage(&error))?;
        Ok(last + 1)
    }

    async fn attempt(
        &self,
        shared: &Arc<Shared>,
        trial: &PlannedTrial,
        task: &Arc<PreparedTask>,
        (number, chance): (u32, u32),
        halt: &AtomicBool,
    ) -> Result<TrialRecord, DeskError> {
        let _place = tokio::select! {
            biased;
            () = shared.control.reached(Wish::Finish) => return Err(DeskError::Stopped(StopReason::Asked)),
            place = self.places.acquire() => place,
        };
        if halt.load(Ordering::Relaxed) {
            return Err(DeskError::Stopped(StopReason::Asked));
        }
        let reference = Arc::new(TrialRef {
            trial_id: trial.id.clone(),
            task_id: shared.plan.tasks[trial.task].task_id.clone(),
            agent: shared.plan.agents[trial.agent].name.clone(),
            repetition: trial.repetition,
            attempt: number,
        });
        let begun = Instant::now();
        self.tell(&RunEvent::TrialStarted(Arc::clone(&reference)));
        let attempt = Attempt { trial: trial.clone(), number, chance, task: Arc::clone(task) };
        let stage: trial::StageListener = Box::new(|_| {});
        let record = trial::attempt(shared, &attempt, &stage, None).await.map_err(|error| storage(&error))?;
        commit(&self.writer, record.clone()).await.map_err(|error| storage(&error))?;
        let past = PastTrial { attempt: number, outcome: record.outcome, reward: record.reward() };
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(trial.id.clone(), past);
        self.tell(&RunEvent::TrialEnded(Box::new(TrialEnded::of(&record, reference, begun.elapsed()))));
        Ok(record)
    }

    fn read(&self, shared: &Shared, trial: &PlannedTrial, attempt: u32) -> Result<TrialRecord, DeskError> {
        let file =
            RecordFile { experiment: shared.plan.experiment_id.clone(), trial: trial.id.clone(), attempt };
        match file.read(&self.ledger) {
            Ok(stored) => Ok(stored.record),
            Err(broken) => Err(DeskError::Problem(Box::new(broken.problem))),
        }
    }

    fn tell(&self, event: &RunEvent) {
        if let Some(observer) = &self.observer {
            observer(event);
        }
    }
}

fn storage(error: &dyn std::fmt::Display) -> DeskError {
    DeskError::Stopped(StopReason::Storage(error.to_string()))
}

/// Why an attempt that was cancelled was.
fn cancelled(record: &TrialRecord) -> StopReason {
    let budget = |fault: &&Fault| {
        fault.boundary == Boundary::Cancelled && fault.kind.as_deref() == Some(FailureKind::Budget.name())
    };
    match record.fault.as_ref().filter(budget) {
        Some(fault) => StopReason::Budget(fault.message.clone()),
        None => StopReason::Insisted,
    }
}
