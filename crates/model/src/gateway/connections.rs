//! Connections of the gateway: bounded in number and time, with an orderly end.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, watch};

/// Most concurrent connections of programs that are trusted as much as this one.
pub const MOST_CONNECTIONS: usize = 4096;

/// How long the head of a request may take.
const HEAD_TIME: Duration = Duration::from_secs(15);

/// How long calls in flight may continue after a stop.
const DRAIN_TIME: Duration = Duration::from_secs(30);

/// A source of connections.
pub trait Listener: Send {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    fn next(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Listener for TcpListener {
    type Stream = tokio::net::TcpStream;

    async fn next(&self) -> io::Result<Self::Stream> {
        let (stream, _) = self.accept().await?;
        stream.set_nodelay(true).ok();
        Ok(stream)
    }
}

impl Listener for UnixListener {
    type Stream = tokio::net::UnixStream;

    async fn next(&self) -> io::Result<Self::Stream> {
        Ok(self.accept().await?.0)
    }
}

/// Serves connections until `stop` completes.
pub(super) async fn serve(
    listener: impl Listener,
    router: Router,
    most: usize,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(most));
    let (stopping, stopped) = watch::channel(false);
    let mut stop = pin!(stop);
    loop {
        let place = Arc::clone(&places).acquire_owned();
        let accepted = async {
            // The semaphore is never closed.
            let place = place.await.ok();
            (place, listener.next().await)
        };
        let (place, stream) = tokio::select! {
            accepted = accepted => accepted,
            () = &mut stop => break,
        };
        let Ok(stream) = stream else {
            // Out of descriptors, or the client already disconnected: others may come.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let service = TowerToHyperService::new(router.clone());
        let mut stopped = stopped.clone();
        tokio::spawn(async move {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME)
                .serve_connection(TokioIo::new(stream), service);
            let mut connection = pin!(connection);
            let told = async move {
                stopped.wait_for(|stopped| *stopped).await.map(drop).ok();
            };
            tokio::select! {
                // A client may disconnect at any time; that is no error.
                _ = &mut connection => {}
                () = told => {
                    connection.as_mut().graceful_shutdown();
                    connection.await.ok();
                }
            }
            drop(place);
        });
    }
    drop(listener);
    stopping.send_replace(true);
    let everybody = u32::try_from(most).unwrap_or(u32::MAX);
    // Connections that take longer are closed when the runtime ends.
    tokio::time::timeout(DRAIN_TIME, places.acquire_many(everybody)).await.ok();
    Ok(())
}
