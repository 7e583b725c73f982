//! Carries out evaluations: which rollout is next, how many at once, when to retry, when to stop.
//!
//! An evaluation is a list of groups, one for each example with its missing rollouts. Concurrent tasks take one group
//! after the other. Generation and scoring have separate limits; the number of tasks bounds the groups that are
//! generated but not yet scored, so that memory does not grow with the number of rollouts.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aec_base::secret::Redactor;
use aec_http::pause::{Rule, chance};
use aec_model::failure::{Failure, FailureKind};
use aec_run::campaign::faults::{Meaning, meaning};
use aec_run::control::{Control, Wish};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::event::{EvalEvent, RolloutFinished};
use crate::results::RowFacts;
use crate::results::aggregate::Aggregate;
use crate::results::writer::{NotTaken, ReadyRow, ResultsWriter};

/// How long a rollout waits before it is tried again.
const PAUSES: Rule = Rule::new(Duration::from_secs(1), Duration::from_mins(1));
/// Used when there is no limit: more rollouts at once than any machine can run.
const UNLIMITED: usize = 65_536;

pub trait Environment: Send + Sync + 'static {
    type Generated: Send + 'static;

    fn generate(&self, group: Group) -> impl Future<Output = Self::Generated> + Send;

    /// Whether judging is so fast that rollouts need not wait for it.
    fn scores_at_once(&self) -> bool;

    fn score(&self, generated: Self::Generated) -> impl Future<Output = Vec<Finished>> + Send;
}

/// Rollouts of one example that belong together.
#[derive(Clone, Debug)]
pub struct Group {
    pub example: usize,
    /// The missing rollouts: their numbers, and which attempt at each this is.
    pub rollouts: Vec<(u32, u32)>,
}

#[derive(Debug)]
pub struct Finished {
    pub line: Vec<u8>,
    pub facts: RowFacts,
    /// Why it has no proper result.
    pub trouble: Option<Trouble>,
}

/// Why a rollout has no proper result.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// The model gave no answer.
    Model(Failure),
    /// This machine, a worker or a verifier failed.
    Infra(String),
}

impl Trouble {
    /// Whether another try can help. An empty or malformed answer counts as no answer, so it can be retried too.
    fn is_passing(&self) -> bool {
        match self {
            Self::Infra(_) => true,
            Self::Model(failure) => {
                meaning(failure) == Meaning::Passing
                    || matches!(failure.kind, FailureKind::Empty | FailureKind::Protocol)
            }
        }
    }

    /// Whether every other rollout would fail in the same way.
    fn is_fatal(&self) -> bool {
        matches!(self, Self::Model(failure) if meaning(failure) == Meaning::Fatal)
    }

