//! Answering from a directory what it knows, and recording there what it does not.

use std::io;
use std::path::Path;
use std::sync::Arc;

use aec_base::problem::Problem;
use aec_base::secret::Redactor;

use super::log::short;
use super::play::{Played, Player, Slot};
use super::record::{Call, Recorder, Ticket};
use super::shelf::Shelf;
use crate::message::Request;

/// A directory that grows by what had to be asked.
///
/// Lookups see what was there when the cache was opened. What this process records has the number of its own
/// request, and every request has a new number, so it could answer nothing here: repetitions are not collapsed.
pub struct Cache {
    player: Player,
    recorder: Recorder,
}

/// What a cache knows about a call.
#[derive(Debug)]
pub enum Lookup {
    /// It was answered before.
    Found(Box<Played>),
    /// It has to be asked, and is recorded with this ticket.
    Ask(Ticket),
}

impl Cache {
    /// Reads through the cassettes of a directory. It may be empty or missing; it is created, and a file begun in
    /// it, with the first call that is recorded.
    pub fn open(directory: &Path, redactor: Arc<Redactor>) -> Result<(Self, Vec<Problem>), Vec<Problem>> {
        let (shelf, problems) = match directory.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Shelf::default(), Vec::new()),
            _ => Shelf::open(directory)?,
        };
        let recorder = Recorder::idle(directory, redactor);
        Ok((Self { player: Player::new(shelf), recorder }, problems))
    }

    /// Looks a call up. Only successes count: what failed is asked again, and so is what cannot be read.
    pub fn look_up(&self, scope: &str, model: &str, request: &Request) -> Lookup {
        let print = self.recorder.print(model, request);
        let occurrence = match self.player.take(scope, short(&print.digest), model, request) {
            Ok(Slot::Recorded(at)) => match self.player.read(at) {
                Ok(played) if played.outcome.is_ok() => return Lookup::Found(Box::new(played)),
                // The new answer takes its place.
                _ => self.player.occurrence(at),
            },
            Ok(Slot::Beyond { occurrence, .. }) => occurrence,
            Ok(Slot::Unknown) | Err(_) => {
                return Lookup::Ask(self.recorder.begin_printed(scope, model, print));
            }
        };
        Lookup::Ask(self.recorder.ticket(scope, model, print, occurrence))
    }

    /// Records what was asked, if it was answered. Failures are forgotten.
    pub fn record(&self, ticket: Ticket, call: &Call<'_>) -> io::Result<()> {
        if call.outcome.is_ok() { self.recorder.record(ticket, call) } else { Ok(()) }
    }

    /// Waits until what was recorded is on the disk.
    pub fn finish(&self) -> io::Result<()> {
        self.recorder.finish()
    }
}
