//! Blocking access to the two streams of a container.

use std::io::{self, Read, Write};
use std::pin::Pin;

use bollard::container::{AttachContainerResults, LogOutput};
use bollard::errors::Error as DockerError;
use bytes::{Buf as _, Bytes};
use futures_util::StreamExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio::runtime::Handle;

use crate::line::Line;

/// Connects to the first process of a container.
pub(crate) fn line(handle: Handle, streams: AttachContainerResults) -> Line {
    let output = Output { handle: handle.clone(), stream: streams.output, rest: Bytes::new() };
    Line::new(output, Input { handle, stream: streams.input })
}

/// The container's output, for a reading thread.
struct Output {
    handle: Handle,
    stream: Pin<Box<dyn futures_util::Stream<Item = Result<LogOutput, DockerError>> + Send>>,
    rest: Bytes,
}

impl Read for Output {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.handle.block_on(self.stream.next()) {
                Some(Ok(LogOutput::StdErr { message })) => {
                    tracing::debug!(message = %String::from_utf8_lossy(&message), "a container complains");
                }
                Some(Ok(piece)) => self.rest = piece.into_bytes(),
                Some(Err(error)) => return Err(io::Error::other(error.to_string())),
                None => return Ok(0),
            }
        }
        let count = self.rest.len().min(buffer.len());
        self.rest.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}

/// The container's input, for a writing thread.
struct Input {
    handle: Handle,
    stream: Pin<Box<dyn tokio::io::AsyncWrite + Send>>,
}

impl Write for Input {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.handle.block_on(self.stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.handle.block_on(self.stream.flush())
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        // This fails only if the engine is gone.
        self.handle.block_on(self.stream.shutdown()).ok();
    }
}
