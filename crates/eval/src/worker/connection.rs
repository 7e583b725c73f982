//! One worker as the pool sees it: its jobs, and the model calls that they make.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::worker::error::{Cause, Death, LoadFailure, WorkerError};
use crate::worker::model_caller::ModelCaller;
use crate::worker::process::{Listener, Process};
use crate::worker::protocol::{
    FailureKind, FromWorker, Loaded, ModelAnswer, ModelCall, ModelFailure, PROTOCOL, ToWorker,
};
use crate::worker::row::Row;
use crate::worker::setup::Setup;

/// Locks even if another thread panicked while holding the lock: no invariant is broken while it is held.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Is notified when a loaded worker ends.
pub(crate) trait Supervisor: Send + Sync + 'static {
    fn worker_ended(&self, death: &Arc<Death>);
}

#[derive(Debug)]
pub(crate) enum Event {
    Generated { errors: Vec<Option<String>>, scored: bool },
    Rows(Vec<Row>),
    Failed(WorkerError),
}

pub(crate) struct Worker {
    index: usize,
    env_id: String,
    log: PathBuf,
    runtime: Handle,
    supervisor: Weak<dyn Supervisor>,
    process: OnceLock<Arc<Process>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    loading: Option<oneshot::Sender<Result<Loaded, WorkerError>>>,
    jobs: HashMap<u64, JobEntry>,
    dropping: HashMap<u64, oneshot::Sender<()>>,
    rollouts: usize,
    death: Option<Arc<Death>>,
}

struct JobEntry {
    caller: Arc<dyn ModelCaller>,
    rollouts: usize,
    waiting: Option<oneshot::Sender<Event>>,
    calls: HashMap<u64, AbortHandle>,
}

impl JobEntry {
    fn hang_up(&self) {
        for call in self.calls.values() {
            call.abort();
        }
    }
}

impl Worker {
    /// Starts a worker and loads the environment in it. If the future is dropped before that, the worker is killed.
    pub(crate) async fn launch(
        setup: &Setup,
        program: &Path,
        place: (usize, usize),
        supervisor: Weak<dyn Supervisor>,
    ) -> Result<(Arc<Self>, Loaded), WorkerError> {
        let (index, count) = place;
        let (sender, receiver) = oneshot::channel();
        let log = setup.logs.join(format!("env_worker_{index}.log"));
        let worker = Arc::new(Self {
            index,
            env_id: setup.environment.env_id.clone(),
            log: log.clone(),
            runtime: Handle::current(),
            supervisor,
            process: OnceLock::new(),
            state: Mutex::new(State { loading: Some(sender), ..State::default() }),
        });
        let process = Process::start(setup, program, log.clone(), &worker)?;
        let mut guard = EndUnlessLoaded(Some(Arc::clone(&process)));
        worker.process.set(process).ok();
        worker.send(&ToWorker::Load(&setup.load_message(count)));
        let limit = setup.limits.load;
        let Ok(answer) = tokio::time::timeout(limit, receiver).await else {
            return Err(WorkerError::LoadTimeout { env_id: worker.env_id.clone(), limit, log });
        };
        let loaded = answer.map_err(|_| WorkerError::Closed)??;
        guard.0 = None;
        Ok((worker, loaded))
    }

    pub(crate) fn send(&self, message: &ToWorker<'_>) {
        if let Some(process) = self.process.get() {
            process.send(message.line());
        }
    }

    pub(crate) fn kill(&self, cause: Cause) {
        if let Some(process) = self.process.get() {
            process.kill(cause);
        }
    }

    /// Its number of rollouts; absent once it has ended.
    pub(crate) fn rollouts(&self) -> Option<usize> {
        let state = lock(&self.state);
        state.death.is_none().then_some(state.rollouts)
    }

    /// Adds a job; the receiver gets its first event.
    pub(crate) fn begin(
        &self,
        job: u64,
        rollouts: usize,
        caller: Arc<dyn ModelCaller>,
    ) -> Result<oneshot::Receiver<Event>, WorkerError> {
        let (sender, receiver) = oneshot::channel();
        let mut state = lock(&self.state);
        if let Some(death) = &state.death {
            return Err(WorkerError::Died(Arc::clone(death)));
        }
        state.rollouts += rollouts;
        state.jobs.insert(job, JobEntry { caller, rollouts, waiting: Some(sender), calls: HashMap::new() });
        Ok(receiver)
    }

    pub(crate) fn await_next(&self, job: u64) -> Result<oneshot::Receiver<Event>, WorkerError> {
        let (sender, receiver) = oneshot::channel();
        let mut state = lock(&self.state);
        if let Some(death) = &state.death {
            return Err(WorkerError::Died(Arc::clone(death)));
        }
        state.jobs.get_mut(&job).ok_or(WorkerError::Closed)?.waiting = Some(sender);
        Ok(receiver)
    }

    /// Removes a job that is over.
    pub(crate) fn forget(&self, job: u64) {
        let mut state = lock(&self.state);
        if let Some(entry) = state.jobs.remove(&job) {
            state.rollouts -= entry.rollouts;
            entry.hang_up();
        }
    }

