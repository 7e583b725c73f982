//! The workers of one environment: assigns jobs to them, and restarts those that die.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use aec_http::pause::{Rule, chance};
use futures_util::future::try_join_all;
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use crate::worker::connection::{Event, Supervisor, Worker, lock};
use crate::worker::error::{Cause, Death, Stage, WorkerError};
use crate::worker::files::ProgramFiles;
use crate::worker::model_caller::ModelCaller;
use crate::worker::protocol::{Loaded, Member, ToWorker};
use crate::worker::row::Row;
use crate::worker::setup::Setup;

/// Longest wait before a worker is restarted.
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);
/// How long workers may take to tear their environments down.
const SHUTDOWN: Duration = Duration::from_secs(8);

/// Rollouts that are generated together and, unless they are independent, scored together.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The rollouts. Those of one example belong in one job if a reward compares them.
    pub members: Vec<Member>,
    /// Whether each rollout is scored by itself.
    pub independent: bool,
    /// The model name that the environment uses.
    pub model: String,
    /// Sampling arguments; they take precedence over the environment's own.
    pub sampling_args: Map<String, Value>,
}

/// A generated job that waits to be scored. Dropping this value drops the worker's copy too.
pub struct Generated {
    /// The error class of each failed rollout, in the order of the members.
    pub errors: Vec<Option<String>>,
    /// Whether it is already scored, because the environment cannot generate without scoring.
    pub scored: bool,
    hold: Hold,
}

impl std::fmt::Debug for Generated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Generated")
            .field("errors", &self.errors)
            .field("scored", &self.scored)
            .finish_non_exhaustive()
    }
}

/// A job of a worker; the worker cancels it when this is dropped.
struct Hold {
    worker: Arc<Worker>,
    job: u64,
    kept: bool,
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.kept {
            self.worker.abandon(self.job);
        }
    }
}

impl Hold {
    /// The job is over; the worker has already forgotten it.
    fn release(mut self) {
        self.kept = false;
        self.worker.forget(self.job);
    }
}

/// Workers that have loaded an environment. They end with the pool.
pub struct WorkerPool {
    crew: Owner,
    loaded: Loaded,
}

/// Kills the workers when it is dropped; other references to the shared state may outlive it.
struct Owner(Arc<Shared>);

impl Drop for Owner {
    fn drop(&mut self) {
        for worker in self.0.close() {
            worker.kill(Cause::Unknown);
        }
    }
}

struct Shared {
    setup: Setup,
    program: ProgramFiles,
    count: usize,
    digest: OnceLock<String>,
    crew: Mutex<Crew>,
    changes: watch::Sender<u64>,
    next_job: AtomicU64,
    runtime: Handle,
    own: Weak<Self>,
}

#[derive(Default)]
struct Crew {
    workers: Vec<Option<Arc<Worker>>>,
    starting: usize,
    restarts: u32,
    last_death: Option<Arc<Death>>,
    closed: bool,
}

impl WorkerPool {
    /// Starts the workers and returns when all of them have loaded the environment.
    pub async fn start(setup: Setup) -> Result<Self, WorkerError> {
        std::fs::create_dir_all(&setup.logs)
            .map_err(|error| WorkerError::Write { path: setup.logs.clone(), reason: error.to_string() })?;
        let program = ProgramFiles::write()?;
        let count = setup.workers.resolve(setup.concurrency);
        let shared = Arc::new_cyclic(|own| Shared {
            setup,
            program,
            count,
            digest: OnceLock::new(),
            crew: Mutex::new(Crew { workers: vec![None; count], ..Crew::default() }),
            changes: watch::Sender::new(0),
            next_job: AtomicU64::new(1),
            runtime: Handle::current(),
            own: own.clone(),
        });
        // If one worker cannot be started, dropping this value ends the others.
        let crew = Owner(shared);
        let mut facts = try_join_all((0..count).map(|index| crew.0.launch(index))).await?.into_iter();
        let mut loaded = facts.next().ok_or(WorkerError::Closed)?;
        if facts.any(|other| other.examples_digest != loaded.examples_digest) {
            let told = "the workers loaded different examples: the environment's data is not the same twice";
            loaded.warnings.push(format!("{told}, so use one worker"));
        }
        crew.0.digest.set(loaded.examples_digest.clone()).ok();
        Ok(Self { crew, loaded })
    }

    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// The number of workers when none has died.
    pub fn workers(&self) -> usize {
        self.crew.0.count
    }

