//! A port that nobody listens on: held for the test, so that no other test of this machine is given it meanwhile.

use std::net::SocketAddr;

use tokio::net::TcpSocket;

/// Connections to it are refused until it is dropped; from then on it is free for all.
pub struct ClosedPort {
    _socket: TcpSocket,
    /// Where nobody answers.
    pub address: SocketAddr,
}

impl ClosedPort {
    /// Takes one on the loopback.
    pub fn take() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
        let address = socket.local_addr().expect("the address of a bound socket");
        Self { _socket: socket, address }
    }
}
