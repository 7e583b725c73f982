//! Messages between a harness and a session: a length of four bytes, then that many bytes of JSON.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// Longest message that is read, in bytes. A session is not trusted.
const LONGEST: u32 = 64 * 1024 * 1024;

/// The reading half. A partial message is kept when reading is cancelled.
pub(super) struct Frames {
    socket: OwnedReadHalf,
    buffer: bytes::BytesMut,
}

pub(super) struct Wire(OwnedWriteHalf);

pub(super) fn split(socket: UnixStream) -> (Frames, Wire) {
    let (reader, writer) = socket.into_split();
    (Frames { socket: reader, buffer: bytes::BytesMut::new() }, Wire(writer))
}

impl Frames {
    pub(super) async fn next<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        loop {
            if let Some(message) = self.whole()? {
                return aec_base::json::from_slice(&message).map_err(|error| {
                    io::Error::new(io::ErrorKind::InvalidData, format!("it sent what is no message: {error}"))
                });
            }
            if self.socket.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn whole(&mut self) -> io::Result<Option<bytes::BytesMut>> {
        let Some(length) = self.buffer.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length);
        if length > LONGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it sent a message that is too long"));
        }
        let end = 4 + length as usize;
        if self.buffer.len() < end {
            return Ok(None);
        }
        let mut message = self.buffer.split_to(end);
        Ok(Some(message.split_off(4)))
    }
}

impl Wire {
    pub(super) async fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let mut bytes = vec![0; 4];
        serde_json::to_writer(&mut bytes, message)?;
        let length = u32::try_from(bytes.len() - 4)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the message is too long"))?;
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        self.0.write_all(&bytes).await
    }
}
