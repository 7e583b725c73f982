//! The only way out of a room without a network: a listening socket on the room's loopback, handed to the opener.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// Listens on a free port of loopback. In a new network namespace the interface is down and must be set up first.
pub(crate) fn open(own_network: bool) -> io::Result<TcpListener> {
    if own_network {
        raise_loopback()?;
    }
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
}

/// Asks the kernel over netlink to set the interface up; it has index 1 in every network namespace.
fn raise_loopback() -> io::Result<()> {
    const NEW_LINK: u16 = 16;
    const REQUEST_AND_ACKNOWLEDGE: u16 = 1 | 4;
    const ERROR: u16 = 2;
    const UP: u32 = 1;
    let mut message = Vec::with_capacity(32);
    message.extend_from_slice(&32_u32.to_ne_bytes());
    message.extend_from_slice(&NEW_LINK.to_ne_bytes());
    message.extend_from_slice(&REQUEST_AND_ACKNOWLEDGE.to_ne_bytes());
    // The sequence number, and the sender, which the kernel fills in.
    message.extend_from_slice(&1_u32.to_ne_bytes());
    message.extend_from_slice(&0_u32.to_ne_bytes());
    // Any family and type, interface 1, the flag to set, and the mask of changed flags.
    message.extend_from_slice(&[0; 4]);
    message.extend_from_slice(&1_i32.to_ne_bytes());
    message.extend_from_slice(&UP.to_ne_bytes());
    message.extend_from_slice(&UP.to_ne_bytes());
    // Protocol 0 is routing (NETLINK_ROUTE): routes and interfaces.
    let socket =
        rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    rustix::net::send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0_u8; 512];
    let (length, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty())?;
    // An acknowledgement is an error message whose error is 0.
    let (kind, error) = match (answer[..length].get(4..6), answer[..length].get(16..20)) {
        (Some(kind), Some(error)) => (
            u16::from_ne_bytes([kind[0], kind[1]]),
            i32::from_ne_bytes([error[0], error[1], error[2], error[3]]),
        ),
        _ => return Err(io::Error::other("the kernel answered with half a message")),
    };
    match (kind, error) {
        (ERROR, 0) => Ok(()),
        (ERROR, error) => Err(io::Error::from_raw_os_error(-error)),
        _ => Err(io::Error::other("the kernel did not acknowledge")),
    }
}
