//! The daily spending of all processes that share a directory: an append-only file for each day in UTC.
//!
//! A call is reserved in the book before it is made and settled afterwards. All processes add up the same lines under
//! one lock, so together they stay within the budget. A reservation whose process has died stays spent at its bound,
//! since the call may have been billed. A call belongs to the day of its reservation.
//!
//! Nothing is synced to disk: a killed process loses nothing, but a machine that loses power may lose the last lines.
//! The directory must be on a file system that supports `flock`.

mod line;
mod lock;
mod run;
mod sheet;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aec_base::timestamp::Timestamp;
use serde::Serialize;

use self::line::Line;
use self::lock::DirectoryLock;
use self::run::Run;
use self::sheet::Sheet;
use crate::meter::{Amount, Budget, Shortage};
use crate::money::MicroDollars;

#[derive(Debug, thiserror::Error)]
pub enum BookError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("{path} has format {version}, which this program does not know; use a newer aec-bench")]
    Newer { path: PathBuf, version: u32 },
}

/// Returns the current day, as `2026-11-16`.
pub type Today = Arc<dyn Fn() -> String + Send + Sync>;

/// The book of a directory. Clones share it.
#[derive(Clone)]
pub struct DayBook(Arc<Mutex<Inner>>);

struct Inner {
    directory: PathBuf,
    lock: DirectoryLock,
    run: Run,
    today: Today,
    /// Today's sheet, and those of days with open reservations of this run.
    sheets: BTreeMap<String, Sheet>,
    next_id: u64,
    /// Settlements that could not be written yet. There are never more than open reservations: while any are unwritten,
    /// nothing is reserved.
    unwritten: Vec<(String, Line)>,
}

/// A reservation in the book, which [`DayBook::settle`] settles.
#[derive(Debug, PartialEq, Eq)]
pub struct Booking {
    day: String,
    id: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    Granted(Booking),
    /// It does not fit now, but would if calls in flight turn out cheaper than their bounds.
    Later,
    /// It does not fit, whatever the calls in flight cost.
    Never(Shortage),
}

/// The sums of a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Standing {
    pub day: String,
    /// Settled calls, and open ones of dead processes.
    pub spent: Amount,
    /// Part of the spent money that no provider confirmed.
    pub unconfirmed: MicroDollars,
    /// Reserved by running processes.
    pub reserved: Amount,
    /// Unreadable lines. Each process killed while writing may leave one.
    pub damaged_lines: u64,
}

impl DayBook {
    /// Opens the book of a directory, which is created if necessary. The day is that of the system clock, in UTC.
    pub fn open(directory: &Path) -> Result<Self, BookError> {
        Self::open_with(directory, Arc::new(|| Timestamp::now().as_str().chars().take(10).collect()))
    }

    /// Opens a book with a single endless day: the spending of all processes of an experiment.
    pub fn open_timeless(directory: &Path) -> Result<Self, BookError> {
        Self::open_with(directory, Arc::new(|| "experiment".to_owned()))
    }

    /// Opens the book of a directory with another clock.
    pub fn open_with(directory: &Path, today: Today) -> Result<Self, BookError> {
        let mut lock = DirectoryLock::open(directory)?;
        lock.lock()?;
        let run = Run::enter(directory);
        lock.unlock();
        let directory = directory.to_path_buf();
        let (sheets, unwritten) = (BTreeMap::new(), Vec::new());
        let inner = Inner { directory, lock, run: run?, today, sheets, next_id: 0, unwritten };
        let book = Self(Arc::new(Mutex::new(inner)));
        // Finds an unreadable book now instead of at the first call.
        book.standing()?;
        Ok(book)
    }

    /// Reserves an amount if all processes together stay within the budget.
    pub fn reserve(&self, asked: Amount, budget: &Budget) -> Result<Answer, BookError> {
        self.inner().guarded(|inner| inner.reserve(asked, budget))
    }

    /// Whether an amount can never fit, according to the last reading: then the caller need not wait.
    pub(crate) fn known_shortage(&self, asked: Amount, budget: &Budget) -> Option<Shortage> {
        let inner = self.inner();
        let sheet = inner.sheets.get(&(inner.today)())?;
        budget.shortage(sheet.sums().settled, asked)
    }

