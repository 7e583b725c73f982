//! The first process of a container that is a room: it makes the room's directories, runs commands as an unprivileged
//! user, reads and writes files for the opener, and carries bytes between both. It has one thread and lives until the
//! opener closes the connection.
//!
//! The container engine provides the namespaces, the limits and a read-only root. Commands run as another user than
//! this process, so they can neither stop nor inspect it.

mod memory;
mod places;
mod ports;

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, Write as _};
use std::net::{SocketAddrV4, TcpListener};
use std::os::fd::{AsFd as _, BorrowedFd, IntoRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};
use rustix::process::{DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions};

use self::places::{make_place, seed, take_over};
use self::ports::{connecting, listener};
use crate::command::{NO_PLACE, Starter, fail, is_exhaustion};
use crate::mounts::StepError;
use crate::room::filled_pipe;
use crate::spec::{Enforce, OURSELVES, ROOM_UID};
use crate::sys;
use crate::tree::{Tree, WalkLimits};
use crate::wire::{
    Answer, Body, CONTAINED_ARGUMENT, Call, Command, Failed, Frame, Frames, MAIN, PIECE, STDERR, STDOUT,
    WINDOW,
};

/// Longest wait before it collects processes that lost their parents.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Reads of a command's output after its end; together they exceed the capacity of a pipe.
const LAST_PIECES: usize = 256;
/// Most connections at once. Each uses threads and descriptors of the opener.
const MOST_CONNECTIONS: usize = 256;
/// Writable directories that every room has.
const OWN_PLACES: [&str; 2] = ["/tmp", "/home/agent"];

/// Serves the opener over stdin and stdout. Returns the exit code.
pub fn run() -> i32 {
    let Ok(mut line) = Line::take() else { sys::exit_now(2) };
    let code = match open(&mut line) {
        Ok(None) => 0,
        Ok(Some(mut inside)) => match inside.serve(&mut line) {
            Ok(()) => 0,
            Err(_) => 1,
        },
        Err(failure) => {
            let message = format!("cannot {}: {}", failure.step, failure.error);
            let failed = Failed::from(&io::Error::other(message));
            line.say(0, Body::Answer(Answer::Failed(failed))).map_or(2, |()| 1)
        }
    };
    sys::exit_now(code)
}

/// The connection to the opener: its two streams.
struct Line {
    input: OwnedFd,
    output: File,
    frames: Frames,
}

impl Line {
    /// Moves both streams away from descriptors 0 and 1, where another process of the same user, such as a service,
    /// could write to them and pose as this process.
    fn take() -> io::Result<Self> {
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        let away = |descriptor: BorrowedFd<'_>| rustix::io::fcntl_dupfd_cloexec(descriptor, 3);
        let (first, second) = (sys::inherited(0), sys::inherited(1));
        let (input, output) = (away(first.as_fd())?, away(second.as_fd())?);
        let nothing = File::options().read(true).write(true).open("/dev/null")?;
        for descriptor in [first, second] {
            let number = descriptor.into_raw_fd();
            sys::duplicate_onto(nothing.as_fd(), number)?;
        }
        Ok(Self { input, output: File::from(output), frames: Frames::default() })
    }

    fn say(&mut self, channel: u32, body: Body) -> io::Result<()> {
        self.output.write_all(&Frame { channel, body }.encode()?)
    }

    fn answer(&mut self, channel: u32, answer: io::Result<Answer>) -> io::Result<()> {
        let answer = answer.unwrap_or_else(|error| Answer::Failed(Failed::from(&error)));
        self.say(channel, Body::Answer(answer))
    }

    /// Reads once. False if the opener closed the stream.
    fn read(&mut self) -> io::Result<bool> {
        let mut buffer = vec![0; 64 * 1024];
        let count = rustix::io::retry_on_intr(|| rustix::io::read(&self.input, &mut *buffer))?;
        self.frames.push(&buffer[..count]);
        Ok(count > 0)
    }
}

