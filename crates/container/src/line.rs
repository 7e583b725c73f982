//! The opener's side of the connection to a room: conversations over two byte streams.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aec_sandbox::wire::{Answer, Body, Call, Frame, Frames, MAIN, PIECE, WINDOW};

/// How long a room may take to answer. Commands and file contents have their own limits.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// The connection to a room.
#[derive(Clone, Debug)]
pub(crate) struct Line(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// To the writing thread. No other thread waits for the room to read.
    out: Sender<Vec<u8>>,
    routes: Mutex<Routes>,
    next: AtomicU32,
}

#[derive(Debug, Default)]
struct Routes {
    open: HashMap<u32, Route>,
    /// Addresses that the room was asked to listen on, with the destinations of their connections. The opener
    /// connects to nothing else, whatever a room asks for.
    forwards: HashMap<SocketAddrV4, Destination>,
    /// Whether the connection has ended.
    gone: bool,
    /// Whether the room's last report said that almost no memory is left.
    short_of_memory: bool,
}

/// The destination of a connection from inside.
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

/// Bytes that the room has not acknowledged yet.
#[derive(Debug, Default)]
struct Window {
    state: Mutex<UnderWay>,
    taken: Condvar,
}

#[derive(Debug, Default)]
struct UnderWay {
    bytes: usize,
    /// Whether the conversation has ended, so that no acknowledgement will come.
    closed: bool,
}

#[derive(Debug)]
pub(crate) struct Conversation {
    from: Receiver<Body>,
    speaker: Speaker,
}

/// The sending half of a conversation.
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

    /// Closes the stream that the room reads from.
    pub(crate) fn hang_up(&self) {
        self.0.out.send(Vec::new()).ok();
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.routes().gone
    }

    /// Whether the room's last report said that almost no memory is left.
    pub(crate) fn is_short_of_memory(&self) -> bool {
        self.routes().short_of_memory
    }

    /// Marks the connection as ended and wakes all waiting threads.
    fn end(&self) {
        let mut routes = self.routes();
        routes.gone = true;
        routes.forwards.clear();
        for (_, route) in routes.open.drain() {
            route.window.close();
        }
    }

    fn route(&self, frames: &mut Frames) -> io::Result<()> {
        while let Some(Frame { channel, body }) = frames.next_frame()? {
            if let Body::Call(Call::Connected(address)) = body {
                let destination = self.routes().forwards.get(&address).cloned();
                self.let_in(channel, address.port(), destination);
                continue;
            }
            if let Body::Call(Call::ShortOfMemory(short)) = body {
                self.routes().short_of_memory = short;
                continue;
            }
            let routes = self.routes();
            let Some(route) = routes.open.get(&channel) else {
                if let Body::Data(_, bytes) = &body {
                    // The receiver is gone; acknowledge the bytes, so that the sender does not wait for it.
                    self.say(channel, taken(bytes))?;
                }
                continue;
            };
            if let Body::Ack(count) = body {
                route.window.give_back(count as usize);
            } else {
                // The receiver may just have dropped the conversation.
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

    /// Carries connections to this address inside to the same port of another container.
    pub(crate) fn lead(&self, address: SocketAddrV4, beside: &Self) -> io::Result<()> {
        self.routes().forwards.insert(address, Destination::Beside(beside.clone()));
        self.ask(Call::Listen(address)).map(drop)
    }

    /// Carries connections to this port of the room's loopback to the same port of this machine's loopback.
    pub(crate) fn lead_here(&self, port: u16) -> io::Result<()> {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        self.routes().forwards.insert(address, Destination::Here);
        self.ask(Call::Listen(address)).map(drop)
    }

    /// Carries a connection from inside. Ends it if it has no destination or no thread can be started.
    fn let_in(&self, channel: u32, port: u16, destination: Option<Destination>) {
        let refused = || self.say(channel, Body::End(MAIN)).ok();
        let Some(destination) = destination else {
            refused();
            return;
        };
        let conversation = self.listen_to(channel);
        let carried = std::thread::Builder::new().spawn(move || match destination {
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

    pub(crate) fn call(&self, call: Call) -> io::Result<Conversation> {
        let channel = self.0.next.fetch_add(2, Ordering::Relaxed);
        let conversation = self.listen_to(channel);
        conversation.speaker.say(Body::Call(call))?;
        Ok(conversation)
    }

    pub(crate) fn ask(&self, call: Call) -> io::Result<Answer> {
        self.call(call)?.answer()
    }

    /// Sends a call that needs no answer.
    pub(crate) fn tell(&self, call: Call) {
        let channel = self.0.next.fetch_add(2, Ordering::Relaxed);
        self.say(channel, Body::Call(call)).ok();
    }
}

impl Window {
    fn state(&self) -> MutexGuard<'_, UnderWay> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `count` more bytes may be sent.
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
    /// Sends a message on this channel.
    pub(crate) fn say(&self, body: Body) -> io::Result<()> {
        self.line.say(self.channel, body)
    }

    /// Sends bytes, no faster than the room acknowledges them.
    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(PIECE) {
            self.window.take(piece.len())?;
            self.say(Body::Data(MAIN, piece.to_vec()))?;
        }
        Ok(())
    }

    /// Sends bytes and ends the stream.
    pub(crate) fn send_all(&self, bytes: &[u8]) -> io::Result<()> {
        self.send(bytes)?;
        self.say(Body::End(MAIN))
    }

    /// Sends everything that can be read from `from`.
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
    pub(crate) fn speaker(&self) -> &Speaker {
        &self.speaker
    }

    /// The next message; `None` if none arrives in time.
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

    /// The answer to the call. If none arrives, the connection is ended.
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

    /// Copies everything that follows on the main stream; `patience` is the longest pause between two messages.
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
            // A conversation must live until both directions have ended, because it receives the acknowledgements.
            let kept = scope.spawn(move || {
                self.hand_on(&there);
                self
            });
            other.hand_on(&here);
            drop(kept.join());
        });
    }

    /// Forwards the main stream until it ends.
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
        // The listener may be gone; the room then sees the connection end.
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
