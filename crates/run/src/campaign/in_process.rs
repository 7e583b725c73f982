//! Makes attempts in this process, each on its own async task, from the start until the record is in its place.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_judge::settle::outcome::{Boundary, Fault};
use aec_judge::verdict::Outcome;
use aec_ledger::jobs::LIVE;
use aec_ledger::layout::{parse_record_name, stem};
use aec_ledger::record::{Completeness, TrialRecord};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;

use super::course::{Course, Executor, Finished, Lost};
use super::faults::{interrupted, panicked};
use super::{Committer, Options, Waiting, cannot_go_on};
use crate::control::Wish;
use crate::event::{RunEvent, TrialRef};
use crate::resume::salvage::salvage;
use crate::task::PreparedTask;
use crate::trial::{self, Attempt, Shared};

pub struct InProcess {
    /// Slots for running attempts. Several courses may share them.
    places: Arc<Semaphore>,
    /// A slot acquired for the next attempt.
    place: Option<OwnedSemaphorePermit>,
    /// Whether an attempt waits for a slot.
    is_short: bool,
    /// Whether attempts are renumbered on cassettes: those of earlier sessions were cut off and do not count.
    chances_anew: bool,
    /// Attempts that have not ended: running, or with a record that is not on disk yet.
    running: JoinSet<Finished>,
    at_work: usize,
    freed: (mpsc::UnboundedSender<Freed>, mpsc::UnboundedReceiver<Freed>),
    events: (mpsc::UnboundedSender<RunEvent>, mpsc::UnboundedReceiver<RunEvent>),
    /// Attempts by their async task: identifies one that panics.
    under_way: HashMap<Id, (Waiting, Arc<TrialRef>)>,
}

impl InProcess {
    /// An executor for one run.
    pub fn new(options: &Options) -> Self {
        Self::within(Arc::new(Semaphore::new(options.terms.concurrency())), false)
    }

    /// An executor that shares its slots with others.
    pub(super) fn within(places: Arc<Semaphore>, chances_anew: bool) -> Self {
        Self {
            places,
            place: None,
            is_short: false,
            chances_anew,
            running: JoinSet::new(),
            at_work: 0,
            freed: mpsc::unbounded_channel(),
            events: mpsc::unbounded_channel(),
            under_way: HashMap::new(),
        }
    }

    fn spawn(&mut self, course: &Course<'_>, waiting: Waiting, place: OwnedSemaphorePermit) {
        let planned = course.trials[waiting.trial].clone();
        let reference = course.reference(waiting);
        let freed = Freed { agent: planned.agent, ended: None };
        let worker = Worker {
            shared: Arc::clone(&course.shared),
            committer: course.campaign.committer(),
            events: self.events.0.clone(),
            reference: Arc::clone(&reference),
            slot: Slot { freed, sender: self.freed.0.clone(), _place: place },
            traces: course.options.traces,
            doubt: course.options.cluster.map(|cluster| cluster.doubt),
        };
        let chance = if self.chances_anew { course.tries(waiting) } else { waiting.attempt };
        let attempt = course.tasks.get(planned.task).map(|task| Attempt {
            trial: planned,
            number: waiting.attempt,
            chance,
            task,
        });
        self.at_work += 1;
        let handle = self.running.spawn(worker.work(waiting, attempt));
        self.under_way.insert(handle.id(), (waiting, reference));
    }

    fn ended(&mut self, ended: Result<(Id, Finished), JoinError>, course: &mut Course<'_>) {
        // Events of the attempt come before its end.
        while let Ok(event) = self.events.1.try_recv() {
            course.tell(&event);
        }
        match ended {
            Ok((id, finished)) => {
                self.under_way.remove(&id);
                course.finished(finished);
            }
            Err(error) => {
                if let Some((waiting, reference)) = self.under_way.remove(&error.id()) {
                    self.record_panic(course, waiting, reference);
                }
            }
        }
    }

    /// Records a trial that panicked as a failure, from what it wrote until then.
    fn record_panic(&mut self, course: &mut Course<'_>, waiting: Waiting, reference: Arc<TrialRef>) {
        course.consider(Outcome::AgentFault, Some(&panicked()));
        let made = salvaged(course, waiting, Outcome::AgentFault, panicked());
        let committer = course.campaign.committer();
        self.running.spawn(async move {
            let result = match made {
                Ok(record) => committer.commit(record.clone()).await.map(|()| record).map_err(Lost::from),
                Err(error) => Err(Lost::Storage(error.to_string())),
            };
            Finished { waiting, reference, duration: Duration::ZERO, result }
        });
    }
}

impl Executor for InProcess {
    const CALLS_ELSEWHERE: bool = false;

    /// Records the attempts that were running when a session was killed.
    async fn recover(&mut self, course: &mut Course<'_>) -> Result<(), Vec<Problem>> {
        for waiting in left_over(course).map_err(|error| cannot_go_on(&error))? {
            let record = salvaged(course, waiting, Outcome::Cancelled, interrupted())
                .map_err(|error| cannot_go_on(&error))?;
            course.unsettled_calls += record.cost.unsettled_calls;
            course.interrupted += 1;
            course.campaign.committer.commit(record.clone()).await.map_err(|error| cannot_go_on(&error))?;
            course.note(waiting, &record);
        }
        Ok(())
    }

    fn start(&mut self, course: &mut Course<'_>) -> Result<(), Vec<Problem>> {
        let mut held = self.place.take();
        self.is_short = false;
        // As many again may wait for the disk, so that sandboxes and models need not wait for it.
        let most = course.options.terms.concurrency() * if course.options.cluster.is_some() { 6 } else { 2 };
        while course.goes_on() && self.running.len() < most {
            let Some(place) = held.take().or_else(|| Arc::clone(&self.places).try_acquire_owned().ok())
            else {
                self.is_short = course.queue.len() > 0;
                break;
            };
            let Some((_, waiting)) = course.queue.pop() else { break };
            self.spawn(course, waiting, place);
        }
        Ok(())
    }

    fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    fn at_work(&self) -> usize {
        self.at_work
    }

    async fn next(&mut self, course: &mut Course<'_>) {
        tokio::select! {
            biased;
            Some(event) = self.events.1.recv() => course.tell(&event),
            Some(freed) = self.freed.1.recv() => {
                self.at_work -= 1;
                course.queue.done(freed.agent);
                if let Some((outcome, fault)) = &freed.ended {
                    course.consider(*outcome, fault.as_ref());
                }
            }
            Some(ended) = self.running.join_next_with_id() => self.ended(ended, course),
            Ok(place) = Arc::clone(&self.places).acquire_owned(), if self.is_short => self.place = Some(place),
        }
    }
}

/// Unrecorded attempts of a course's trials. Removes the directories of recorded ones.
fn left_over(course: &Course<'_>) -> io::Result<Vec<Waiting>> {
    let live = course.shared.jobs.join(LIVE);
    let entries = match fs_err::read_dir(&live) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names: Vec<String> = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string().ok());
    }
    names.sort();
    let trials: HashMap<&Name, usize> =
        course.trials.iter().enumerate().map(|(index, trial)| (&trial.id, index)).collect();
    let mut found = Vec::new();
    for name in names {
        let Some((id, attempt)) = parse_record_name(&format!("{name}.json")) else { continue };
        let Some(trial) = trials.get(&id).copied() else { continue };
        if course.last_attempt(trial) >= attempt {
            // It was recorded; only its directory was not removed.
            fs_err::remove_dir_all(live.join(&name))?;
        } else {
            found.push(Waiting { trial, attempt });
        }
    }
    Ok(found)
}

/// The record of an attempt that did not finish.
fn salvaged(
    course: &Course<'_>,
    waiting: Waiting,
    outcome: Outcome,
    fault: Fault,
) -> io::Result<TrialRecord> {
    let planned = &course.trials[waiting.trial];
    let task: Arc<PreparedTask> =
        course.tasks.get(planned.task).map_err(|problem| io::Error::other(problem.what))?;
    let live = course.shared.jobs.join(LIVE).join(stem(&planned.id, waiting.attempt));
    salvage(&course.shared, planned, waiting.attempt, &task, &live, outcome, fault)
}

/// Makes one attempt on its own async task.
struct Worker {
    shared: Arc<Shared>,
    committer: Committer,
    events: mpsc::UnboundedSender<RunEvent>,
    reference: Arc<TrialRef>,
    slot: Slot,
    traces: bool,
    doubt: Option<Duration>,
}

/// The slot of a running attempt, which is released on drop.
struct Slot {
    freed: Freed,
    sender: mpsc::UnboundedSender<Freed>,
    _place: OwnedSemaphorePermit,
}

/// A released slot, and how the attempt ended if it did not panic.
#[derive(Clone)]
struct Freed {
    agent: usize,
    ended: Option<(Outcome, Option<Fault>)>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        // Fails only after the end, when there is no receiver.
        self.sender.send(self.freed.clone()).ok();
    }
}

impl Worker {
    async fn work(self, waiting: Waiting, attempt: Result<Attempt, Problem>) -> Finished {
        let begun = Instant::now();
        // Fails only after the end, when there is no receiver.
        self.events.send(RunEvent::TrialStarted(Arc::clone(&self.reference))).ok();
        let mut made = match attempt {
            Ok(attempt) => self.attempt(attempt).await,
            Err(problem) => Err(Lost::Task(Box::new(problem))),
        };
        let Self { shared, committer, reference, mut slot, doubt, .. } = self;
        slot.freed.ended = made.as_ref().ok().map(|record| (record.outcome, record.fault.clone()));
        // From here on the slot is free: other attempts do not wait for this one's doubt period or disk.
        drop(slot);
        if let (Some(doubt), Ok(record)) = (doubt, &mut made)
            && tokio::time::timeout(doubt, shared.control.reached(Wish::GiveUp)).await.is_ok()
        {
            cancel(record);
        }
        let result = match made {
            Ok(record) => committer.commit(record.clone()).await.map(|()| record).map_err(Lost::from),
            Err(lost) => Err(lost),
        };
        Finished { waiting, reference, duration: begun.elapsed(), result }
    }

    async fn attempt(&self, attempt: Attempt) -> Result<TrialRecord, Lost> {
        let (sender, reference) = (self.events.clone(), Arc::clone(&self.reference));
        let stage: trial::StageListener = Box::new(move |stage| {
            sender.send(RunEvent::Stage(Arc::clone(&reference), stage)).ok();
        });
        let listener = self.traces.then(|| {
            let (sender, reference) = (self.events.clone(), Arc::clone(&self.reference));
            let listener: crate::trajectory::Listener = Arc::new(move |event| {
                sender.send(RunEvent::Trace(Arc::clone(&reference), Arc::new(event.clone()))).ok();
            });
            listener
        });
        trial::attempt(&self.shared, &attempt, &stage, listener)
            .await
            .map_err(|error| Lost::Storage(error.to_string()))
    }
}

/// Turns the record into that of a cancelled attempt. Its cost is kept.
fn cancel(record: &mut TrialRecord) {
    if record.outcome == Outcome::Cancelled {
        return;
    }
    record.outcome = Outcome::Cancelled;
    record.evaluation = None;
    record.completeness = Completeness::Partial;
    record.fault = Some(Fault {
        boundary: Boundary::Cancelled,
        kind: None,
        message: "the run was stopped as the attempt ended".to_owned(),
        retryable: true,
    });
}