fn open(line: &mut Line) -> Result<Option<Inside>, StepError> {
    let frame = loop {
        match line.frames.next_frame().map_err(fail("understand the opener"))? {
            Some(frame) => break frame,
            // The opener closed the stream before its first call, because it no longer needs the room.
            None => {
                if !line.read().map_err(fail("listen"))? {
                    return Ok(None);
                }
            }
        }
    };
    let inside = match frame.body {
        Body::Call(Call::Open { writable, sealed, seeded, enforce }) => {
            Inside::room(&writable, &sealed, seeded, enforce)?
        }
        Body::Call(Call::Beside) => Inside::new(Starter::unconfined(), Vec::new())?,
        _ => return Err(fail("open")(io::Error::other("the first call must open the room"))),
    };
    line.say(frame.channel, Body::Answer(Answer::Done)).map_err(fail("answer"))?;
    Ok(Some(inside))
}

/// The room and everything that runs in it.
struct Inside {
    starter: Starter,
    environment: Vec<(String, String)>,
    /// The command line that starts this program in the container.
    ourselves: Vec<String>,
    places: Vec<(String, Tree)>,
    /// Running commands, with their channels.
    running: Vec<(Pid, u32)>,
    resident: Option<(Pid, u32)>,
    sources: Vec<Source>,
    sinks: Vec<Sink>,
    listeners: Vec<(SocketAddrV4, TcpListener)>,
    /// Calls whose content has not fully arrived.
    gathering: HashMap<u32, (Call, Vec<u8>)>,
    next_channel: u32,
    frozen: bool,
    memory: memory::Watch,
}

/// A descriptor whose bytes are sent to the opener.
struct Source {
    channel: u32,
    stream: u8,
    from: OwnedFd,
    /// Bytes that the opener has not acknowledged yet.
    under_way: usize,
}

/// A socket that receives the opener's bytes.
struct Sink {
    channel: u32,
    to: OwnedFd,
    waiting: VecDeque<u8>,
    /// Whether the opener has ended this stream.
    ending: bool,
}

impl Inside {
    fn room(
        writable: &[String],
        sealed: &[String],
        seeded: bool,
        enforce: Enforce,
    ) -> Result<Self, StepError> {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        std::env::set_current_dir("/").map_err(fail("enter the root"))?;
        let mut places = Vec::new();
        for (place, theirs) in
            writable.iter().map(|place| (place, true)).chain(sealed.iter().map(|place| (place, false)))
        {
            let made = make_place(place, theirs);
            places.push((place.clone(), made.map_err(fail(&format!("make {place}")))?));
        }
        for place in OWN_PLACES {
            make_place(place, true).map_err(fail(&format!("make {place}")))?;
        }
        // Engines copy the image's files into such directories, and sandboxes show them: the image must not provide
        // rewards or obstruct a verifier. Only the workspace may begin with the image's files.
        let own = OWN_PLACES.map(str::to_owned);
        for place in writable.iter().skip(1).chain(sealed).chain(&own) {
            take_over(Path::new(place), false).map_err(fail(&format!("empty {place}")))?;
        }
        if let (Some((_, workspace)), Some(place)) = (places.first(), writable.first()) {
            take_over(Path::new(place), seeded).map_err(fail("take over the workspace"))?;
            if seeded {
                seed(workspace).map_err(fail("fill the workspace"))?;
            }
        }
        let privileged = rustix::process::geteuid().is_root();
        let mut starter = Starter::new(enforce, privileged)?;
        starter.expendable = true;
        Self::new(starter, places)
    }

    fn new(starter: Starter, places: Vec<(String, Tree)>) -> Result<Self, StepError> {
        // If another process is process 1 of the container, orphans still become children of this process.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|error| fail("take in orphans")(error.into()))?;
        let text = |text: std::ffi::OsString| text.into_string().ok();
        let environment =
            std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect();
        Ok(Self {
            starter,
            environment,
            ourselves: ourselves().map_err(fail("find itself"))?,
            places,
            running: Vec::new(),
            resident: None,
            sources: Vec::new(),
            sinks: Vec::new(),
            listeners: Vec::new(),
            gathering: HashMap::new(),
            next_channel: 1,
            frozen: false,
            memory: memory::Watch::begin(),
        })
    }

