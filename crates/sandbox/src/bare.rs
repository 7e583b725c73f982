//! No room at all: commands run on the host, as the same user, seeing everything. Only for machines that are
//! themselves disposable, and only when somebody asks for it by name.
//!
//! Tasks name their places absolutely, so `/workspace` and the like are made on the host, as links to a temporary
//! directory, for one such sandbox at a time.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal};

use crate::output::Capture;
use crate::room::{ExecResult, ExecSpec, Exit, Sandbox, SandboxError, Stream};
use crate::spec::{Held, Level, RoomSpec};
use crate::tree::Tree;

/// A sandbox that is none.
#[derive(Debug)]
pub struct BareRoom {
    places: Vec<(String, Tree)>,
    links: Vec<PathBuf>,
    /// Process groups of commands, which are all that can be ended.
    groups: Vec<Pid>,
    directory: tempfile::TempDir,
    /// Held as long as the places are ours.
    _lock: File,
}

impl BareRoom {
    /// Makes the places of a room on the host itself.
    pub fn open(spec: &RoomSpec) -> Result<Self, SandboxError> {
        let lock = File::create(std::env::temp_dir().join("aec-bench-no-sandbox.lock"))?;
        lock.lock()?;
        let directory = tempfile::Builder::new().prefix("aec-bench-").tempdir()?;
        let mut bare =
            Self { places: Vec::new(), links: Vec::new(), groups: Vec::new(), directory, _lock: lock };
        for (index, place) in spec.writable.iter().chain(&spec.sealed).enumerate() {
            let behind = bare.directory.path().join(index.to_string());
            fs_err::create_dir(&behind)?;
            let link = PathBuf::from(place);
            // A link that points nowhere was left by a run that was killed.
            if link.is_symlink() && !link.exists() {
                fs_err::remove_file(&link)?;
            }
            std::os::unix::fs::symlink(&behind, &link).map_err(|error| SandboxError::Refused {
                step: format!("make {place} on this machine"),
                error: error.to_string(),
            })?;
            bare.links.push(link);
            bare.places.push((place.clone(), Tree::open(&behind)?));
        }
        Ok(bare)
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
        let started = Instant::now();
        let (mut reader, writer) = io::pipe()?;
        let (program, arguments) =
            command.argv.split_first().ok_or_else(|| io::Error::other("no command"))?;
        let mut child = match Command::new(program)
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(command.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&command.cwd)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .spawn()
        {
            Ok(child) => child,
            Err(error) => {
                let mut stderr = Capture::new(command.stderr.clone())?;
                stderr.push(format!("cannot run the command: {error}\n").as_bytes());
                let stdout = Capture::new(command.stdout.clone())?.finish();
                let duration = started.elapsed();
                return Ok(ExecResult { exit: Exit::Code(127), stdout, stderr: stderr.finish(), duration });
            }
        };
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        self.groups.extend(group);
        let mut capture = Capture::new(command.stdout.clone())?;
        let deadline = started + command.deadline;
        let mut exit = None;
        while exit.is_none() {
            let left =
                deadline.saturating_duration_since(Instant::now()).min(std::time::Duration::from_millis(20));
            let patience = rustix::event::Timespec::try_from(left).ok();
            let mut waiting = [rustix::event::PollFd::new(&reader, rustix::event::PollFlags::IN)];
            if rustix::event::poll(&mut waiting, patience.as_ref()).is_ok_and(|count| count > 0) {
                let mut buffer = [0; 16 * 1024];
                let count = reader.read(&mut buffer).unwrap_or(0);
                capture.push(&buffer[..count]);
                watch(Stream::Stdout, &buffer[..count]);
            }
            exit = match child.try_wait()? {
                Some(status) => {
                    Some(status.code().map_or_else(|| Exit::Signal(status.signal().unwrap_or(0)), Exit::Code))
                }
                None if Instant::now() >= deadline => {
                    group.map(|group| rustix::process::kill_process_group(group, Signal::KILL).ok());
                    child.wait()?;
                    Some(Exit::Deadline)
                }
                None => None,
            };
        }
        let stderr = Capture::new(command.stderr.clone())?.finish();
        let exit = exit.unwrap_or(Exit::Deadline);
        Ok(ExecResult { exit, stdout: capture.finish(), stderr, duration: started.elapsed() })
    }

    fn directory(&self, place: &str) -> Option<&Tree> {
        self.places.iter().find(|(known, _)| known == place).map(|(_, tree)| tree)
    }

    /// Nothing can be made read-only for a process that may do whatever this one may.
    fn seal(&mut self) -> Result<(), SandboxError> {
        Ok(())
    }

    fn freeze(&mut self) -> Result<(), SandboxError> {
        for group in self.groups.drain(..) {
            rustix::process::kill_process_group(group, Signal::KILL).ok();
        }
        Ok(())
    }

    fn out_of_memory(&self) -> bool {
        false
    }
}

impl Drop for BareRoom {
    fn drop(&mut self) {
        self.freeze().ok();
        for link in &self.links {
            std::fs::remove_file(link).ok();
        }
    }
}
