//! Taking finished trials in: each is judged and recorded as soon as it has a result.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aec_base::problem::Problem;
use aec_judge::verdict::Outcome;
use aec_ledger::record::TrialRecord;
use aec_ledger::writer::{CommitError, Writer};
use aec_run::dispatch::unchanged;
use aec_run::event::{RunEvent, StopReason, TrialEnded};
use aec_run::session::PastTrial;
use aec_run::task::PreparedTask;
use aec_run::trial::Shared;
use aec_task::task::Task;

use super::Desk;
use crate::FAMILY;
use crate::import::planned::{Came, record_of};
use crate::job::{Index, Staged, Wanted};
use crate::result::{Job, Trial, TrialError};

/// A trial that was taken in.
pub(super) struct Taken {
    wanted: Wanted,
    result: Result<(TrialRecord, Option<Problem>), Lost>,
}

/// Why there is no record of a trial that has a result.
enum Lost {
    Storage(String),
    Problem(Box<Problem>),
    /// The record is here already.
    Known,
}

impl Desk {
    /// Takes in whatever a job has finished, and waits for it.
    pub(super) async fn sweep(&mut self, job: &Staged, observe: &mut (dyn FnMut(&RunEvent) + Send)) {
        let directory = job.job_directory();
        if directory.is_dir() {
            match Job::open(&directory) {
                Ok(found) => {
                    let index = job.index();
                    found.trials.iter().for_each(|trial| self.take(&index, trial));
                }
                Err(error) => {
                    let problem = Problem::warning(format!("a job directory cannot be read: {error}"));
                    self.problems
                        .push(problem.id(FAMILY.number(32)).fix("check it, then resume").in_file(directory));
                }
            }
        }
        while let Some(taken) = self.taking.join_next().await {
            self.took(taken.ok().flatten(), observe);
        }
    }

    /// Begins to make the record of one trial, if it has a result and no record.
    pub(super) fn take(&mut self, index: &Index<'_>, directory: &Path) {
        if self.seen.contains(directory) {
            return;
        }
        let trial = match Trial::read(directory) {
            Ok(trial) => trial,
            Err(TrialError::Missing) => return,
            Err(error @ TrialError::Unreadable(_)) => {
                self.seen.insert(directory.to_path_buf());
                let problem =
                    Problem::warning(format!("a trial of the job is lost: {error}")).id(FAMILY.number(32));
                self.problems.push(problem.fix("resume the run to make the trial again").in_file(directory));
                return;
            }
        };
        self.seen.insert(directory.to_path_buf());
        let noted = index.of(&trial);
        let Some(wanted) = noted.and_then(|noted| self.wanted(&noted.trial_id, noted.attempt)) else {
            return;
        };
        let planned = self.carry.trials[wanted.trial].clone();
        let experiment = self.carry.ledger.experiment(&self.carry.shared.plan.experiment_id);
        if experiment.record(&planned.id, wanted.attempt).symlink_metadata().is_ok() {
            return;
        }
        let came = Came {
            harness: self.carry.harbor.agents[planned.agent].harness,
            version: self.carry.harbor.program.version.to_string(),
        };
        let task = Prepared {
            kept: Arc::clone(&self.prepared),
            task: self.carry.tasks[planned.task].clone(),
            index: planned.task,
        };
        let (shared, writer, places) =
            (Arc::clone(&self.carry.shared), Arc::clone(&self.writer), Arc::clone(&self.places));
        self.taking.spawn(async move {
            let _place = places.acquire().await;
            let made = tokio::task::spawn_blocking(move || {
                let task = task.get(&shared).map_err(|problem| Lost::Problem(Box::new(problem)))?;
                let made = record_of(&shared, &planned, wanted.attempt, &task, &trial, &came);
                let (record, problem) = made.map_err(|error| Lost::Storage(error.to_string()))?;
                commit(&writer, record.clone())?;
                Ok((record, problem))
            });
            let gone = || Err(Lost::Storage("a trial ended in a bug of this program".to_owned()));
            Some(Taken { wanted, result: made.await.unwrap_or_else(|_| gone()) })
        });
    }

    pub(super) fn took(&mut self, taken: Option<Taken>, observe: &mut (dyn FnMut(&RunEvent) + Send)) {
        let Some(Taken { wanted, result }) = taken else { return };
        let (record, problem) = match result {
            Ok(made) => made,
            Err(Lost::Known) => return,
            Err(Lost::Storage(reason)) => return self.stop_for(StopReason::Storage(reason), observe),
            Err(Lost::Problem(problem)) => {
                let reason = problem.what.clone();
                self.problems.push(*problem);
                return self.stop_for(StopReason::Faults(reason), observe);
            }
        };
        self.problems.extend(problem);
        let reference = self.reference(wanted);
        self.running.remove(&reference.trial_id);
        let latest = PastTrial { attempt: wanted.attempt, outcome: record.outcome, reward: record.reward() };
        self.carry.past.trials.insert(record.trial_id.clone(), latest);
        self.recorded += 1;
        let duration = Duration::try_from_secs_f64(record.timing.total_seconds).unwrap_or_default();
        let mut ended = TrialEnded::of(&record, reference, duration);
        self.spent = self.spent.plus(ended.cost.unwrap_or_default());
        self.tokens += ended.tokens;
        self.calls += record.cost.model_calls;
        if !self.has_begun {
            return;
        }
        let infra = matches!(record.outcome, Outcome::InfraFault | Outcome::VerifierFault);
        let passing = record.fault.as_ref().is_some_and(|fault| fault.retryable);
        let before = self.before.get(&record.trial_id).map_or(0, |past| past.attempt);
        ended.retried = self.stop.is_none()
            && infra
            && passing
            && wanted.attempt - before < self.carry.options.terms.max_attempts();
        if ended.retried {
            self.again.push(Wanted { attempt: wanted.attempt + 1, ..wanted });
        }
        self.faults_in_a_row = if infra { self.faults_in_a_row + 1 } else { 0 };
        observe(&RunEvent::TrialEnded(Box::new(ended)));
        if self.faults_in_a_row >= self.carry.options.terms.max_faults() {
            let last = record.fault.map(|fault| fault.message).unwrap_or_default();
            let message = format!("{} faults in a row, the last: {last}", self.faults_in_a_row);
            self.stop_for(StopReason::Faults(message), observe);
        }
    }
}

/// Waits until a record is durable and in its place.
fn commit(writer: &Writer, record: TrialRecord) -> Result<(), Lost> {
    let (sender, receiver) = std::sync::mpsc::channel();
    writer.commit(record, Box::new(move |done| drop(sender.send(done))));
    match receiver.recv() {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(CommitError::Exists { .. })) => Err(Lost::Known),
        Ok(Err(error)) => Err(Lost::Storage(error.to_string())),
        Err(_) => Err(Lost::Storage("the writer has ended".to_owned())),
    }
}

/// A task that is read when the first of its trials comes back.
struct Prepared {
    kept: Arc<Mutex<HashMap<usize, Arc<PreparedTask>>>>,
    task: Task,
    index: usize,
}

impl Prepared {
    fn get(&self, shared: &Shared) -> Result<Arc<PreparedTask>, Problem> {
        if let Some(task) = self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(&self.index) {
            return Ok(Arc::clone(task));
        }
        let revision = shared.plan.tasks[self.index].revision;
        let read = PreparedTask::read(self.task.clone(), revision, &shared.plan.conditions)?;
        unchanged(&self.task, revision)?;
        let read = Arc::new(read);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(self.index, Arc::clone(&read));
        Ok(read)
    }
}
