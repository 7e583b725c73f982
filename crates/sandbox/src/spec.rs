//! What a room is asked to be, what it actually is, and the messages between opener and room.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::view::View;

/// The user of commands if the host process is root: an id without an account or groups.
pub const ROOM_UID: u32 = 64_999;

/// The specification of a room.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RoomSpec {
    /// Directories besides the system's, all writable and initially empty.
    pub writable: Vec<String>,
    /// Directories that the opener fills and that then become read-only.
    pub sealed: Vec<String>,
    /// Files and directories of the host, shown read-only at the same path, such as the library of an interpreter.
    pub show: Vec<PathBuf>,
    /// Programs by name, offered in a directory at the front of the search path.
    pub programs: Vec<(String, PathBuf)>,
    pub limits: Limits,
    /// Whether the host's network is visible.
    pub network: bool,
}

impl RoomSpec {
    /// Offers this program by its name. What is offered is the small program beside it ([`crate::agent_program`]): it has
    /// the loop of an agent, and nothing from which a task could be made again. Containers always have it.
    pub fn offer_ourselves(&mut self) -> std::io::Result<()> {
        self.programs.push((OURSELVES.to_owned(), crate::agent_program()?));
        Ok(())
    }

    /// Offers an interpreter as `python3` and `python`, with its standard library and without installed packages.
    pub fn offer_python(&mut self, python: &crate::python::Python) {
        for name in ["python3", "python"] {
            self.programs.push((name.to_owned(), python.path.clone()));
        }
        self.show.push(python.path.clone());
        self.show.extend(python.library.iter().cloned());
    }
}

/// The name of this program in rooms.
pub const OURSELVES: &str = "aec-bench";

/// What all processes of a room may use together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Processor cores.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory_mb: u32,
    /// Disk in MiB, over all writable directories.
    pub storage_mb: u32,
    /// Processes and threads.
    pub pids: u32,
}

/// How a limit is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Hold {
    /// For the whole tree of processes.
    Tree,
    /// For each process alone.
    Process,
    /// Not at all.
    No,
}

/// How each limit is actually enforced, as recorded with every result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Held {
    /// Processor cores.
    pub cpus: Hold,
    /// Memory.
    pub memory: Hold,
    /// Disk.
    pub storage: Hold,
    /// Processes.
    pub pids: Hold,
}

impl Held {
    /// No limit is enforced.
    pub const NOTHING: Self = Self { cpus: Hold::No, memory: Hold::No, storage: Hold::No, pids: Hold::No };
}

/// How commands are isolated from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Own namespaces, system calls filtered, no privileges.
    Namespaces,
    /// The same, in a container made from the task's image.
    Container,
    /// Not at all: commands run on the host.
    None,
}

/// Messages from the opener to the room.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Build the room. Answered by [`Reply::Ready`] with a descriptor for each directory. `user` is the host's user of
    /// its commands, if they should have one of their own.
    Open { spec: RoomSpec, view: View, enforce: Enforce, user: Option<u32> },
    /// Commands enter a user namespace, which is the descriptor. Not answered.
    Inhabit,
    /// Make the sealed directories read-only. Answered by [`Reply::Done`].
    Seal,
    /// Run a command; the descriptors are its stdin, stdout and stderr. Answered by [`Reply::Exited`].
    Exec { argv: Vec<String>, env: Vec<(String, String)>, cwd: String },
    /// Start a resident: a command that survives a wipe. Its descriptors as above. Answered by [`Reply::Done`].
    Settle { argv: Vec<String>, env: Vec<(String, String)>, cwd: String },
    /// End the resident and every other process. Answered by [`Reply::Done`].
    Evict,
    /// Listen on the room's own loopback. Answered by [`Reply::Done`] with the listening socket.
    Listen,
    /// Kill the process group of the running command.
    Kill,
    /// Kill every process but the resident, then empty all directories. Answered by [`Reply::Ready`].
    Wipe,
}

/// The limits that the room must set itself, because no control group does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enforce {
    /// Memory in MiB, of each process.
    pub memory_mb: Option<u32>,
    /// Processes and threads.
    pub pids: Option<u32>,
    /// Number of cores to bind commands to.
    pub cpus: Option<u32>,
    /// Size of a file in MiB.
    pub storage_mb: u32,
}

/// Messages from the room to the opener.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The room's first process, as a descriptor; and the user namespace for its commands, if there is one.
    Born,
    /// The room is built; descriptors of the writable directories, then of the sealed ones.
    Ready,
    Done,
    /// A command ended.
    Exited {
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// The request failed; the room is unusable.
    Failed {
        step: String,
        error: String,
    },
}
