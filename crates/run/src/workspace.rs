//! The workspace of an agent as harnesses and tools see it: commands and files in `/workspace`, nothing else. It is a
//! sandbox, or files in memory until a command needs a sandbox; its user cannot see the difference.

mod memory;

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use aec_judge::judge::Isolation;
use aec_judge::settle::freeze::AgentFiles;
use aec_judge::settle::order::Files;
use aec_sandbox::{ExecResult, ExecSpec, Kind, Level, Sandbox, SandboxError, Stopper, Tree, WalkLimits};
use rustix::io::Errno;

use self::memory::{Memory, Write};

pub const WORKSPACE: &str = "/workspace";

/// The home directory in a sandbox.
const HOME: &str = "/home/agent";
/// The home directory without a sandbox.
const HOME_WITHOUT_ROOM: &str = "/tmp";

/// Limits of a listing.
const LISTED: WalkLimits = WalkLimits { entries: 10_000, depth: 16 };

/// Longest name of a file or directory, in bytes.
const LONGEST_NAME: usize = 255;
/// Longest path, in characters.
const LONGEST_PATH: usize = 1024;

/// Opens the sandbox of a workspace that begins in memory, with these files in it.
pub type Opening = Box<dyn Fn(&Files) -> Result<Box<dyn Sandbox>, SandboxError> + Send + Sync>;

/// A workspace in use. Clones are the same workspace; commands run one after the other, in the order of the calls, so
/// that calls of one turn have the same effect in every replay.
#[derive(Clone)]
pub struct Workspace(Arc<Inner>);

struct Inner {
    room: OnceLock<Mutex<Box<dyn Sandbox>>>,
    stopper: OnceLock<Stopper>,
    /// The files, until there is a sandbox.
    memory: Mutex<Option<Memory>>,
    root: Box<str>,
    home: Box<str>,
    /// Whether anything of the agent's has run in the sandbox.
    worked: AtomicBool,
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace").finish_non_exhaustive()
    }
}

impl Workspace {
    pub fn new(room: Box<dyn Sandbox>) -> Self {
        // Without isolation there is no home directory of the sandbox's user.
        let home = if room.level() == Level::None { HOME_WITHOUT_ROOM } else { HOME };
        Self::at(room, WORKSPACE, home)
    }

    /// Uses a sandbox whose workspace and home have other paths for its commands.
    pub fn at(room: Box<dyn Sandbox>, root: &str, home: &str) -> Self {
        let workspace = Self::with(None, root, home);
        workspace.take_over(room);
        workspace
    }

    /// Keeps files in memory, within the limit of a disk, until a command needs a sandbox.
    pub fn in_memory(files: Files, disk_bytes: u64, isolation: Isolation, open: Opening) -> Self {
        let home = match isolation {
            Isolation::Room => HOME,
            Isolation::None => HOME_WITHOUT_ROOM,
        };
        Self::with(Some(Memory::new(files, disk_bytes, open)), WORKSPACE, home)
    }

    fn with(memory: Option<Memory>, root: &str, home: &str) -> Self {
        let (root, home) = (root.into(), home.into());
        Self(Arc::new(Inner {
            room: OnceLock::new(),
            stopper: OnceLock::new(),
            memory: Mutex::new(memory),
            root,
            home,
            worked: AtomicBool::new(false),
        }))
    }

    fn take_over(&self, room: Box<dyn Sandbox>) {
        if let Some(stopper) = room.stopper() {
            self.0.stopper.get_or_init(|| stopper);
        }
        self.0.room.get_or_init(|| Mutex::new(room));
    }

    /// The files, as long as they are in memory.
    pub fn files(&self) -> Option<Files> {
        self.memory().as_ref().map(|memory| memory.files.clone())
    }

    fn memory(&self) -> MutexGuard<'_, Option<Memory>> {
        self.0.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The path of the workspace for commands.
    pub fn root(&self) -> &str {
        &self.0.root
    }

    /// A command in the workspace, with the environment that agents' commands have.
    pub fn command(&self, argv: impl IntoIterator<Item = impl Into<String>>) -> ExecSpec {
        let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut command = ExecSpec::new(argv);
        command.cwd = self.0.root.to_string();
        command.env = vec![own("HOME", &self.0.home), own("LANG", "C.UTF-8")];
        command
    }