    /// Serves until the opener closes the stream; the container ends with this process.
    fn serve(&mut self, line: &mut Line) -> io::Result<()> {
        loop {
            while let Some(frame) = line.frames.next_frame()? {
                self.take(line, frame)?;
            }
            let ready = self.wait(line)?;
            // First of all, because the kernel may kill this process next.
            if let Some(short) = self.memory.look(ready.memory) {
                let channel = self.next_channel;
                self.next_channel += 2;
                line.say(channel, Body::Call(Call::ShortOfMemory(short)))?;
            }
            self.reap(line)?;
            for (channel, stream) in ready.sources {
                self.forward(line, channel, stream)?;
            }
            for channel in ready.sinks {
                self.drain(line, channel)?;
            }
            for address in ready.listeners {
                self.welcome(line, address)?;
            }
            if ready.input && !line.read()? {
                return Ok(());
            }
        }
    }

    fn wait(&self, line: &Line) -> io::Result<Ready> {
        let ended: Vec<OwnedFd> = self
            .running
            .iter()
            .filter_map(|(pid, _)| rustix::process::pidfd_open(*pid, PidfdFlags::empty()).ok())
            .collect();
        let sources: Vec<&Source> = self.sources.iter().filter(|source| source.under_way < WINDOW).collect();
        let sinks: Vec<&Sink> = self.sinks.iter().filter(|sink| !sink.waiting.is_empty()).collect();
        let mut waiting = vec![PollFd::new(&line.input, PollFlags::IN)];
        waiting.extend(sources.iter().map(|source| PollFd::new(&source.from, PollFlags::IN)));
        waiting.extend(sinks.iter().map(|sink| PollFd::new(&sink.to, PollFlags::OUT)));
        // Further connections wait in the kernel.
        let listeners = if self.sinks.len() < MOST_CONNECTIONS { self.listeners.as_slice() } else { &[] };
        waiting.extend(listeners.iter().map(|(_, listener)| PollFd::new(listener, PollFlags::IN)));
        waiting.extend(self.memory.events().map(|events| PollFd::new(events, PollFlags::PRI)));
        waiting.extend(ended.iter().map(|handle| PollFd::new(handle, PollFlags::IN)));
        match poll(&mut waiting, Some(&PATIENCE)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let happened: Vec<bool> = waiting.iter().map(|one| !one.revents().is_empty()).collect();
        let (input, rest) = happened.split_first().map_or((false, &[][..]), |(input, rest)| (*input, rest));
        let (of_sources, rest) = rest.split_at(sources.len());
        let (of_sinks, rest) = rest.split_at(sinks.len());
        let (of_listeners, rest) = rest.split_at(listeners.len());
        let chosen = |happened: &[bool]| -> Vec<usize> {
            happened.iter().enumerate().filter(|(_, happened)| **happened).map(|(at, _)| at).collect()
        };
        Ok(Ready {
            input,
            sources: chosen(of_sources)
                .into_iter()
                .map(|at| (sources[at].channel, sources[at].stream))
                .collect(),
            sinks: chosen(of_sinks).into_iter().map(|at| sinks[at].channel).collect(),
            listeners: chosen(of_listeners).into_iter().map(|at| listeners[at].0).collect(),
            memory: self.memory.events().is_some() && rest.first() == Some(&true),
        })
    }

    fn take(&mut self, line: &mut Line, frame: Frame) -> io::Result<()> {
        let Frame { channel, body } = frame;
        match body {
            Body::Call(call @ (Call::Exec(_) | Call::Write { .. })) => {
                self.gathering.insert(channel, (call, Vec::new()));
            }
            Body::Call(call) => {
                let answer = self.call(line, channel, call)?;
                if let Some(answer) = answer {
                    line.answer(channel, answer)?;
                }
            }
            Body::Data(MAIN, bytes) => {
                if let Some((_, gathered)) = self.gathering.get_mut(&channel) {
                    gathered.extend_from_slice(&bytes);
                    line.say(channel, Body::Ack(count(bytes.len())))?;
                } else if let Some(sink) = self.sinks.iter_mut().find(|sink| sink.channel == channel) {
                    sink.waiting.extend(bytes);
                    self.drain(line, channel)?;
                } else {
                    // The receiver of these bytes is gone.
                    line.say(channel, Body::Ack(count(bytes.len())))?;
                }
            }
            Body::End(MAIN) => {
                if let Some((call, content)) = self.gathering.remove(&channel) {
                    let answer = self.gathered(channel, call, &content);
                    if let Some(answer) = answer {
                        line.answer(channel, answer)?;
                    }
                } else if let Some(sink) = self.sinks.iter_mut().find(|sink| sink.channel == channel) {
                    sink.ending = true;
                    self.drain(line, channel)?;
                }
            }
            Body::Ack(taken) => {
                for source in self.sources.iter_mut().filter(|source| source.channel == channel) {
                    source.under_way = source.under_way.saturating_sub(taken as usize);
                }
            }
            Body::Data(..) | Body::End(_) | Body::Answer(_) => {}
        }
        Ok(())
    }

    /// Performs a call whose content has fully arrived.
    fn gathered(&mut self, channel: u32, call: Call, content: &[u8]) -> Option<io::Result<Answer>> {
        match call {
            Call::Exec(command) => match self.exec(channel, &command, content) {
                Ok(()) => None,
                // The agent's own processes use up the limit.
                Err(error) if is_exhaustion(&error) => {
                    Some(Ok(Answer::Exited { code: Some(NO_PLACE), signal: None }))
                }
                Err(error) => Some(Err(error)),
            },
            Call::Write { place, path, executable } => Some(
                path.path()
                    .and_then(|path| self.place(&place)?.write(&path, content, executable))
                    .map(|()| Answer::Done),
            ),
            _ => None,
        }
    }

    fn call(&mut self, line: &mut Line, channel: u32, call: Call) -> io::Result<Option<io::Result<Answer>>> {
        Ok(Some(match call {
            Call::Kill => {
                if let Some((pid, _)) = self.running.iter().find(|(_, running)| *running == channel) {
                    // It may already have ended.
                    rustix::process::kill_process_group(*pid, Signal::KILL).ok();
                }
                return Ok(None);
            }
            Call::Settle(command) => self.settle(channel, &command).map(|()| Answer::Done),
            Call::Evict => {
                self.evict(line)?;
                Ok(Answer::Done)
            }
            Call::Freeze => {
                self.frozen = true;
                self.evict(line)?;
                self.listeners.clear();
                Ok(Answer::Done)
            }
            Call::Listen(address) if !address.ip().is_loopback() => {
                Err(io::Error::other("a room listens on loopback alone"))
            }
            Call::Listen(address) => TcpListener::bind(address).map(|listener| {
                self.listeners.push((address, listener));
                Answer::Done
            }),
            Call::Connect(port) => {
                match connecting(port).and_then(|socket| self.connect(channel, socket)) {
                    Ok(()) => {}
                    Err(_) => line.say(channel, Body::End(MAIN))?,
                }
                return Ok(None);
            }
            Call::Listens(port) => Ok(Answer::Is(listener(port).is_some())),
            Call::Read { place, path } => {
                let opened = path.path().and_then(|path| {
                    let file = self.place(&place)?.open_file(&path)?;
                    let executable = file.metadata()?.mode() & 0o100 != 0;
                    Ok((file, executable))
                });
                match opened {
                    Ok((file, executable)) => {
                        self.sources.push(Source { channel, stream: MAIN, from: file.into(), under_way: 0 });
                        Ok(Answer::File { executable })
                    }
                    Err(error) => Err(error),
                }
            }
            Call::MakeDirectory { place, path } => {
                path.path().and_then(|path| self.place(&place)?.make_directory(&path)).map(|()| Answer::Done)
            }
            Call::List { place, entries, depth } => self
                .place(&place)
                .and_then(|tree| tree.list(WalkLimits { entries, depth }))
                .map(|listed| Answer::Listed(listed.iter().map(Into::into).collect())),
            Call::OutOfMemory => Ok(Answer::Is(memory::ran_out())),
            Call::Open { .. }
            | Call::Beside
            | Call::Exec(_)
            | Call::Write { .. }
            | Call::Connected(_)
            | Call::ShortOfMemory(_) => Err(io::Error::other("a call that makes no sense here")),
        }))
    }

    fn place(&self, place: &str) -> io::Result<&Tree> {
        let found = self.places.iter().find(|(known, _)| known == place);
        found.map(|(_, tree)| tree).ok_or_else(|| io::Error::other("the room has no such directory"))
    }

    fn exec(&mut self, channel: u32, command: &Command, stdin: &[u8]) -> io::Result<()> {
        let (out_reader, out_writer) = io::pipe()?;
        let (err_reader, err_writer) = io::pipe()?;
        let pid = self.start(command, &[filled_pipe(stdin)?, out_writer.into(), err_writer.into()])?;
        self.running.push((pid, channel));
        for (stream, reader) in [(STDOUT, out_reader), (STDERR, err_reader)] {
            self.sources.push(Source { channel, stream, from: reader.into(), under_way: 0 });
        }
        Ok(())
    }

    fn settle(&mut self, channel: u32, command: &Command) -> io::Result<()> {
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let (reader, writer) = io::pipe()?;
        let writer: OwnedFd = writer.into();
        let pid = self.start(command, &[theirs, writer.try_clone()?, writer])?;
        self.resident = Some((pid, channel));
        self.sources.push(Source { channel, stream: STDOUT, from: reader.into(), under_way: 0 });
        self.connect(channel, ours)
    }

    /// Carries the bytes of a socket in both directions.
    fn connect(&mut self, channel: u32, socket: OwnedFd) -> io::Result<()> {
        self.sources.push(Source { channel, stream: MAIN, from: socket.try_clone()?, under_way: 0 });
        self.sinks.push(Sink { channel, to: socket, waiting: VecDeque::new(), ending: false });
        Ok(())
    }

    fn start(&self, command: &Command, streams: &[OwnedFd]) -> io::Result<Pid> {
        if self.frozen {
            return Err(io::Error::other("the room is frozen"));
        }
        let mut env = self.environment.clone();
        env.retain(|(name, _)| !command.env.iter().any(|(other, _)| other == name));
        env.extend(command.env.iter().cloned());
        let argv = match command.argv.split_first() {
            Some((first, rest)) if first == OURSELVES => self.ourselves.iter().chain(rest).cloned().collect(),
            _ => command.argv.clone(),
        };
        self.starter.start(&argv, &env, &command.cwd, streams).map_err(|failure| match failure {
            StepError { error, .. } if is_exhaustion(&error) => error,
            StepError { step, error } => io::Error::other(format!("cannot {step}: {error}")),
        })
    }

    /// Collects every process that has ended, and reports the commands among them.
    fn reap(&mut self, line: &mut Line) -> io::Result<()> {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            self.ended(line, pid, status.exit_status(), status.terminating_signal())?;
        }
        Ok(())
    }