    /// Records the settlement of a reservation. One that cannot be written now is written with the next entry; until
    /// then the reservation counts at its bound.
    pub fn settle(&self, booking: Booking, spent: Amount, unconfirmed: MicroDollars) {
        let mut inner = self.inner();
        let line = Line::Settle {
            run: inner.run.id.clone(),
            id: booking.id,
            at: Timestamp::now().to_string(),
            amount: spent,
            unconfirmed,
        };
        inner.unwritten.push((booking.day, line));
        if let Err(error) = inner.guarded(|_| Ok(())) {
            tracing::warn!(%error, "the day's book could not be written; it will be tried again");
        }
    }

    /// The sums of today.
    pub fn standing(&self) -> Result<Standing, BookError> {
        let mut inner = self.inner();
        let day = (inner.today)();
        inner.sheet(&day)?.catch_up()?;
        let Inner { directory, run, sheets, .. } = &*inner;
        let sums = sheets.get(&day).map(Sheet::sums);
        let lives = |id: &str| id == run.id || run::is_alive(directory, id);
        let reserved = sums.map(|sums| sums.reserved_by(lives)).unwrap_or_default();
        let gone = sums.map(|sums| sums.reserved().minus(reserved)).unwrap_or_default();
        Ok(Standing {
            day,
            spent: sums.map(|sums| sums.settled).unwrap_or_default().plus(gone),
            unconfirmed: sums.map(|sums| sums.unconfirmed).unwrap_or_default().plus(gone.money),
            reserved,
            damaged_lines: sums.map_or(0, |sums| sums.damaged),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for DayBook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DayBook").field(&self.inner().directory).finish()
    }
}

impl Inner {
    /// Runs `work` under the lock of the directory, after writing what could not be written before.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, BookError>) -> Result<T, BookError> {
        self.lock.lock()?;
        let done = self.write_pending().and_then(|()| work(self));
        self.lock.unlock();
        done
    }

    fn write_pending(&mut self) -> Result<(), BookError> {
        while let Some((day, line)) = self.unwritten.first().cloned() {
            let sheet = self.sheet(&day)?;
            sheet.catch_up()?;
            sheet.append(&line)?;
            self.unwritten.remove(0);
        }
        Ok(())
    }

    fn reserve(&mut self, asked: Amount, budget: &Budget) -> Result<Answer, BookError> {
        let day = (self.today)();
        self.leave_old_days(&day);
        self.sheet(&day)?.catch_up()?;
        let Self { directory, run, .. } = self;
        let (directory, own) = (directory.clone(), run.id.clone());
        let sheet = self.sheet(&day)?;
        let sums = sheet.sums();
        let reserved = sums.reserved();
        if budget.shortage(sums.settled.plus(reserved), asked).is_some() {
            // Checks only now which holders are still running, because only now does it matter.
            let live = sums.reserved_by(|run| run == own || run::is_alive(&directory, run));
            let gone = sums.settled.plus(reserved.minus(live));
            return Ok(match budget.shortage(gone, asked) {
                Some(shortage) => Answer::Never(shortage),
                None => Answer::Later,
            });
        }
        let id = self.next_id;
        let line = Line::Reserve {
            run: own,
            id,
            pid: std::process::id(),
            at: Timestamp::now().to_string(),
            amount: asked,
        };
        self.sheet(&day)?.append(&line)?;
        self.next_id += 1;
        Ok(Answer::Granted(Booking { day, id }))
    }

    fn sheet(&mut self, day: &str) -> Result<&mut Sheet, BookError> {
        let Self { sheets, directory, .. } = self;
        match sheets.entry(day.to_owned()) {
            std::collections::btree_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            std::collections::btree_map::Entry::Vacant(entry) => {
                Ok(entry.insert(Sheet::open(directory, day)?))
            }
        }
    }

    /// Drops the sheets of other days, except those with open reservations of this run.
    fn leave_old_days(&mut self, today: &str) {
        let own = &self.run.id;
        self.sheets.retain(|day, sheet| day == today || sheet.sums().open.contains_key(own));
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.unwritten.is_empty()
            && let Err(error) = self.guarded(|_| Ok(()))
        {
            tracing::warn!(%error, "the day's book could not be written; open calls count at their bounds");
        }
    }
}

#[cfg(test)]
mod tests;
