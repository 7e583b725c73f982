//! A Python session inside the trial's sandbox: runs cells, returns their output, passes requests to the harness.
//!
//! The process holds nothing that it must not lose or reveal. The sandbox limits it; a cell that takes too long is
//! interrupted, and if it ignores that, its process is killed. Its output comes through a pipe; a random mark, new for
//! each cell, ends the cell's output.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use aec_judge::settle::outcome::RoomFault;
use aec_sandbox::{Capture, Captured, OutputLimits};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::time::Instant;

use super::wire::{Frames, Wire};
use crate::harness::End;
use crate::workspace::Workspace;

/// The program of a session.
const PROGRAM: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/repl.py"));

/// How long a cell may take to end once it was interrupted.
const GRACE: Duration = Duration::from_secs(2);

/// How long a new session may take to be ready.
const START: Duration = Duration::from_mins(1);

/// How long the last output of a finished cell may take.
const LAST_OUTPUT: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Setup {
    /// The task's prompt.
    pub(super) context: String,
    /// What `HELP()` prints.
    pub(super) help: String,
    /// Concurrent calls.
    pub(super) workers: u32,
    pub(super) subcalls: Vec<Subcall>,
    /// Functions that the task provides.
    pub(super) custom: Vec<Custom>,
    /// Initial variables.
    pub(super) inputs: Vec<Input>,
    pub(super) report: bool,
    pub(super) advisor: bool,
}

/// A function that asks a model.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Subcall {
    pub(super) name: String,
    pub(super) parameters: Vec<String>,
    pub(super) description: String,
}

/// A function that the task provides.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Custom {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) function: String,
    /// The description for the model.
    #[serde(skip)]
    pub(super) description: String,
}

/// An initial variable.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Input {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) kind: String,
    pub(super) pre_parse: bool,
}

/// A request from a cell.
#[derive(Debug, Deserialize)]
pub(super) struct Call {
    pub(super) id: u64,
    pub(super) name: String,
    #[serde(default)]
    pub(super) arguments: Value,
    /// The call of the task's function to which it belongs.
    pub(super) parent: Option<u64>,
}

/// Answers requests from cells.
pub(super) trait Host: Sync {
    /// The answer, or the error for the cell.
    fn answer(&self, call: &Call) -> impl Future<Output = Result<Value, String>> + Send;
}

