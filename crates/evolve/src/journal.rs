//! The log and the state together: an event that is recorded changes the state at once.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aec_base::file::write_atomic;

use crate::event::{Entry, Event};
use crate::log::Log;
use crate::propose::Proposal;
use crate::run::ARCHIVE_FILE;
use crate::state::State;

/// Receives each event, and the state after it.
pub type Observer = Arc<dyn Fn(&Entry, &State) + Send + Sync>;

/// The log of a running run, and its state.
pub struct Journal {
    inner: Mutex<Inner>,
    archive: PathBuf,
    observer: Option<Observer>,
}

struct Inner {
    log: Log,
    state: State,
    /// Why an event could not be written by [`Journal::note`], which returns no error.
    broken: Option<String>,
}

impl Journal {
    /// Continues a log whose events add up to `state`.
    pub fn new(log: Log, state: State, directory: &Path, observer: Option<Observer>) -> Self {
        let inner = Mutex::new(Inner { log, state, broken: None });
        Self { inner, archive: directory.join(ARCHIVE_FILE), observer }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the state of the run.
    pub fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.inner().state)
    }

    /// Removes known secrets from a proposal before it becomes part of a candidate or reaches other models.
    pub fn scrub(&self, proposal: &mut Proposal) {
        let inner = self.inner();
        let redactor = inner.log.redactor();
        for action in &mut proposal.actions {
            redactor.scrub_value(action);
        }
        proposal.reasoning = redactor.scrub(std::mem::take(&mut proposal.reasoning));
        redactor.scrub_some(&mut proposal.note);
    }

    /// Records an event.
    pub fn tell(&self, event: Event) -> io::Result<()> {
        self.tell_with(|_| event)
    }

    /// Records an event that depends on the state at this very moment.
    pub fn tell_with(&self, event: impl FnOnce(&State) -> Event) -> io::Result<()> {
        let mut inner = self.inner();
        if let Some(reason) = &inner.broken {
            return Err(io::Error::other(reason.clone()));
        }
        let event = event(&inner.state);
        // A copy of the archive for other readers; the log contains everything.
        let copy = |state: &State| write_atomic(&self.archive, state.archive.to_json().as_bytes());
        if matches!(event, Event::Ended { .. }) {
            // After this event the run is hardly ever resumed, so a failed copy would stay outdated.
            copy(&inner.state)?;
        }
        let entry = inner.log.add(event)?;
        inner.state.apply(&entry.event);
        if matches!(entry.event, Event::Decided(_) | Event::Stopped { .. }) {
            copy(&inner.state)?;
        }
        if let Some(observer) = &self.observer {
            observer(&entry, &inner.state);
        }
        Ok(())
    }

    /// Records an event where no error can be returned. The next call of [`Journal::tell`] returns the error.
    pub fn note(&self, event: Event) {
        if let Err(error) = self.tell(event) {
            self.inner().broken = Some(error.to_string());
        }
    }
}
