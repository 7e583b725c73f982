//! The opener's side of the line to a room: conversations over two streams of bytes.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aec_sandbox::wire::{Answer, Body, Call, Frame, Frames, MAIN, PIECE, WINDOW};

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
    /// Who is connected to instead of this machine.
    doors: HashMap<SocketAddrV4, Line>,
    /// Whether nobody is there any more.
    gone: bool,
}

#[derive(Debug)]
struct Route {
    to: Sender<Body>,
    window: Arc<Window>,
}

/// Bytes that the room has not taken yet.
#[derive(Debug, Default)]
struct Window {
    under_way: Mutex<usize>,
    taken: Condvar,
}

/// One conversation.
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
        std::thread::spawn(move || {
            for bytes in waiting {
                if bytes.is_empty() || output.write_all(&bytes).and_then(|()| output.flush()).is_err() {
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

    /// Nobody is there any more: everyone who waits hears of it.
    fn end(&self) {
        let mut routes = self.routes();
        routes.gone = true;
        routes.doors.clear();
        for (_, route) in routes.open.drain() {
            route.window.open_wide();
        }
    }

    fn route(&self, frames: &mut Frames) -> io::Result<()> {
        while let Some(Frame { channel, body }) = frames.next_frame()? {
            if let Body::Call(Call::Connected(address)) = body {
                let conversation = self.listen_to(channel);
                let beside = self.routes().doors.get(&address).cloned();
                std::thread::spawn(move || match beside {
                    Some(other) => conversation.join(&other, address.port()),
                    None => conversation.carry(address.port()),
                });
                continue;
            }
            let routes = self.routes();
            let Some(route) = routes.open.get(&channel) else { continue };
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
        if !routes.gone {
            routes.open.insert(number, Route { to, window: Arc::clone(&window) });
        }
        drop(routes);
        Conversation { from, speaker: Speaker { channel: number, line: self.clone(), window } }
    }

    /// What connects to this address inside is carried to the same port beside.
    pub(crate) fn lead(&self, address: SocketAddrV4, beside: &Self) -> io::Result<()> {
        self.routes().doors.insert(address, beside.clone());
        self.ask(Call::Listen(address)).map(drop)
    }

    /// Begins a conversation.
    pub(crate) fn call(&self, call: Call) -> io::Result<Conversation> {
        let channel = self.0.next.fetch_add(2, Ordering::Relaxed);
        let conversation = self.listen_to(channel);
        conversation.speaker.say(Body::Call(call))?;
        Ok(conversation)
    }

    /// A call with one answer.
    pub(crate) fn ask(&self, call: Call) -> io::Result<Answer> {
        self.call(call)?.answer()
    }

    /// Says something that nobody answers.
    pub(crate) fn tell(&self, call: Call) {
        let channel = self.0.next.fetch_add(2, Ordering::Relaxed);
        if let Ok(bytes) = (Frame { channel, body: Body::Call(call) }).encode() {
            self.0.out.send(bytes).ok();
        }
    }
}

impl Window {
    /// Waits until there is room for so many more bytes.
    fn take(&self, count: usize) {
        let under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let mut under_way = self
            .taken
            .wait_while(under_way, |under_way| *under_way > 0 && *under_way + count > WINDOW)
            .unwrap_or_else(PoisonError::into_inner);
        *under_way += count;
    }

    fn give_back(&self, count: usize) {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        *under_way = under_way.saturating_sub(count);
        self.taken.notify_all();
    }

    fn open_wide(&self) {
        *self.under_way.lock().unwrap_or_else(PoisonError::into_inner) = 0;
        self.taken.notify_all();
    }
}

impl Speaker {
    /// Says something on this channel.
    pub(crate) fn say(&self, body: Body) -> io::Result<()> {
        let bytes = Frame { channel: self.channel, body }.encode()?;
        self.line.0.out.send(bytes).map_err(|_| gone())
    }

    /// Sends bytes, no faster than they are taken.
    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(PIECE) {
            self.window.take(piece.len());
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
            self.speaker.say(Body::Ack(u32::try_from(bytes.len()).unwrap_or(u32::MAX)))?;
        }
        Ok(Some(body))
    }

    /// The answer to the call.
    pub(crate) fn answer(&self) -> io::Result<Answer> {
        loop {
            match self.from.recv().map_err(|_| gone())? {
                Body::Answer(Answer::Failed(failed)) => return Err(failed.into()),
                Body::Answer(answer) => return Ok(answer),
                _ => {}
            }
        }
    }

    /// Copies everything that follows on the main stream.
    pub(crate) fn copy_to(&self, to: &mut dyn Write) -> io::Result<()> {
        loop {
            match self.next(Duration::MAX)? {
                Some(Body::Data(MAIN, bytes)) => to.write_all(&bytes)?,
                Some(Body::End(MAIN)) => return Ok(()),
                _ => {}
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
            self.copy_to(&mut writing).ok();
            writing.shutdown(Shutdown::Write).ok();
        });
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.speaker.line.routes().open.remove(&self.speaker.channel);
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the room is gone")
}
