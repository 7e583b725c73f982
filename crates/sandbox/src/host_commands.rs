//! Commands that run on the machine itself, as the same user, for sandboxes without isolation.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::error::SandboxError;
use crate::room::{ExecResult, ExecSpec, Exit, Pumped, Stopper, Stream, filled_pipe};

/// Commands of one sandbox.
#[derive(Debug, Default)]
pub(crate) struct HostCommands {
    /// Process groups of commands; processes that left their group cannot be ended.
    groups: Vec<Pid>,
    resident: Option<Child>,
    /// Set from another thread.
    stopped: Arc<AtomicBool>,
}

impl HostCommands {
    /// Runs a command to its end.
    pub(crate) fn exec(
        &mut self,
        command: &ExecSpec,
        watch: &mut dyn FnMut(Stream, &[u8]),
    ) -> Result<ExecResult, SandboxError> {
        let started = Instant::now();
        let mut host = host_command(command)?;
        let (mut streams, out_writer, err_writer) = Pumped::pair(command)?;
        let spawned = host.stdin(filled_pipe(&command.stdin)?).stdout(out_writer).stderr(err_writer).spawn();
        let exit = match spawned {
            Ok(child) => self.follow(child, &mut streams, started + command.deadline, watch)?,
            Err(error) => {
                streams[1].say(&format!("cannot run the command: {error}\n"));
                // The exit code of shells for a command that cannot be run.
                Exit::Code(127)
            }
        };
        for stream in &mut streams {
            stream.drain(watch);
        }
        let [stdout, stderr] = streams.map(Pumped::finish);
        Ok(ExecResult { exit, stdout, stderr, duration: started.elapsed() })
    }

    /// Starts a command that keeps running beside others.
    pub(crate) fn settle(
        &mut self,
        command: &ExecSpec,
        socket: &OwnedFd,
        output: &OwnedFd,
    ) -> Result<(), SandboxError> {
        let child = host_command(command)?
            .stdin(socket.try_clone()?)
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .spawn()?;
        self.groups.extend(group_of(&child));
        self.resident = Some(child);
        Ok(())
    }

    /// Ends every command and whatever it left running in its process group.
    pub(crate) fn end(&mut self) {
        if let Some(mut resident) = self.resident.take() {
            group_of(&resident).map(|group| rustix::process::kill_process_group(group, Signal::KILL).ok());
            // It was killed; without this wait it would stay as a zombie.
            resident.wait().ok();
        }
        for group in self.groups.drain(..) {
            rustix::process::kill_process_group(group, Signal::KILL).ok();
        }
    }

    /// Lets another thread end the running command.
    pub(crate) fn stopper(&self) -> Stopper {
        let stopped = Arc::clone(&self.stopped);
        Stopper::new(move || stopped.store(true, Ordering::Relaxed))
    }

    /// Reads output until the command ends or its time is up.
    fn follow(
        &mut self,
        mut child: Child,
        streams: &mut [Pumped; 2],
        deadline: Instant,
        watch: &mut dyn FnMut(Stream, &[u8]),
    ) -> io::Result<Exit> {
        // Without a descriptor of the child to poll together with its output, its end is checked from time to time.
        const PAUSE: Duration = Duration::from_millis(2);
        let group = group_of(&child);
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

/// A command in a new process group, whose environment has only the search path of this process.
fn host_command(command: &ExecSpec) -> io::Result<Command> {
    let (program, arguments) = command.argv.split_first().ok_or_else(|| io::Error::other("no command"))?;
    let mut host = Command::new(program);
    host.args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs(command.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&command.cwd)
        .process_group(0);
    Ok(host)
}

/// The process group that a command leads.
fn group_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}
