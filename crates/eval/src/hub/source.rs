//! The published files, and request bodies made of them: files stay on disk and are read piece by piece while sent.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use aec_base::digest::{self, Digest};
use aec_base::file::{Links, ReadError, open_regular};
use aec_base::secret::Redactor;
use aec_http::Content;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

use super::error::HubError;

/// Bytes read from a file at once. A multiple of three, so that pieces in Base64 join without padding between them.
const PIECE: usize = 192 * 1024;

/// Pieces that may wait for the network.
const PIECES_AHEAD: usize = 4;

/// Bytes from the start of a file from which the hub tells text from binary.
const SAMPLE: usize = 512;

#[derive(Clone, Debug)]
enum Bytewise {
    Memory(Bytes),
    Disk { file: Arc<File>, path: PathBuf },
}

#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) path: &'static str,
    pub(super) size: u64,
    pub(super) digest: Digest,
    pub(super) sample: Bytes,
    pub(super) lines: u64,
    bytes: Bytewise,
}

impl Source {
    /// A file whose content is made in memory.
    pub(super) fn made(path: &'static str, text: String) -> Self {
        let bytes = Bytes::from(text);
        Self {
            path,
            size: bytes.len() as u64,
            digest: Digest::of(&bytes),
            sample: bytes.slice(..bytes.len().min(SAMPLE)),
            lines: 0,
            bytes: Bytewise::Memory(bytes),
        }
    }

    /// A file on disk, read once for its digest. A file that contains a secret is refused.
    pub(super) fn read(
        path: &'static str,
        from: &Path,
        limit: u64,
        secrets: &[&Redactor],
    ) -> Result<Self, HubError> {
        let bad = |reason: String| HubError::File { path: from.to_owned(), reason };
        let (file, _) = match open_regular(from, limit, Links::Follow) {
            Ok(opened) => opened,
            Err(ReadError::TooLarge { size, limit }) => {
                let detail = format!("{size} bytes, more than {limit}");
                return Err(HubError::TooLarge { what: from.display().to_string(), detail });
            }
            Err(error) => return Err(bad(error.to_string())),
        };
        let mut searches: Vec<_> = secrets.iter().map(|redactor| redactor.search()).collect();
        let mut sample = Vec::with_capacity(SAMPLE);
        let mut lines = LineCount::default();
        let counted = digest::copy(&file, limit, |piece| {
            let room = SAMPLE - sample.len();
            sample.extend_from_slice(&piece[..room.min(piece.len())]);
            lines.feed(piece);
            for search in &mut searches {
                search.feed(piece);
            }
            Ok(())
        });
        let (digest, size) = counted.map_err(|error| bad(error.to_string()))?;
        if searches.iter().any(aec_base::secret::Search::found) {
            return Err(HubError::HoldsSecret { path: from.to_owned() });
        }
        let bytes = Bytewise::Disk { file: Arc::new(file), path: from.to_owned() };
        Ok(Self { path, size, digest, sample: sample.into(), lines: lines.finish(), bytes })
    }
}

#[derive(Default)]
struct LineCount {
    lines: u64,
    in_line: bool,
}

impl LineCount {
    fn feed(&mut self, piece: &[u8]) {
        for byte in piece {
            if *byte == b'\n' {
                self.lines += u64::from(std::mem::take(&mut self.in_line));
            } else if !byte.is_ascii_whitespace() {
                self.in_line = true;
            }
        }
    }

    fn finish(self) -> u64 {
        self.lines + u64::from(self.in_line)
    }
}

/// A part of a request body.
#[derive(Clone, Debug)]
pub(super) enum Segment {
    Text(Bytes),
    Raw { source: Source, from: u64, length: u64 },
    Encoded(Source),
}

impl Segment {
    fn length(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Raw { length, .. } => *length,
            Self::Encoded(source) => source.size.div_ceil(3) * 4,
        }
    }

    /// Passes the bytes on until the receiver wants no more.
    fn produce(&self, mut hand_on: impl FnMut(Bytes) -> bool) -> Result<(), Unreadable> {
        match self {
            Self::Text(text) => {
                hand_on(text.clone());
                Ok(())
            }
            Self::Raw { source, from, length } => pieces(source, *from, *length, &mut hand_on),
            Self::Encoded(source) => {
                pieces(source, 0, source.size, &mut |piece| hand_on(STANDARD.encode(piece).into()))
            }
        }
    }
}

