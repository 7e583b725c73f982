//! Bodies of answers, whole or streamed, and every way in which they may end.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use crate::answer::first_piece;
use crate::stats::Passage;
use crate::voice::{Reply, Voice, voice};

/// A stream is passed on in pieces of about this many bytes.
const FRAME: usize = 16 * 1024;

/// The server's state of one connection.
#[derive(Default)]
pub(crate) struct ConnectionState {
    /// The server will close it with a reset.
    pub(crate) reset: AtomicBool,
    /// Its answer never ends by itself.
    pub(crate) hung: AtomicBool,
}

/// The server breaks the connection on purpose.
#[derive(Debug, thiserror::Error)]
#[error("the connection is broken on purpose")]
pub(crate) struct Broken;

/// How an answer ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Midway {
    /// The body just ends.
    Cut,
    Break,
    /// The connection stays open without further bytes.
    Stall,
    /// An error replaces the rest.
    Error,
    /// An event has a wrong type.
    Malformed,
    /// Bytes follow that are not an event.
    Garbage,
}

pub(crate) enum Body {
    Whole(Whole),
    Stream(Box<Stream>),
}

/// A body whose length is announced.
pub(crate) struct Whole {
    bytes: Bytes,
    announced: u64,
    after: After,
    passage: Option<Passage>,
    connection: Option<Arc<ConnectionState>>,
}

/// What the body does after its last byte.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Finish,
    /// Yields once, so that the bytes leave the machine before the connection ends.
    Flush {
        reset: bool,
    },
    Break {
        reset: bool,
    },
    Stall,
    Finished,
}

impl Whole {
    /// The complete body.
    pub(crate) fn complete(bytes: impl Into<Bytes>, passage: Option<Passage>) -> Body {
        let bytes = bytes.into();
        let announced = bytes.len() as u64;
        Body::Whole(Self { bytes, announced, after: After::Finish, passage, connection: None })
    }

    /// Half of the body, followed by a fault.
    pub(crate) fn half(
        bytes: &Bytes,
        midway: Midway,
        passage: Passage,
        connection: Arc<ConnectionState>,
    ) -> Body {
        let announced = bytes.len() as u64;
        let after = match midway {
            Midway::Stall => After::Stall,
            Midway::Break => After::Flush { reset: true },
            _ => After::Flush { reset: false },
        };
        let bytes = bytes.slice(..bytes.len() / 2);
        Body::Whole(Self { bytes, announced, after, passage: Some(passage), connection: Some(connection) })
    }

    fn finish(&mut self) {
        self.after = After::Finished;
        if let Some(passage) = &mut self.passage {
            passage.finish();
        }
    }

    fn poll(&mut self, context: &Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if !self.bytes.is_empty() {
            if self.after == After::Finish {
                self.finish();
            }
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.bytes)))));
        }
        match self.after {
            After::Finish | After::Finished => {
                self.finish();
                Poll::Ready(None)
            }
            After::Flush { reset } => {
                self.after = After::Break { reset };
                context.waker().wake_by_ref();
                Poll::Pending
            }
            After::Break { reset } => {
                self.finish();
                if reset && let Some(connection) = &self.connection {
                    connection.reset.store(true, Ordering::Relaxed);
                }
                Poll::Ready(Some(Err(Broken)))
            }
            After::Stall => {
                if let Some(connection) = &self.connection {
                    connection.hung.store(true, Ordering::Relaxed);
                }
                Poll::Pending
            }
        }
    }
}

/// A body that is written while it is sent.
pub(crate) struct Stream {
    reply: Reply,
    voice: &'static dyn Voice,
    stage: Stage,
    sent: u64,
    pace: Option<Pace>,
    /// The fault, and after how many tokens it happens.
    midway: Option<(Midway, u64)>,
    passage: Passage,
    connection: Arc<ConnectionState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Start,
    Open { part: usize },
    Pieces { part: usize, at: usize },
    End,
    Done,
    Stalled,
    Flush,
    Break,
}

/// The speed of a stream.
struct Pace {
    per_second: f64,
    started: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Pace {
    fn due(&mut self) -> u64 {
        let now = Instant::now();
        let elapsed = now.saturating_duration_since(*self.started.get_or_insert(now)).as_secs_f64();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "casts of floats saturate"
        )]
        let due = (elapsed * self.per_second + 1e-6) as u64;
        due.saturating_add(1)
    }

    /// Waits until one token more than `sent` is due.
    fn wait(&mut self, context: &mut Context<'_>, sent: u64) -> Poll<()> {
        #[expect(clippy::cast_precision_loss, reason = "nobody waits for 2^52 tokens")]
        let offset =
            Duration::try_from_secs_f64(sent as f64 / self.per_second).unwrap_or(Duration::from_hours(24));
        let due = *self.started.get_or_insert_with(Instant::now) + offset;
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        if sleep.deadline() != due {
            sleep.as_mut().reset(due);
        }
        sleep.as_mut().poll(context)
    }
}