/// The result of a cell.
#[derive(Debug, Default)]
pub(super) struct Cell {
    pub(super) output: Captured,
    pub(super) error: Option<CellError>,
    /// The variables after the cell.
    pub(super) variables: Vec<Variable>,
    /// The value that ended the work, if it did.
    pub(super) finale: Option<Value>,
    /// Whether the session and all its variables are lost.
    pub(super) lost: bool,
    pub(super) duration: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct CellError {
    /// The class of the exception, `Interrupted`, or what happened to the session.
    pub(super) kind: String,
    pub(super) text: String,
}

/// A variable of a session.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) r#type: String,
    /// Such as `[3]`; empty for values without a size.
    pub(super) size: String,
    pub(super) preview: String,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Order<'a> {
    Setup(&'a Setup),
    Cell { id: u32, code: &'a str, end: &'a str },
    Interrupt,
    Answer { id: u64, value: Option<Value>, error: Option<String> },
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Told {
    Ready { problems: Vec<String> },
    Call(Call),
    Done { id: u32, error: Option<CellError>, marked: bool, r#final: Option<Final>, variables: Vec<Variable> },
}

#[derive(Deserialize)]
struct Final {
    value: Value,
}

/// A session. Dropping it leaves the process to the sandbox.
pub(super) struct Session {
    workspace: Workspace,
    frames: Frames,
    wire: Wire,
    output: pipe::Receiver,
    /// Output after the last mark.
    early: Vec<u8>,
    cells: u32,
}

impl Session {
    /// Starts a session, after ending everything that ran in the sandbox; also returns what failed in its setup.
    pub(super) async fn start(workspace: &Workspace, setup: &Setup) -> Result<(Self, Vec<String>), End> {
        workspace.evict().await?;
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        let (reader, writer) = io::pipe()?;
        let mut command = workspace.command(["python3", "-s", "-B", "-u", "-c", PROGRAM]);
        command.env.push(("PYTHONHASHSEED".to_owned(), "0".to_owned()));
        workspace.settle(command, OwnedFd::from(theirs), OwnedFd::from(writer)).await?;
        ours.set_nonblocking(true)?;
        let (frames, wire) = super::wire::split(UnixStream::from_std(ours)?);
        let output = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
        let mut session =
            Self { workspace: workspace.clone(), frames, wire, output, early: Vec::new(), cells: 0 };
        let problems = tokio::time::timeout(START, session.set_up(setup)).await;
        let problems = problems.unwrap_or_else(|_| Err(io::Error::other("it does not answer")));
        match problems {
            Ok(problems) => Ok((session, problems)),
            Err(error) => {
                let said = session.last_words().await;
                let message = format!("no Python session can be started: {error}{said}");
                // Cells of an earlier session may have seen to that.
                Err(End::Room(RoomFault { commands_could: true, ..message.into() }))
            }
        }
    }

    async fn set_up(&mut self, setup: &Setup) -> io::Result<Vec<String>> {
        self.wire.send(&Order::Setup(setup)).await?;
        match self.frames.next().await? {
            Told::Ready { problems } => Ok(problems),
            _ => Err(io::Error::other("it says something else than that it is ready")),
        }
    }

    /// The last output of a process that has ended.
    async fn last_words(&mut self) -> String {
        let mut said = Vec::new();
        let mut reader = (&mut self.output).take(4096);
        tokio::time::timeout(LAST_OUTPUT, reader.read_to_end(&mut said)).await.ok();
        let said = String::from_utf8_lossy(&said);
        if said.trim().is_empty() { String::new() } else { format!("; it says: {}", said.trim()) }
    }

    /// Runs a cell. `limit` bounds its own work: the time in which it waits for an answer does not count.
    pub(super) async fn run(
        &mut self,
        code: &str,
        limit: Duration,
        deadline: Instant,
        kept: OutputLimits,
        host: &impl Host,
    ) -> Result<Cell, End> {
        let begun = Instant::now();
        self.cells += 1;
        self.workspace.begin_work();
        let mut printed = Printed::new(self.cells, kept, &std::mem::take(&mut self.early))?;
        let mut cell = match self.follow(code, limit, deadline, &mut printed, host).await {
            Ok(cell) => cell,
            Err(gone) => {
                self.workspace.evict().await?;
                Cell { error: Some(gone), lost: true, ..Cell::default() }
            }
        };
        (cell.output, self.early) = printed.finish();
        cell.duration = begun.elapsed();
        Ok(cell)
    }

    /// Follows a cell to its end; an error is the end of the session.
    async fn follow(
        &mut self,
        code: &str,
        limit: Duration,
        deadline: Instant,
        printed: &mut Printed,
        host: &impl Host,
    ) -> Result<Cell, CellError> {
        let order = Order::Cell { id: self.cells, code, end: &printed.mark };
        self.wire.send(&order).await.map_err(|error| crashed(&error))?;
        let mut answers = FuturesUnordered::new();
        let mut clock = CellClock::new(limit, deadline);
        loop {
            clock.waits(!answers.is_empty());
            tokio::select! {
                biased;
                told = self.frames.next::<Told>() => match told.map_err(|error| crashed(&error))? {
                    Told::Call(call) => answers.push(async move {
                        let answer = host.answer(&call).await;
                        (call.id, answer)
                    }),
                    Told::Done { id, error, marked, r#final, variables } if id == self.cells => {
                        if marked {
                            let reading = printed.read_to_mark(&mut self.output);
                            tokio::time::timeout(LAST_OUTPUT, reading).await.ok();
                        }
                        let finale = r#final.map(|end| end.value).filter(|_| error.is_none());
                        return Ok(Cell { error, variables, finale, ..Cell::default() });
                    }
                    Told::Ready { .. } | Told::Done { .. } => {}
                },
                Some((id, answer)) = answers.next() => {
                    let (value, error) = match answer {
                        Ok(value) => (Some(value), None),
                        Err(error) => (None, Some(error)),
                    };
                    let sent = self.wire.send(&Order::Answer { id, value, error }).await;
                    sent.map_err(|error| crashed(&error))?;
                }
                read = printed.read(&mut self.output) => {
                    if !read {
                        // No process can print any more; the socket shows whether the session has ended.
                        printed.is_closed = true;
                    }
                }
                () = clock.rings() => {
                    if clock.was_interrupted {
                        let text = "the cell did not heed the interrupt, so the session was ended\n".to_owned();
                        return Err(CellError { kind: "Hung".to_owned(), text });
                    }
                    clock.interrupted();
                    self.wire.send(&Order::Interrupt).await.map_err(|error| crashed(&error))?;
                }
            }
        }
    }
}

fn crashed(error: &io::Error) -> CellError {
    let text = match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
            "the session ended while it ran the cell: it took too much memory, or it was ended by its own code\n".to_owned()
        }
        _ => format!("the session was lost: {error}\n"),
    };
    CellError { kind: "Crashed".to_owned(), text }
}

/// The time of a cell: it stops while the cell waits for the harness, but the agent's time always runs.
struct CellClock {
    left: Duration,
    running_since: Option<Instant>,
    deadline: Instant,
    was_interrupted: bool,
}

impl CellClock {
    fn new(limit: Duration, deadline: Instant) -> Self {
        Self { left: limit, running_since: Some(Instant::now()), deadline, was_interrupted: false }
    }