fn pieces(
    source: &Source,
    from: u64,
    length: u64,
    hand_on: &mut dyn FnMut(Bytes) -> bool,
) -> Result<(), Unreadable> {
    let end = from.saturating_add(length).min(source.size);
    let mut at = from;
    while at < end {
        let count = usize::try_from(end - at).unwrap_or(PIECE).min(PIECE);
        let piece = match &source.bytes {
            Bytewise::Memory(bytes) => {
                let start = usize::try_from(at).unwrap_or(bytes.len()).min(bytes.len());
                bytes.slice(start..(start + count).min(bytes.len()))
            }
            Bytewise::Disk { file, path } => {
                let mut buffer = vec![0; count];
                file.read_exact_at(&mut buffer, at).map_err(|error| {
                    let reason = if error.kind() == io::ErrorKind::UnexpectedEof {
                        "it became shorter while it was sent".to_owned()
                    } else {
                        error.to_string()
                    };
                    Unreadable { path: path.clone(), reason }
                })?;
                buffer.into()
            }
        };
        at += count as u64;
        if !hand_on(piece) {
            break;
        }
    }
    Ok(())
}

#[derive(Clone, Debug, Default)]
pub(super) struct Payload {
    segments: Vec<Segment>,
    failure: Arc<OnceLock<Unreadable>>,
}

#[derive(Clone, Debug)]
struct Unreadable {
    path: PathBuf,
    reason: String,
}

impl Payload {
    pub(super) fn new(segments: Vec<Segment>) -> Self {
        Self { segments, failure: Arc::default() }
    }

    pub(super) fn text(text: impl Into<Bytes>) -> Self {
        Self::new(vec![Segment::Text(text.into())])
    }

    pub(super) fn length(&self) -> u64 {
        self.segments.iter().map(Segment::length).sum()
    }

    /// The error on this side while the body was made.
    pub(super) fn failure(&self) -> Option<HubError> {
        let Unreadable { path, reason } = self.failure.get()?.clone();
        Some(HubError::File { path, reason })
    }
}

impl Content for Payload {
    /// Another thread reads the files, a few pieces ahead of the network.
    fn body(&self) -> aec_http::Body {
        match self.segments.as_slice() {
            [] => return Bytes::new().body(),
            [Segment::Text(text)] => return text.body(),
            _ => {}
        }
        let (sender, receiver) = mpsc::channel(PIECES_AHEAD);
        let segments = self.segments.clone();
        let failure = Arc::clone(&self.failure);
        // The thread ends with the body: sending fails once the receiver is dropped.
        drop(tokio::task::spawn_blocking(move || {
            for segment in &segments {
                let made = segment.produce(|piece| sender.blocking_send(Ok(piece)).is_ok());
                if let Err(error) = made {
                    let said = io::Error::other(error.reason.clone());
                    drop(failure.set(error));
                    drop(sender.blocking_send(Err(said)));
                    return;
                }
            }
        }));
        Streamed { receiver, left: self.length() }.boxed_unsync()
    }
}

/// A body whose pieces come from another thread. Its length is known, because the storage requires it.
struct Streamed {
    receiver: mpsc::Receiver<io::Result<Bytes>>,
    left: u64,
}

impl Body for Streamed {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.receiver.poll_recv(context).map(|piece| {
            piece.map(|piece| {
                piece.map(|piece| {
                    self.left = self.left.saturating_sub(piece.len() as u64);
                    Frame::data(piece)
                })
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(payload: &Payload) -> Vec<u8> {
        let mut bytes = Vec::new();
        for segment in &payload.segments {
            let take = |piece: Bytes| {
                bytes.extend_from_slice(&piece);
                true
            };
            segment.produce(take).unwrap();
        }
        bytes
    }

    #[test]
    fn base64_of_pieces_is_base64_of_the_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows");
        for size in [0, 1, 2, 3, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 2] {
            let content: Vec<u8> = (0..size).map(|n| u8::try_from(n % 251).unwrap()).collect();
            std::fs::write(&path, &content).unwrap();
            let source = Source::read("x", &path, 1 << 30, &[]).unwrap();
            let payload = Payload::new(vec![Segment::Encoded(source)]);
            let bytes = made(&payload);
            assert_eq!(bytes, STANDARD.encode(&content).into_bytes(), "{size}");
            assert_eq!(bytes.len() as u64, payload.length(), "{size}");
        }
    }

    #[test]
    fn stretches_join_to_the_whole() {
        let text: String = (0..PIECE).map(|n| char::from(b'a' + u8::try_from(n % 26).unwrap())).collect();
        let source = Source::made("x", text.clone());
        let stretch = |from, length| Segment::Raw { source: source.clone(), from, length };
        let size = source.size;
        let payload = Payload::new(vec![stretch(0, 100), stretch(100, size - 101), stretch(size - 1, 1)]);
        assert_eq!(made(&payload), text.into_bytes());
        assert_eq!(payload.length(), size);
    }

    #[test]
    fn lines_are_counted_across_pieces() {
        for (pieces, expected) in [
            (vec![""], 0),
            (vec!["\n\n", " \r\n"], 0),
            (vec!["{}\n{}"], 2),
            (vec!["{", "}\n", "{}", "\n"], 2),
            (vec!["{}\r\n", "\n", "{}\n"], 2),
        ] {
            let mut count = LineCount::default();
            for piece in &pieces {
                count.feed(piece.as_bytes());
            }
            assert_eq!(count.finish(), expected, "{pieces:?}");
        }
    }
}
