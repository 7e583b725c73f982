//! A port on which nothing listens. The test holds it, so that no other test on this machine gets it meanwhile.

use std::net::SocketAddr;

use tokio::net::TcpSocket;

/// Connections to it are refused until it is dropped; after that any program may use the port.
pub struct ClosedPort {
    _socket: TcpSocket,
    /// The address on which nothing answers.
    pub address: SocketAddr,
}

impl ClosedPort {
    /// Takes a free port on the loopback interface.
    pub fn take() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
        let address = socket.local_addr().expect("the address of a bound socket");
        Self { _socket: socket, address }
    }
}
