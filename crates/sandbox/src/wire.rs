//! The protocol between an opener and a room that cannot exchange descriptors, such as a container: frames over two
//! byte streams. Many conversations share the streams, each on its own channel.
//!
//! A frame is a length, a kind, a channel and a body. A side sends at most [`WINDOW`] unacknowledged bytes of data on
//! a channel, so that a slow receiver never fills the memory of the other side.

use std::io;
use std::net::SocketAddrV4;

use serde::{Deserialize, Serialize};

use crate::spec::Enforce;
use crate::tree::{Kind, Listed};

/// The argument that makes the program the first process of a container.
pub const CONTAINED_ARGUMENT: &str = "__contained";
/// The image's copy of its `/workspace`, because the directory itself is made anew for every room.
pub const SEED: &str = "/.aec-bench/workspace";
/// Most unacknowledged bytes of data on a channel.
pub const WINDOW: usize = 1024 * 1024;
/// Most bytes of data in a frame.
pub const PIECE: usize = 32 * 1024;
/// Longest frame; lists of files are the longest.
const LONGEST: usize = 256 * 1024 * 1024;
const HEADER: usize = 9;

/// The two-way stream of a conversation; the standard input of a command.
pub const MAIN: u8 = 0;
/// Standard output of a command.
pub const STDOUT: u8 = 1;
/// Standard error of a command.
pub const STDERR: u8 = 2;

/// A message on a channel.
#[derive(Debug, PartialEq)]
pub struct Frame {
    /// The conversation. Channels that the opener begins have even numbers.
    pub channel: u32,
    pub body: Body,
}

#[derive(Debug, PartialEq)]
pub enum Body {
    /// Begins a conversation.
    Call(Call),
    /// The result of a call.
    Answer(Answer),
    /// Bytes of a stream.
    Data(u8, Vec<u8>),
    /// The stream has ended.
    End(u8),
    /// The receiver has taken this many bytes.
    Ack(u32),
}

/// Requests.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub enum Call {
    /// Make the room. Must be the first call.
    Open {
        writable: Vec<String>,
        /// Directories that commands cannot change.
        sealed: Vec<String>,
        /// Whether `/workspace` begins with the image's files.
        seeded: bool,
        /// Limits that no control group sets.
        enforce: Enforce,
    },
    /// Serve a container beside a room instead, as the image made it: commands run as the container's user. Must be
    /// the first call.
    Beside,
    /// Run a command; its input follows on [`MAIN`].
    Exec(Command),
    /// Kill the command of this channel and its process group.
    Kill,
    /// Start a resident, which communicates on [`MAIN`] and prints on [`STDOUT`].
    Settle(Command),
    Evict,
    /// End every process, and start no others.
    Freeze,
    /// Listen on this address of loopback.
    Listen(SocketAddrV4),
    /// A process inside connected to this address; the bytes follow on [`MAIN`].
    Connected(SocketAddrV4),
    /// From the room: whether the memory in use leaves almost nothing for the process that answers there.
    ShortOfMemory(bool),
    /// Connect to this port of loopback; the bytes follow on [`MAIN`].
    Connect(u16),
    /// Whether a process listens on this port.
    Listens(u16),
    /// Write a file whose content follows on [`MAIN`].
    Write {
        place: String,
        /// Path below it.
        path: Spelled,
        executable: bool,
    },
    /// Read a file; the content follows the answer on [`MAIN`].
    Read {
        place: String,
        /// Path below it.
        path: Spelled,
    },
    MakeDirectory {
        place: String,
        /// Path below it.
        path: Spelled,
    },
    /// List everything below a directory.
    List {
        place: String,
        /// Most entries.
        entries: usize,
        /// Most levels.
        depth: usize,
    },
    /// Whether the kernel killed a process because memory ran out.
    OutOfMemory,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Variables that are added to the image's.
    pub env: Vec<(String, String)>,
    pub cwd: String,
}