    fn waits(&mut self, waits: bool) {
        match (waits, self.running_since) {
            (true, Some(since)) => {
                self.left = self.left.saturating_sub(since.elapsed());
                self.running_since = None;
            }
            (false, None) => self.running_since = Some(Instant::now()),
            _ => {}
        }
    }

    fn interrupted(&mut self) {
        self.was_interrupted = true;
        self.left = GRACE;
        self.running_since = Some(Instant::now());
        self.deadline = Instant::now() + GRACE;
    }

    async fn rings(&self) {
        let own = self.running_since.map(|since| since + self.left);
        tokio::time::sleep_until(own.map_or(self.deadline, |own| own.min(self.deadline))).await;
    }
}

/// The output of a cell, up to its mark.
struct Printed {
    mark: String,
    capture: Capture,
    /// Bytes that may begin the mark, or that came after it.
    held: Vec<u8>,
    is_marked: bool,
    is_closed: bool,
}

impl Printed {
    fn new(cell: u32, kept: OutputLimits, early: &[u8]) -> io::Result<Self> {
        let mark = format!("\u{1}end of cell {cell} {:016x}\u{1}", drawn());
        let mut printed =
            Self { mark, capture: Capture::new(kept)?, held: Vec::new(), is_marked: false, is_closed: false };
        printed.take(early);
        Ok(printed)
    }

    fn take(&mut self, piece: &[u8]) {
        self.held.extend_from_slice(piece);
        if self.is_marked {
            return;
        }
        if let Some(at) = memchr::memmem::find(&self.held, self.mark.as_bytes()) {
            self.capture.push(&self.held[..at]);
            self.held.drain(..at + self.mark.len());
            self.is_marked = true;
        } else {
            let sure = self.held.len().saturating_sub(self.mark.len() - 1);
            self.capture.push(&self.held[..sure]);
            self.held.drain(..sure);
        }
    }

    /// Reads the available output; false at the end.
    async fn read(&mut self, output: &mut pipe::Receiver) -> bool {
        if self.is_closed || self.is_marked {
            std::future::pending::<()>().await;
        }
        let mut piece = vec![0; 64 * 1024];
        match output.read(&mut piece).await {
            Ok(count @ 1..) => {
                self.take(&piece[..count]);
                true
            }
            _ => false,
        }
    }

    async fn read_to_mark(&mut self, output: &mut pipe::Receiver) {
        while !self.is_marked && self.read(output).await {}
    }

    /// The output, and what belongs to the next cell.
    fn finish(mut self) -> (Captured, Vec<u8>) {
        if !self.is_marked {
            let held = std::mem::take(&mut self.held);
            self.capture.push(&held);
        }
        (self.capture.finish(), self.held)
    }
}

/// A random number that a cell cannot guess before it ends.
fn drawn() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    RandomState::new().build_hasher().finish()
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("cells", &self.cells).finish_non_exhaustive()
    }
}