    fn message(&self) -> String {
        match self {
            Self::Model(failure) => failure.to_string(),
            Self::Infra(message) => message.clone(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Course {
    pub number: usize,
    /// Rollouts that are generated at once; absent for no limit.
    pub generation: Option<usize>,
    /// Rollouts that are scored at once; absent for no limit.
    pub scoring: Option<usize>,
    pub interleave: bool,
    /// How often to retry a rollout that failed through no fault of the model.
    pub max_retries: u32,
}

/// Why an evaluation stopped early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The user asked for it.
    Asked,
    /// Every further rollout would have failed in the same way.
    Fatal(String),
    /// The results cannot be written.
    Storage(String),
}

struct Work<E: Environment> {
    environment: Arc<E>,
    course: Course,
    sink: Arc<Sink>,
    control: Control,
    generation: Arc<Semaphore>,
    scoring: Arc<Semaphore>,
    /// Groups that wait for scoring, when scoring begins only after all generation.
    held: Mutex<Vec<(Group, E::Generated)>>,
    stop: AtomicBool,
    stopped: Mutex<Option<Stopped>>,
}

/// Carries out an evaluation until it ends or is stopped. `groups` is consumed lazily.
pub async fn carry_out<E: Environment>(
    environment: Arc<E>,
    groups: impl Iterator<Item = Group> + Send + 'static,
    course: Course,
    sink: Arc<Sink>,
    control: Control,
) -> Option<Stopped> {
    let limit = |most: Option<usize>| most.unwrap_or(UNLIMITED).clamp(1, UNLIMITED);
    let (generation, scoring) = (limit(course.generation), limit(course.scoring));
    let work = Arc::new(Work {
        environment,
        sink,
        control: control.clone(),
        generation: Arc::new(Semaphore::new(generation)),
        scoring: Arc::new(Semaphore::new(scoring)),
        held: Mutex::default(),
        stop: AtomicBool::new(false),
        stopped: Mutex::default(),
        course,
    });
    // Each task takes the next group when it has finished its last one. If scoring takes time, there are additional
    // tasks for it; their number bounds the groups that wait to be scored.
    let beside = if work.environment.scores_at_once() || !work.course.interleave { 0 } else { scoring };
    let groups = Arc::new(Mutex::new(groups));
    let mut tasks = JoinSet::new();
    for _ in 0..generation.saturating_add(beside).min(UNLIMITED) {
        if lock(&groups).size_hint().1 == Some(0) {
            break;
        }
        let (work, groups) = (Arc::clone(&work), Arc::clone(&groups));
        tasks.spawn(async move {
            while !work.is_over() {
                let Some(group) = lock(&groups).next() else { return };
                work.group(group).await;
            }
        });
    }
    drain(&work, &mut tasks).await;
    if !work.course.interleave {
        let held = std::mem::take(&mut *lock(&work.held));
        for (group, generated) in held {
            if control.wish() == Wish::GiveUp {
                break;
            }
            let permit = permits(&work.scoring, weight(&group, scoring)).await;
            let work = Arc::clone(&work);
            tasks.spawn(async move {
                let finished = work.environment.score(generated).await;
                drop(permit);
                work.deliver(finished);
            });
        }
        drain(&work, &mut tasks).await;
    }
    if control.wish() != Wish::GoOn {
        work.stop(Stopped::Asked);
    }
    lock(&work.stopped).clone()
}

/// Locks even if another thread panicked while holding the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for running tasks; aborts them when the user insists.
async fn drain<E: Environment>(work: &Work<E>, tasks: &mut JoinSet<()>) {
    loop {
        let done = tokio::select! {
            biased;
            done = tasks.join_next() => done,
            () = work.control.reached(Wish::GiveUp) => {
                tasks.shutdown().await;
                return;
            }
        };
        match done {
            Some(done) => work.note_panic(done),
            None => return,
        }
    }
}

async fn permits(semaphore: &Arc<Semaphore>, weight: u32) -> Option<OwnedSemaphorePermit> {
    Arc::clone(semaphore).acquire_many_owned(weight).await.ok()
}

/// How many permits a group takes. A group larger than the limit takes all of them.
fn weight(group: &Group, limit: usize) -> u32 {
    u32::try_from(group.rollouts.len().clamp(1, limit)).unwrap_or(u32::MAX)
}

impl<E: Environment> Work<E> {
    async fn group(&self, group: Group) {
        let mut tries = 0;
        loop {
            let generating = permits(&self.generation, weight(&group, self.generation_limit())).await;
            if self.is_over() && tries == 0 {
                return;
            }
            let generated = self.environment.generate(group.clone()).await;
            drop(generating);
            if !self.course.interleave {
                lock(&self.held).push((group, generated));
                return;
            }
            let scoring = permits(&self.scoring, weight(&group, self.scoring_limit())).await;
            let finished = self.environment.score(generated).await;
            drop(scoring);
            let passing =
                finished.iter().filter_map(|one| one.trouble.as_ref()).find(|trouble| trouble.is_passing());
            let Some(trouble) = passing.filter(|_| tries < self.course.max_retries && !self.is_over()) else {
                self.deliver(finished);
                return;
            };
            tries += 1;
            let wait = PAUSES.own_wait(tries, chance());
            self.sink.tell(&EvalEvent::Retried {
                evaluation: self.course.number,
                example_id: finished.first().map_or(0, |one| one.facts.example_id),
                attempt: tries,
                wait,
                why: trouble.message(),
            });
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                // The user wants to finish: keep the last result instead of retrying.
                () = self.control.reached(Wish::Finish) => {
                    self.deliver(finished);
                    return;
                }
            }
        }
    }

    fn generation_limit(&self) -> usize {
        self.course.generation.unwrap_or(UNLIMITED).clamp(1, UNLIMITED)
    }

    fn scoring_limit(&self) -> usize {
        self.course.scoring.unwrap_or(UNLIMITED).clamp(1, UNLIMITED)
    }

    fn deliver(&self, finished: Vec<Finished>) {
        for one in finished {
            if let Some(trouble) = one.trouble.as_ref().filter(|trouble| trouble.is_fatal()) {
                self.stop(Stopped::Fatal(trouble.message()));
                // A fatal failure says nothing about this rollout, so it gets no row and is run again on resuming.
                continue;
            }
            if let Err(error) = self.sink.take(self.course.number, one) {
                self.stop(Stopped::Storage(error));
                return;
            }
        }
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Acquire) || self.control.wish() != Wish::GoOn
    }

    /// Starts no further group. Only the first reason is kept.
    fn stop(&self, why: Stopped) {
        if self.stop.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Stopped::Fatal(message) | Stopped::Storage(message) = &why {
            self.sink.tell(&EvalEvent::Stopping(message.clone()));
        }
        *lock(&self.stopped) = Some(why);
    }

    /// A panicking task is a bug in this program; the evaluation must not end as if it were complete.
    fn note_panic(&self, done: Result<(), tokio::task::JoinError>) {
        if let Err(error) = done
            && error.is_panic()
        {
            self.stop(Stopped::Fatal(format!("a rollout failed inside this program: {error}")));
        }
    }
}

/// Receives events as they happen. It must not block.
pub type Observer = Arc<dyn Fn(&EvalEvent) + Send + Sync>;

pub(crate) enum Kept {
    /// Only the aggregates.
    Memory(Box<Aggregate>),
    /// All rows; the writer also has the aggregates.
    Disk(ResultsWriter),
}

/// Passes finished rollouts of an evaluation on to the aggregates, the disk and the observer.
pub struct Sink {
    /// The aggregates, if no writer keeps them.
    aggregate: Option<Mutex<Aggregate>>,
    /// Present if results are saved.
    writer: Option<ResultsWriter>,
    redactor: Arc<Redactor>,
    observer: Observer,
    /// Whether the observer wants to see rows.
    wants_rows: bool,
}

impl Sink {
    pub(crate) fn new(kept: Kept, redactor: Arc<Redactor>, observer: Observer, wants_rows: bool) -> Self {
        let (aggregate, writer) = match kept {
            Kept::Memory(aggregate) => (Some(Mutex::new(*aggregate)), None),
            Kept::Disk(writer) => (None, Some(writer)),
        };
        Self { aggregate, writer, redactor, observer, wants_rows }
    }

