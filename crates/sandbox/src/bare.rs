//! No room at all: commands run on the host, as the same user, seeing everything. Only for machines that are
//! themselves disposable, and only when somebody asks for it by name.
//!
//! Tasks name their places absolutely, so `/workspace` and the like are made on the host, as links to a temporary
//! directory, for one such sandbox at a time.

use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::room::{ExecResult, ExecSpec, Exit, Pumped, Sandbox, SandboxError, Stopper, Stream, filled_pipe};
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
    /// Set from another thread.
    stopped: Arc<AtomicBool>,
    /// Held as long as the places are ours.
    _lock: File,
}

impl BareRoom {
    /// Makes the places of a room on the host itself.
    pub fn open(spec: &RoomSpec) -> Result<Self, SandboxError> {
        // Another user's file could not be opened; their places would be in the way anyhow.
        let user = rustix::process::geteuid().as_raw();
        let lock = File::create(std::env::temp_dir().join(format!("aec-bench-no-sandbox-{user}.lock")))?;
        lock.lock()?;
        let directory = tempfile::Builder::new().prefix("aec-bench-").tempdir()?;
        let mut bare = Self {
            places: Vec::new(),
            links: Vec::new(),
            groups: Vec::new(),
            directory,
            stopped: Arc::default(),
            _lock: lock,
        };
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

impl BareRoom {
    /// Reads output until the command ends or its time is up.
    fn follow(
        &mut self,
        mut child: Child,
        streams: &mut [Pumped; 2],
        deadline: Instant,
        watch: &mut dyn FnMut(Stream, &[u8]),
    ) -> io::Result<Exit> {
        // A child is not a descriptor to wait on together with its output, so it is asked from time to time.
        const PAUSE: Duration = Duration::from_millis(2);
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        self.groups.extend(group);
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status
                    .code()
                    .map_or_else(|| Exit::Signal(status.signal().unwrap_or(0)), Exit::Code));
            }
            if Instant::now() >= deadline || self.stopped.load(Ordering::Relaxed) {
                group.map(|group| rustix::process::kill_process_group(group, Signal::KILL).ok());
                child.wait()?;
                return Ok(Exit::Deadline);
            }
            let mut read = false;
            for stream in streams.iter_mut() {
                read |= stream.read_ready(watch);
            }
            if !read {
                std::thread::sleep(PAUSE);
            }
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
        let started = Instant::now();
        let (program, arguments) =
            command.argv.split_first().ok_or_else(|| io::Error::other("no command"))?;
        let (mut streams, out_writer, err_writer) = Pumped::pair(command)?;
        let spawned = Command::new(program)
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(command.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&command.cwd)
            .process_group(0)
            .stdin(filled_pipe(&command.stdin)?)
            .stdout(out_writer)
            .stderr(err_writer)
            .spawn();
        let exit = match spawned {
            Ok(child) => self.follow(child, &mut streams, started + command.deadline, watch)?,
            Err(error) => {
                streams[1].say(&format!("cannot run the command: {error}\n"));
                // What shells say of a command that cannot be run.
                Exit::Code(127)
            }
        };
        for stream in &mut streams {
            stream.drain(watch);
        }
        let [stdout, stderr] = streams.map(Pumped::finish);
        Ok(ExecResult { exit, stdout, stderr, duration: started.elapsed() })
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

    /// The host's loopback is all that commands have.
    fn listen(&mut self) -> Result<TcpListener, SandboxError> {
        Ok(TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?)
    }

    fn stopper(&self) -> Option<Stopper> {
        let stopped = Arc::clone(&self.stopped);
        Some(Stopper::new(move || stopped.store(true, Ordering::Relaxed)))
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
