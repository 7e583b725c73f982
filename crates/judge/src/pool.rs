//! Warm rooms: a room in which a Python interpreter is already waiting, used for one verification at a time.
//!
//! The interpreter runs each verifier in a fork of itself. Before a room is used again, every other process in it is
//! ended and all its writable directories become new file systems, so nothing of one verification remains for the
//! next. A room in which anything went wrong, or that was used often enough, is discarded.
//!
//! A fork that starts another process is ended by the kernel, its room is discarded, and the verifier runs in a room of
//! its own. Before each fork the interpreter checks that nothing a fork inherits has changed; before it serves another
//! verifier than the last one, it proves itself with a verification whose result is known.

use std::collections::HashSet;
use std::io::{self, IoSlice, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use aec_base::digest::Digest;
use aec_sandbox::{
    Captured, Held, Limits, OutputLimits, Room, RoomSpec, Sandbox as _, SandboxError, Tree, without_children,
};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::Signal;
use serde::Serialize;

/// The program that waits in a warm room.
const WARM_PY: &str = include_str!("../../../python/warm.py");
/// Uses after which a room is replaced, whatever its state.
const MOST_USES: u32 = 500;
/// Most rooms that wait for work; further ones are closed.
const MOST_WAITING: usize = 16;
/// Most verifiers that are known to start processes; they are found out again.
const MOST_KNOWN: usize = 10_000;
/// The exit code of a canary that found the room as it should be.
const WELL: i32 = 77;
/// Time limit of a canary.
const CANARY_TIME: Duration = Duration::from_secs(30);

/// Warm rooms that wait for work.
#[derive(Default)]
pub struct Pool {
    waiting: Mutex<Vec<WarmRoom>>,
    /// Verifiers that start processes.
    parents: Mutex<HashSet<Digest>>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

/// The result of a script in a warm room.
pub(crate) struct WarmResult {
    /// Exit code, or minus the signal that ended it; absent if the time ran out.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Captured,
    pub(crate) stderr: Captured,
    /// The room's directories as the script left them, with no process left to change them.
    pub(crate) directories: Vec<Tree>,
    pub(crate) held: Held,
}

/// A script to run in a warm room.
#[derive(Serialize)]
pub(crate) struct Script<'a> {
    #[serde(rename = "script")]
    pub(crate) path: &'a str,
    pub(crate) env: std::collections::BTreeMap<&'a str, &'a str>,
    pub(crate) cwd: &'a str,
    /// Python's default unless it is isolated.
    #[serde(rename = "script_directory_first")]
    pub(crate) own_directory_first: bool,
    /// The verifier that it belongs to.
    #[serde(skip)]
    pub(crate) verifier: Digest,
}

/// A request for a verification whose result is known.
#[derive(Serialize)]
struct Canary {
    canary: bool,
}

struct WarmRoom {
    room: Room,
    control: UnixStream,
    limits: Limits,
    uses: u32,
    /// The verifier that it served last.
    served: Option<Digest>,
}

impl Pool {
    /// Runs a script in a room of this kind; `fill` writes the files first.
    pub(crate) fn run(
        &self,
        spec: &RoomSpec,
        script: &Script<'_>,
        deadline: Duration,
        fill: impl FnOnce(&Room) -> io::Result<()>,
    ) -> Result<WarmResult, SandboxError> {
        if self.parents.lock().is_ok_and(|parents| parents.contains(&script.verifier)) {
            return Err(io::Error::other("this verifier starts processes").into());
        }
        let mut warm = match self.take(&spec.limits) {
            Some(warm) => warm,
            None => WarmRoom::open(spec)?,
        };
        if warm.served.replace(script.verifier).is_some_and(|last| last != script.verifier) {
            warm.prove()?;
        }
        fill(&warm.room)?;
        warm.room.seal()?;
        let result = warm.run(script, deadline)?;
        if result.code == Some(-Signal::SYS.as_raw()) {
            if let Ok(mut parents) = self.parents.lock() {
                if parents.len() >= MOST_KNOWN {
                    parents.clear();
                }
                parents.insert(script.verifier);
            }
            return Err(io::Error::other("the verifier started a process").into());
        }
        // Only a room that answered to the end is used again; all others are dropped here.
        if result.code.is_some() && warm.uses < MOST_USES {
            self.put(warm);
        }
        Ok(result)
    }

    fn take(&self, limits: &Limits) -> Option<WarmRoom> {
        let mut waiting = self.waiting.lock().ok()?;
        let index = waiting.iter().position(|warm| warm.limits == *limits)?;
        Some(waiting.swap_remove(index))
    }

    fn put(&self, warm: WarmRoom) {
        if let Ok(mut waiting) = self.waiting.lock()
            && waiting.len() < MOST_WAITING
        {
            waiting.push(warm);
        }
    }
}

impl WarmRoom {
    fn open(spec: &RoomSpec) -> Result<Self, SandboxError> {
        let mut room = Room::open(spec)?;
        let (control, theirs) = UnixStream::pair()?;
        let env = [("LANG", "C.UTF-8"), ("LC_ALL", "C.UTF-8"), ("TZ", "UTC"), ("PYTHONHASHSEED", "0")];
        // Not `-I`, which would ignore the hash seed; there is nothing else in this environment.
        let alone = serde_json::to_string(&without_children()?).map_err(io::Error::from)?;
        room.settle_silently(&["python3", "-s", "-B", "-c", WARM_PY, &alone], &env, &theirs.into())?;
        Ok(Self { room, control, limits: spec.limits, uses: 0, served: None })
    }

    /// Runs a verification whose result is known.
    fn prove(&mut self) -> Result<(), SandboxError> {
        let (_, nothing) = io::pipe()?;
        self.send(&Canary { canary: true }, &[nothing.try_clone()?.into(), nothing.into()])?;
        match self.wait(Instant::now() + CANARY_TIME)? {
            Some(WELL) => Ok(()),
            other => Err(io::Error::other(format!("a canary ended with {other:?}")).into()),
        }
    }

    fn run(&mut self, script: &Script<'_>, deadline: Duration) -> Result<WarmResult, SandboxError> {
        self.uses += 1;
        let (mut out_reader, out_writer) = io::pipe()?;
        let (mut err_reader, err_writer) = io::pipe()?;
        self.send(script, &[out_writer.into(), err_writer.into()])?;
        let readers = std::thread::scope(|scope| -> Result<_, SandboxError> {
            // The threads end with the last writer, which the wipe below kills.
            let stdout = scope.spawn(move || capture(&mut out_reader));
            let stderr = scope.spawn(move || capture(&mut err_reader));
            let code = self.wait(Instant::now() + deadline);
            let directories = self.room.wipe();
            if directories.is_err() {
                // The room no longer obeys; ending it closes the pipes.
                self.room.freeze()?;
            }
            let captured =
                |handle: std::thread::ScopedJoinHandle<'_, Captured>| handle.join().unwrap_or_default();
            Ok((code?, directories?, captured(stdout), captured(stderr)))
        });
        let (code, directories, stdout, stderr) = readers?;
        if code.is_none() {
            // The wipe killed the fork; its answer must not be taken for that of the next one.
            self.wait(Instant::now() + Duration::from_secs(10))?;
        }
        Ok(WarmResult { code, stdout, stderr, directories, held: self.room.held() })
    }

    fn send(&self, request: &impl Serialize, descriptors: &[OwnedFd]) -> io::Result<()> {
        let message = serde_json::to_vec(request)?;
        let borrowed: Vec<_> = descriptors.iter().map(OwnedFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !ancillary.push(SendAncillaryMessage::ScmRights(&borrowed)) {
            return Err(io::Error::other("no room for the descriptors"));
        }
        sendmsg(&self.control, &[IoSlice::new(&message)], &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// The exit code; `None` if the time ran out.
    fn wait(&mut self, deadline: Instant) -> Result<Option<i32>, SandboxError> {
        let mut answer = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.control.set_read_timeout(Some(left))?;
            let mut byte = [0];
            match self.control.read(&mut byte) {
                Ok(0) => return Err(SandboxError::Gone),
                Ok(_) if byte[0] == b'\n' => {
                    let text = String::from_utf8_lossy(&answer).into_owned();
                    return text.parse().map(Some).map_err(|_| SandboxError::Gone);
                }
                Ok(_) => answer.push(byte[0]),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Reads a stream to its end with the default limits.
fn capture(reader: &mut io::PipeReader) -> Captured {
    Captured::read_from(reader, OutputLimits::default())
}
