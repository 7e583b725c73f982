//! The room in which an agent works, as harnesses see it: commands and files in `/workspace`, nothing else.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aec_judge::settle::freeze::{Freezer, Frozen, Unfrozen};
use aec_judge::settle::order::Handed;
use aec_sandbox::{ExecResult, ExecSpec, Kind, Level, Sandbox, SandboxError, Stopper, Tree, WalkLimits};

/// Where agents work.
pub const WORKSPACE: &str = "/workspace";

/// The home of a room's user.
const HOME: &str = "/home/agent";

/// Files that a listing shows at most.
const LISTED: WalkLimits = WalkLimits { entries: 10_000, depth: 16 };

/// A room in use. Clones are the same room; commands run one after the other, in the order in which they were asked
/// for, so that calls of one turn have the same effect in every replay.
#[derive(Clone)]
pub struct Workspace {
    room: Arc<Mutex<Box<dyn Sandbox>>>,
    stopper: Option<Arc<Stopper>>,
    root: Arc<str>,
    home: Arc<str>,
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace").finish_non_exhaustive()
    }
}

impl Workspace {
    /// Takes over a room.
    pub fn new(room: Box<dyn Sandbox>) -> Self {
        // Without a room the home of its user is not there.
        let home = if room.level() == Level::None { "/tmp" } else { HOME };
        Self::at(room, WORKSPACE, home)
    }

    /// Takes over a room whose workspace and home have other paths for its commands.
    pub fn at(room: Box<dyn Sandbox>, root: &str, home: &str) -> Self {
        let stopper = room.stopper().map(Arc::new);
        Self { room: Arc::new(Mutex::new(room)), stopper, root: root.into(), home: home.into() }
    }

    /// The workspace as its commands see it.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// A command in the workspace, with the environment that commands of agents have.
    pub fn command(&self, argv: impl IntoIterator<Item = impl Into<String>>) -> ExecSpec {
        let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut command = ExecSpec::new(argv);
        command.cwd = self.root.to_string();
        command.env = vec![own("HOME", &self.home), own("LANG", "C.UTF-8")];
        command
    }

    /// Ends everything in the room, a command that runs included.
    pub fn stop(&self) {
        if let Some(stopper) = &self.stopper {
            stopper.stop();
        }
    }

    /// Ends everything in the room and freezes what the agent left there.
    pub fn freeze(&self, freezer: &Freezer<'_>, handed: &Handed) -> Result<Frozen, Unfrozen> {
        freezer.room(self.lock().as_mut(), WORKSPACE, handed)
    }

    /// Runs a command to its end or its deadline. An exit code is a result, not an error.
    pub async fn exec(&self, command: ExecSpec) -> Result<ExecResult, SandboxError> {
        let room = self.clone();
        blocking(move || room.lock().exec(&command, &mut |_, _| {})).await?
    }

    /// Starts a command that goes on beside others, with its socket and what takes in all that it prints.
    pub(crate) async fn settle(
        &self,
        command: ExecSpec,
        socket: OwnedFd,
        output: OwnedFd,
    ) -> Result<(), SandboxError> {
        let room = self.clone();
        blocking(move || room.lock().settle(&command, &socket, &output)).await?
    }

    /// Ends everything that runs in the room.
    pub(crate) async fn evict(&self) -> Result<(), SandboxError> {
        let room = self.clone();
        blocking(move || room.lock().evict()).await?
    }

    /// Reads a file of at most `limit` bytes.
    pub async fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        let path = self.place(path)?;
        self.with_tree(move |tree| tree.read(&path, limit)).await
    }

    /// Writes a file, with the directories above it.
    pub async fn write(&self, path: &str, bytes: Vec<u8>) -> io::Result<()> {
        let path = self.place(path)?;
        self.with_tree(move |tree| tree.write(&path, &bytes, false)).await
    }

    /// The files below a directory, with their sizes.
    pub async fn list(&self, path: &str) -> io::Result<Vec<(String, u64)>> {
        let whole = matches!(path, "" | "." | "./" | WORKSPACE | "/workspace/");
        let below = if whole || path == self.root() { PathBuf::new() } else { self.place(path)? };
        self.with_tree(move |tree| {
            let listed = tree.list(LISTED)?;
            let wanted =
                listed.into_iter().filter(|entry| entry.kind == Kind::File && entry.path.starts_with(&below));
            Ok(wanted.map(|entry| (entry.path.to_string_lossy().into_owned(), entry.size)).collect())
        })
        .await
    }

    /// A path as agents write it, below the workspace.
    fn place(&self, path: &str) -> io::Result<PathBuf> {
        let own = path.strip_prefix(&*self.root).and_then(|rest| rest.strip_prefix('/'));
        inside(own.unwrap_or(path))
    }

    /// Works on the directory itself.
    pub async fn with_tree<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Tree) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        self.with_place(WORKSPACE, work).await
    }

    /// Works on another directory of the room.
    pub(crate) async fn with_place<T: Send + 'static>(
        &self,
        place: &'static str,
        work: impl FnOnce(&Tree) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let room = self.clone();
        let done = blocking(move || {
            let room = room.lock();
            let tree = room
                .directory(place)
                .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("the room has no {place}")))?;
            work(tree)
        });
        done.await.map_err(|error| io::Error::other(error.to_string()))?
    }

    /// A socket that listens where commands of the room see it.
    pub async fn listen(&self) -> Result<std::net::TcpListener, SandboxError> {
        let room = self.clone();
        blocking(move || room.lock().listen()).await?
    }

    /// The room itself, for whoever freezes it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Box<dyn Sandbox>> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A path in the workspace as agents write it: below `/workspace`, or relative to it.
pub fn inside(path: &str) -> io::Result<PathBuf> {
    let refuse = || {
        let what = format!("`{}` is not a path below {WORKSPACE}", aec_base::text::printable(path));
        Err(io::Error::new(io::ErrorKind::InvalidInput, what))
    };
    let below = path.strip_prefix("/workspace/").unwrap_or(path);
    let below = Path::new(below.strip_prefix("./").unwrap_or(below));
    let normal = below.components().all(|part| matches!(part, Component::Normal(_)));
    if below.as_os_str().is_empty() || !normal || path.contains('\0') {
        return refuse();
    }
    Ok(below.to_path_buf())
}

/// Runs work that blocks on a thread that may.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SandboxError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| SandboxError::Gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside() {
        for (path, expected) in
            [("out.md", "out.md"), ("./out.md", "out.md"), ("/workspace/a/b.csv", "a/b.csv"), ("a b", "a b")]
        {
            assert_eq!(inside(path).unwrap(), Path::new(expected), "{path}");
        }
        for path in [
            "",
            "/",
            "..",
            "../x",
            "/etc/passwd",
            "/workspace",
            "/workspace/",
            "a/../../b",
            "/workspace/../etc",
            "/workspaces/x",
            "a\0b",
        ] {
            assert!(inside(path).is_err(), "{path}");
        }
    }
}
