//! The opener's side of the line to a room: conversations over two streams of bytes.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aec_sandbox::wire::{Answer, Body, Call, Frame, Frames, MAIN, PIECE, WINDOW};

/// How long a room may take to answer. Commands and contents of files have times of their own.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// The line to a room.
#[derive(Clone, Debug)]
pub(crate) struct Line(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// To the thread that writes. Nobody else ever waits for the room to read.
    out: Sender<Vec<u8>>,
    routes: Mutex<Routes>,
    next: AtomicU32,
}

#[derive(Debug, Default)]
struct Routes {
    open: HashMap<u32, Route>,
    /// Addresses that the room was asked to listen on, with where they lead. Nothing else is connected to, whatever a
    /// room says.
    doors: HashMap<SocketAddrV4, Destination>,
    /// Whether nobody is there any more.
    gone: bool,
    /// Whether the room had next to no memory left when it last spoke of it.
    short_of_memory: bool,
}

/// Where a connection from inside leads.
#[derive(Clone, Debug)]
enum Destination {
    /// The same port of this machine's loopback.
    Here,
    /// The same port of another container.
    Beside(Line),
}

#[derive(Debug)]
struct Route {
    to: Sender<Body>,
    window: Arc<Window>,
}

/// Bytes that the room has not taken yet.
#[derive(Debug, Default)]
struct Window {
    state: Mutex<UnderWay>,
    taken: Condvar,
}

#[derive(Debug, Default)]
struct UnderWay {
    bytes: usize,
    /// Whether nobody takes them any more.
    closed: bool,
}

#[derive(Debug)]
pub(crate) struct Conversation {
    from: Receiver<Body>,
    speaker: Speaker,
}

/// The half of a conversation that speaks.
#[derive(Clone, Debug)]
pub(crate) struct Speaker {
    channel: u32,
    line: Line,
    window: Arc<Window>,
}

impl Line {
    /// Takes over both streams. Two threads serve them until they end.
    pub(crate) fn new(
        mut input: impl Read + Send + 'static,
        mut output: impl Write + Send + 'static,
    ) -> Self {
        let (out, waiting) = channel::<Vec<u8>>();
        let line = Self(Arc::new(Shared { out, routes: Mutex::default(), next: AtomicU32::new(0) }));
        let writing = Arc::downgrade(&line.0);
        std::thread::spawn(move || {
            for bytes in waiting {
                if bytes.is_empty() {
                    return;
                }
                if output.write_all(&bytes).and_then(|()| output.flush()).is_err() {
                    if let Some(shared) = writing.upgrade() {
                        Self(shared).end();
                    }
                    return;
                }
            }
        });
        let reading = Arc::downgrade(&line.0);
        std::thread::spawn(move || {
            let mut frames = Frames::default();
            let mut buffer = vec![0; 64 * 1024];
            loop {
                let count = input.read(&mut buffer).unwrap_or(0);
                let Some(shared) = reading.upgrade() else { return };
                let line = Self(shared);
                frames.push(&buffer[..count]);
                if count == 0 || line.route(&mut frames).is_err() {
                    line.end();
                    return;
                }
            }
        });
        line
    }

    fn routes(&self) -> MutexGuard<'_, Routes> {
        self.0.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the room know that this is the end: what it reads ends.
    pub(crate) fn hang_up(&self) {
        self.0.out.send(Vec::new()).ok();
    }

