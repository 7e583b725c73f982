//! One attempt on a task of its own: from its start to the moment in which its record is in its place.

use std::sync::Arc;
use std::time::Duration;

use aec_base::problem::Problem;
use aec_judge::settle::outcome::{Boundary, Fault};
use aec_judge::verdict::Outcome;
use aec_ledger::record::{Completeness, TrialRecord};
use aec_ledger::writer::{CommitError, Writer};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::control::Wish;
use crate::event::{RunEvent, TrialRef};
use crate::plan::PlannedTrial;
use crate::queue::Waiting;
use crate::task::PreparedTask;
use crate::trial::{self, Attempt, Shared};

/// An attempt that has ended, or what kept its record from being written.
pub(super) struct Finished {
    pub(super) agent: usize,
    pub(super) waiting: Waiting,
    pub(super) reference: Arc<TrialRef>,
    pub(super) duration: Duration,
    pub(super) result: Result<TrialRecord, Lost>,
}

/// Why there is no record of an attempt.
pub(super) enum Lost {
    /// The ledger or the disk did not take it.
    Storage(String),
    /// Its task cannot be used any more.
    Task(String),
}

impl From<CommitError> for Lost {
    fn from(error: CommitError) -> Self {
        Self::Storage(error.to_string())
    }
}

/// Makes one attempt on a task of its own.
pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) writer: Arc<Writer>,
    pub(super) sender: mpsc::UnboundedSender<RunEvent>,
    pub(super) reference: Arc<TrialRef>,
    pub(super) slot: Slot,
    pub(super) traces: bool,
    pub(super) doubt: Option<Duration>,
}

/// The place of an attempt among those at work, given back when it is dropped.
pub(super) struct Slot {
    pub(super) freed: Freed,
    pub(super) sender: mpsc::UnboundedSender<Freed>,
}

/// A place that an attempt gave back, and how the attempt ended if it did not panic.
#[derive(Clone)]
pub(super) struct Freed {
    pub(super) agent: usize,
    pub(super) ended: Option<(Outcome, Option<Fault>)>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        // Nobody listens after the end.
        self.sender.send(self.freed.clone()).ok();
    }
}

impl Worker {
    pub(super) async fn work(
        self,
        waiting: Waiting,
        planned: PlannedTrial,
        task: Result<Arc<PreparedTask>, Problem>,
    ) -> Finished {
        let begun = Instant::now();
        self.tell(RunEvent::TrialStarted(Arc::clone(&self.reference)));
        let made = match task {
            Ok(task) => {
                let (number, chance) = (waiting.attempt, waiting.attempt);
                self.attempt(Attempt { trial: planned, number, chance, task }).await
            }
            Err(problem) => Err(Lost::Task(problem.what)),
        };
        let Self { shared, writer, reference, mut slot, doubt, .. } = self;
        let agent = slot.freed.agent;
        slot.freed.ended = made.as_ref().ok().map(|record| (record.outcome, record.fault.clone()));
        // From here on the place is free: nobody waits for the doubts or the disk of another.
        drop(slot);
        let mut made = made;
        if let (Some(doubt), Ok(record)) = (doubt, &mut made)
            && tokio::time::timeout(doubt, shared.control.reached(Wish::GiveUp)).await.is_ok()
        {
            cancel(record);
        }
        let result = match made {
            Ok(record) => commit(&writer, record.clone()).await.map(|()| record).map_err(Lost::from),
            Err(lost) => Err(lost),
        };
        drop(writer);
        Finished { agent, waiting, reference, duration: begun.elapsed(), result }
    }

    async fn attempt(&self, attempt: Attempt) -> Result<TrialRecord, Lost> {
        let (sender, reference) = (self.sender.clone(), Arc::clone(&self.reference));
        let stage: trial::StageListener = Box::new(move |stage| {
            sender.send(RunEvent::Stage(Arc::clone(&reference), stage)).ok();
        });
        let listener = self.traces.then(|| {
            let (sender, reference) = (self.sender.clone(), Arc::clone(&self.reference));
            let listener: crate::trajectory::Listener = Arc::new(move |event| {
                sender.send(RunEvent::Trace(Arc::clone(&reference), Arc::new(event.clone()))).ok();
            });
            listener
        });
        trial::attempt(&self.shared, &attempt, &stage, listener)
            .await
            .map_err(|error| Lost::Storage(error.to_string()))
    }

    fn tell(&self, event: RunEvent) {
        // Nobody listens after the end.
        self.sender.send(event).ok();
    }
}

/// Makes an attempt one that was cancelled. What it took stays said.
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

/// Waits until a record is durable and in its place.
pub(crate) async fn commit(writer: &Arc<Writer>, record: TrialRecord) -> Result<(), CommitError> {
    let (sender, receiver) = oneshot::channel();
    writer.commit(record, Box::new(move |done| drop(sender.send(done))));
    let gone = |_| CommitError::Storage("the writer has ended".to_owned());
    receiver.await.map_err(gone)?.map(|_| ())
}
