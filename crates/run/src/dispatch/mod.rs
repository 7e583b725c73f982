//! Carrying out a plan: one dispatcher owns the state of the run and turns what attempts, signals and the clock tell it
//! into one stream of events.

mod prepared;
mod to_do;
mod worker;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_judge::verdict::Outcome;
use aec_ledger::index::Index;
use aec_ledger::jobs::LIVE;
use aec_ledger::layout::{Ledger, parse_record_name};
use aec_ledger::record::{Boundary, Fault, TrialRecord};
use aec_ledger::writer::{GroupListener, Writer, WriterSetup};
use aec_model::failure::FailureKind;
use aec_task::task::Task;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::control::Wish;
use crate::event::{RunEnded, RunEvent, RunStarted, StopReason, Tick, TrialEnded, TrialRef};
use crate::forecast::{AgentForecast, forecasts};
use crate::plan::PlannedTrial;
use crate::queue::{Queue, Waiting};
use crate::salvage::salvage;
use crate::session::{Past, PastTrial, Session};
use crate::tally::tallies;
use crate::terms::Terms;
use crate::trial::Shared;

pub use prepared::unchanged;
pub use to_do::{Rerun, to_do};
pub(crate) use worker::commit;

use prepared::Prepared;
use worker::{Finished, Freed, Lost, Slot, Worker};

/// Time between ticks.
const TICK: Duration = Duration::from_millis(200);

/// How a run is carried out. Nothing here changes what the trials are.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the user said.
    pub terms: Terms,
    /// Trials that are run again although they have a record.
    pub rerun: Rerun,
    /// Whether somebody wants to see traces as they are written.
    pub traces: bool,
    /// What is different for one of many workers on a cluster.
    pub cluster: Option<ClusterOptions>,
}

/// What is different for one of many workers on a cluster.
#[derive(Clone, Copy, Debug)]
pub struct ClusterOptions {
    /// How long an attempt that has ended is not recorded yet. A cluster ends a job by a signal to all its processes at
    /// once, commands of agents and verifiers included: an attempt that ended just before the run was asked to give up
    /// ended because of it, and is cancelled.
    pub doubt: Duration,
}

/// A run that is ready to begin.
pub struct Run {
    /// What all attempts share.
    pub shared: Arc<Shared>,
    /// The tasks of the plan, in its order.
    pub tasks: Vec<Task>,
    /// The trials of this process.
    pub trials: Vec<PlannedTrial>,
    /// The ledger.
    pub ledger: Ledger,
    /// The root of `jobs`.
    pub jobs: std::path::PathBuf,
    /// The session.
    pub session: Session,
    /// What earlier sessions did.
    pub past: Past,
    /// How it is carried out.
    pub options: Options,
}

/// Carries out a plan to its end or until it is stopped.
pub async fn execute(
    run: Run,
    observe: &mut (dyn FnMut(&RunEvent) + Send),
) -> Result<RunEnded, Vec<Problem>> {
    let begun = Instant::now();
    let storage = |error: &dyn std::fmt::Display| {
        vec![
            Problem::error(format!("the run cannot go on: {error}"))
                .fix("check the disk, then resume the run"),
        ]
    };
    // The index is a database, which wants one machine.
    let listener = if run.options.cluster.is_some() { None } else { index_listener(&run.ledger) };
    let writer = Writer::open(
        WriterSetup {
            ledger: run.ledger.clone(),
            jobs: run.jobs.clone(),
            experiment: run.shared.plan.experiment_id.clone(),
            session: run.session.id.clone(),
            plan: run.shared.plan.digest,
        },
        listener,
    )
    .map_err(|error| storage(&error))?;
    let mut dispatcher = Dispatcher::new(run, Arc::new(writer), begun);
    dispatcher.salvage_live().await.map_err(|error| storage(&error))?;
    dispatcher.fill();
    let started = dispatcher.started();
    observe(&RunEvent::Started(started));
    dispatcher.work(observe).await;
    dispatcher.end(observe).map_err(|error| storage(&error))
}

