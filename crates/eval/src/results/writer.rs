//! Writes rows to the disk.
//!
//! One thread appends them in groups, each with one write and one sync, and replaces `metadata.json` at most once a
//! second. `results.jsonl` is only ever appended to. The first disk error stops everything.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use aec_base::jsonl::Appender;
use aec_base::problem::Problem;
use aec_base::timestamp::Timestamp;

use crate::results::aggregate::Aggregate;
use crate::results::facts::RowFacts;
use crate::results::lock::RunLock;
use crate::results::metadata::{Description, Metadata};
use crate::results::problems;
use crate::results::resume::OpenRun;
use crate::results::summary::Summary;
use crate::results::till::SpentSoFar;
use crate::results::{METADATA_FILE, RESULTS_FILE};

/// Rows that may wait for the disk before `write` blocks.
const WAITING_ROWS: usize = 1024;

/// A group is written when it is this old or this large.
const GROUP_AGE: Duration = Duration::from_millis(50);
const GROUP_BYTES: usize = 1024 * 1024;

/// Shortest pause between two versions of the metadata; slow writes extend it to `METADATA_SHARE` times their duration.
const METADATA_AGE: Duration = Duration::from_secs(1);
const METADATA_SHARE: u32 = 20;

/// Shortest pause between two checks for something to write.
const LEAST_PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub struct ReadyRow {
    pub line: Vec<u8>,
    pub facts: Arc<RowFacts>,
}

#[derive(Debug)]
pub enum NotTaken {
    /// Too many rows are waiting; the caller must try again.
    Full(Box<ReadyRow>),
    /// The disk refused; the run is over.
    Failed(Problem),
}

enum Order {
    Row(Box<ReadyRow>),
    Flush(SyncSender<()>),
    Finish(Box<Description>),
}

/// State shared between the thread and the writer's users.
#[derive(Debug, Default)]
struct Shared {
    failure: OnceLock<Problem>,
    synced: AtomicU64,
    summary: Mutex<Option<Arc<Summary>>>,
}

/// The aggregates of a run as of its last metadata.
#[derive(Clone, Debug)]
pub struct LatestSummary(Arc<Shared>);

impl LatestSummary {
    /// The summary; before the first metadata, that of no rows.
    pub fn summary(&self) -> Summary {
        let latest = self.0.summary.lock().unwrap_or_else(PoisonError::into_inner).clone();
        latest.map_or_else(|| Aggregate::new(1, 0.5).summary(), Arc::unwrap_or_clone)
    }
}

/// Writes the rows of one run. Dropping it writes the waiting rows, and leaves a run that can be resumed.
#[derive(Debug)]
pub struct ResultsWriter {
    orders: Option<SyncSender<Order>>,
    thread: Option<JoinHandle<Option<Metadata>>>,
    shared: Arc<Shared>,
    path: PathBuf,
}

impl ResultsWriter {
    /// Starts a new run in an empty directory.
    pub fn create(run: &Path, description: Description) -> Result<Self, Problem> {
        let lock = RunLock::take(run)?;
        let path = run.join(RESULTS_FILE);
        let file = Appender::create(&path);
        let file = file.map_err(|error| problems::refused(36, "begin the results", &path, &error))?;
        let aggregate = Aggregate::new(description.rollouts_per_example, description.pass_threshold);
        Self::start(run, description, Begin { lock, file, aggregate, rows: 0, seconds: 0.0 })
    }

    /// Continues a run and keeps its date. [`OpenRun::check`] tells whether the description fits.
    pub fn resume(run: OpenRun, mut description: Description) -> Result<Self, Problem> {
        let begun = run.metadata.date.clone().and_then(|date| Timestamp::try_from(date).ok());
        description.date = begun.unwrap_or(description.date);
        let path = run.path.join(RESULTS_FILE);
        let file = Appender::open(&path);
        let file = file.map_err(|error| problems::refused(36, "continue the results", &path, &error))?;
        let seconds = run.metadata.time.unwrap_or_default().max(0.0);
        let begin = Begin { lock: run.lock, file, aggregate: run.aggregate, rows: run.rows, seconds };
        Self::start(&run.path, description, begin)
    }

