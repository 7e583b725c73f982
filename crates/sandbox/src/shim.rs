//! The inside of a room: the shim becomes the room's first process, builds the room and runs commands in it.
//!
//! The program executes itself again for this (`aec-bench __exec`), because namespaces must be made by a process with
//! one thread. The shim forks once. The outer half only waits; when it ends, every process of the room is gone. The
//! inner half is process 1 of the room and lives until the opener closes the channel or kills it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions};
use rustix::thread::UnshareFlags;

use crate::channel::Channel;
use crate::command::{NO_PLACE, Starter, fail, is_exhaustion};
use crate::doorway;
use crate::mounts::{self, StepError};
use crate::spec::{Enforce, ROOM_UID, Reply, Request, RoomSpec};
use crate::sys::{self, Forked};
use crate::view::View;

/// The argument that makes the program a shim.
pub const SHIM_ARGUMENT: &str = "__exec";

/// Runs the shim; the channel is descriptor 0. Returns the exit code.
pub fn run() -> i32 {
    // What the opener inherited from its own parent, such as a directory of the host, must not reach the room.
    let closed = sys::close_from(3, false).map_err(fail("close inherited descriptors"));
    let channel = Channel::new(sys::inherited(0));
    match closed.and_then(|()| serve(&channel)) {
        Ok(()) => 0,
        Err(failure) => {
            let reply = Reply::Failed { step: failure.step, error: failure.error.to_string() };
            i32::from(channel.send(&reply, &[]).is_err()) + 1
        }
    }
}

fn serve(channel: &Channel) -> Result<(), StepError> {
    // The opener closed the channel before its first request, because it no longer needs the room.
    let Ok((Request::Open { spec, view, enforce, user }, _)) = channel.receive() else { return Ok(()) };
    let privileged = rustix::process::geteuid().is_root();
    if !privileged {
        own_user_namespace().map_err(fail("make a user namespace"))?;
    }
    let mut namespaces = UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    if !spec.network {
        namespaces |= UnshareFlags::NEWNET;
    }
    sys::unshare(namespaces).map_err(fail("make namespaces"))?;
    // Both halves share one channel: the inner one must not send before the outer one has.
    let (mut announced, announce) = io::pipe().map_err(fail("make a pipe"))?;
    match sys::fork().map_err(fail("fork"))? {
        Forked::Parent(first) => {
            drop(announced);
            let handle = rustix::process::pidfd_open(first, rustix::process::PidfdFlags::empty())
                .map_err(|error| fail("name the first process")(error.into()))?;
            // A host may allow no user namespaces; commands then share their user with those of other rooms.
            let users = user.and_then(|_| user_namespace_of_commands().ok());
            let handles: Vec<_> = std::iter::once(&handle).chain(&users).map(AsFd::as_fd).collect();
            channel.send(&Reply::Born, &handles).map_err(fail("announce the first process"))?;
            let mut announce = announce;
            if users.is_some() {
                io::Write::write_all(&mut announce, &[1]).map_err(fail("announce the user"))?;
            }
            drop((announce, users));
            wait_for(first);
            Ok(())
        }
        Forked::Child => {
            drop(announce);
            let apart = io::Read::read(&mut announced, &mut [0]).is_ok_and(|count| count > 0);
            let owner = privileged.then(|| user.filter(|_| apart).unwrap_or(ROOM_UID));
            let code = match First::new(channel, spec, &view, enforce, owner).and_then(First::run) {
                Ok(()) => 0,
                Err(failure) => {
                    let reply = Reply::Failed { step: failure.step, error: failure.error.to_string() };
                    i32::from(channel.send(&reply, &[]).is_err()) + 1
                }
            };
            sys::exit_now(code)
        }
    }
}

fn wait_for(pid: Pid) {
    while let Err(rustix::io::Errno::INTR) = rustix::process::waitpid(Some(pid), WaitOptions::empty()) {}
}

/// Enters a user namespace that contains only this user.
fn own_user_namespace() -> io::Result<()> {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    sys::unshare(UnshareFlags::NEWUSER)?;
    // Otherwise the kernel does not let an ordinary user write the group map.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{ROOM_UID} {uid} 1\n"))?;
    std::fs::write("/proc/self/gid_map", format!("{ROOM_UID} {gid} 1\n"))
}

/// Moves this process, which does nothing more in the room, into a new user namespace, and returns that namespace. The
/// opener says which users it has.
fn user_namespace_of_commands() -> io::Result<OwnedFd> {
    sys::unshare(UnshareFlags::NEWUSER)?;
    Ok(std::fs::File::open("/proc/self/ns/user")?.into())
}

/// The room's first process.
struct First<'a> {
    channel: &'a Channel,
    spec: RoomSpec,
    /// The host's user of the commands; absent if it is this process's own.
    owner: Option<u32>,
    starter: Starter,
    running: Option<Pid>,
    resident: Option<Pid>,
}

impl<'a> First<'a> {
    fn new(
        channel: &'a Channel,
        spec: RoomSpec,
        view: &View,
        enforce: Enforce,
        owner: Option<u32>,
    ) -> Result<Self, StepError> {
        // If the outer half dies, the opener could not tell that this one still runs.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|error| fail("tie the room to its opener")(error.into()))?;
        rustix::process::setsid().map_err(|error| fail("make a session")(error.into()))?;
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        // The same in every room, so that nothing depends on the host's name.
        rustix::system::sethostname(b"room").map_err(|error| fail("name the room")(error.into()))?;
        mounts::build(&spec, view, owner)?;
        let mut starter = Starter::new(enforce, owner.is_some())?;
        // The room must not end because its commands use up its memory.
        starter.expendable = true;
        // In an ordinary user's room commands have the same user as this process. Without handlers it ignores their
        // signals, and its files in `/proc`, such as the one that chooses whom the kernel kills, are not theirs.
        sys::stop_handling_faults();
        sys::leave_keyrings();
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
            .map_err(|error| fail("hide from commands")(error.into()))?;
        Ok(Self { channel, spec, owner, starter, running: None, resident: None })
    }