    /// Whether a tool is at work in the sandbox, or a call of the sandbox does not return.
    pub fn is_busy(&self) -> bool {
        self.0.room.get().is_some_and(|room| matches!(room.try_lock(), Err(TryLockError::WouldBlock)))
    }

    /// Ends everything in the sandbox, including a running command.
    pub fn stop(&self) {
        if let Some(stopper) = self.0.stopper.get() {
            stopper.stop();
        }
    }

    /// The agent's files, to be frozen.
    pub fn agent_files(&self) -> Result<AgentFiles<'_>, SandboxError> {
        match self.files() {
            Some(files) => Ok(AgentFiles::InMemory(files)),
            None => self.lock().map(AgentFiles::InRoom),
        }
    }

    /// Whether commands exceeded the sandbox's memory. This opens no sandbox.
    pub fn is_out_of_memory(&self) -> bool {
        self.files().is_none() && self.lock().is_ok_and(|room| room.out_of_memory())
    }

    /// Why the sandbox no longer answers, if its provider says so. This opens no sandbox.
    pub fn lost(&self) -> Option<SandboxError> {
        if self.files().is_some() { None } else { self.lock().ok()?.lost() }
    }

    /// Notes that the agent's own work begins in the sandbox: from now on it may be the one that brings it down.
    pub fn begin_work(&self) {
        self.0.worked.store(true, Ordering::Relaxed);
    }

    /// Whether anything of the agent's has run in the sandbox.
    pub fn has_worked(&self) -> bool {
        self.0.worked.load(Ordering::Relaxed)
    }

    /// Runs a command to its end or its deadline. An exit code is a result, not an error.
    pub async fn exec(&self, command: ExecSpec) -> Result<ExecResult, SandboxError> {
        self.begin_work();
        let room = self.clone();
        blocking(move || room.lock()?.exec(&command, &mut |_, _| {})).await?
    }

    /// Starts a command that runs beside others, with this socket and this pipe for its output.
    pub(crate) async fn settle(
        &self,
        command: ExecSpec,
        socket: OwnedFd,
        output: OwnedFd,
    ) -> Result<(), SandboxError> {
        let room = self.clone();
        blocking(move || room.lock()?.settle(&command, &socket, &output)).await?
    }

    /// Ends everything that runs in the sandbox.
    pub(crate) async fn evict(&self) -> Result<(), SandboxError> {
        let room = self.clone();
        blocking(move || room.lock()?.evict()).await?
    }

    /// Reads a file of at most `limit` bytes.
    pub async fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        let place = self.file(path)?;
        if let Some(memory) = &*self.memory() {
            return memory.read(&place, limit);
        }
        self.with_tree(move |tree| tree.read(Path::new(&place), limit)).await
    }

    /// Writes a file, with the directories above it; returns its path below the workspace.
    pub async fn write(&self, path: &str, bytes: Vec<u8>) -> io::Result<String> {
        let place = self.file(path)?;
        if let Some(memory) = &mut *self.memory() {
            match memory.write(&place, &bytes)? {
                Write::Done => return Ok(place),
                Write::TooMuch => {}
            }
        }
        self.with_tree(move |tree| tree.write(Path::new(&place), &bytes, false).map(|()| place)).await
    }

    /// The path, below the workspace, of an existing regular file.
    pub async fn find(&self, path: &str) -> io::Result<String> {
        let place = self.file(path)?;
        if let Some(memory) = &*self.memory() {
            return memory.read(&place, u64::MAX).map(|_| place);
        }
        self.with_tree(move |tree| tree.open_file(Path::new(&place)).map(|_| place)).await
    }

    /// Everything below a directory except directories, sorted by the parts of the paths.
    pub async fn list(&self, path: &str) -> io::Result<Vec<Entry>> {
        let below = self.place(path)?;
        if let Some(memory) = &*self.memory() {
            return memory.list(&below);
        }
        self.with_tree(move |tree| list(tree, &below)).await
    }

    /// Converts an agent's path of a file to one below the workspace.
    pub fn file(&self, path: &str) -> io::Result<String> {
        match self.place(path)? {
            place if place.is_empty() => Err(refused()),
            place => Ok(place),
        }
    }

    /// Converts an agent's path to one below the workspace; empty for the workspace itself.
    fn place(&self, path: &str) -> io::Result<String> {
        let own = path.strip_prefix(&*self.0.root).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        inside(own.map_or(path, |rest| rest.trim_start_matches('/')))
    }

    /// Works on the directory itself. A failure of the sandbox is a `SandboxError` inside the error.
    pub async fn with_tree<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Tree) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        self.with_place(WORKSPACE, work).await
    }

    /// Works on another directory of the sandbox.
    pub(crate) async fn with_place<T: Send + 'static>(
        &self,
        place: &'static str,
        work: impl FnOnce(&Tree) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let room = self.clone();
        let done = blocking(move || {
            let room = room.lock().map_err(io::Error::other)?;
            let tree = room.directory(place).ok_or_else(|| {
                io::Error::new(io::ErrorKind::NotFound, format!("the sandbox has no {place}"))
            })?;
            work(tree)
        });
        done.await.map_err(io::Error::other)?
    }

    /// A listening socket that commands in the sandbox can reach.
    pub async fn listen(&self) -> Result<std::net::TcpListener, SandboxError> {
        let room = self.clone();
        blocking(move || room.lock()?.listen()).await?
    }

    /// The sandbox itself, opened if necessary. This blocks.
    pub fn lock(&self) -> Result<MutexGuard<'_, Box<dyn Sandbox>>, SandboxError> {
        let mut memory = self.memory();
        if let Some(held) = &*memory {
            self.take_over(held.open()?);
            *memory = None;
        }
        // A command may use the sandbox for long; callers that only need the files must not wait for this one.
        drop(memory);
        let room = self.0.room.get().ok_or(SandboxError::Gone)?;
        Ok(room.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub path: String,
    /// Present for a regular file.
    pub size: Option<u64>,
    pub is_link: bool,
}