    fn ended(&mut self, line: &mut Line, pid: Pid, code: Option<i32>, signal: Option<i32>) -> io::Result<()> {
        let Some(at) = self.running.iter().position(|(running, _)| *running == pid) else { return Ok(()) };
        let (_, channel) = self.running.swap_remove(at);
        for stream in [STDOUT, STDERR] {
            // Bytes still in the pipes were printed before the end; later ones come from other processes.
            for _ in 0..LAST_PIECES {
                let Some(source) = self.source(channel, stream) else { break };
                if !is_readable(source.from.as_fd()) {
                    break;
                }
                self.forward(line, channel, stream)?;
            }
            self.sources.retain(|source| (source.channel, source.stream) != (channel, stream));
        }
        line.say(channel, Body::Answer(Answer::Exited { code, signal }))
    }

    fn source(&mut self, channel: u32, stream: u8) -> Option<&mut Source> {
        self.sources.iter_mut().find(|source| (source.channel, source.stream) == (channel, stream))
    }

    /// Sends the available bytes of a source to the opener.
    fn forward(&mut self, line: &mut Line, channel: u32, stream: u8) -> io::Result<()> {
        let mut buffer = vec![0; PIECE];
        let Some(source) = self.source(channel, stream) else { return Ok(()) };
        let count = rustix::io::retry_on_intr(|| rustix::io::read(&source.from, &mut *buffer)).unwrap_or(0);
        if count == 0 {
            self.sources.retain(|source| (source.channel, source.stream) != (channel, stream));
            return line.say(channel, Body::End(stream));
        }
        source.under_way += count;
        line.say(channel, Body::Data(stream, buffer[..count].to_vec()))
    }