/// Keeps the index up with the writer. An index that fails is rebuilt by whoever reads it.
pub fn index_listener(ledger: &Ledger) -> Option<GroupListener> {
    let mut index = Index::open(ledger).ok()?;
    Some(Box::new(move |group| {
        let rows: Vec<(&TrialRecord, _, _)> =
            group.iter().map(|(record, digest, size)| (record, *digest, *size)).collect();
        if let Err(error) = index.add_all(&rows) {
            tracing::debug!(%error, "the index was not updated");
        }
    }))
}

struct Dispatcher {
    run: Run,
    writer: Arc<Writer>,
    prepared: Arc<Prepared>,
    queue: Queue,
    /// Attempts that have not ended: those at work, and those whose record is on its way to the disk.
    running: JoinSet<Finished>,
    at_work: usize,
    slots: (mpsc::UnboundedSender<Freed>, mpsc::UnboundedReceiver<Freed>),
    /// Attempts under way, by the task that makes them: what is left of one that panics.
    under_way: HashMap<tokio::task::Id, (usize, Waiting, Arc<TrialRef>)>,
    /// The latest attempt of each trial.
    latest: Vec<Option<(Outcome, Option<f64>)>>,
    sender: mpsc::UnboundedSender<RunEvent>,
    receiver: mpsc::UnboundedReceiver<RunEvent>,
    stop: Option<StopReason>,
    begun: Instant,
    to_run: usize,
    interrupted: usize,
    unsettled_calls: u64,
    recorded: usize,
    faults_in_a_row: usize,
}