    pub(crate) fn tell(&self, event: &EvalEvent) {
        (self.observer)(event);
    }

    pub(crate) fn take(&self, evaluation: usize, finished: Finished) -> Result<(), String> {
        let Finished { line, facts, .. } = finished;
        let facts = Arc::new(facts);
        let line = self.scrubbed(line);
        if let Some(aggregate) = &self.aggregate {
            aggregate.lock().unwrap_or_else(PoisonError::into_inner).add(&facts);
        }
        let row = self.wants_rows.then(|| Arc::from(line.as_slice()));
        let event = RolloutFinished { evaluation, facts: Arc::clone(&facts), row };
        if let Some(writer) = &self.writer {
            match writer.try_write(ReadyRow { line, facts }) {
                Ok(()) => {}
                // The disk is slower than the models: this thread waits for it, the others go on.
                Err(NotTaken::Full(row)) => {
                    let written = tokio::task::block_in_place(|| writer.write(*row));
                    written.map_err(|problem| problem.what)?;
                }
                Err(NotTaken::Failed(problem)) => return Err(problem.what),
            }
        }
        self.tell(&EvalEvent::Finished(Box::new(event)));
        Ok(())
    }

    /// Removes the secrets of this machine from a row, whatever a model or a tool wrote.
    fn scrubbed(&self, line: Vec<u8>) -> Vec<u8> {
        match String::from_utf8(line) {
            Ok(text) => self.redactor.scrub(text).into_bytes(),
            Err(error) => error.into_bytes(),
        }
    }

    pub(crate) fn end(self) -> Kept {
        match (self.writer, self.aggregate) {
            (Some(writer), _) => Kept::Disk(writer),
            (None, aggregate) => {
                let aggregate =
                    aggregate.map(|aggregate| aggregate.into_inner().unwrap_or_else(PoisonError::into_inner));
                Kept::Memory(Box::new(aggregate.unwrap_or_else(|| Aggregate::new(1, 0.5))))
            }
        }
    }
}