    /// Writes as many waiting bytes as the socket takes now.
    fn drain(&mut self, line: &mut Line, channel: u32) -> io::Result<()> {
        let Some(at) = self.sinks.iter().position(|sink| sink.channel == channel) else { return Ok(()) };
        let sink = &mut self.sinks[at];
        let mut taken = 0;
        let mut broken = false;
        while !sink.waiting.is_empty() {
            let (first, _) = sink.waiting.as_slices();
            match rustix::net::send(&sink.to, first, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => {
                    sink.waiting.drain(..count);
                    taken += count;
                }
                Err(rustix::io::Errno::AGAIN) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => {
                    broken = true;
                    taken += sink.waiting.len();
                    sink.waiting.clear();
                }
            }
        }
        if broken || (sink.ending && sink.waiting.is_empty()) {
            let sink = self.sinks.swap_remove(at);
            // The other direction may still have bytes to send.
            rustix::net::shutdown(&sink.to, rustix::net::Shutdown::Write).ok();
        }
        if taken > 0 { line.say(channel, Body::Ack(count(taken))) } else { Ok(()) }
    }

    /// Accepts a connection from inside the room.
    fn welcome(&mut self, line: &mut Line, address: SocketAddrV4) -> io::Result<()> {
        let Some((_, listener)) = self.listeners.iter().find(|(known, _)| *known == address) else {
            return Ok(());
        };
        // The client may already be gone.
        let Ok((socket, _)) = listener.accept() else { return Ok(()) };
        let channel = self.next_channel;
        self.next_channel += 2;
        line.say(channel, Body::Call(Call::Connected(address)))?;
        self.connect(channel, socket.into())
    }