    /// Generates a job on the least busy worker.
    pub async fn generate(&self, job: Job, caller: Arc<dyn ModelCaller>) -> Result<Generated, WorkerError> {
        let count = self.loaded().example_ids.len();
        if let Some(member) = job.members.iter().find(|member| member.example >= count) {
            return Err(WorkerError::NoSuchExample { example: member.example, count });
        }
        let number = self.crew.0.next_job.fetch_add(1, Ordering::Relaxed);
        let (worker, receiver) = self.crew.0.place(number, job.members.len(), &caller).await?;
        let hold = Hold { worker, job: number, kept: true };
        hold.worker.send(&ToWorker::Run {
            job: number,
            members: &job.members,
            independent: job.independent,
            model: &job.model,
            sampling_args: &job.sampling_args,
        });
        let limits = &self.crew.0.setup.limits;
        let (event, hold) = wait(hold, receiver, limits.generation, Stage::Generation, limits.drop).await?;
        match event {
            Event::Generated { errors, scored } => Ok(Generated { errors, scored, hold }),
            Event::Rows(_) => Err(WorkerError::Closed),
            Event::Failed(error) => {
                hold.release();
                Err(error)
            }
        }
    }

    /// Scores a generated job, and returns its rows in the order of its members.
    pub async fn score(&self, generated: Generated) -> Result<Vec<Row>, WorkerError> {
        let hold = generated.hold;
        let receiver = hold.worker.await_next(hold.job)?;
        hold.worker.send(&ToWorker::Score { job: hold.job });
        let limits = &self.crew.0.setup.limits;
        let (event, hold) = wait(hold, receiver, limits.scoring, Stage::Scoring, limits.drop).await?;
        hold.release();
        match event {
            Event::Rows(rows) => {
                // Progress resets the count, so that an environment may lose a worker now and then.
                lock(&self.crew.0.crew).restarts = 0;
                Ok(rows)
            }
            Event::Generated { .. } => Err(WorkerError::Closed),
            Event::Failed(error) => Err(error),
        }
    }

    /// Lets the environments tear down, and ends the workers.
    pub async fn shutdown(self) {
        let workers = self.crew.0.close();
        let mut changes = self.crew.0.changes.subscribe();
        for worker in &workers {
            worker.send(&ToWorker::Shutdown {});
        }
        let ended = async {
            while workers.iter().any(|worker| worker.rollouts().is_some()) {
                if changes.changed().await.is_err() {
                    break;
                }
            }
        };
        // Workers that are not done in time end with the pool.
        tokio::time::timeout(SHUTDOWN, ended).await.ok();
        for worker in &workers {
            worker.kill(Cause::Unknown);
        }
    }
}

/// Waits for the next event of a job; cancels a job that takes too long.
async fn wait(
    mut hold: Hold,
    receiver: oneshot::Receiver<Event>,
    limit: Option<Duration>,
    stage: Stage,
    drop_limit: Duration,
) -> Result<(Event, Hold), WorkerError> {
    let received = match limit {
        None => receiver.await,
        Some(limit) => match tokio::time::timeout(limit, receiver).await {
            Ok(received) => received,
            Err(_) => {
                hold.kept = false;
                hold.worker.give_up(hold.job, drop_limit).await;
                return Err(WorkerError::TimedOut { stage, limit });
            }
        },
    };
    received.map(|event| (event, hold)).map_err(|_| WorkerError::Closed)
}

