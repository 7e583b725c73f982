//! Live runs and attempts as streams of events, read by offset from the files that the run writes. The number of
//! listeners and the lifetime of each are limited.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aec_base::name::Name;
use aec_evolve::run::RunDirectory;
use aec_ledger::jobs::LIVE;
use aec_ledger::layout::stem;
use aec_ledger::read::RecordFile;
use aec_ledger::transcript::TRAJECTORY_FILE;
use bytes::Bytes;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;

use crate::evolutions::{self, look};
use crate::records::Progress;
use crate::respond::{Answer, Trouble, stream};
use crate::site::{STREAMS, Site};
use crate::trace::{PART, read_part};

/// How often a run is checked.
const RUN_PAUSE: Duration = Duration::from_secs(1);

/// How often an attempt is checked.
const TRIAL_PAUSE: Duration = Duration::from_millis(250);

/// Checks without news after which the server tests whether the run is still alive.
const SILENT: u32 = 8;

/// After this time without an event, a comment is sent, to find out whether the client still listens.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// A listener that accepts nothing for this long is gone.
const PATIENCE: Duration = Duration::from_secs(30);

/// A stream ends after this time; a browser that still wants it reconnects by itself.
const LIFETIME: Duration = Duration::from_mins(30);

/// Pieces that may wait for a slow listener.
const QUEUE: usize = 4;

struct Listener {
    site: Arc<Site>,
    pieces: mpsc::Sender<Bytes>,
    quiet_since: Instant,
    _place: OwnedSemaphorePermit,
}

enum Next {
    Nothing,
    Event { name: &'static str, id: Option<u64>, data: String },
    End(String),
}

impl Listener {
    fn open(site: &Arc<Site>) -> Result<(Self, mpsc::Receiver<Bytes>), Trouble> {
        let place = Arc::clone(&site.streams)
            .try_acquire_owned()
            .map_err(|_| Trouble::busy(format!("{STREAMS} pages follow runs already")))?;
        let (pieces, taken) = mpsc::channel(QUEUE);
        Ok((Self { site: Arc::clone(site), pieces, quiet_since: Instant::now(), _place: place }, taken))
    }

    /// Sends a piece; false if the listener does not accept it.
    async fn send(&mut self, piece: String) -> bool {
        self.quiet_since = Instant::now();
        matches!(tokio::time::timeout(PATIENCE, self.pieces.send(piece.into())).await, Ok(Ok(())))
    }

    /// Checks repeatedly and sends what is new, until there is nothing more to send or the listener is gone.
    async fn follow<T: Look>(mut self, pause: Duration, mut look: T) {
        let until = Instant::now() + LIFETIME;
        let mut stopped = self.site.stopped.clone();
        loop {
            let looked = Arc::clone(&self.site).work(move |site| {
                let next = look.look(site);
                (look, next)
            });
            let Ok((again, next)) = looked.await else { return };
            look = again;
            let (heard, over, more) = match next {
                Next::Event { name, id, data } => {
                    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
                    (self.send(format!("event: {name}\n{id}data: {data}\n\n")).await, false, true)
                }
                Next::End(data) => (self.send(format!("event: end\ndata: {data}\n\n")).await, true, false),
                Next::Nothing if self.quiet_since.elapsed() >= HEARTBEAT => {
                    (self.send(": still here\n\n".to_owned()).await, false, false)
                }
                Next::Nothing => (!self.pieces.is_closed(), false, false),
            };
            if over || !heard || Instant::now() >= until {
                return;
            }
            let pause = if more { T::BETWEEN } else { pause };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.pieces.closed() => return,
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
        }
    }
}

/// Something that is checked repeatedly.
trait Look: Send + 'static {
    /// How long to wait after something new.
    const BETWEEN: Duration;

    fn look(&mut self, site: &Site) -> Next;
}

