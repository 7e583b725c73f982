//! The data behind the pages: directories, caches, and limits on concurrent reading.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aec_author::library::Library;
use aec_base::label::Labels;
use aec_evolve::view::View;
use aec_evolve::workspace::git::GitProgram;
use aec_ledger::layout::Ledger;
use aec_report::compare::Comparison;
use aec_report::label::PageLabels;
use aec_report::leaderboard::Leaderboard;
use aec_task::catalogue::Catalogue;
use tokio::sync::{Semaphore, watch};

use crate::cache::Cache;
use crate::evolutions::Line;
use crate::records::{Evaluated, Overall, PlannedTrials, Snapshot};
use crate::respond::Trouble;
use crate::trace::TraceMap;

/// Pages made concurrently; each may read files and sum up trials.
const WORKERS: usize = 8;

/// Most pages that may wait to be made.
const WAITING: usize = 64;

/// Most concurrent streams of events.
pub(crate) const STREAMS: usize = 32;

/// How old a snapshot of the ledger may be.
const LEDGER_AGE: Duration = Duration::from_secs(1);

const TASKS_AGE: Duration = Duration::from_secs(3);

/// Longer than for tasks, because reading and checking all templates takes a while, and they rarely change.
const TEMPLATES_AGE: Duration = Duration::from_secs(15);

#[derive(Clone, Debug)]
pub struct Places {
    pub name: String,
    pub root: PathBuf,
    pub ledger: PathBuf,
    /// Raw trial outputs, and running attempts.
    pub jobs: PathBuf,
    pub tasks: PathBuf,
    /// The project's own templates.
    pub templates: PathBuf,
    /// Dataset manifests.
    pub datasets: PathBuf,
    /// Results of audits.
    pub audits: PathBuf,
    /// Runs of evolution and swarms.
    pub feedback: PathBuf,
    /// The git command, which reads workspaces; without it, changes of candidates are not shown.
    pub git: Option<GitProgram>,
}

pub(crate) struct Site {
    pub(crate) places: Places,
    pub(crate) ledger: Ledger,
    pub(crate) snapshot: Timed<Snapshot>,
    pub(crate) evaluated: Cache<Evaluated>,
    pub(crate) overall: Cache<Overall>,
    /// Of experiments that are not evaluated.
    pub(crate) labels: Cache<PageLabels>,
    pub(crate) plans: Cache<PlannedTrials>,
    pub(crate) boards: Cache<Result<Leaderboard, Vec<(String, usize)>>>,
    pub(crate) comparisons: Cache<Comparison>,
    pub(crate) sides: Cache<Vec<String>>,
    pub(crate) traces: Cache<TraceMap>,
    pub(crate) evolutions: Cache<View>,
    pub(crate) evolution_lines: Cache<Line>,
    /// Differences of candidates to their parents.
    pub(crate) differences: Cache<String>,
    pub(crate) catalogue: Timed<Catalogue>,
    pub(crate) library: Timed<Library>,
    pub(crate) workers: Arc<Semaphore>,
    pub(crate) waiting: Arc<Semaphore>,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) stopped: watch::Receiver<bool>,
}

impl Site {
    pub(crate) fn new(places: Places, stopped: watch::Receiver<bool>) -> Self {
        Self {
            ledger: Ledger::new(&places.ledger),
            places,
            snapshot: Timed::new(LEDGER_AGE),
            // Each holds every trial of its experiment.
            evaluated: Cache::new(4),
            overall: Cache::new(1024),
            labels: Cache::new(16),
            plans: Cache::new(1024),
            boards: Cache::new(16),
            comparisons: Cache::new(16),
            sides: Cache::new(1),
            traces: Cache::new(256),
            evolutions: Cache::new(4),
            evolution_lines: Cache::new(1024),
            differences: Cache::new(512),
            catalogue: Timed::new(TASKS_AGE),
            library: Timed::new(TEMPLATES_AGE),
            workers: Arc::new(Semaphore::new(WORKERS)),
            waiting: Arc::new(Semaphore::new(WAITING)),
            streams: Arc::new(Semaphore::new(STREAMS)),
            stopped,
        }
    }

    pub(crate) fn catalogue(&self) -> Arc<Catalogue> {
        self.catalogue.get(|| Catalogue::load(&self.places.tasks))
    }

    /// The labels of the project's tasks, whether they can be used or not.
    pub(crate) fn task_labels(catalogue: &Catalogue) -> Labels {
        let usable = catalogue.tasks.iter().map(|task| task.id.as_str());
        let broken = catalogue.problems.iter().filter_map(|problem| problem.about.as_deref());
        Labels::of(usable.chain(broken))
    }

    pub(crate) fn library(&self) -> Arc<Library> {
        self.library.get(|| Library::load(std::slice::from_ref(&self.places.templates)))
    }

    /// Runs blocking work on a separate thread, with a limit on concurrent work.
    pub(crate) async fn work<T: Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, Trouble> {
        let busy = || Trouble::busy("too many pages are being made at once");
        let waiting = Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| busy())?;
        let worker = Arc::clone(&self.workers).acquire_owned().await.map_err(|_| busy())?;
        drop(waiting);
        let done = tokio::task::spawn_blocking(move || {
            let done = work(&self);
            drop(worker);
            done
        });
        done.await.map_err(|_| {
            Trouble::internal(
                "making this page failed",
                "report this with the address; it is a bug in aec-bench",
            )
        })
    }
}

/// A value that is read again when it is too old.
pub(crate) struct Timed<T> {
    age: Duration,
    value: Mutex<Option<(Instant, Arc<T>)>>,
}

impl<T> Timed<T> {
    fn new(age: Duration) -> Self {
        Self { age, value: Mutex::default() }
    }

    pub(crate) fn get(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let made: Result<Arc<T>, std::convert::Infallible> = self.try_get(|| Ok(make()));
        match made {
            Ok(value) => value,
        }
    }

    pub(crate) fn try_get<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let mut value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, known)) = &*value
            && at.elapsed() < self.age
        {
            return Ok(Arc::clone(known));
        }
        let made = Arc::new(make()?);
        *value = Some((Instant::now(), Arc::clone(&made)));
        Ok(made)
    }
}