fn list(tree: &Tree, below: &str) -> io::Result<Vec<Entry>> {
    let listed = tree.list(LISTED)?;
    match listed.iter().find(|entry| entry.path == Path::new(below)).map(|entry| entry.kind) {
        None if below.is_empty() => {}
        Some(Kind::Directory) => {}
        Some(Kind::Link) => return Err(Errno::LOOP.into()),
        Some(Kind::Closed) => return Err(Errno::ACCESS.into()),
        Some(Kind::File | Kind::Special) => return Err(Errno::NOTDIR.into()),
        None => return Err(Errno::NOENT.into()),
    }
    let wanted =
        listed.into_iter().filter(|entry| entry.kind != Kind::Directory && entry.path.starts_with(below));
    Ok(wanted
        .map(|entry| Entry {
            path: entry.path.to_string_lossy().into_owned(),
            size: (entry.kind == Kind::File).then_some(entry.size),
            is_link: entry.kind == Kind::Link,
        })
        .collect())
}

fn refused() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("it is not a path below {WORKSPACE}"))
}

/// A path below the workspace, without `.` and double slashes. It may begin with `/workspace`.
fn inside(path: &str) -> io::Result<String> {
    let below = match path.strip_prefix(WORKSPACE) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
        _ if path.starts_with('/') => return Err(refused()),
        _ => path,
    };
    let parts: Vec<&str> = below.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.contains(&"..") || path.contains('\0') {
        return Err(refused());
    }
    if parts.iter().any(|part| part.len() > LONGEST_NAME) || path.chars().count() > LONGEST_PATH {
        return Err(Errno::NAMETOOLONG.into());
    }
    Ok(parts.join("/"))
}

/// Runs blocking work on a thread for such work.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SandboxError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| SandboxError::Gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside() {
        for (path, expected) in [
            ("out.md", "out.md"),
            ("./out.md", "out.md"),
            ("/workspace/a/b.csv", "a/b.csv"),
            ("a b", "a b"),
            ("./a//b/", "a/b"),
            ("/workspace", ""),
            ("", ""),
        ] {
            assert_eq!(inside(path).unwrap(), expected, "{path}");
        }
        for path in ["/", "..", "../x", "/etc/passwd", "a/../b", "/workspace/../etc", "/workspaces/x", "a\0b"]
        {
            assert!(inside(path).is_err(), "{path}");
        }
        assert!(inside(&"x".repeat(256)).is_err());
    }
}
