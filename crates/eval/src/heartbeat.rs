//! Signs of life of a long evaluation: calls a monitor as the evaluation makes progress, without slowing it down.

use std::sync::Arc;
use std::time::Duration;

use aec_base::problem::Problem;
use aec_http::{Call, Client, Failure, Options, Proxies, Redirects};
use bytes::Bytes;
use http::{HeaderMap, Method};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use url::Url;

use crate::FAMILY;

/// How long connecting may take. Longer than a call's own timeout, which is therefore the one that is reported.
const CONNECT: Duration = Duration::from_secs(30);
/// Longest answer of a monitor; only its status matters.
const LONGEST_ANSWER: usize = 1024 * 1024;

#[derive(Clone, Debug)]
pub struct HeartbeatOptions {
    /// Shortest time from one call to the next.
    pub interval: Duration,
    pub timeout: Duration,
    /// How long the last call may take, and with it [`Heartbeat::finish`].
    pub last_timeout: Duration,
    /// Proxies for monitors that are not on this machine.
    pub proxies: Proxies,
}

impl Default for HeartbeatOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            timeout: Duration::from_secs(5),
            last_timeout: Duration::from_secs(2),
            proxies: Proxies::default(),
        }
    }
}

/// Reports progress of an evaluation; has no effect once its heartbeat is finished.
#[derive(Clone, Debug)]
pub struct Pulse(Arc<Notify>);

impl Pulse {
    /// As [`Heartbeat::beat`].
    pub fn beat(&self) {
        self.0.notify_one();
    }
}

#[derive(Debug)]
pub struct Heartbeat {
    progress: Arc<Notify>,
    end: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Heartbeat {
    /// Checks the address and starts waiting for progress; sends nothing yet. Must be called in a tokio runtime.
    /// `failed` is called for the first call that does not work, and for no other.
    pub fn start(
        url: &str,
        options: HeartbeatOptions,
        failed: impl FnOnce(Problem) + Send + 'static,
    ) -> Result<Self, Problem> {
        let url = checked(url)?;
        let client = Client::new(Options {
            connect_timeout: CONNECT,
            longest_answer: LONGEST_ANSWER,
            redirects: Redirects::SameHost,
            proxies: options.proxies.clone(),
        });
        let client = client.map_err(|failure| {
            Problem::error(format!("the heartbeat cannot connect to anything: {failure}"))
                .id(FAMILY.number(87))
                .fix("correct or remove the proxy, or leave the heartbeat out")
        })?;
        let progress = Arc::new(Notify::new());
        let (end, ended) = oneshot::channel();
        let monitor = Monitor { url, client, failed: Some(Box::new(failed)) };
        let task = tokio::spawn(call_on_progress(monitor, Arc::clone(&progress), ended, options));
        Ok(Self { progress, end: Some(end), task })
    }

    /// Reports progress. Returns at once; beats that come faster than calls count as one.
    pub fn beat(&self) {
        self.progress.notify_one();
    }

    /// A handle for reporting progress from elsewhere.
    pub fn pulse(&self) -> Pulse {
        Pulse(Arc::clone(&self.progress))
    }

    /// Calls the monitor a last time, without waiting for the interval. A call under way is cancelled.
    pub async fn finish(mut self) {
        if let Some(end) = self.end.take() {
            // The task ends earlier only if it panicked; then no one receives this.
            let _ = end.send(());
        }
        drop((&mut self.task).await);
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Calls the monitor after progress, and once more at the end.
async fn call_on_progress(
    mut monitor: Monitor,
    progress: Arc<Notify>,
    mut ended: oneshot::Receiver<()>,
    options: HeartbeatOptions,
) {
    let calls = async {
        loop {
            progress.notified().await;
            let next = Instant::now() + options.interval;
            monitor.call(options.timeout).await;
            tokio::time::sleep_until(next).await;
        }
    };
    tokio::select! {
        biased;
        _ = &mut ended => {}
        () = calls => {}
    }
    monitor.call(options.last_timeout).await;
}

struct Monitor {
    url: Url,
    client: Client,
    failed: Option<Box<dyn FnOnce(Problem) + Send>>,
}

impl Monitor {
    async fn call(&mut self, timeout: Duration) {
        let (method, headers, content) = (&Method::GET, &HeaderMap::new(), &Bytes::new());
        let reason = match self.client.send(&Call { method, url: &self.url, headers, content, timeout }).await
        {
            Ok(answer) if answer.status.is_success() => return,
            // Only successful answers are read, and their length does not matter.
            Err(Failure::TooLong { .. }) => return,
            Ok(answer) => format!("it answers with status {}", answer.status.as_u16()),
            Err(failure) => failure.to_string(),
        };
        if let Some(failed) = self.failed.take() {
            // The path of such an address is often a secret, so only the host is shown.
            let host = self.url.host_str().unwrap_or_default();
            failed(
                Problem::warning(format!("the heartbeat monitor at {host} cannot be reached: {reason}"))
                    .id(FAMILY.number(88))
                    .why("the evaluation goes on, but the monitor may think that it does not")
                    .fix("check the heartbeat URL"),
            );
        }
    }
}

fn checked(text: &str) -> Result<Url, Problem> {
    let bad = |reason: &str| {
        Problem::error(format!("the heartbeat URL cannot be used: {reason}"))
            .id(FAMILY.number(87))
            .fix("give an address such as https://status.example.com/ping/…")
    };
    let url = Url::parse(text.trim()).map_err(|error| bad(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad("it must begin with https:// or http://"));
    }
    Ok(url)
}