/// The result of a call.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    Done,
    /// A command ended.
    Exited {
        /// The exit code, if it exited by itself.
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// A file that can be read.
    File {
        executable: bool,
    },
    /// The entries below a directory.
    Listed(Vec<Entry>),
    Is(bool),
    /// The call failed.
    Failed(Failed),
}

/// Why a call failed, in a form that the other side can tell apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failed {
    /// The kernel's error number.
    code: Option<i32>,
    /// Whether one of our own limits was exceeded, not one of the kernel's.
    too_much: bool,
    message: String,
}

impl From<&io::Error> for Failed {
    fn from(error: &io::Error) -> Self {
        Self {
            code: error.raw_os_error(),
            too_much: error.kind() == io::ErrorKind::QuotaExceeded,
            message: error.to_string(),
        }
    }
}

impl From<Failed> for io::Error {
    fn from(failed: Failed) -> Self {
        match (failed.code, failed.too_much) {
            (Some(code), _) => Self::from_raw_os_error(code),
            (None, true) => Self::new(io::ErrorKind::QuotaExceeded, failed.message),
            (None, false) => Self::new(io::ErrorKind::InvalidInput, failed.message),
        }
    }
}

/// A path as text, byte for byte, because file names need not be valid text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spelled(String);

impl From<&std::path::Path> for Spelled {
    fn from(path: &std::path::Path) -> Self {
        let bytes = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str());
        Self(bytes.iter().map(|byte| char::from(*byte)).collect())
    }
}

impl Spelled {
    /// Decodes the path. Characters above one byte are invalid, because we never write them.
    pub fn path(&self) -> io::Result<std::path::PathBuf> {
        let bytes: Result<Vec<u8>, _> = self.0.chars().map(u8::try_from).collect();
        let bytes = bytes.map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "an odd path"))?;
        Ok(std::path::PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes)))
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    path: Spelled,
    kind: u8,
    size: u64,
    links: u64,
}

const KINDS: [Kind; 5] = [Kind::File, Kind::Directory, Kind::Link, Kind::Special, Kind::Closed];

impl From<&Listed> for Entry {
    fn from(listed: &Listed) -> Self {
        let kind = (0..).zip(KINDS).find(|(_, kind)| *kind == listed.kind).map_or(3, |(number, _)| number);
        Self { path: listed.path.as_path().into(), kind, size: listed.size, links: listed.links }
    }
}

impl Entry {
    /// The entry as [`Tree`](crate::tree::Tree) lists it.
    pub fn listed(&self) -> io::Result<Listed> {
        let kind = KINDS.get(usize::from(self.kind)).copied().unwrap_or(Kind::Special);
        Ok(Listed { path: self.path.path()?, kind, size: self.size, links: self.links })
    }
}

impl Frame {
    pub fn encode(&self) -> io::Result<Vec<u8>> {
        let (kind, body) = match &self.body {
            Body::Call(call) => (0, serde_json::to_vec(call)?),
            Body::Answer(answer) => (1, serde_json::to_vec(answer)?),
            Body::Data(stream, bytes) => {
                let mut body = Vec::with_capacity(bytes.len() + 1);
                body.push(*stream);
                body.extend_from_slice(bytes);
                (2, body)
            }
            Body::End(stream) => (3, vec![*stream]),
            Body::Ack(count) => (4, count.to_le_bytes().to_vec()),
        };
        let length = u32::try_from(body.len()).ok().filter(|length| *length as usize <= LONGEST);
        let length = length.ok_or_else(|| io::Error::other("too much for one frame"))?;
        let mut bytes = Vec::with_capacity(HEADER + body.len());
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.push(kind);
        bytes.extend_from_slice(&self.channel.to_le_bytes());
        bytes.extend_from_slice(&body);
        Ok(bytes)
    }