impl Stream {
    pub(crate) fn begin(
        reply: Reply,
        tokens_per_second: Option<f64>,
        midway: Option<Midway>,
        passage: Passage,
        connection: Arc<ConnectionState>,
    ) -> Body {
        let half = reply.output / 2;
        Body::Stream(Box::new(Self {
            voice: voice(reply.form),
            reply,
            stage: Stage::Start,
            sent: 0,
            pace: tokens_per_second.map(|per_second| Pace { per_second, started: None, sleep: None }),
            midway: midway.map(|midway| (midway, half)),
            passage,
            connection,
        }))
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        loop {
            match self.stage {
                Stage::Done => return Poll::Ready(None),
                Stage::Stalled => return Poll::Pending,
                Stage::Flush => {
                    self.stage = Stage::Break;
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Stage::Break => return Poll::Ready(Some(Err(Broken))),
                Stage::Start | Stage::Open { .. } | Stage::Pieces { .. } | Stage::End => {}
            }
            let due = self.pace.as_mut().map_or(u64::MAX, Pace::due);
            let mut out = BytesMut::new();
            while out.len() < FRAME && self.step(&mut out, due) {}
            if !out.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(out.freeze()))));
            }
            if let Stage::Pieces { .. } = self.stage
                && let Some(pace) = &mut self.pace
                && pace.wait(context, self.sent).is_pending()
            {
                return Poll::Pending;
            }
        }
    }

    /// Writes the next event; false when there is nothing to write yet.
    fn step(&mut self, out: &mut BytesMut, due: u64) -> bool {
        if let Some((midway, after)) = self.midway
            && (self.stage == Stage::End || matches!(self.stage, Stage::Pieces { .. }) && self.sent >= after)
        {
            self.midway = None;
            return self.go_wrong(midway, out);
        }
        match self.stage {
            Stage::Start => {
                self.voice.start(&mut self.reply, out);
                self.stage = self.part(0);
            }
            Stage::Open { part } => {
                self.voice.open(&self.reply, part, out);
                self.stage = Stage::Pieces { part, at: 0 };
            }
            Stage::Pieces { part, at } => {
                let piece = first_piece(&self.reply.answer.parts[part].content()[at..]);
                if piece.is_empty() {
                    self.voice.close(&self.reply, part, out);
                    self.stage = self.part(part + 1);
                } else if self.sent >= due {
                    return false;
                } else {
                    self.stage = Stage::Pieces { part, at: at + piece.len() };
                    self.voice.piece(&self.reply, part, piece, out);
                    self.sent += 1;
                }
            }
            Stage::End => {
                self.voice.end(&self.reply, out);
                self.finish(Stage::Done);
            }
            Stage::Done | Stage::Stalled | Stage::Flush | Stage::Break => return false,
        }
        true
    }

    fn part(&self, part: usize) -> Stage {
        if part < self.reply.answer.parts.len() { Stage::Open { part } } else { Stage::End }
    }

    fn go_wrong(&mut self, midway: Midway, out: &mut BytesMut) -> bool {
        match midway {
            Midway::Malformed => {
                self.voice.malformed(&self.reply, out);
                return true;
            }
            Midway::Stall => {
                self.connection.hung.store(true, Ordering::Relaxed);
                self.stage = Stage::Stalled;
            }
            Midway::Break => {
                self.connection.reset.store(true, Ordering::Relaxed);
                self.finish(Stage::Flush);
            }
            Midway::Cut => self.finish(Stage::Done),
            Midway::Error => {
                self.voice.error(out);
                self.finish(Stage::Done);
            }
            Midway::Garbage => {
                self.voice.garbage(out);
                self.finish(Stage::Done);
            }
        }
        false
    }

    fn finish(&mut self, stage: Stage) {
        self.stage = stage;
        self.passage.finish();
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.get_mut() {
            Self::Whole(whole) => whole.poll(context),
            Self::Stream(stream) => stream.poll(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(whole) => whole.bytes.is_empty() && matches!(whole.after, After::Finished),
            Self::Stream(stream) => stream.stage == Stage::Done,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(whole) => SizeHint::with_exact(whole.announced),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}
