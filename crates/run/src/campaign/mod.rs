//! Runs many trials. A campaign is an experiment that runs in this process: it holds the session and the ledger's
//! writer. Within it, a [`Course`] has a queue of trials, the reasons to stop, the rules about faults, the tally and
//! one stream of events. One loop serves all courses; an [`Executor`] makes the attempts: [`InProcess`] here, Harbor's
//! program in `aec-harbor`. A run of a plan is a campaign with one course; [`StepRunner`] has a course for each step.

mod course;
pub mod faults;
mod in_process;
mod queue;
mod steps;
mod tasks;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aec_base::digest::Digest;
use aec_base::problem::Problem;
use aec_ledger::index::Index;
use aec_ledger::layout::{ExperimentDirectory, Ledger};
use aec_ledger::record::TrialRecord;
use aec_ledger::writer::{CommitError, GroupListener, Writer, WriterSetup};
use aec_task::task::Task;
use tokio::sync::oneshot;

use crate::control::Wish;
use crate::event::{RunEnded, RunEvent, StopReason};
use crate::plan::PlannedTrial;
use crate::resume::{Past, Rerun};
use crate::session::{Beginning, Session};
use crate::terms::Terms;
use crate::trial::Shared;

pub use course::{Course, Executor, Finished, Lost};
pub use in_process::InProcess;
pub use queue::Waiting;
pub use steps::{Observer, Step, StepError, StepRunner, StepSetup};
pub use tasks::TaskCache;

/// How to run trials. Nothing here changes what the trials are.
#[derive(Clone, Debug)]
pub struct Options {
    /// The user's options.
    pub terms: Terms,
    /// Trials to run again although they have a record.
    pub rerun: Rerun,
    /// Whether an observer wants traces while they are written.
    pub traces: bool,
    /// Present for one of many workers on a cluster.
    pub cluster: Option<ClusterOptions>,
}

/// Options for one of many workers on a cluster.
#[derive(Clone, Copy, Debug)]
pub struct ClusterOptions {
    /// How long to wait before recording an attempt that has ended. A cluster ends a job by a signal to all its
    /// processes at once, including commands of agents and verifiers: an attempt that ended just before the run was
    /// asked to give up ended because of that, and is cancelled.
    pub doubt: Duration,
}

/// The trials to run.
pub struct Work {
    pub shared: Arc<Shared>,
    /// The tasks of the plan, in its order.
    pub tasks: Vec<Task>,
    pub trials: Vec<PlannedTrial>,
    pub options: Options,
}

/// An experiment running in this process: its session, and the only writer of its part of the ledger.
pub struct Campaign {
    ledger: Ledger,
    jobs: PathBuf,
    directory: ExperimentDirectory,
    session: Session,
    committer: Committer,
}

impl Campaign {
    /// Begins a session and opens the ledger for it. Returns what earlier sessions did as well.
    pub fn begin(beginning: &Beginning<'_>) -> Result<(Self, Past), Vec<Problem>> {
        let Beginning { ledger, jobs, plan, own, .. } = *beginning;
        let (session, _, past) = Session::begin(beginning)?;
        let setup = WriterSetup {
            ledger: ledger.clone(),
            jobs: PathBuf::from(jobs),
            experiment: plan.experiment_id.clone(),
            session: session.id.clone(),
            plan: plan.digest,
        };
        // The index is a database, which only one machine may write.
        let listener = if own.is_some() { None } else { index_listener(ledger) };
        let writer = Writer::open(setup, listener).map_err(|error| cannot_go_on(&error))?;
        let directory = ledger.experiment(&plan.experiment_id);
        Ok((
            Self {
                ledger: ledger.clone(),
                jobs: PathBuf::from(jobs),
                directory,
                session,
                committer: Committer(Arc::new(writer)),
            },
            past,
        ))
    }

    pub fn session(&self) -> &str {
        &self.session.id
    }

    pub fn directory(&self) -> &ExperimentDirectory {
        &self.directory
    }

    /// What the user asked for with `runs stop`.
    pub fn wish(&self) -> Wish {
        self.session.wish()
    }

    pub fn committer(&self) -> Committer {
        self.committer.clone()
    }

    /// Ends the session, stores what the head covers, and returns the head of the experiment. `recorded` is reported if the writer cannot say
    /// how much it wrote.
    fn end(mut self, recorded: u64, stopped: Option<StopReason>) -> io::Result<Option<Digest>> {
        let writer = Arc::into_inner(self.committer.0)
            .ok_or_else(|| io::Error::other("an attempt is still running"))?;
        let closed = writer.close();
        let recorded = closed.as_ref().map_or(recorded, |closed| closed.records);
        let is_known = matches!(stopped, Some(StopReason::Storage(_)));
        self.session.end(recorded, stopped)?;
        if !is_known {
            closed?;
        }
        Ok(self.directory.seal(&self.jobs).ok().flatten())
    }
}

/// Commits records to the ledger. The session can end when all clones are dropped.
#[derive(Clone)]
pub struct Committer(Arc<Writer>);

impl Committer {
    /// Waits until a record is durable and in its place.
    pub async fn commit(&self, record: TrialRecord) -> Result<(), CommitError> {
        let (sender, receiver) = oneshot::channel();
        self.0.commit(record, Box::new(move |done| drop(sender.send(done))));
        let gone = |_| CommitError::Storage("the writer has ended".to_owned());
        receiver.await.map_err(gone)?.map(|_| ())
    }
}

/// Runs a plan to its end or until it is stopped. Also returns problems to report.
pub async fn execute(
    campaign: Campaign,
    past: &Past,
    work: Work,
    mut executor: impl Executor,
    observe: &mut (dyn FnMut(&RunEvent) + Send),
) -> Result<(RunEnded, Vec<Problem>), Vec<Problem>> {
    let mut latest: Vec<_> = work.trials.iter().map(|trial| past.trials.get(&trial.id).copied()).collect();
    let mut course = Course::new(&campaign, work, &mut latest, &mut *observe);
    executor.recover(&mut course).await?;
    course.begin();
    course.tell(&RunEvent::Started(course.started()));
    course.run(&mut executor).await?;
    let (mut ended, problems) = course.end(&executor);
    drop(executor);
    ended.head =
        campaign.end(ended.recorded as u64, ended.stopped.clone()).map_err(|error| cannot_go_on(&error))?;
    observe(&RunEvent::Ended(Box::new(ended.clone())));
    Ok((ended, problems))
}

/// The problem when this machine cannot store evidence.
pub(crate) fn cannot_go_on(error: &dyn std::fmt::Display) -> Vec<Problem> {
    let problem = Problem::error(format!("the run cannot go on: {error}"));
    vec![problem.fix("check the disk, then resume the run")]
}

/// Updates the index along with the writer. If that fails, the next reader rebuilds the index.
fn index_listener(ledger: &Ledger) -> Option<GroupListener> {
    let mut index = Index::open(ledger).ok()?;
    Some(Box::new(move |group| {
        let rows: Vec<(&TrialRecord, _, _)> =
            group.iter().map(|(record, digest, size)| (record, *digest, *size)).collect();
        if let Err(error) = index.add_all(&rows) {
            tracing::debug!(%error, "the index was not updated");
        }
    }))
}