    fn decode(kind: u8, channel: u32, body: &[u8]) -> io::Result<Self> {
        let odd = || io::Error::new(io::ErrorKind::InvalidData, "an invalid frame");
        let body = match (kind, body) {
            (0, body) => Body::Call(serde_json::from_slice(body)?),
            (1, body) => Body::Answer(serde_json::from_slice(body)?),
            (2, [stream, bytes @ ..]) => Body::Data(*stream, bytes.to_vec()),
            (3, [stream]) => Body::End(*stream),
            (4, body) => Body::Ack(u32::from_le_bytes(body.try_into().map_err(|_| odd())?)),
            _ => return Err(odd()),
        };
        Ok(Self { channel, body })
    }
}

/// Assembles frames from pieces.
#[derive(Debug, Default)]
pub struct Frames {
    buffer: Vec<u8>,
    /// The offset of the next frame.
    at: usize,
}

impl Frames {
    pub fn push(&mut self, bytes: &[u8]) {
        if self.at > 0 {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    pub fn next_frame(&mut self) -> io::Result<Option<Frame>> {
        let rest = &self.buffer[self.at..];
        let Some(header) = rest.first_chunk::<HEADER>() else { return Ok(None) };
        let number =
            |at: usize| header[at..].first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let (length, kind, channel) = (number(0) as usize, header[4], number(5));
        if length > LONGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "an invalid frame"));
        }
        let Some(body) = rest.get(HEADER..HEADER + length) else { return Ok(None) };
        let frame = Frame::decode(kind, channel, body)?;
        self.at += HEADER + length;
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Frame> {
        let path = std::path::Path::new(std::ffi::OsStr::from_bytes(b"a/\xff\xfe b"));
        let listed = Listed { path: path.to_owned(), kind: Kind::Link, size: 3, links: 2 };
        let command =
            Command { argv: vec!["x".into()], env: vec![("A".into(), "b=c".into())], cwd: "/".into() };
        let failed = Failed::from(&io::Error::from_raw_os_error(2));
        [
            Body::Call(Call::Exec(command)),
            Body::Call(Call::Write { place: "/workspace".into(), path: path.into(), executable: true }),
            Body::Answer(Answer::Listed(vec![(&listed).into()])),
            Body::Answer(Answer::Failed(failed)),
            Body::Data(STDERR, b"\0\n".to_vec()),
            Body::Data(MAIN, Vec::new()),
            Body::End(STDOUT),
            Body::Ack(77),
        ]
        .into_iter()
        .zip(1..)
        .map(|(body, channel)| Frame { channel, body })
        .collect()
    }

    use std::os::unix::ffi::OsStrExt as _;

    #[test]
    fn frames_survive_any_cutting() {
        let bytes: Vec<u8> = all().iter().flat_map(|frame| frame.encode().unwrap()).collect();
        for size in [1, 2, 7, 64, bytes.len()] {
            let (mut frames, mut found) = (Frames::default(), Vec::new());
            for piece in bytes.chunks(size) {
                frames.push(piece);
                while let Some(frame) = frames.next_frame().unwrap() {
                    found.push(frame);
                }
            }
            assert_eq!(found, all(), "{size}");
        }
    }

    #[test]
    fn odd_bytes_are_errors() {
        for bytes in [
            [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0].as_slice(),
            &[1, 0, 0, 0, 9, 0, 0, 0, 0, 0],
            &[1, 0, 0, 0, 0, 0, 0, 0, 0, b'{'],
            &[0, 0, 0, 0, 2, 0, 0, 0, 0],
            &[1, 0, 0, 0, 4, 0, 0, 0, 0, 1],
        ] {
            let mut frames = Frames::default();
            frames.push(bytes);
            assert!(frames.next_frame().is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn errors_keep_their_kind() {
        for error in [
            io::Error::from_raw_os_error(2),
            io::Error::from_raw_os_error(28),
            io::Error::new(io::ErrorKind::QuotaExceeded, "more files than allowed"),
            io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"),
        ] {
            let back: io::Error = Failed::from(&error).into();
            assert_eq!((back.kind(), back.to_string()), (error.kind(), error.to_string()));
        }
    }
}
