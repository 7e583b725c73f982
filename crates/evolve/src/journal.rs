//! The log and what it adds up to, as one: whoever writes an event down knows at once what follows from it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aec_base::file::write_atomic;

use crate::event::{Entry, Event};
use crate::log::Log;
use crate::propose::Proposal;
use crate::run::ARCHIVE_FILE;
use crate::state::State;

/// Hears what happens, and what the run knows then.
pub type Observer = Arc<dyn Fn(&Entry, &State) + Send + Sync>;

/// The log of a run that is carried out, and what the run knows.
pub struct Journal {
    inner: Mutex<Inner>,
    archive: PathBuf,
    observer: Option<Observer>,
}

struct Inner {
    log: Log,
    state: State,
    /// Why something could not be written when nobody could be told.
    broken: Option<String>,
}

impl Journal {
    /// Goes on with a log that adds up to a state.
    pub fn new(log: Log, state: State, directory: &Path, observer: Option<Observer>) -> Self {
        let inner = Mutex::new(Inner { log, state, broken: None });
        Self { inner, archive: directory.join(ARCHIVE_FILE), observer }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at what the run knows.
    pub fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.inner().state)
    }

    /// Takes known secrets out of what a model says, before it becomes part of a candidate or reaches other models.
    pub fn scrub(&self, proposal: &mut Proposal) {
        let inner = self.inner();
        let redactor = inner.log.redactor();
        for action in &mut proposal.actions {
            redactor.scrub_value(action);
        }
        proposal.reasoning = redactor.scrub(std::mem::take(&mut proposal.reasoning));
        redactor.scrub_some(&mut proposal.note);
    }

    /// Writes down that something happened.
    pub fn tell(&self, event: Event) -> io::Result<()> {
        self.tell_with(|_| event)
    }

    /// The same, for what depends on what the run knows at this very moment.
    pub fn tell_with(&self, event: impl FnOnce(&State) -> Event) -> io::Result<()> {
        let mut inner = self.inner();
        if let Some(reason) = &inner.broken {
            return Err(io::Error::other(reason.clone()));
        }
        let event = event(&inner.state);
        // A copy of the archive for others to read; the log has it all.
        let copy = |state: &State| write_atomic(&self.archive, state.archive.to_json().as_bytes());
        if matches!(event, Event::Ended { .. }) {
            // Hardly anybody goes on with a run that has ended, so a copy that is missed then would stay old.
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

    /// Writes down that something happens, from where no error can be returned. The next one who writes hears of it.
    pub fn note(&self, event: Event) {
        if let Err(error) = self.tell(event) {
            self.inner().broken = Some(error.to_string());
        }
    }
}
