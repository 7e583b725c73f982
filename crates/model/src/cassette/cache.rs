//! Answers known calls from a directory, and records unknown ones there.

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

/// A directory to which every unknown call is added.
///
/// Lookups see the state of the directory when the cache was opened. Calls recorded by this process get the number of
/// their own request, and every request has a new number, so they answer nothing here: repetitions are not collapsed.
pub struct Cache {
    player: Player,
    recorder: Recorder,
}

#[derive(Debug)]
pub enum Lookup {
    /// A recorded answer.
    Found(Box<Played>),
    /// Call the model, and record the call with this ticket.
    Ask(Ticket),
}

impl Cache {
    /// Reads the cassettes of a directory, which may be empty or missing. The first recorded call creates it and a file
    /// in it.
    pub fn open(directory: &Path, redactor: Arc<Redactor>) -> Result<(Self, Vec<Problem>), Vec<Problem>> {
        let (shelf, problems) = match directory.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Shelf::default(), Vec::new()),
            _ => Shelf::open(directory)?,
        };
        let recorder = Recorder::idle(directory, redactor);
        Ok((Self { player: Player::new(shelf), recorder }, problems))
    }

    /// Looks a call up. Only successes count; failed or unreadable calls are made again.
    pub fn look_up(&self, scope: &str, model: &str, request: &Request) -> Lookup {
        let print = self.recorder.print(model, request);
        let occurrence = match self.player.take(scope, short(&print.digest), model, request) {
            Ok(Slot::Recorded(at)) => match self.player.read(at) {
                Ok(played) if played.outcome.is_ok() => return Lookup::Found(Box::new(played)),
                // The new answer replaces the old one.
                _ => self.player.occurrence(at),
            },
            Ok(Slot::Beyond { occurrence, .. }) => occurrence,
            Ok(Slot::Unknown) | Err(_) => {
                return Lookup::Ask(self.recorder.begin_printed(scope, model, print));
            }
        };
        Lookup::Ask(self.recorder.ticket(scope, model, print, occurrence))
    }

    /// Records a call if it succeeded. Failures are not recorded.
    pub fn record(&self, ticket: Ticket, call: &Call<'_>) -> io::Result<()> {
        if call.outcome.is_ok() { self.recorder.record(ticket, call) } else { Ok(()) }
    }

    /// Waits until the recorded calls are on disk.
    pub fn finish(&self) -> io::Result<()> {
        self.recorder.finish()
    }
}