impl Shared {
    /// Starts the worker of a place and puts it there.
    async fn launch(&self, index: usize) -> Result<Loaded, WorkerError> {
        let supervisor: Weak<dyn Supervisor> = self.own.clone();
        let (worker, loaded) =
            Worker::launch(&self.setup, self.program.path(), (index, self.count), supervisor).await?;
        let closed = {
            let mut crew = lock(&self.crew);
            // It may have ended in between, before it could be reported.
            if !crew.closed && worker.rollouts().is_some() {
                crew.workers[index] = Some(Arc::clone(&worker));
            }
            crew.closed
        };
        if closed {
            worker.kill(Cause::Unknown);
            return Err(WorkerError::Closed);
        }
        self.changed();
        Ok(loaded)
    }

    fn changed(&self) {
        self.changes.send_modify(|version| *version += 1);
    }

    /// Removes all workers for good.
    fn close(&self) -> Vec<Arc<Worker>> {
        let workers = {
            let mut crew = lock(&self.crew);
            crew.closed = true;
            crew.workers.iter_mut().filter_map(Option::take).collect()
        };
        self.changed();
        workers
    }

    /// Gives a job to the worker with the fewest rollouts, waiting until there is one.
    async fn place(
        &self,
        job: u64,
        rollouts: usize,
        caller: &Arc<dyn ModelCaller>,
    ) -> Result<(Arc<Worker>, oneshot::Receiver<Event>), WorkerError> {
        let mut changes = self.changes.subscribe();
        loop {
            let chosen = {
                let crew = lock(&self.crew);
                if crew.closed {
                    return Err(WorkerError::Closed);
                }
                let least = crew
                    .workers
                    .iter()
                    .flatten()
                    .filter_map(|worker| worker.rollouts().map(|rollouts| (rollouts, worker)))
                    .min_by_key(|(rollouts, _)| *rollouts)
                    .map(|(_, worker)| Arc::clone(worker));
                if least.is_none() && crew.starting == 0 && crew.workers.iter().all(Option::is_none) {
                    return Err(WorkerError::NoWorkers {
                        restarts: crew.restarts,
                        last: crew.last_death.clone(),
                    });
                }
                least
            };
            if let Some(worker) = chosen
                && let Ok(receiver) = worker.begin(job, rollouts, Arc::clone(caller))
            {
                return Ok((worker, receiver));
            }
            if changes.changed().await.is_err() {
                return Err(WorkerError::Closed);
            }
        }
    }

    /// Restarts a worker until it is loaded or no more restarts are allowed.
    async fn restart(self: Arc<Self>, index: usize, mut attempt: u32) {
        loop {
            let pauses = Rule::new(self.setup.limits.backoff, LONGEST_BACKOFF);
            tokio::time::sleep(pauses.own_wait(attempt, chance())).await;
            match self.launch(index).await {
                Ok(loaded) => {
                    if self.digest.get().is_some_and(|first| *first != loaded.examples_digest) {
                        tracing::warn!(worker = index, "a restarted worker loaded different examples");
                    }
                    break;
                }
                Err(error) => {
                    tracing::warn!(worker = index, %error, "a worker could not be started again");
                    let mut crew = lock(&self.crew);
                    if let WorkerError::Died(death) = error {
                        crew.last_death = Some(death);
                    }
                    if crew.closed || crew.restarts >= self.setup.limits.restarts {
                        break;
                    }
                    crew.restarts += 1;
                    attempt = crew.restarts;
                }
            }
        }
        lock(&self.crew).starting -= 1;
        self.changed();
    }
}

impl Supervisor for Shared {
    fn worker_ended(&self, death: &Arc<Death>) {
        let restart = {
            let mut crew = lock(&self.crew);
            crew.workers[death.worker] = None;
            crew.last_death = Some(Arc::clone(death));
            let restart = !crew.closed && crew.restarts < self.setup.limits.restarts;
            if restart {
                crew.restarts += 1;
                crew.starting += 1;
            }
            restart.then_some(crew.restarts)
        };
        if let Some(attempt) = restart
            && let Some(own) = self.own.upgrade()
        {
            tracing::warn!(%death, "a worker ended and is started again");
            self.runtime.spawn(own.restart(death.worker, attempt));
        }
        self.changed();
    }
}