impl Dispatcher {
    fn new(run: Run, writer: Arc<Writer>, begun: Instant) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let models = run.shared.plan.agents.iter().map(|agent| agent.model.clone()).collect();
        let latest = run
            .trials
            .iter()
            .map(|trial| run.past.trials.get(&trial.id).map(|past| (past.outcome, past.reward)))
            .collect();
        Self {
            prepared: Arc::default(),
            queue: Queue::new(models, run.options.terms.model_concurrency()),
            running: JoinSet::new(),
            at_work: 0,
            slots: mpsc::unbounded_channel(),
            under_way: HashMap::new(),
            latest,
            sender,
            receiver,
            stop: None,
            begun,
            to_run: 0,
            interrupted: 0,
            unsettled_calls: 0,
            recorded: 0,
            faults_in_a_row: 0,
            writer,
            run,
        }
    }

    /// Records the attempts that a killed session left in the middle of their work.
    async fn salvage_live(&mut self) -> io::Result<()> {
        let live = self.run.shared.jobs.join(LIVE);
        let entries = match fs_err::read_dir(&live) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let trials: HashMap<Name, usize> =
            self.run.trials.iter().enumerate().map(|(index, trial)| (trial.id.clone(), index)).collect();
        let mut names: Vec<String> = Vec::new();
        for entry in entries {
            names.extend(entry?.file_name().into_string().ok());
        }
        names.sort();
        for name in names {
            let Some((id, attempt)) = parse_record_name(&format!("{name}.json")) else { continue };
            let Some(index) = trials.get(&id).copied() else { continue };
            let place = live.join(&name);
            if self.run.past.trials.get(&id).is_some_and(|past| past.attempt >= attempt) {
                // It was recorded; only its directory was not removed.
                fs_err::remove_dir_all(&place)?;
                continue;
            }
            let record = self.salvaged(index, attempt, &place, Outcome::Cancelled, interrupted())?;
            let (outcome, reward, calls) = (record.outcome, record.reward(), record.cost.unsettled_calls);
            commit(&self.writer, record).await.map_err(|error| io::Error::other(error.to_string()))?;
            self.unsettled_calls += calls;
            self.interrupted += 1;
            self.latest[index] = Some((outcome, reward));
            self.run.past.trials.insert(id, PastTrial { attempt, outcome, reward });
        }
        Ok(())
    }

    fn salvaged(
        &self,
        trial: usize,
        attempt: u32,
        live: &std::path::Path,
        outcome: Outcome,
        fault: Fault,
    ) -> io::Result<TrialRecord> {
        let planned = &self.run.trials[trial];
        let task =
            self.prepared.get(&self.run, planned.task).map_err(|problem| io::Error::other(problem.what))?;
        salvage(&self.run.shared, planned, attempt, &task, live, outcome, fault)
    }

    /// Queues what is to be done: repetition by repetition, so that a run that is stopped early is balanced.
    fn fill(&mut self) {
        let mut wanted = to_do(&self.run.trials, &self.run.past, &self.run.options.rerun);
        wanted.sort_by_key(|(index, _)| {
            let trial = &self.run.trials[*index];
            (trial.repetition, trial.task, trial.agent)
        });
        self.to_run = wanted.len();
        for (trial, attempt) in wanted {
            self.queue.push(self.run.trials[trial].agent, Waiting { trial, attempt });
        }
    }

    fn started(&self) -> RunStarted {
        RunStarted {
            experiment_id: self.run.shared.plan.experiment_id.clone(),
            session: self.run.session.id.clone(),
            planned: self.run.trials.len(),
            done_before: self.run.trials.len() - self.to_run,
            interrupted: self.interrupted,
            to_run: self.to_run,
            agents: self.run.shared.plan.agents.iter().map(|agent| agent.name.clone()).collect(),
            concurrency: self.run.options.terms.concurrency(),
            max_cost: self.run.shared.account.totals().remaining,
            forecasts: self.forecasts(),
        }
    }

    fn forecasts(&self) -> Vec<AgentForecast> {
        let run = &self.run;
        let wanted = to_do(&run.trials, &run.past, &run.options.rerun);
        let wanted: Vec<_> = wanted.iter().map(|(index, _)| &run.trials[*index]).collect();
        forecasts(&run.shared.plan, &run.tasks, &run.shared.agents, &wanted)
    }

    /// Runs until nothing is left or nothing more may be started, and everything that was started has ended.
    async fn work(&mut self, observe: &mut (dyn FnMut(&RunEvent) + Send)) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let control = self.run.shared.control.clone();
        let mut seen = Wish::GoOn;
        loop {
            self.start_trials();
            if self.running.is_empty() && (self.queue.len() == 0 || self.stop.is_some()) {
                break;
            }
            tokio::select! {
                biased;
                Some(event) = self.receiver.recv() => observe(&event),
                Some(freed) = self.slots.1.recv() => {
                    self.at_work -= 1;
                    self.queue.done(freed.agent);
                    if let Some((outcome, fault)) = &freed.ended {
                        self.consider(*outcome, fault.as_ref(), observe);
                    }
                }
                () = control.reached(next_wish(seen)), if seen < Wish::GiveUp => {
                    seen = control.wish();
                    let reason = if seen == Wish::GiveUp { StopReason::Insisted } else { StopReason::Asked };
                    self.stop_for(reason, observe);
                }
                Some(ended) = self.running.join_next_with_id() => self.finished(ended, observe),
                _ = ticks.tick() => {
                    observe(&RunEvent::Tick(self.tick()));
                    if self.run.options.terms.max_time().is_some_and(|limit| self.begun.elapsed() >= limit) {
                        self.stop_for(StopReason::Time, observe);
                    }
                    match self.run.session.wish() {
                        Wish::GoOn => {}
                        wish => control.wish_for(wish),
                    }
                }
            }
        }
        while let Ok(event) = self.receiver.try_recv() {
            observe(&event);
        }
    }

    fn stop_for(&mut self, reason: StopReason, observe: &mut (dyn FnMut(&RunEvent) + Send)) {
        if self.stop.is_none() || reason == StopReason::Insisted {
            observe(&RunEvent::Stopping(reason.clone()));
            self.stop = Some(reason);
        }
    }

    fn start_trials(&mut self) {
        let allowed = self.run.options.terms.concurrency();
        // As many again may wait for the disk: rooms and models need not wait with them.
        // A wish may be there before it is heard: places that cancelled attempts give back are not taken again.
        let goes_on = self.stop.is_none() && self.run.shared.control.wish() == Wish::GoOn;
        let most = if self.run.options.cluster.is_some() { 6 * allowed } else { 2 * allowed };
        while goes_on && self.at_work < allowed && self.running.len() < most {
            let Some((agent, waiting)) = self.queue.pop() else { return };
            self.start(agent, waiting);
        }
    }

    fn start(&mut self, agent: usize, waiting: Waiting) {
        let planned = self.run.trials[waiting.trial].clone();
        let plan = &self.run.shared.plan;
        let reference = Arc::new(TrialRef {
            trial_id: planned.id.clone(),
            task_id: plan.tasks[planned.task].task_id.clone(),
            agent: plan.agents[planned.agent].name.clone(),
            repetition: planned.repetition,
            attempt: waiting.attempt,
        });
        let worker = Worker {
            shared: Arc::clone(&self.run.shared),
            writer: Arc::clone(&self.writer),
            sender: self.sender.clone(),
            reference: Arc::clone(&reference),
            slot: Slot { freed: Freed { agent, ended: None }, sender: self.slots.0.clone() },
            traces: self.run.options.traces,
            doubt: self.run.options.cluster.map(|cluster| cluster.doubt),
        };
        let task = self.prepared.get(&self.run, planned.task);
        self.at_work += 1;
        let handle = self.running.spawn(worker.work(waiting, planned, task));
        self.under_way.insert(handle.id(), (agent, waiting, reference));
    }

    fn finished(
        &mut self,
        ended: Result<(tokio::task::Id, Finished), tokio::task::JoinError>,
        observe: &mut (dyn FnMut(&RunEvent) + Send),
    ) {
        let finished = match ended {
            Ok((id, finished)) => {
                self.under_way.remove(&id);
                finished
            }
            Err(error) => {
                let Some((agent, waiting, reference)) = self.under_way.remove(&error.id()) else { return };
                let finished = self.panicked(agent, waiting, reference);
                if let Ok(record) = &finished.result {
                    self.consider(record.outcome, record.fault.as_ref(), observe);
                }
                finished
            }
        };
        // What the attempt told comes before its end.
        while let Ok(event) = self.receiver.try_recv() {
            observe(&event);
        }
        match finished.result {
            Ok(record) => {
                let ended = self.take_in(
                    finished.agent,
                    finished.waiting,
                    &record,
                    finished.reference,
                    finished.duration,
                );
                observe(&RunEvent::TrialEnded(Box::new(ended)));
            }
            Err(Lost::Storage(reason)) => self.stop_for(StopReason::Storage(reason), observe),
            Err(Lost::Task(reason)) => self.stop_for(StopReason::Faults(reason), observe),
        }
    }

    /// A trial that panicked is one failed record, made from what it wrote until then.
    fn panicked(&mut self, agent: usize, waiting: Waiting, reference: Arc<TrialRef>) -> Finished {
        let live = self
            .run
            .shared
            .jobs
            .join(LIVE)
            .join(aec_ledger::layout::stem(&reference.trial_id, waiting.attempt));
        let fault = Fault {
            boundary: Boundary::Internal,
            kind: Some("panic".to_owned()),
            message: "the trial ended in a bug of this program".to_owned(),
            retryable: false,
        };
        let record = self.salvaged(waiting.trial, waiting.attempt, &live, Outcome::InfraFault, fault);
        let result = record.map_err(|error| Lost::Storage(error.to_string())).and_then(|record| {
            let (sender, receiver) = std::sync::mpsc::channel();
            self.writer.commit(record.clone(), Box::new(move |done| drop(sender.send(done))));
            let gone = |_| Lost::Storage("the writer has ended".to_owned());
            receiver.recv().map_err(gone)?.map_err(Lost::from)?;
            Ok(record)
        });
        Finished { agent, waiting, reference, duration: Duration::ZERO, result }
    }

    fn take_in(
        &mut self,
        agent: usize,
        waiting: Waiting,
        record: &TrialRecord,
        trial: Arc<TrialRef>,
        duration: Duration,
    ) -> TrialEnded {
        self.recorded += 1;
        self.latest[waiting.trial] = Some((record.outcome, record.reward()));
        let passing = record.fault.as_ref().is_some_and(|fault| fault.retryable);
        let infra = matches!(record.outcome, Outcome::InfraFault | Outcome::VerifierFault);
        let before = self.run.past.trials.get(&trial.trial_id).map_or(0, |past| past.attempt);
        let retried = self.stop.is_none()
            && infra
            && passing
            && waiting.attempt - before < self.run.options.terms.max_attempts();
        if retried {
            self.queue.push_first(agent, Waiting { attempt: waiting.attempt + 1, ..waiting });
        }
        TrialEnded { retried, ..TrialEnded::of(record, trial, duration) }
    }

    /// Whether the end of an attempt says that going on makes no sense.
    fn consider(
        &mut self,
        outcome: Outcome,
        fault: Option<&Fault>,
        observe: &mut (dyn FnMut(&RunEvent) + Send),
    ) {
        let infra = matches!(outcome, Outcome::InfraFault | Outcome::VerifierFault);
        self.faults_in_a_row = if infra { self.faults_in_a_row + 1 } else { 0 };
        let Some(fault) = fault else { return };
        if fault.boundary == Boundary::Cancelled && fault.kind.as_deref() == Some(FailureKind::Budget.name())
        {
            self.stop_for(StopReason::Budget(fault.message.clone()), observe);
        } else if self.faults_in_a_row >= self.run.options.terms.max_faults() {
            let message = format!("{} faults in a row, the last: {}", self.faults_in_a_row, fault.message);
            self.stop_for(StopReason::Faults(message), observe);
        }
    }

    fn tick(&self) -> Tick {
        let totals = self.run.shared.account.totals();
        Tick {
            spent: totals.all.spent,
            reserved: totals.reserved,
            tokens: totals.all.tokens(),
            open_calls: totals.open_calls,
            running: self.at_work,
        }
    }

    fn end(mut self, observe: &mut (dyn FnMut(&RunEvent) + Send)) -> io::Result<RunEnded> {
        let totals = self.run.shared.account.totals();
        let directory = self.run.ledger.experiment(&self.run.shared.plan.experiment_id);
        let writer =
            Arc::into_inner(self.writer).ok_or_else(|| io::Error::other("an attempt is still under way"))?;
        let closed = writer.close();
        let done =
            |latest: &Option<(Outcome, Option<f64>)>| latest.is_some_and(|(outcome, _)| outcome.is_settled());
        // A reason to stop that came when nothing was left to do stopped nothing; a record that was not kept is lost.
        let unfinished = !self.latest.iter().all(done);
        let stopped =
            self.stop.take().filter(|reason| unfinished || matches!(reason, StopReason::Storage(_)));
        let recorded = closed.as_ref().map_or(self.recorded as u64, |closed| closed.records);
        self.run.session.end(recorded, stopped.clone())?;
        if let Err(error) = closed
            && !matches!(stopped, Some(StopReason::Storage(_)))
        {
            return Err(error);
        }
        let plan = &self.run.shared.plan;
        let (agents, all) = tallies(plan, self.run.trials.iter().zip(self.latest));
        let ended = RunEnded {
            experiment_id: plan.experiment_id.clone(),
            agents,
            all,
            recorded: self.recorded,
            spent: totals.all.spent,
            tokens: totals.all.tokens(),
            calls: totals.all.calls,
            unsettled_calls: self.unsettled_calls,
            stopped,
            head: directory.head().ok().flatten(),
            duration: self.begun.elapsed(),
        };
        observe(&RunEvent::Ended(Box::new(ended.clone())));
        Ok(ended)
    }
}

/// What is wrong with an attempt that a killed session left in the middle of its work.
pub(crate) fn interrupted() -> Fault {
    Fault {
        boundary: Boundary::Internal,
        kind: Some("interrupted".to_owned()),
        message: "the program was killed while the agent worked".to_owned(),
        retryable: true,
    }
}

fn next_wish(seen: Wish) -> Wish {
    if seen == Wish::GoOn { Wish::Finish } else { Wish::GiveUp }
}