    /// Whether nobody is there any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.routes().gone
    }

    /// Whether the room had next to no memory left when it last spoke of it.
    pub(crate) fn is_short_of_memory(&self) -> bool {
        self.routes().short_of_memory
    }

    /// Nobody is there any more: everyone who waits hears of it.
    fn end(&self) {
        let mut routes = self.routes();
        routes.gone = true;
        routes.doors.clear();
        for (_, route) in routes.open.drain() {
            route.window.close();
        }
    }

    fn route(&self, frames: &mut Frames) -> io::Result<()> {
        while let Some(Frame { channel, body }) = frames.next_frame()? {
            if let Body::Call(Call::Connected(address)) = body {
                let door = self.routes().doors.get(&address).cloned();
                self.let_in(channel, address.port(), door);
                continue;
            }
            if let Body::Call(Call::ShortOfMemory(short)) = body {
                self.routes().short_of_memory = short;
                continue;
            }
            let routes = self.routes();
            let Some(route) = routes.open.get(&channel) else {
                if let Body::Data(_, bytes) = &body {
                    // Whoever it was for is gone; whoever sends it must not wait for them.
                    self.say(channel, taken(bytes))?;
                }
                continue;
            };
            if let Body::Ack(count) = body {
                route.window.give_back(count as usize);
            } else {
                // Whoever had the conversation may just have left it.
                route.to.send(body).ok();
            }
        }
        Ok(())
    }

    fn listen_to(&self, number: u32) -> Conversation {
        let (to, from) = channel();
        let window = Arc::<Window>::default();
        let mut routes = self.routes();
        if routes.gone {
            window.close();
        } else {
            routes.open.insert(number, Route { to, window: Arc::clone(&window) });
        }
        drop(routes);
        Conversation { from, speaker: Speaker { channel: number, line: self.clone(), window } }
    }

    /// What connects to this address inside is carried to the same port beside.
    pub(crate) fn lead(&self, address: SocketAddrV4, beside: &Self) -> io::Result<()> {
        self.routes().doors.insert(address, Destination::Beside(beside.clone()));
        self.ask(Call::Listen(address)).map(drop)
    }

    /// What connects to this port of the room's loopback is carried to the same port of this machine's.
    pub(crate) fn lead_here(&self, port: u16) -> io::Result<()> {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        self.routes().doors.insert(address, Destination::Here);
        self.ask(Call::Listen(address)).map(drop)
    }

    /// Carries a connection from inside. One that leads nowhere, or that nobody can carry, ends.
    fn let_in(&self, channel: u32, port: u16, door: Option<Destination>) {
        let refused = || self.say(channel, Body::End(MAIN)).ok();
        let Some(door) = door else {
            refused();
            return;
        };
        let conversation = self.listen_to(channel);
        let carried = std::thread::Builder::new().spawn(move || match door {
            Destination::Here => conversation.carry(port),
            Destination::Beside(other) => conversation.join(&other, port),
        });
        if carried.is_err() {
            refused();
        }
    }

    fn say(&self, channel: u32, body: Body) -> io::Result<()> {
        let bytes = Frame { channel, body }.encode()?;
        self.0.out.send(bytes).map_err(|_| gone())
    }

    /// Begins a conversation.
    pub(crate) fn call(&self, call: Call) -> io::Result<Conversation> {
        let channel = self.0.next.fetch_add(2, Ordering::Relaxed);
        let conversation = self.listen_to(channel);
        conversation.speaker.say(Body::Call(call))?;
        Ok(conversation)
    }

    pub(crate) fn ask(&self, call: Call) -> io::Result<Answer> {
        self.call(call)?.answer()
    }

    /// Says something that nobody answers.
    pub(crate) fn tell(&self, call: Call) {
        let channel = self.0.next.fetch_add(2, Ordering::Relaxed);
        self.say(channel, Body::Call(call)).ok();
    }
}

impl Window {
    fn state(&self) -> MutexGuard<'_, UnderWay> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for so many more bytes.
    fn take(&self, count: usize) -> io::Result<()> {
        let full = |state: &mut UnderWay| !state.closed && state.bytes > 0 && state.bytes + count > WINDOW;
        let mut state = self.taken.wait_while(self.state(), full).unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            return Err(gone());
        }
        state.bytes += count;
        Ok(())
    }

    fn give_back(&self, count: usize) {
        let mut state = self.state();
        state.bytes = state.bytes.saturating_sub(count);
        self.taken.notify_all();
    }

    fn close(&self) {
        self.state().closed = true;
        self.taken.notify_all();
    }
}

impl Speaker {
    /// Says something on this channel.
    pub(crate) fn say(&self, body: Body) -> io::Result<()> {
        self.line.say(self.channel, body)
    }

