//! Ports inside a container: finding listeners and connecting to them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType};

/// The kernel's lists of sockets, with the number of 32-bit words of their addresses.
const LISTS: [(&str, usize); 2] = [("/proc/net/tcp", 1), ("/proc/net/tcp6", 4)];

/// Connects to a listening port. The connection may still be in progress, because this process must never block.
pub(super) fn connecting(port: u16) -> io::Result<OwnedFd> {
    let address = listener(port).ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionRefused))?;
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &SocketAddr::new(address, port)) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// The address of the process that listens on a port, if there is one.
pub(super) fn listener(port: u16) -> Option<IpAddr> {
    LISTS.iter().find_map(|(list, words)| {
        let text = std::fs::read_to_string(list).unwrap_or_default();
        listener_in(&text, *words, port)
    })
}

fn listener_in(list: &str, words: usize, port: u16) -> Option<IpAddr> {
    const LISTEN: &str = "0A";
    list.lines().skip(1).find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, state) = (fields.next()?, fields.nth(1)?);
        let (address, number) = local.split_once(':')?;
        let wanted = state == LISTEN && u16::from_str_radix(number, 16).ok()? == port;
        wanted.then(|| reachable(address, words)).flatten()
    })
}

/// Turns a listed address into one to connect to. A wildcard address becomes loopback.
fn reachable(address: &str, words: usize) -> Option<IpAddr> {
    let mut bytes = Vec::new();
    for word in 0..words {
        let word = u32::from_str_radix(address.get(word * 8..word * 8 + 8)?, 16).ok()?;
        // The kernel prints each word as a number in this machine's byte order.
        bytes.extend(word.to_ne_bytes());
    }
    let address = match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(four) => IpAddr::from(four),
        Err(_) => IpAddr::from(<[u8; 16]>::try_from(bytes.as_slice()).ok()?).to_canonical(),
    };
    Some(match address {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_are_found_where_they_listen() {
        let list = "  sl  local_address rem_address   st tx_queue rx_queue\n\
            \x20 0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000\n\
            \x20 1: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000\n\
            \x20 2: 0301007F:1538 00000000:0000 0A 00000000:00000000 00:00000000\n\
            \x20 3: 0100007F:0016 0100007F:A000 01 00000000:00000000 00:00000000\n odd\n";
        let found = |port| listener_in(list, 1, port).map(|address| address.to_string());
        assert_eq!(found(8080).as_deref(), Some("127.0.0.1"));
        assert_eq!(found(80).as_deref(), Some("127.0.0.1"));
        assert_eq!(found(5432).as_deref(), Some("127.0.1.3"));
        assert_eq!(found(22), None, "a connection is no listener");
        let everywhere = "0".repeat(32);
        let list = format!(
            "head\n 0: {everywhere}:0050 x 0A\n 1: 00000000000000000000000001000000:0051 x 0A\n\
             \x20 2: 0000000000000000FFFF00000100007F:0052 x 0A\n 3: 00:0053 x 0A\n"
        );
        let found = |port| listener_in(&list, 4, port).map(|address| address.to_string());
        assert_eq!(found(80).as_deref(), Some("::1"));
        assert_eq!(found(81).as_deref(), Some("::1"));
        assert_eq!(found(82).as_deref(), Some("127.0.0.1"));
        assert_eq!(found(83), None);
        let own = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = own.local_addr().unwrap().port();
        assert_eq!(listener(port), Some(Ipv4Addr::LOCALHOST.into()));
        assert!(connecting(port).is_ok());
    }
}
