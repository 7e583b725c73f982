//! No isolation: commands run on the host, as the same user, and see everything. Only for disposable machines if the
//! user asks for it by name, or for a process that is already inside a room.

use std::fs::File;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use aec_base::staging::Staging;
use rustix::process::DumpableBehavior;

use crate::error::SandboxError;
use crate::host_commands::HostCommands;
use crate::room::{ExecResult, ExecSpec, Sandbox, Stopper, Stream};
use crate::spec::{Held, Level, RoomSpec};
use crate::tree::Tree;

/// The workspace of all other kinds of room.
const WORKSPACE: &str = "/workspace";
/// A directory for logs, if the room asks for it.
const LOGS: &str = "/logs";

/// A sandbox without isolation.
#[derive(Debug)]
pub struct BareRoom {
    places: Vec<(String, Tree)>,
    commands: HostCommands,
    /// The directories made on the host for this room, if any.
    _made: Option<MadePlaces>,
}

/// Tasks use absolute paths, so `/workspace` and the like are links to a temporary directory, for one room at a time.
#[derive(Debug)]
struct MadePlaces {
    links: Vec<PathBuf>,
    directory: Staging,
    /// Held while the directories are ours.
    _lock: File,
}

impl BareRoom {
    /// Makes the directories of a room on the host itself.
    pub fn open(spec: &RoomSpec) -> Result<Self, SandboxError> {
        // One lock file per user: another user's file could not be opened, and their directories would be in the way
        // anyway.
        let user = rustix::process::geteuid().as_raw();
        let lock = File::create(std::env::temp_dir().join(format!("aec-bench-no-sandbox-{user}.lock")))?;
        lock.lock()?;
        let directory = Staging::scratch()?;
        let mut made = MadePlaces { links: Vec::new(), directory, _lock: lock };
        let mut places = Vec::new();
        for place in spec.writable.iter().chain(&spec.sealed) {
            places.push((place.clone(), made.place(place)?));
        }
        Ok(Self { places, commands: HostCommands::default(), _made: Some(made) })
    }

    /// Takes this machine as the room and a directory as its workspace. From now on commands of the same user cannot
    /// read the memory and environment of this process, which hold its keys; root can.
    pub fn here(workspace: &Path) -> Result<Self, SandboxError> {
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
            .map_err(std::io::Error::from)?;
        let mut places = vec![(WORKSPACE.to_owned(), Tree::open(workspace)?)];
        if let Ok(logs) = Tree::open(Path::new(LOGS)) {
            places.push((LOGS.to_owned(), logs));
        }
        Ok(Self { places, commands: HostCommands::default(), _made: None })
    }
}

impl MadePlaces {
    fn place(&mut self, place: &str) -> Result<Tree, SandboxError> {
        let behind = self.directory.path().join(self.links.len().to_string());
        fs_err::create_dir(&behind)?;
        let link = PathBuf::from(place);
        // A killed run leaves links without a target.
        if link.is_symlink() && !link.exists() {
            fs_err::remove_file(&link)?;
        }
        std::os::unix::fs::symlink(&behind, &link).map_err(|error| SandboxError::Refused {
            step: format!("make {place} on this machine"),
            error: error.to_string(),
        })?;
        self.links.push(link);
        Tree::open(&behind).map_err(SandboxError::from)
    }
}

impl Drop for MadePlaces {
    fn drop(&mut self) {
        for link in &self.links {
            std::fs::remove_file(link).ok();
        }
    }
}

impl Sandbox for BareRoom {
    fn level(&self) -> Level {
        Level::None
    }

    fn held(&self) -> Held {
        Held::NOTHING
    }

    fn exec(
        &mut self,
        command: &ExecSpec,
        watch: &mut dyn FnMut(Stream, &[u8]),
    ) -> Result<ExecResult, SandboxError> {
        self.commands.exec(command, watch)
    }

    fn directory(&self, place: &str) -> Option<&Tree> {
        self.places.iter().find(|(known, _)| known == place).map(|(_, tree)| tree)
    }

    /// Does nothing: commands have the same rights as this process, so nothing can be made read-only for them.
    fn seal(&mut self) -> Result<(), SandboxError> {
        Ok(())
    }

    fn freeze(&mut self) -> Result<(), SandboxError> {
        self.commands.end();
        Ok(())
    }

    fn out_of_memory(&self) -> bool {
        false
    }

    /// Commands share the host's loopback.
    fn listen(&mut self) -> Result<TcpListener, SandboxError> {
        Ok(TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?)
    }

    fn settle(&mut self, command: &ExecSpec, socket: &OwnedFd, output: &OwnedFd) -> Result<(), SandboxError> {
        self.commands.settle(command, socket, output)
    }

    fn evict(&mut self) -> Result<(), SandboxError> {
        self.commands.end();
        Ok(())
    }

    fn stopper(&self) -> Option<Stopper> {
        Some(self.commands.stopper())
    }
}

impl Drop for BareRoom {
    fn drop(&mut self) {
        self.commands.end();
    }
}
