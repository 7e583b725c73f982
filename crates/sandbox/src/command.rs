//! Starts a command inside a room: with its own session, streams and limits, without privileges, under the filter.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::process::{DumpableBehavior, Pid, Resource, Rlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, LinkNameSpaceType, move_into_link_name_space};
use seccompiler::BpfProgram;

use crate::filter;
use crate::mounts::StepError;
use crate::spec::{Enforce, ROOM_UID};
use crate::sys::{self, Forked};

/// Exit code of a command that could not be started because the agent's processes have used up the room's processes
/// or memory.
pub(crate) const NO_PLACE: i32 = 254;

/// Whether a process could not be started because the room's commands have used up its processes or memory.
pub(crate) fn is_exhaustion(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOMEM))
}

pub(crate) fn fail(step: &str) -> impl FnOnce(io::Error) -> StepError + '_ {
    move |error| StepError { step: step.to_owned(), error }
}

/// Starts commands. The calling process must have only one thread.
pub(crate) struct Starter {
    /// The restrictions of commands; absent if commands may do whatever this process may.
    confinement: Option<Confinement>,
    /// Whether the kernel should kill commands before this process when memory runs out.
    pub(crate) expendable: bool,
}

struct Confinement {
    enforce: Enforce,
    privileged: bool,
    filters: Vec<BpfProgram>,
    /// The user namespace of the commands, if the room has one that this process is not in.
    users: Option<OwnedFd>,
}

impl Starter {
    /// `privileged`: this process is root, and commands must not be.
    pub(crate) fn new(enforce: Enforce, privileged: bool) -> Result<Self, StepError> {
        let filters = match enforce.memory_mb {
            None => filter::programs(),
            Some(_) => filter::programs_without_nameless_files(),
        };
        let filters = filters.map_err(fail("prepare the filter of system calls"))?;
        let confinement = Confinement { enforce, privileged, filters, users: None };
        Ok(Self { confinement: Some(confinement), expendable: false })
    }

    /// Commands enter this user namespace.
    pub(crate) fn move_commands_to(&mut self, users: OwnedFd) {
        if let Some(confinement) = &mut self.confinement {
            confinement.users = Some(users);
        }
    }

    /// Commands may do whatever this process may.
    pub(crate) fn unconfined() -> Self {
        Self { confinement: None, expendable: false }
    }

    /// Starts a command; the descriptors are its stdin, stdout and stderr.
    pub(crate) fn start(
        &self,
        argv: &[String],
        env: &[(String, String)],
        cwd: &str,
        descriptors: &[OwnedFd],
    ) -> Result<Pid, StepError> {
        let text = |text: &str| CString::new(text).map_err(|error| fail("run a command")(error.into()));
        let argv: Vec<CString> = argv.iter().map(|argument| text(argument)).collect::<Result<_, _>>()?;
        let variables: Vec<CString> =
            env.iter().map(|(name, value)| text(&format!("{name}={value}"))).collect::<Result<_, _>>()?;
        let search_path =
            env.iter().find(|(name, _)| name == "PATH").map_or("/usr/bin:/bin", |(_, value)| value);
        match sys::fork().map_err(fail("fork"))? {
            Forked::Parent(pid) => Ok(pid),
            Forked::Child => {
                let error = match self.become_command(&argv, &variables, search_path, cwd, descriptors) {
                    Ok(never) => match never {},
                    Err(failure) => format!("cannot {}: {}\n", failure.step, failure.error),
                };
                if let Some(stderr) = descriptors.get(2) {
                    rustix::io::write(stderr, error.as_bytes()).ok();
                }
                // The exit code of shells for a command that cannot be run.
                sys::exit_now(127)
            }
        }
    }