    fn start(run: &Path, description: Description, begin: Begin) -> Result<Self, Problem> {
        let shared = Arc::new(Shared::default());
        let mut work = Work {
            path: run.to_owned(),
            file: begin.file,
            description,
            aggregate: begin.aggregate,
            rows: begin.rows,
            shared: Arc::clone(&shared),
            begin: Instant::now(),
            earlier_seconds: begin.seconds,
            told: Instant::now(),
            pause: METADATA_AGE,
            is_told: true,
            told_spent: None,
            _lock: begin.lock,
        };
        // A run has both files from the start, so that it can be resumed whenever it is stopped.
        work.write_metadata()?;
        let (orders, received) = sync_channel(WAITING_ROWS);
        let thread = std::thread::Builder::new()
            .name("results".to_owned())
            .spawn(move || work.run(&received))
            .map_err(|error| problems::refused(36, "start a thread for the results", run, &error))?;
        Ok(Self { orders: Some(orders), thread: Some(thread), shared, path: run.to_owned() })
    }

    /// Hands a row over; blocks while too many are waiting.
    pub fn write(&self, row: ReadyRow) -> Result<(), Problem> {
        match self.try_write(row) {
            Ok(()) => Ok(()),
            Err(NotTaken::Failed(problem)) => Err(problem),
            Err(NotTaken::Full(row)) => self.order(Order::Row(row)),
        }
    }

    /// Hands a row over without blocking.
    pub fn try_write(&self, row: ReadyRow) -> Result<(), NotTaken> {
        let Some(orders) = self.open() else { return Err(NotTaken::Failed(self.stopped())) };
        match orders.try_send(Order::Row(Box::new(row))) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(Order::Row(row))) => {
                self.wake();
                Err(NotTaken::Full(row))
            }
            Err(_) => Err(NotTaken::Failed(self.stopped())),
        }
    }

    /// Blocks until all rows handed over so far are on the disk.
    pub fn flush(&self) -> Result<(), Problem> {
        let (reply, done) = sync_channel(1);
        self.order(Order::Flush(reply))?;
        done.recv().map_err(|_| self.stopped())
    }

    /// Writes the waiting rows and the last metadata, with a new description: costs and tools may be known only at the
    /// end.
    pub fn finish(mut self, description: Description) -> Result<Metadata, Problem> {
        self.order(Order::Finish(Box::new(description)))?;
        self.join().ok_or_else(|| self.stopped())
    }

    /// The disk error, if there was one. Nothing is written after it.
    pub fn failed(&self) -> Option<&Problem> {
        self.shared.failure.get()
    }

    /// Rows that are synced to the disk.
    pub fn synced(&self) -> u64 {
        self.shared.synced.load(Ordering::Acquire)
    }

    /// The aggregates when the metadata was last written.
    pub fn summary(&self) -> Option<Arc<Summary>> {
        self.shared.summary.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A handle that stays valid after the writer is finished.
    pub fn latest(&self) -> LatestSummary {
        LatestSummary(Arc::clone(&self.shared))
    }

    fn order(&self, order: Order) -> Result<(), Problem> {
        let sent = self.open().is_some_and(|orders| orders.send(order).is_ok());
        self.wake();
        if sent { Ok(()) } else { Err(self.stopped()) }
    }

    /// Wakes the thread, which otherwise sleeps until the group is old enough.
    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// The channel to the thread, unless the thread has failed; it may end a moment later.
    fn open(&self) -> Option<&SyncSender<Order>> {
        self.orders.as_ref().filter(|_| self.failed().is_none())
    }

    fn stopped(&self) -> Problem {
        let unknown = || problems::error(37, "the results are no longer written").in_file(&self.path);
        self.failed().cloned().unwrap_or_else(unknown)
    }

    fn join(&mut self) -> Option<Metadata> {
        self.orders = None;
        self.wake();
        self.thread.take().and_then(|thread| thread.join().ok().flatten())
    }
}

impl Drop for ResultsWriter {
    fn drop(&mut self) {
        self.join();
    }
}

/// The state with which a run begins or continues.
struct Begin {
    lock: RunLock,
    file: Appender,
    aggregate: Aggregate,
    rows: u64,
    seconds: f64,
}

/// The state of the thread.
struct Work {
    path: PathBuf,
    file: Appender,
    description: Description,
    aggregate: Aggregate,
    rows: u64,
    shared: Arc<Shared>,
    begin: Instant,
    earlier_seconds: f64,
    /// When the metadata was last written.
    told: Instant,
    /// Least time until the metadata is written again.
    pause: Duration,
    /// Whether the metadata includes all rows.
    is_told: bool,
    /// The spending in the last metadata. Rollouts spend long before they have a row.
    told_spent: Option<SpentSoFar>,
    _lock: RunLock,
}

/// What ends a group, besides its age and its size.
enum End {
    Group,
    Flush(SyncSender<()>),
    Finish(Box<Description>),
    Closed,
}

