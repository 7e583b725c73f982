//! Messages over a stream socket: a length, then JSON. Descriptors are sent together with the length.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest message.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;
const MAX_DESCRIPTORS: usize = 16;

/// One end of the connection between the opener and the room.
#[derive(Debug)]
pub(crate) struct Channel(OwnedFd);

impl Channel {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self(socket)
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    pub(crate) fn send<T: Serialize>(&self, message: &T, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let body = serde_json::to_vec(message)?;
        let length = u32::try_from(body.len()).map_err(|_| io::Error::other("the message is too long"))?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::Error::other("too many descriptors"));
        }
        let header = length.to_le_bytes();
        // A stream socket never splits four bytes.
        sendmsg(&self.0, &[IoSlice::new(&header)], &mut ancillary, SendFlags::NOSIGNAL)?;
        let mut rest = body.as_slice();
        while !rest.is_empty() {
            let sent = rustix::io::retry_on_intr(|| rustix::net::send(&self.0, rest, SendFlags::NOSIGNAL))?;
            rest = &rest[sent..];
        }
        Ok(())
    }

    /// Receives the next message; the end of the stream is an error of kind `UnexpectedEof`.
    pub(crate) fn receive<T: DeserializeOwned>(&self) -> io::Result<(T, Vec<OwnedFd>)> {
        let mut header = [0_u8; 4];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = rustix::io::retry_on_intr(|| {
            let flags = RecvFlags::CMSG_CLOEXEC;
            recvmsg(&self.0, &mut [IoSliceMut::new(&mut header)], &mut ancillary, flags)
        })?;
        let mut descriptors = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        if received.bytes < header.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let length = u32::from_le_bytes(header) as usize;
        if length > MAX_MESSAGE {
            return Err(io::Error::other("the message is too long"));
        }
        let mut body = vec![0_u8; length];
        let mut filled = 0;
        while filled < length {
            let (count, _) = rustix::io::retry_on_intr(|| {
                rustix::net::recv(&self.0, &mut body[filled..], RecvFlags::empty())
            })?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            filled += count;
        }
        Ok((serde_json::from_slice(&body)?, descriptors))
    }
}