    fn run(mut self) -> Result<(), StepError> {
        self.ready()?;
        loop {
            if !self.next_is_request()? {
                self.reap()?;
                continue;
            }
            let (request, descriptors): (Request, Vec<OwnedFd>) = match self.channel.receive() {
                Ok(received) => received,
                // The opener is gone; when this process ends, the kernel ends all others of the room.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(fail("listen")(error)),
            };
            match request {
                Request::Open { .. } => return Err(fail("open")(io::Error::other("the room is open"))),
                Request::Inhabit => {
                    let users = descriptors.into_iter().next();
                    let missing = || fail("receive a user namespace")(io::Error::other("there is none"));
                    self.starter.move_commands_to(users.ok_or_else(missing)?);
                }
                Request::Seal => {
                    mounts::seal(&self.spec)?;
                    self.say(&Reply::Done)?;
                }
                Request::Exec { argv, env, cwd } => {
                    match self.starter.start(&argv, &env, &cwd, &descriptors) {
                        Ok(pid) => self.running = Some(pid),
                        Err(failure) if is_exhaustion(&failure.error) => {
                            self.say(&Reply::Exited { code: Some(NO_PLACE), signal: None })?;
                        }
                        Err(failure) => return Err(failure),
                    }
                }
                Request::Settle { argv, env, cwd } => {
                    self.resident = Some(self.starter.start(&argv, &env, &cwd, &descriptors)?);
                    self.say(&Reply::Done)?;
                }
                Request::Evict => {
                    self.resident = None;
                    self.kill_everything()?;
                    self.say(&Reply::Done)?;
                }
                Request::Listen => {
                    let listener = doorway::open(!self.spec.network).map_err(fail("listen on loopback"))?;
                    self.channel.send(&Reply::Done, &[listener.as_fd()]).map_err(fail("answer"))?;
                }
                Request::Kill => {
                    if let Some(pid) = self.running {
                        // It may already have ended.
                        rustix::process::kill_process_group(pid, Signal::KILL).ok();
                    }
                }
                Request::Wipe => {
                    self.kill_everything()?;
                    mounts::unmount_writable(&self.spec)?;
                    mounts::mount_writable(&self.spec, self.owner)?;
                    self.ready()?;
                }
            }
        }
    }

    /// Whether the opener sent a request; also returns from time to time to collect orphaned processes.
    fn next_is_request(&self) -> Result<bool, StepError> {
        const PATIENCE: rustix::event::Timespec = rustix::event::Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        let handle = self
            .running
            .and_then(|pid| rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok());
        let line = self.channel.as_fd();
        let mut waiting = vec![PollFd::new(&line, PollFlags::IN)];
        if let Some(handle) = &handle {
            waiting.push(PollFd::new(handle, PollFlags::IN));
        }
        match poll(&mut waiting, Some(&PATIENCE)) {
            Ok(_) => Ok(!waiting[0].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(fail("wait")(error.into())),
        }
    }

    fn say(&self, reply: &Reply) -> Result<(), StepError> {
        self.channel.send(reply, &[]).map_err(fail("answer"))
    }

    fn ready(&self) -> Result<(), StepError> {
        let directories = mounts::open_directories(&self.spec)?;
        let borrowed: Vec<_> = directories.iter().map(AsFd::as_fd).collect();
        self.channel.send(&Reply::Ready, &borrowed).map_err(fail("answer"))
    }

    /// Collects every process that has ended, and reports the command if it is among them.
    fn reap(&mut self) -> Result<(), StepError> {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if self.running == Some(pid) {
                self.running = None;
                self.say(&Reply::Exited { code: status.exit_status(), signal: status.terminating_signal() })?;
            }
        }
        Ok(())
    }

    /// Kills every process but the resident and waits until all have ended, so that no earlier process survives.
    fn kill_everything(&mut self) -> Result<(), StepError> {
        // If processes multiply faster than this, the whole room is ended instead.
        const ROUNDS: usize = 1000;
        self.running = None;
        let Some(resident) = self.resident else {
            sys::kill_everyone();
            while rustix::process::wait(WaitOptions::empty()).is_ok() {
                sys::kill_everyone();
            }
            return Ok(());
        };
        // One by one, because the resident must survive.
        for _ in 0..ROUNDS {
            let others = other_processes(resident).map_err(fail("look at the processes"))?;
            while let Ok(Some((pid, _))) = rustix::process::wait(WaitOptions::NOHANG) {
                if pid == resident {
                    return Err(fail("keep the resident")(io::Error::other("it has ended")));
                }
            }
            if others.is_empty() {
                return Ok(());
            }
            for pid in others {
                // It may already have ended.
                rustix::process::kill_process(pid, Signal::KILL).ok();
            }
        }
        Err(fail("end every process")(io::Error::other("new ones keep coming")))
    }
}

/// All running processes of the room except the first and the resident.
fn other_processes(resident: Pid) -> io::Result<Vec<Pid>> {
    let mut others = Vec::new();
    for entry in std::fs::read_dir("/proc")?.filter_map(Result::ok) {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw) else {
            continue;
        };
        if pid == Pid::INIT || pid == resident {
            continue;
        }
        let status = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let ended = status.rsplit(") ").next().is_none_or(|rest| rest.starts_with(['Z', 'X']));
        // Zombies do not count: their parents collect them, also the resident.
        if !ended {
            others.push(pid);
        }
    }
    Ok(others)
}
