//! The machine that this process runs on, taken as the room: for a process that is inside one already.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::process::DumpableBehavior;

use crate::host_commands::HostCommands;
use crate::room::{ExecResult, ExecSpec, Sandbox, SandboxError, Stopper, Stream};
use crate::spec::{Held, Level};
use crate::tree::Tree;

/// Where commands find the workspace in every other room.
const WORKSPACE: &str = "/workspace";
/// A directory for logs, used where there is one.
const LOGS: &str = "/logs";

/// This machine as a room. Its commands see whatever this process sees, except its environment.
#[derive(Debug)]
pub struct HereRoom {
    places: Vec<(&'static str, Tree)>,
    commands: HostCommands,
}

impl HereRoom {
    /// Takes a directory as the workspace. From now on commands of the same user cannot read this process's memory
    /// and environment, which hold its keys; root can.
    pub fn open(workspace: &Path) -> Result<Self, SandboxError> {
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
            .map_err(std::io::Error::from)?;
        let mut places = vec![(WORKSPACE, Tree::open(workspace)?)];
        if let Ok(logs) = Tree::open(Path::new(LOGS)) {
            places.push((LOGS, logs));
        }
        Ok(Self { places, commands: HostCommands::default() })
    }
}

impl Sandbox for HereRoom {
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
        self.places.iter().find(|(known, _)| *known == place).map(|(_, tree)| tree)
    }

    /// There is nothing to seal.
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

impl Drop for HereRoom {
    fn drop(&mut self) {
        self.commands.end();
    }
}