fn json(value: &impl Serialize) -> String {
    // Line breaks inside texts are escaped, so an event is one line.
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

struct RunLook {
    experiment: Name,
    told: Option<Progress>,
}

impl Look for RunLook {
    const BETWEEN: Duration = RUN_PAUSE;

    fn look(&mut self, site: &Site) -> Next {
        // It may become readable in a moment.
        let Ok(progress) = site.progress(&self.experiment) else { return Next::Nothing };
        if self.told.as_ref() == Some(&progress) {
            return if progress.state == "running" { Next::Nothing } else { Next::End(json(&progress)) };
        }
        let data = json(&progress);
        self.told = Some(progress);
        Next::Event { name: "progress", id: None, data }
    }
}

pub(crate) fn run(site: &Arc<Site>, experiment: Name) -> Result<Answer, Trouble> {
    let (listener, taken) = Listener::open(site)?;
    tokio::spawn(listener.follow(RUN_PAUSE, RunLook { experiment, told: None }));
    Ok(stream(taken))
}

/// After a slow read of a log, the next one waits this many times as long.
const REST: u32 = 10;

struct EvolutionLook {
    directory: RunDirectory,
    /// The state of the log that was last sent.
    state: Option<u64>,
    told: Option<evolutions::Progress>,
    rest_until: Instant,
}

impl Look for EvolutionLook {
    const BETWEEN: Duration = RUN_PAUSE;

    fn look(&mut self, site: &Site) -> Next {
        let goes_on = self.told.as_ref().is_some_and(|told| told.state == "running");
        // It may become readable in a moment.
        let Ok(looked) = look(&self.directory) else { return Next::Nothing };
        let state = looked.state;
        if self.state == Some(state) && !goes_on {
            return Next::End(json(&self.told));
        }
        let began = Instant::now();
        if self.state == Some(state) || began < self.rest_until {
            return Next::Nothing;
        }
        let Ok(view) = site.evolution(&self.directory) else { return Next::Nothing };
        self.rest_until = began + began.elapsed() * (1 + REST);
        self.state = Some(state);
        let progress = evolutions::Progress::of(&view);
        if self.told.as_ref() == Some(&progress) {
            return Next::Nothing;
        }
        let data = json(&progress);
        self.told = Some(progress);
        Next::Event { name: "progress", id: None, data }
    }
}

pub(crate) fn evolution(site: &Arc<Site>, directory: RunDirectory) -> Result<Answer, Trouble> {
    let (listener, taken) = Listener::open(site)?;
    let look = EvolutionLook { directory, state: None, told: None, rest_until: Instant::now() };
    tokio::spawn(listener.follow(RUN_PAUSE, look));
    Ok(stream(taken))
}

struct TrialLook {
    file: RecordFile,
    trajectory: PathBuf,
    offset: u64,
    start: Option<i64>,
    recorded: bool,
    /// Checks in a row without news.
    silent: u32,
}

impl Look for TrialLook {
    const BETWEEN: Duration = Duration::ZERO;

    fn look(&mut self, site: &Site) -> Next {
        // The record comes after the last event, so it is checked first. It has the same trajectory: events that were
        // not sent yet are read from there once the live files are gone.
        if !self.recorded && is_recorded(site, &self.file) {
            self.recorded = true;
            self.trajectory = kept_trajectory(site, &self.file).unwrap_or_default();
        }
        let part = read_part(&self.trajectory, self.offset, PART, self.start).unwrap_or_default();
        if part.read == 0 {
            self.silent += 1;
            // A killed run leaves its attempts unchanged, so whether it is alive is tested from time to time.
            let is_over = self.recorded
                || (self.silent.is_multiple_of(SILENT) && !site.is_running(&self.file.experiment));
            return if is_over { Next::End("{}".to_owned()) } else { Next::Nothing };
        }
        self.silent = 0;
        self.offset = part.offset;
        Next::Event { name: "entries", id: Some(part.offset), data: json(&part.entries) }
    }
}

/// Follows an attempt, starting at an offset in its trajectory.
pub(crate) fn trial(
    site: &Arc<Site>,
    file: RecordFile,
    offset: u64,
    start: Option<i64>,
) -> Result<Answer, Trouble> {
    let (listener, taken) = Listener::open(site)?;
    let trajectory = trajectory(site, &file);
    tokio::spawn(
        listener
            .follow(TRIAL_PAUSE, TrialLook { file, trajectory, offset, start, recorded: false, silent: 0 }),
    );
    Ok(stream(taken))
}

/// Where an attempt writes its events while it runs.
pub(crate) fn trajectory(site: &Site, file: &RecordFile) -> PathBuf {
    let live = site.places.jobs.join(file.experiment.as_str()).join(LIVE);
    live.join(stem(&file.trial, file.attempt)).join(TRAJECTORY_FILE)
}

/// Where the events of a recorded attempt are stored.
fn kept_trajectory(site: &Site, file: &RecordFile) -> Option<PathBuf> {
    let record = file.read(&site.ledger).ok()?.record;
    let path = record.outputs.trajectory_path.as_ref()?;
    let artefact = record.all_artefacts().find(|artefact| artefact.path == *path)?;
    Some(site.ledger.contents().path(artefact.digest))
}

pub(crate) fn is_live(site: &Site, file: &RecordFile) -> bool {
    trajectory(site, file).is_file()
}

pub(crate) fn is_recorded(site: &Site, file: &RecordFile) -> bool {
    file.path(&site.ledger).is_file()
}
