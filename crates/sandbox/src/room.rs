//! Opens rooms and works in them, from outside.

use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;

use crate::cgroup::{Cgroup, Hierarchies};
use crate::channel::Channel;
use crate::error::SandboxError;
use crate::mounts::PROGRAMS;
use crate::output::{Capture, Captured, OutputLimits};
use crate::shim::SHIM_ARGUMENT;
use crate::spec::{Enforce, Held, Hold, Level, ROOM_UID, Reply, Request, RoomSpec};
use crate::tree::Tree;
use crate::view::View;

/// The first of the host's users that commands of rooms are when this process is root: beyond all users that systems
/// give to people, services and containers. Each room has its own, so none can take what the kernel allows a user.
const FIRST_USER: u32 = 0x7000_0000;
/// The largest number of a process.
const LAST_PROCESS: u32 = 1 << 22;

/// A command to run in a room.
#[derive(Clone, Debug)]
pub struct ExecSpec {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// The whole environment except the search path.
    pub env: Vec<(String, String)>,
    pub cwd: String,
    pub stdin: Vec<u8>,
    /// Time limit.
    pub deadline: Duration,
    /// How much of its standard output is kept.
    pub stdout: OutputLimits,
    /// How much of its standard error is kept.
    pub stderr: OutputLimits,
}

impl ExecSpec {
    /// A command with an empty environment, generous output limits and one minute.
    pub fn new(argv: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            cwd: "/".to_owned(),
            stdin: Vec::new(),
            deadline: Duration::from_mins(1),
            stdout: OutputLimits::default(),
            stderr: OutputLimits::default(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exited by itself.
    Code(i32),
    Signal(i32),
    /// It was killed at its deadline.
    Deadline,
}

#[derive(Clone, Debug)]
pub struct ExecResult {
    pub exit: Exit,
    pub stdout: Captured,
    pub stderr: Captured,
    pub duration: Duration,
}

/// A place where commands run.
pub trait Sandbox: Send {
    /// How strongly commands are isolated from the host.
    fn level(&self) -> Level;
    /// Which limits are enforced, and how.
    fn held(&self) -> Held;
    /// Runs a command to its end. `watch` gets each piece of output as it arrives.
    fn exec(
        &mut self,
        command: &ExecSpec,
        watch: &mut dyn FnMut(Stream, &[u8]),
    ) -> Result<ExecResult, SandboxError>;
    /// A directory of the room, for reading, writing and listing.
    fn directory(&self, place: &str) -> Option<&Tree>;
    /// Makes the sealed directories read-only.
    fn seal(&mut self) -> Result<(), SandboxError>;
    /// Kills every process. The directories stay readable.
    fn freeze(&mut self) -> Result<(), SandboxError>;
    /// Whether the kernel killed a process because memory ran out.
    fn out_of_memory(&self) -> bool;
    /// Why the room no longer answers, for kinds of room that can get lost; `None` while it answers.
    fn lost(&self) -> Option<SandboxError> {
        None
    }
    /// A listening socket on the commands' loopback, for a service that they may use although they have no network.
    fn listen(&mut self) -> Result<std::net::TcpListener, SandboxError>;
    /// Starts a resident: a command that runs beside others and survives when the room is wiped. It communicates
    /// through the socket that is its stdin; everything it prints goes to `output`.
    fn settle(&mut self, command: &ExecSpec, socket: &OwnedFd, output: &OwnedFd) -> Result<(), SandboxError>;
    /// Ends the resident and all other processes.
    fn evict(&mut self) -> Result<(), SandboxError>;
    /// A handle that ends everything inside from another thread, also while a command runs.
    fn stopper(&self) -> Option<Stopper>;
}

/// Ends a room from another thread. The room is unusable afterwards, but its directories stay readable.
pub struct Stopper(Box<dyn Fn() + Send + Sync>);

impl Stopper {
    pub fn new(stop: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Box::new(stop))
    }

    /// Kills every process. Does nothing if the room has already ended.
    pub fn stop(&self) {
        (self.0)();
    }
}

impl std::fmt::Debug for Stopper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stopper")
    }
}

/// The stream of a piece of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// A room made of namespaces. Dropping it ends everything inside.
#[derive(Debug)]
pub struct Room {
    channel: Channel,
    shim: Child,
    first: OwnedFd,
    held: Held,
    places: Vec<String>,
    directories: Vec<Tree>,
    /// The host's user of its commands.
    user: u32,
    frozen: bool,
    /// Whether this process ended the room.
    stopped: Arc<AtomicBool>,
    // Declared after the child: the processes must be gone before their group is removed.
    cgroup: Cgroup,
}