    /// Drops all privileges and executes the command.
    fn become_command(
        &self,
        argv: &[CString],
        variables: &[CString],
        search_path: &str,
        cwd: &str,
        descriptors: &[OwnedFd],
    ) -> Result<std::convert::Infallible, StepError> {
        sys::stop_ignoring_broken_pipes();
        rustix::process::setsid().map_err(|error| fail("make a session")(error.into()))?;
        for (number, descriptor) in (0..).zip(descriptors) {
            sys::duplicate_onto(descriptor.as_fd(), number).map_err(fail("connect its streams"))?;
        }
        if self.expendable {
            // A process that others may not inspect cannot write its own file. The program that it executes next can be
            // inspected in any case.
            rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable).ok();
            // If this fails, the kernel chooses the process to kill, and usually chooses well.
            std::fs::write("/proc/self/oom_score_adj", "1000").ok();
        }
        std::env::set_current_dir(cwd).map_err(fail("enter the working directory"))?;
        if let Some(confinement) = &self.confinement {
            set_limits(&confinement.enforce).map_err(fail("set limits"))?;
            if let Some(users) = &confinement.users {
                move_into_link_name_space(users.as_fd(), Some(LinkNameSpaceType::User))
                    .map_err(|error| fail("enter the user namespace")(error.into()))?;
            }
            drop_privileges(confinement.privileged).map_err(fail("drop privileges"))?;
            filter::install(&confinement.filters).map_err(fail("filter system calls"))?;
        }
        let program = argv.first().cloned().unwrap_or_default();
        if program.as_bytes().contains(&b'/') {
            return sys::exec(&program, argv, variables).map_err(fail("run the command"));
        }
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for directory in search_path.split(':') {
            let Ok(candidate) = CString::new(format!("{directory}/{}", program.to_string_lossy())) else {
                continue;
            };
            match sys::exec(&candidate, argv, variables) {
                Ok(never) => match never {},
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => last = error,
            }
        }
        Err(fail("run the command")(last))
    }
}

fn set_limits(enforce: &Enforce) -> io::Result<()> {
    const MEBIBYTE: u64 = 1024 * 1024;
    let set = |resource, value: u64| {
        let current = rustix::process::getrlimit(resource);
        // Only root could raise a hard limit.
        let value = current.maximum.map_or(value, |maximum| maximum.min(value));
        rustix::process::setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })
    };
    set(Resource::Core, 0)?;
    set(Resource::Nofile, 1024)?;
    // The kernel keeps these for a user, and one room must leave some to the others.
    set(Resource::Sigpending, 1024)?;
    set(Resource::Msgqueue, 0)?;
    // No command may take precedence over the rest of the machine.
    set(Resource::Nice, 0)?;
    set(Resource::Rtprio, 0)?;
    set(Resource::Fsize, u64::from(enforce.storage_mb) * MEBIBYTE)?;
    if let Some(megabytes) = enforce.memory_mb {
        set(Resource::As, u64::from(megabytes) * MEBIBYTE)?;
    }
    if let Some(pids) = enforce.pids {
        set(Resource::Nproc, pids.into())?;
    }
    if let Some(cpus) = enforce.cpus {
        let allowed = rustix::thread::sched_getaffinity(None)?;
        let mut chosen = rustix::thread::CpuSet::new();
        let cores = (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
        cores.take(cpus as usize).for_each(|core| chosen.set(core));
        rustix::thread::sched_setaffinity(None, &chosen)?;
    }
    Ok(())
}

/// Drops all capabilities and switches to the user of rooms, irrevocably.
fn drop_privileges(privileged: bool) -> io::Result<()> {
    for capability in CapabilitySet::all().iter() {
        // A capability that this kernel does not know cannot be held.
        rustix::thread::remove_capability_from_bounding_set(capability).ok();
    }
    if privileged {
        let (uid, gid) = (rustix::fs::Uid::from_raw(ROOM_UID), rustix::fs::Gid::from_raw(ROOM_UID));
        rustix::thread::set_thread_groups(&[])?;
        rustix::thread::set_thread_res_gid(gid, gid, gid)?;
        rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    }
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: none, permitted: none, inheritable: none },
    )?;
    rustix::thread::set_no_new_privs(true)?;
    Ok(())
}
