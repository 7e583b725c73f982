//! A local model server that reproduces the providers' formats faithfully: whole answers and streams, errors, limits
//! and faults on demand. For tests, benchmarks, demonstrations and use without a key.
//!
//! It keeps no state per conversation and none that grows: a seed and the request determine the answer.

mod answer;
mod anthropic;
mod ask;
mod auth;
mod body;
mod converse;
mod draw;
mod example;
mod fault;
mod frame;
mod handle;
mod limits;
mod openai;
mod options;
mod pairs;
mod prompt;
mod refusal;
mod route;
mod stats;
mod voice;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

pub use fault::{Fault, FaultKind};
pub use handle::KeptRequest;
pub use options::{Answers, AwsKeys, Options, Range, duration};
pub use stats::Stats;

use body::ConnectionState;
use handle::{Shared, handle};

/// How long running answers may continue when the server stops.
const GRACE: Duration = Duration::from_secs(5);

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4096;

/// A running server. Dropping it stops it at once; [`TestServer::stop`] lets running answers finish.
pub struct TestServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    accepting: Option<JoinHandle<()>>,
}

impl TestServer {
    /// Starts a server on the current runtime.
    #[expect(
        clippy::unused_async,
        reason = "it needs a runtime, which only an async function is sure to have"
    )]
    pub async fn start(options: Options) -> io::Result<Self> {
        options.check().map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind((Ipv4Addr::LOCALHOST, options.port).into())?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(options));
        let (stop, stopped) = watch::channel(false);
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared), stopped));
        Ok(Self { address, shared, stop, accepting: Some(accepting) })
    }

    /// `http://127.0.0.1:PORT`, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The current counters.
    pub fn stats(&self) -> Stats {
        self.shared.counters.snapshot()
    }

    /// The last requests to the model, oldest first; [`Options::keep_requests`] limits their number.
    pub fn requests(&self) -> Vec<KeptRequest> {
        self.shared.kept()
    }

    /// Accepts no more connections, lets answers finish for a few seconds, and closes the rest.
    pub async fn stop(mut self) -> Stats {
        self.shared.counters.stop();
        // Sending fails when there is no connection, which is fine.
        let _unused = self.stop.send(true);
        if let Some(accepting) = self.accepting.take() {
            // The task only ends early with its runtime.
            let _unused = accepting.await;
        }
        self.shared.counters.snapshot()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.shared.counters.stop();
        if let Some(accepting) = &self.accepting {
            accepting.abort();
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    shared.counters.connection();
                    connections.spawn(serve(stream, Arc::clone(&shared), stop.clone()));
                }
                // Most likely out of file descriptors; some are freed soon.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            Some(_) = connections.join_next() => {}
            _ = stop.changed() => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn serve(stream: TcpStream, shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    // Without it small events would be delayed and sent together.
    let _unused = stream.set_nodelay(true);
    let state = Arc::new(ConnectionState::default());
    let service = service_fn(|request| handle(Arc::clone(&shared), Arc::clone(&state), request));
    let mut connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    let stopping = tokio::select! {
        // An error means that the client disconnected, or is an intended fault.
        _ = &mut connection => false,
        _ = stop.changed() => true,
    };
    if stopping && !state.hung.load(Ordering::Relaxed) {
        Pin::new(&mut connection).graceful_shutdown();
        let _unused = tokio::time::timeout(GRACE, &mut connection).await;
    }
    if state.reset.load(Ordering::Relaxed) {
        // Closes with a reset instead of an orderly shutdown.
        let _unused = connection.into_parts().io.into_inner().set_zero_linger();
    }
}