/// The program to execute as the shim: normally this one.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Sets the shim, for callers that are not the program itself, such as tests and benchmarks.
pub fn use_shim(program: PathBuf) {
    PROGRAM.set(program).ok();
}

/// The program to execute as the shim.
pub fn program() -> io::Result<PathBuf> {
    PROGRAM.get().cloned().map_or_else(std::env::current_exe, Ok)
}

/// Whether rooms open even if their limits hold less than they usually do on this machine.
static WEAKER: AtomicBool = AtomicBool::new(false);

/// Lets rooms open even if their limits hold less than they usually do on this machine, because the user says so.
pub fn accept_weaker_limits() {
    WEAKER.store(true, Ordering::Relaxed);
}

/// Removes the control groups of rooms whose opener has ended, and returns the number of those rooms.
pub fn sweep(dry_run: bool) -> usize {
    Hierarchies::find().sweep(dry_run)
}

/// The name of [`agent_program`].
const AGENT_PROGRAM: &str = "aec-bench-agent";

/// The program that goes into rooms and containers: a small one beside this one, without library, engines and generator.
pub fn agent_program() -> io::Result<PathBuf> {
    let place = program()?.with_file_name(AGENT_PROGRAM);
    if place.is_file() {
        return Ok(place);
    }
    let message = format!(
        "{} is missing: rooms and containers get this program; `cargo build` and `cargo install` make both",
        place.display()
    );
    Err(io::Error::new(io::ErrorKind::NotFound, message))
}

impl Room {
    /// Opens a room. One whose limits would hold less than they usually do on this machine is not opened, unless the
    /// user accepts that.
    pub fn open(spec: &RoomSpec) -> Result<Self, SandboxError> {
        Self::open_with(spec, WEAKER.load(Ordering::Relaxed))
    }

    pub(crate) fn open_with(spec: &RoomSpec, accepts_weaker: bool) -> Result<Self, SandboxError> {
        let view = View::of(spec)?;
        let (ours, theirs) = rustix::net::socketpair(
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::STREAM,
            rustix::net::SocketFlags::CLOEXEC,
            None,
        )
        .map_err(io::Error::from)?;
        let mut shim = start_shim(theirs)?;
        let cgroup = Hierarchies::get().enclose(&spec.limits, shim.id());
        if !cgroup.missing.is_empty() && !accepts_weaker {
            drop(ours);
            shim.wait()?;
            return Err(SandboxError::WeakerLimits { missing: cgroup.missing.clone() });
        }
        let is_root = rustix::process::geteuid().is_root();
        // No other living process has this number.
        let user = (is_root && has_many_users()).then(|| FIRST_USER + shim.id());
        let enforce = Enforce {
            memory_mb: (!cgroup.memory).then_some(spec.limits.memory_mb),
            pids: (!cgroup.pids).then_some(spec.limits.pids),
            cpus: (!cgroup.cpus).then_some(spec.limits.cpus),
            storage_mb: spec.limits.storage_mb,
        };
        let channel = Channel::new(ours);
        channel.send(&Request::Open { spec: spec.clone(), view, enforce, user }, &[])?;
        let opened = Self::furnish(&channel, &shim, user);
        let (first, user, directories) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                drop(channel);
                shim.wait().ok();
                return Err(error);
            }
        };
        let held = Held {
            // The room is bound to this many cores, and the filter stops commands from changing that.
            cpus: Hold::Tree,
            memory: if cgroup.memory { Hold::Tree } else { Hold::Process },
            storage: Hold::Tree,
            // The kernel counts processes per user namespace; for root without one that is the whole host.
            pids: if cgroup.pids || user.is_some() || !is_root { Hold::Tree } else { Hold::Process },
        };
        let user = user.unwrap_or(ROOM_UID);
        let directories = directories.into_iter().map(|directory| Tree::of(directory, user)).collect();
        let places = spec.writable.iter().chain(&spec.sealed).cloned().collect();
        let stopped = Arc::default();
        Ok(Self { channel, shim, first, held, places, directories, user, frozen: false, stopped, cgroup })
    }

    /// Waits until the room is built; returns its first process, the user that its commands have for themselves, and its
    /// directories.
    fn furnish(
        channel: &Channel,
        shim: &Child,
        user: Option<u32>,
    ) -> Result<(OwnedFd, Option<u32>, Vec<OwnedFd>), SandboxError> {
        let (Reply::Born, handles) = receive(channel)? else { return Err(SandboxError::Gone) };
        let mut handles = handles.into_iter();
        let first = handles.next().ok_or(SandboxError::Gone)?;
        let user = match (user, handles.next()) {
            (Some(user), Some(users)) => {
                for map in ["uid_map", "gid_map"] {
                    let path = format!("/proc/{}/{map}", shim.id());
                    fs_err::write(path, format!("{ROOM_UID} {user} 1\n"))?;
                }
                channel.send(&Request::Inhabit, &[users.as_fd()])?;
                Some(user)
            }
            _ => None,
        };
        Ok((first, user, receive_directories(channel)?))
    }

    /// Starts a resident and discards its output.
    pub fn settle_silently(
        &mut self,
        argv: &[&str],
        env: &[(&str, &str)],
        socket: &OwnedFd,
    ) -> Result<(), SandboxError> {
        let mut command = ExecSpec::new(argv.iter().copied());
        command.env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let nothing = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
        self.settle(&command, socket, &nothing.into())
    }

    /// Sends a request to the open room.
    fn request(&self, request: &Request, handles: &[BorrowedFd<'_>]) -> Result<(), SandboxError> {
        self.channel.send(request, handles).map_err(lost)
    }

    /// Receives an answer of the open room.
    fn answer(&self) -> Result<(Reply, Vec<OwnedFd>), SandboxError> {
        match self.channel.receive() {
            Ok((Reply::Failed { step, error }, _)) => {
                Err(SandboxError::KeeperLost { reason: format!("cannot {step}: {error}") })
            }
            Ok(received) => Ok(received),
            Err(error) => Err(lost(error)),
        }
    }

    fn wait_until_done(&self) -> Result<(), SandboxError> {
        match self.answer()? {
            (Reply::Done, _) => Ok(()),
            _ => Err(SandboxError::Gone),
        }
    }

    /// Kills everything inside except a resident and empties all directories, as if the room were new. Returns the
    /// old directories for reading, in the order of the specification.
    pub fn wipe(&mut self) -> Result<Vec<Tree>, SandboxError> {
        self.request(&Request::Wipe, &[])?;
        let (Reply::Ready, directories) = self.answer()? else { return Err(SandboxError::Gone) };
        let fresh = directories.into_iter().map(|directory| Tree::of(directory, self.user)).collect();
        Ok(std::mem::replace(&mut self.directories, fresh))
    }
}