    /// Kills every process but this one and waits until all have ended, so that no earlier process survives.
    fn evict(&mut self, line: &mut Line) -> io::Result<()> {
        kill_commands()?;
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::empty()) {
            self.ended(line, pid, status.exit_status(), status.terminating_signal())?;
            kill_commands()?;
        }
        if let Some((_, channel)) = self.resident.take() {
            self.sources.retain(|source| source.channel != channel);
            self.sinks.retain(|sink| sink.channel != channel);
            line.say(channel, Body::End(STDOUT))?;
            line.say(channel, Body::End(MAIN))?;
        }
        Ok(())
    }
}

/// Kills all commands: every other process if this is process 1, otherwise all processes of the commands' user.
fn kill_commands() -> io::Result<()> {
    if rustix::process::getpid() == Pid::INIT {
        sys::kill_everyone();
        return Ok(());
    }
    for entry in std::fs::read_dir("/proc")?.filter_map(Result::ok) {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid
            && entry.metadata().is_ok_and(|found| found.uid() == ROOM_UID)
        {
            // It may already have ended.
            rustix::process::kill_process(pid, Signal::KILL).ok();
        }
    }
    Ok(())
}

/// The command line that starts this program, including its own loader, which only the kernel's copy of it shows.
fn ourselves() -> io::Result<Vec<String>> {
    let arguments = fs_err::read_to_string("/proc/self/cmdline")?;
    let arguments = arguments.split('\0').map(str::to_owned);
    Ok(arguments.take_while(|argument| argument != CONTAINED_ARGUMENT).collect())
}

/// The events that ended a wait.
struct Ready {
    input: bool,
    sources: Vec<(u32, u8)>,
    sinks: Vec<u32>,
    listeners: Vec<SocketAddrV4>,
    /// Whether the kernel reported an event about memory.
    memory: bool,
}

fn count(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    let mut waiting = [PollFd::new(&descriptor, PollFlags::IN)];
    poll(&mut waiting, Some(&Timespec::default())).is_ok_and(|count| count > 0)
}
