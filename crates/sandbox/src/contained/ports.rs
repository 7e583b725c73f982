//! Ports inside a container: who listens, and connections to them.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType};

/// A connection to a port of loopback that may still be on its way: nobody here waits for anybody.
pub(super) fn connecting(port: u16) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// TCP ports that somebody listens on, as the kernel lists them.
pub(super) fn listening_ports() -> Vec<u16> {
    const LISTEN: &str = "0A";
    let mut ports = Vec::new();
    for list in ["/proc/net/tcp", "/proc/net/tcp6"] {
        for line in std::fs::read_to_string(list).unwrap_or_default().lines().skip(1) {
            let mut fields = line.split_whitespace().skip(1);
            let (local, state) = (fields.next(), fields.nth(1));
            let port = local.and_then(|local| u16::from_str_radix(local.rsplit(':').next()?, 16).ok());
            ports.extend(port.filter(|_| state == Some(LISTEN)));
        }
    }
    ports
}