/// Whether the users that rooms would have exist here. In a container root may have only a part of the host's users.
fn has_many_users() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let covers = |line: &str| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        matches!(numbers.as_slice(), [first, _, count]
            if *first <= u64::from(FIRST_USER) && first + count > u64::from(FIRST_USER + LAST_PROCESS))
    };
    *FOUND.get_or_init(|| {
        ["uid_map", "gid_map"].iter().all(|map| {
            let map = fs_err::read_to_string(format!("/proc/self/{map}")).unwrap_or_default();
            map.lines().any(covers)
        })
    })
}

fn search_path() -> String {
    format!("{PROGRAMS}:/usr/local/bin:/usr/bin:/bin")
}

fn start_shim(socket: OwnedFd) -> io::Result<Child> {
    let program = PROGRAM.get().cloned().unwrap_or_else(|| PathBuf::from("/proc/self/exe"));
    Command::new(program)
        .arg0("aec-bench")
        .arg(SHIM_ARGUMENT)
        .env_clear()
        .current_dir("/")
        // This program handles the signals that a terminal sends to its process group.
        .process_group(0)
        .stdin(Stdio::from(socket))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

fn receive(channel: &Channel) -> Result<(Reply, Vec<OwnedFd>), SandboxError> {
    match channel.receive() {
        Ok((Reply::Failed { step, error }, _)) => Err(SandboxError::Refused { step, error }),
        Ok(received) => Ok(received),
        Err(error) if is_hang_up(&error) => Err(SandboxError::Gone),
        Err(error) => Err(error.into()),
    }
}

fn is_hang_up(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    )
}

/// The error of talking to an open room.
fn lost(error: io::Error) -> SandboxError {
    if is_hang_up(&error) { ended() } else { error.into() }
}

fn ended() -> SandboxError {
    SandboxError::KeeperLost { reason: "it was killed".to_owned() }
}

fn receive_directories(channel: &Channel) -> Result<Vec<OwnedFd>, SandboxError> {
    match receive(channel)? {
        (Reply::Ready, directories) => Ok(directories),
        _ => Err(SandboxError::Gone),
    }
}

impl Sandbox for Room {
    fn level(&self) -> Level {
        Level::Namespaces
    }

    fn held(&self) -> Held {
        self.held
    }

