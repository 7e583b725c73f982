//! The server: its address, its limits on connections, and its shutdown.

use std::future::Future;
use std::io::{self, Read as _};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use aec_base::secret::Secret;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::guard::Guard;
use crate::routes;
use crate::site::{Places, Site};

/// Further connections wait to be accepted.
const CONNECTIONS: usize = 256;

/// How long the head of a request may take, and how long a connection may wait for its next one.
const HEAD_TIME: Duration = Duration::from_secs(15);

/// Most bytes of the head of a request.
const HEAD_SIZE: usize = 16 * 1024;

/// How long running answers may take after a stop.
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// A shorter token could be guessed.
const SHORTEST_TOKEN: usize = 16;

#[derive(Debug)]
pub struct Options {
    pub host: String,
    /// 0 for any free port.
    pub port: u16,
    /// Every request must show it, if there is one.
    pub token: Option<Secret>,
}

#[derive(Debug)]
pub enum BindError {
    /// Other machines could reach it without a token.
    Open(SocketAddr),
    Token(usize),
    /// The name or the port is not available.
    Io(io::Error),
}

impl From<io::Error> for BindError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    guard: Guard,
    places: Places,
}

impl Server {
    /// Listens. Any address except loopback needs a token.
    pub async fn bind(options: Options, places: Places) -> Result<Self, BindError> {
        if let Some(token) = &options.token
            && token.reveal().chars().count() < SHORTEST_TOKEN
        {
            return Err(BindError::Token(SHORTEST_TOKEN));
        }
        let addresses: Vec<SocketAddr> = (options.host.as_str(), options.port).to_socket_addrs()?.collect();
        if let Some(open) = addresses.iter().find(|address| !address.ip().is_loopback())
            && options.token.is_none()
        {
            return Err(BindError::Open(*open));
        }
        let listener = TcpListener::bind(addresses.as_slice()).await?;
        let address = listener.local_addr()?;
        let mut random = [0; 32];
        fs_err::File::open("/dev/urandom")?.read_exact(&mut random)?;
        let session = aec_base::digest::Digest::from_bytes(random).hex();
        let guard = Guard::new(&options.host, address, options.token, session);
        Ok(Self { listener, address, guard, places })
    }

    /// The address of the first page, without the token.
    pub fn url(&self) -> String {
        let ip = self.address.ip();
        if ip.is_unspecified() {
            return format!("http://localhost:{}/", self.address.port());
        }
        format!("http://{}/", self.address)
    }

    /// Serves until `stop` is done.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> io::Result<()> {
        let connections = Arc::new(Semaphore::new(CONNECTIONS));
        let (stopping, stopped) = watch::channel(false);
        let site = Arc::new(Site::new(self.places, stopped.clone()));
        let guard = Arc::new(self.guard);
        // The first read of a ledger or library takes longest, so it starts before the first request.
        tokio::spawn(Arc::clone(&site).work(routes::warm));
        let mut stop = pin!(stop);
        loop {
            let connection = Arc::clone(&connections).acquire_owned();
            let accepted = async {
                // The semaphore is never closed.
                let connection = connection.await.ok();
                (connection, self.listener.accept().await)
            };
            let (place, stream) = tokio::select! {
                accepted = accepted => accepted,
                () = &mut stop => break,
            };
            let Ok((stream, _)) = stream else {
                // Out of descriptors, or the client has already gone: the server continues.
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            stream.set_nodelay(true).ok();
            let (site, guard) = (Arc::clone(&site), Arc::clone(&guard));
            let mut stopped = stopped.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let (site, guard) = (Arc::clone(&site), Arc::clone(&guard));
                    async move { Ok::<_, std::convert::Infallible>(routes::answer(site, &guard, request).await) }
                });
                let served = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEAD_TIME)
                    .max_buf_size(HEAD_SIZE)
                    .serve_connection(TokioIo::new(stream), service);
                let mut served = pin!(served);
                let told = async move {
                    stopped.wait_for(|stopped| *stopped).await.map(drop).ok();
                };
                tokio::select! {
                    // A client that breaks the connection is not an error of the server.
                    _ = &mut served => {}
                    () = told => {
                        served.as_mut().graceful_shutdown();
                        served.await.ok();
                    }
                }
                drop(place);
            });
        }
        drop(self.listener);
        stopping.send_replace(true);
        let everybody = u32::try_from(CONNECTIONS).unwrap_or(u32::MAX);
        // Connections that take longer are cut off when the runtime ends.
        tokio::time::timeout(DRAIN_TIME, connections.acquire_many(everybody)).await.map(drop).ok();
        Ok(())
    }
}