impl Work {
    fn run(mut self, orders: &Receiver<Order>) -> Option<Metadata> {
        self.work(orders).ok()
    }

    fn work(&mut self, orders: &Receiver<Order>) -> Result<Metadata, Problem> {
        let mut lines = Vec::new();
        let mut facts = Vec::new();
        loop {
            let end = self.gather(orders, &mut lines, &mut facts);
            self.append(&lines, &facts).map_err(|problem| self.fail(problem))?;
            lines.clear();
            lines.shrink_to(2 * GROUP_BYTES);
            facts.clear();
            match end {
                End::Group => {}
                // The caller may have stopped waiting.
                End::Flush(reply) => drop(reply.send(())),
                End::Finish(description) => {
                    let date = self.description.date.clone();
                    self.description = Description { date, ..*description };
                    return self.write_metadata().map_err(|problem| self.fail(problem));
                }
                End::Closed => return self.write_metadata().map_err(|problem| self.fail(problem)),
            }
            let is_told = |work: &Self| work.is_told && work.told_spent == work.description.till.spent();
            if self.told.elapsed() >= self.pause && !is_told(self) {
                self.write_metadata().map_err(|problem| self.fail(problem))?;
            }
        }
    }

    /// Publishes the reason of a failure before the channel closes.
    fn fail(&self, problem: Problem) -> Problem {
        self.shared.failure.get_or_init(|| problem).clone()
    }

    /// Takes rows until their group is old or large enough, or a caller waits for it.
    fn gather(&self, orders: &Receiver<Order>, lines: &mut Vec<u8>, facts: &mut Vec<Arc<RowFacts>>) -> End {
        let mut deadline = None;
        loop {
            let order = match deadline {
                Some(deadline) => match orders.try_recv() {
                    // Waking up for each row would take longer than writing it.
                    Err(TryRecvError::Empty) if Instant::now() < deadline => {
                        std::thread::park_timeout(left(deadline));
                        continue;
                    }
                    Err(TryRecvError::Empty) => Err(RecvTimeoutError::Timeout),
                    Err(TryRecvError::Disconnected) => Err(RecvTimeoutError::Disconnected),
                    Ok(order) => Ok(order),
                },
                None => orders.recv_timeout(left(self.told + self.pause).max(LEAST_PAUSE)),
            };
            match order {
                Ok(Order::Row(row)) => {
                    lines.extend_from_slice(&row.line);
                    facts.push(row.facts);
                    if lines.len() >= GROUP_BYTES {
                        return End::Group;
                    }
                    deadline = deadline.or_else(|| Some(Instant::now() + GROUP_AGE));
                }
                Ok(Order::Flush(reply)) => return End::Flush(reply),
                Ok(Order::Finish(description)) => return End::Finish(description),
                Err(RecvTimeoutError::Timeout) => return End::Group,
                Err(RecvTimeoutError::Disconnected) => return End::Closed,
            }
        }
    }

    fn append(&mut self, lines: &[u8], facts: &[Arc<RowFacts>]) -> Result<(), Problem> {
        if facts.is_empty() {
            return Ok(());
        }
        self.file.append_durably(lines).map_err(|error| {
            let path = self.path.join(RESULTS_FILE);
            problems::refused(38, "write the results", &path, &error)
                .why("rows that are not on the disk would be lost, so the run was stopped")
                .fix("free some disk space or check the disk, then continue with --resume")
        })?;
        for facts in facts {
            self.aggregate.add(facts);
            self.description.till.row_written(facts);
        }
        self.rows += facts.len() as u64;
        self.is_told = false;
        self.shared.synced.fetch_add(facts.len() as u64, Ordering::Release);
        Ok(())
    }

    fn write_metadata(&mut self) -> Result<Metadata, Problem> {
        let begin = Instant::now();
        let summary = Arc::new(self.aggregate.summary());
        let seconds = self.earlier_seconds + self.begin.elapsed().as_secs_f64();
        let mut metadata = self.description.metadata(&summary, seconds);
        metadata.rows = Some(self.rows);
        self.told_spent.clone_from(&metadata.budget);
        metadata.write(&self.path.join(METADATA_FILE))?;
        *self.shared.summary.lock().unwrap_or_else(PoisonError::into_inner) = Some(summary);
        self.told = Instant::now();
        self.pause = METADATA_AGE.max(begin.elapsed().saturating_mul(METADATA_SHARE));
        self.is_told = true;
        Ok(metadata)
    }
}

fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}