    fn exec(
        &mut self,
        command: &ExecSpec,
        watch: &mut dyn FnMut(Stream, &[u8]),
    ) -> Result<ExecResult, SandboxError> {
        let started = Instant::now();
        let stdin = filled_pipe(&command.stdin)?;
        let (mut streams, out_writer, err_writer) = Pumped::pair(command)?;
        let mut env = command.env.clone();
        if !env.iter().any(|(name, _)| name == "PATH") {
            env.push(("PATH".to_owned(), search_path()));
        }
        let request = Request::Exec { argv: command.argv.clone(), env, cwd: command.cwd.clone() };
        self.request(&request, &[stdin.as_fd(), out_writer.as_fd(), err_writer.as_fd()])?;
        drop((stdin, out_writer, err_writer));
        let exit = self.follow(&mut streams, started + command.deadline, watch)?;
        // Bytes still in the pipes were printed before the end; later ones come from other processes.
        for stream in &mut streams {
            stream.drain(watch);
        }
        let [stdout, stderr] = streams.map(Pumped::finish);
        Ok(ExecResult { exit, stdout, stderr, duration: started.elapsed() })
    }

    fn directory(&self, place: &str) -> Option<&Tree> {
        let index = self.places.iter().position(|known| known == place)?;
        self.directories.get(index)
    }

    fn seal(&mut self) -> Result<(), SandboxError> {
        self.request(&Request::Seal, &[])?;
        self.wait_until_done()
    }

    fn freeze(&mut self) -> Result<(), SandboxError> {
        if !self.frozen {
            // The first process may already have ended. Its end is reported when all processes of the room have ended; the
            // shim outside only waits for that, and might never do so if somebody had stopped it.
            rustix::process::pidfd_send_signal(&self.first, Signal::KILL).ok();
            let mut ended = [PollFd::new(&self.first, PollFlags::IN)];
            rustix::io::retry_on_intr(|| poll(&mut ended, None)).map_err(io::Error::from)?;
            self.shim.kill().ok();
            self.shim.wait()?;
            self.frozen = true;
        }
        Ok(())
    }

    fn out_of_memory(&self) -> bool {
        self.cgroup.out_of_memory()
    }

    fn lost(&self) -> Option<SandboxError> {
        if self.frozen || self.stopped.load(Ordering::Relaxed) {
            return None;
        }
        let nothing = rustix::event::Timespec::default();
        let mut waiting = [PollFd::new(&self.first, PollFlags::IN)];
        poll(&mut waiting, Some(&nothing)).is_ok_and(|count| count > 0).then(ended)
    }

    /// A socket stays in the network namespace in which it was made, so connections come only from inside the room.
    fn listen(&mut self) -> Result<std::net::TcpListener, SandboxError> {
        self.request(&Request::Listen, &[])?;
        match self.answer()? {
            (Reply::Done, mut sockets) if sockets.len() == 1 => Ok(sockets.remove(0).into()),
            _ => Err(SandboxError::Gone),
        }
    }

    fn settle(&mut self, command: &ExecSpec, socket: &OwnedFd, output: &OwnedFd) -> Result<(), SandboxError> {
        let mut env = command.env.clone();
        env.push(("PATH".to_owned(), search_path()));
        let request = Request::Settle { argv: command.argv.clone(), env, cwd: command.cwd.clone() };
        self.request(&request, &[socket.as_fd(), output.as_fd(), output.as_fd()])?;
        self.wait_until_done()
    }

    fn evict(&mut self) -> Result<(), SandboxError> {
        self.request(&Request::Evict, &[])?;
        self.wait_until_done()
    }

    fn stopper(&self) -> Option<Stopper> {
        let first = self.first.try_clone().ok()?;
        let stopped = Arc::clone(&self.stopped);
        Some(Stopper::new(move || {
            stopped.store(true, Ordering::Relaxed);
            rustix::process::pidfd_send_signal(&first, Signal::KILL).ok();
        }))
    }
}