    /// Sends bytes, no faster than they are taken.
    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(PIECE) {
            self.window.take(piece.len())?;
            self.say(Body::Data(MAIN, piece.to_vec()))?;
        }
        Ok(())
    }

    /// Sends all that there is to send.
    pub(crate) fn send_all(&self, bytes: &[u8]) -> io::Result<()> {
        self.send(bytes)?;
        self.say(Body::End(MAIN))
    }

    /// Sends what can be read until there is no more.
    pub(crate) fn pump(&self, mut from: impl Read) {
        let mut buffer = vec![0; PIECE];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if self.send(&buffer[..count]).is_err() {
                return;
            }
        }
        self.say(Body::End(MAIN)).ok();
    }
}

impl Conversation {
    /// The half that speaks.
    pub(crate) fn speaker(&self) -> &Speaker {
        &self.speaker
    }

    /// What is said next. Nothing within the time is `None`.
    pub(crate) fn next(&self, patience: Duration) -> io::Result<Option<Body>> {
        let body = match self.from.recv_timeout(patience) {
            Ok(body) => body,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => return Err(gone()),
        };
        if let Body::Data(_, bytes) = &body {
            self.speaker.say(taken(bytes))?;
        }
        Ok(Some(body))
    }

    /// The answer to the call. A room that does not answer at all is given up.
    pub(crate) fn answer(&self) -> io::Result<Answer> {
        loop {
            match self.from.recv_timeout(PATIENCE).map_err(|_| self.given_up())? {
                Body::Answer(Answer::Failed(failed)) => return Err(failed.into()),
                Body::Answer(answer) => return Ok(answer),
                _ => {}
            }
        }
    }

    fn given_up(&self) -> io::Error {
        self.speaker.line.end();
        gone()
    }

    /// Copies everything that follows on the main stream, which may take so long to go on.
    pub(crate) fn copy_to(&self, to: &mut dyn Write, patience: Duration) -> io::Result<()> {
        loop {
            match self.next(patience)? {
                Some(Body::Data(MAIN, bytes)) => to.write_all(&bytes)?,
                Some(Body::End(MAIN)) => return Ok(()),
                Some(_) => {}
                None => return Err(self.given_up()),
            }
        }
    }

    /// Carries bytes between the room and a port of another container.
    fn join(self, beside: &Line, port: u16) {
        let Ok(other) = beside.call(Call::Connect(port)) else {
            self.speaker.say(Body::End(MAIN)).ok();
            return;
        };
        let (here, there) = (self.speaker.clone(), other.speaker.clone());
        std::thread::scope(|scope| {
            // A conversation must last until nobody speaks on it: it is told what was taken.
            let kept = scope.spawn(move || {
                self.hand_on(&there);
                self
            });
            other.hand_on(&here);
            drop(kept.join());
        });
    }

    /// Hands on what is said on the main stream until it ends.
    fn hand_on(&self, to: &Speaker) {
        while let Ok(Some(body)) = self.next(Duration::MAX) {
            match body {
                Body::Data(MAIN, bytes) if to.send(&bytes).is_ok() => {}
                Body::Data(..) | Body::End(MAIN) => break,
                _ => {}
            }
        }
        to.say(Body::End(MAIN)).ok();
    }

    /// Carries bytes between the room and a port of this machine's loopback.
    fn carry(self, port: u16) {
        // Whoever listened may be gone; the room then sees a connection that ends.
        let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
        let Ok((reading, mut writing)) = socket.and_then(|socket| Ok((socket.try_clone()?, socket))) else {
            self.speaker.say(Body::End(MAIN)).ok();
            return;
        };
        let speaker = &self.speaker;
        std::thread::scope(|scope| {
            scope.spawn(|| speaker.pump(reading));
            self.copy_to(&mut writing, Duration::MAX).ok();
            writing.shutdown(Shutdown::Write).ok();
        });
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.speaker.line.routes().open.remove(&self.speaker.channel);
    }
}

fn taken(bytes: &[u8]) -> Body {
    Body::Ack(u32::try_from(bytes.len()).unwrap_or(u32::MAX))
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the room is gone")
}