    /// Cancels a job without waiting for the worker to confirm it.
    pub(crate) fn abandon(&self, job: u64) {
        self.forget(job);
        self.send(&ToWorker::Drop { job });
    }

    /// Cancels a job, and kills the worker if it does not confirm in time.
    pub(crate) async fn give_up(&self, job: u64, limit: Duration) {
        let (sender, receiver) = oneshot::channel();
        lock(&self.state).dropping.insert(job, sender);
        self.abandon(job);
        if tokio::time::timeout(limit, receiver).await.is_err() {
            self.kill(Cause::Stuck);
        }
    }

    fn event(&self, job: u64, event: Event) {
        if let Some(waiting) = lock(&self.state).jobs.get_mut(&job).and_then(|entry| entry.waiting.take()) {
            // The caller may have stopped waiting if the job is being cancelled.
            waiting.send(event).ok();
        }
    }

    fn loaded(&self, outcome: Result<Loaded, WorkerError>) {
        if let Some(loading) = lock(&self.state).loading.take() {
            loading.send(outcome).ok();
        }
    }

    /// Answers a call in a separate task.
    fn call(&self, call: ModelCall) {
        let mut state = lock(&self.state);
        let Some(entry) = state.jobs.get_mut(&call.job) else { return };
        let (number, job) = (call.call, call.job);
        let caller = Arc::clone(&entry.caller);
        let Some(process) = self.process.get().cloned() else { return };
        let task = self.runtime.spawn(async move {
            let outcome = AssertUnwindSafe(async { caller.call(call).await }).catch_unwind().await;
            process.send(answer_line(number, &outcome.unwrap_or_else(|_| Err(broken_caller()))));
        });
        entry.calls.retain(|_, other| !other.is_finished());
        entry.calls.insert(number, task.abort_handle());
        drop(state);
        tracing::trace!(worker = self.index, job, call = number, "model call");
    }

    fn hang_up(&self, job: u64, call: u64) {
        if let Some(call) = lock(&self.state).jobs.get_mut(&job).and_then(|entry| entry.calls.remove(&call)) {
            call.abort();
        }
    }
}

impl Listener for Worker {
    fn receive(&self, message: FromWorker, rows: Vec<Row>) {
        match message {
            FromWorker::Hello { protocol } if protocol == PROTOCOL => {}
            FromWorker::Hello { protocol } => {
                self.loaded(Err(WorkerError::Protocol { found: protocol, expected: PROTOCOL }));
            }
            FromWorker::Loaded(loaded) => self.loaded(Ok(*loaded)),
            FromWorker::LoadFailed { error, message, traceback } => {
                let env_id = self.env_id.clone();
                self.loaded(Err(WorkerError::Load(Box::new(LoadFailure {
                    env_id,
                    error,
                    message,
                    traceback,
                }))));
            }
            FromWorker::Call(call) => self.call(*call),
            FromWorker::HangUp { call, job } => self.hang_up(job, call),
            FromWorker::Generated { job, errors, scored } => {
                self.event(job, Event::Generated { errors, scored });
            }
            FromWorker::Rows { job, .. } => self.event(job, Event::Rows(rows)),
            FromWorker::Failed { job, error, message, traceback } => {
                self.event(job, Event::Failed(WorkerError::Job { error, message, traceback }));
            }
            FromWorker::Dropped { job } => {
                if let Some(dropping) = lock(&self.state).dropping.remove(&job) {
                    dropping.send(()).ok();
                }
            }
            FromWorker::Log { level, message } => {
                tracing::debug!(worker = self.index, level, "{message}");
            }
        }
    }

    fn ended(&self, cause: Cause, last_lines: Vec<String>) {
        let death = Arc::new(Death { worker: self.index, cause, last_lines, log: self.log.clone() });
        let (jobs, loading) = {
            let mut state = lock(&self.state);
            state.death = Some(Arc::clone(&death));
            state.rollouts = 0;
            state.dropping.clear();
            (std::mem::take(&mut state.jobs), state.loading.take())
        };
        for entry in jobs.into_values() {
            entry.hang_up();
            if let Some(waiting) = entry.waiting {
                waiting.send(Event::Failed(WorkerError::Died(Arc::clone(&death)))).ok();
            }
        }
        match loading {
            // The caller that started it decides what to do.
            Some(loading) => {
                loading.send(Err(WorkerError::Died(death))).ok();
            }
            None => {
                if let Some(supervisor) = self.supervisor.upgrade() {
                    supervisor.worker_ended(&death);
                }
            }
        }
    }
}

fn answer_line(call: u64, outcome: &Result<ModelAnswer, ModelFailure>) -> Vec<u8> {
    let (reply, failure) = match outcome {
        Ok(reply) => (Some(reply), None),
        Err(failure) => (None, Some(failure)),
    };
    ToWorker::Answer { call, reply, failure }.line()
}

fn broken_caller() -> ModelFailure {
    ModelFailure::new(FailureKind::Provider, "the call failed inside aec-bench").status(500)
}

/// Kills a process unless it is taken out.
struct EndUnlessLoaded(Option<Arc<Process>>);

impl Drop for EndUnlessLoaded {
    fn drop(&mut self) {
        if let Some(process) = &self.0 {
            process.kill(Cause::Unknown);
        }
    }
}