impl Room {
    /// Reads output until the command ends or its time is up.
    fn follow(
        &mut self,
        streams: &mut [Pumped; 2],
        deadline: Instant,
        watch: &mut dyn FnMut(Stream, &[u8]),
    ) -> Result<Exit, SandboxError> {
        let mut killed = false;
        loop {
            let now = Instant::now();
            if now >= deadline && !killed {
                // Kill its process group first, which leaves the room usable; a process that left its group ends with
                // the room.
                self.request(&Request::Kill, &[])?;
                killed = true;
            }
            let line = self.channel.as_fd();
            let mut waiting = vec![PollFd::new(&line, PollFlags::IN)];
            let open: Vec<usize> =
                (0..streams.len()).filter(|index| streams[*index].reader.is_some()).collect();
            for index in &open {
                if let Some(reader) = &streams[*index].reader {
                    waiting.push(PollFd::new(reader, PollFlags::IN));
                }
            }
            // After a kill the end comes soon; the limit is for a room that no longer answers.
            let patience = if killed { Duration::from_secs(10) } else { deadline - now };
            let patience = rustix::event::Timespec::try_from(patience).ok();
            let count = match poll(&mut waiting, patience.as_ref()) {
                Ok(count) => count,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(io::Error::from(error).into()),
            };
            let ready: Vec<bool> = waiting.iter().map(|waiting| !waiting.revents().is_empty()).collect();
            drop(waiting);
            if count == 0 && killed {
                self.freeze()?;
                return Ok(Exit::Deadline);
            }
            for (slot, index) in open.iter().enumerate() {
                if ready[slot + 1] {
                    streams[*index].read_once(watch);
                }
            }
            if ready[0] {
                return match self.answer()? {
                    (Reply::Exited { .. }, _) if killed => Ok(Exit::Deadline),
                    (Reply::Exited { code: Some(code), .. }, _) => Ok(Exit::Code(code)),
                    (Reply::Exited { signal, .. }, _) => Ok(Exit::Signal(signal.unwrap_or(0))),
                    _ => Err(SandboxError::Gone),
                };
            }
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // If the kill fails, the kernel has already ended the processes.
        self.freeze().ok();
    }
}

/// A pipe that already contains its content, so that no writer is needed. Larger input goes through a file in memory.
pub(crate) fn filled_pipe(bytes: &[u8]) -> io::Result<OwnedFd> {
    use std::io::{Seek as _, Write as _};
    // What a pipe always holds. The kernel gives no more to a user with many pipes, and those of rooms count.
    const PIPE: usize = 4096;
    if bytes.len() <= PIPE {
        let (reader, mut writer) = io::pipe()?;
        writer.write_all(bytes)?;
        return Ok(reader.into());
    }
    let in_memory = rustix::fs::memfd_create("input", rustix::fs::MemfdFlags::CLOEXEC);
    let mut file = in_memory.map_or_else(|_| tempfile::tempfile(), |file| Ok(file.into()))?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

/// One output stream of a running command.
pub(crate) struct Pumped {
    reader: Option<io::PipeReader>,
    stream: Stream,
    capture: Capture,
}

impl Pumped {
    /// Both output streams of a command, and the ends that it writes to.
    pub(crate) fn pair(command: &ExecSpec) -> io::Result<([Self; 2], io::PipeWriter, io::PipeWriter)> {
        let (out_reader, out_writer) = io::pipe()?;
        let (err_reader, err_writer) = io::pipe()?;
        let stdout = Capture::new(command.stdout.clone())?;
        let stderr = Capture::new(command.stderr.clone())?;
        let streams = [
            Self { reader: Some(out_reader), stream: Stream::Stdout, capture: stdout },
            Self { reader: Some(err_reader), stream: Stream::Stderr, capture: stderr },
        ];
        Ok((streams, out_writer, err_writer))
    }

    /// Adds a remark that does not come from the command.
    pub(crate) fn say(&mut self, remark: &str) {
        self.capture.push(remark.as_bytes());
    }

    pub(crate) fn finish(self) -> Captured {
        self.capture.finish()
    }

    /// Reads the available bytes without waiting; returns whether there were any.
    pub(crate) fn read_ready(&mut self, watch: &mut dyn FnMut(Stream, &[u8])) -> bool {
        let Some(reader) = &self.reader else { return false };
        let nothing = rustix::event::Timespec::default();
        let mut waiting = [PollFd::new(reader, PollFlags::IN)];
        let ready = poll(&mut waiting, Some(&nothing)).is_ok_and(|count| count > 0);
        if ready {
            self.read_once(watch);
        }
        ready
    }

    fn read_once(&mut self, watch: &mut dyn FnMut(Stream, &[u8])) {
        let mut buffer = [0_u8; 16 * 1024];
        let count = match self.reader.as_mut().map(|reader| reader.read(&mut buffer)) {
            Some(Ok(count)) => count,
            _ => 0,
        };
        if count == 0 {
            self.reader = None;
            return;
        }
        self.capture.push(&buffer[..count]);
        watch(self.stream, &buffer[..count]);
    }

    /// Reads the bytes still in the pipe, without waiting for processes that keep it open.
    pub(crate) fn drain(&mut self, watch: &mut dyn FnMut(Stream, &[u8])) {
        // More than a pipe holds; a writer that never stops is cut off.
        const ROUNDS: usize = 256;
        for _ in 0..ROUNDS {
            if !self.read_ready(watch) {
                return;
            }
        }
    }
}
