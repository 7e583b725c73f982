//! What a room is asked to be, what it turned out to be, and the messages between the two sides of it.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The user that commands run as when the host process is root: nobody's account, in no group.
pub const ROOM_UID: u32 = 64_999;

/// A room to be opened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RoomSpec {
    /// Directories that exist in the room besides the system, all writable and empty at first.
    pub writable: Vec<String>,
    /// Directories that the opener fills and that are then read-only.
    pub sealed: Vec<String>,
    /// Host directories shown read-only at the same place, such as the prefix of an interpreter.
    pub show: Vec<PathBuf>,
    /// Programs by name, linked into a directory at the front of the search path.
    pub programs: Vec<(String, PathBuf)>,
    /// What the processes in the room may take.
    pub limits: Limits,
    /// Whether the host's network is visible.
    pub network: bool,
}

impl RoomSpec {
    /// Offers this program under its own name, also where it is no part of the system. Containers have it anyway.
    pub fn offer_ourselves(&mut self) -> std::io::Result<()> {
        let program = crate::program()?;
        self.show.push(program.clone());
        self.programs.push((OURSELVES.to_owned(), program));
        Ok(())
    }

    /// Offers an interpreter as `python3` and `python`.
    pub fn offer_python(&mut self, python: &crate::python::Python) {
        for name in ["python3", "python"] {
            self.programs.push((name.to_owned(), python.path.clone()));
        }
        // What is not part of the system would not be there.
        if !python.prefix.starts_with("/usr") {
            self.show.push(python.prefix.clone());
        }
    }
}

/// The name of this program in rooms.
pub const OURSELVES: &str = "aec-bench";

/// What all processes of a room together may take.
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

/// How well a limit holds.
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

/// Which limits really hold, as recorded with every result.
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
    /// Nothing holds.
    pub const NOTHING: Self = Self { cpus: Hold::No, memory: Hold::No, storage: Hold::No, pids: Hold::No };
}

/// How commands are kept apart from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Own namespaces, system calls filtered, no privileges.
    Namespaces,
    /// The same in a container of the task's own image.
    Container,
    /// Not at all: commands run on the host.
    None,
}

/// From the opener to the room.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Build the room. Answered by [`Reply::Ready`] with a descriptor for each directory.
    Open { spec: RoomSpec, enforce: Enforce },
    /// Make the sealed directories read-only. Answered by [`Reply::Done`].
    Seal,
    /// Run a command; the descriptors are its stdin, stdout and stderr. Answered by [`Reply::Exited`].
    Exec { argv: Vec<String>, env: Vec<(String, String)>, cwd: String },
    /// Start a resident: a command that stays when the room is wiped. Its descriptors as above. Answered by
    /// [`Reply::Done`].
    Settle { argv: Vec<String>, env: Vec<(String, String)>, cwd: String },
    /// End the resident and every other process. Answered by [`Reply::Done`].
    Evict,
    /// Listen on the room's own loopback. Answered by [`Reply::Done`] with the listening socket.
    Listen,
    /// Kill the process group of the running command.
    Kill,
    /// Kill every process but the resident, then make all directories empty again. Answered by [`Reply::Ready`].
    Wipe,
}

/// The limits that the room itself must set, because no control group does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enforce {
    /// Memory in MiB, of each process.
    pub memory_mb: Option<u32>,
    /// Processes and threads.
    pub pids: Option<u32>,
    /// Cores to be held to.
    pub cpus: Option<u32>,
    /// Size of a file in MiB.
    pub storage_mb: u32,
}

/// From the room to the opener.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The room's first process, as a descriptor.
    Born,
    /// The room is built; descriptors of the writable directories, then of the sealed ones.
    Ready,
    Done,
    /// A command ended.
    Exited {
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// It did not work; the room is of no use.
    Failed {
        step: String,
        error: String,
    },
}
