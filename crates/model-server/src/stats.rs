//! The server's counters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::Serialize;

use crate::fault::FaultKind;
use crate::route::Kind;

/// A snapshot of the counters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Requests by the kind of their path.
    pub requests: BTreeMap<&'static str, u64>,
    /// Answers by their HTTP status.
    pub statuses: BTreeMap<u16, u64>,
    /// Faults by their kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Requests refused because of a limit.
    pub limited: u64,
    pub connections: u64,
    pub in_flight: u64,
    /// The highest number of requests in flight at one time.
    pub highest_in_flight: u64,
    /// Tokens of all answered prompts.
    pub input_tokens: u64,
    /// Those of them that came from the cache.
    pub cached_tokens: u64,
    pub output_tokens: u64,
    /// Answers whose client disconnected early.
    pub disconnects: u64,
}

/// One more than the highest HTTP status.
const STATUSES: usize = 600;

pub(crate) struct Counters {
    requests: [AtomicU64; Kind::NAMES.len()],
    statuses: Box<[AtomicU64]>,
    faults: [AtomicU64; FaultKind::ALL.len()],
    limited: AtomicU64,
    connections: AtomicU64,
    in_flight: AtomicU64,
    highest: AtomicU64,
    input: AtomicU64,
    cached: AtomicU64,
    output: AtomicU64,
    disconnects: AtomicU64,
    /// Once set, unfinished answers do not count as disconnects.
    stopping: AtomicBool,
}

impl Counters {
    pub(crate) fn new() -> Self {
        Self {
            requests: std::array::from_fn(|_| AtomicU64::new(0)),
            statuses: (0..STATUSES).map(|_| AtomicU64::new(0)).collect(),
            faults: std::array::from_fn(|_| AtomicU64::new(0)),
            limited: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
            highest: AtomicU64::new(0),
            input: AtomicU64::new(0),
            cached: AtomicU64::new(0),
            output: AtomicU64::new(0),
            disconnects: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
        }
    }

    pub(crate) fn request(&self, kind: Kind) {
        add(&self.requests[kind as usize], 1);
    }

    pub(crate) fn status(&self, status: u16) {
        if let Some(counter) = self.statuses.get(usize::from(status)) {
            add(counter, 1);
        }
    }

    pub(crate) fn fault(&self, kind: FaultKind) {
        add(&self.faults[kind as usize], 1);
    }

    pub(crate) fn limited(&self) {
        add(&self.limited, 1);
    }

    pub(crate) fn connection(&self) {
        add(&self.connections, 1);
    }

    pub(crate) fn tokens(&self, input: u64, cached: u64, output: u64) {
        add(&self.input, input);
        add(&self.cached, cached);
        add(&self.output, output);
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Registers a request, which is in flight until the passage is dropped.
    pub(crate) fn enter(self: &Arc<Self>) -> Passage {
        let now = self.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        self.highest.fetch_max(now, Ordering::Relaxed);
        Passage { counters: Arc::clone(self), others: now - 1, finished: false }
    }

    pub(crate) fn snapshot(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let some = |counters: &[AtomicU64]| -> Vec<(usize, u64)> {
            counters.iter().map(read).enumerate().filter(|(_, count)| *count > 0).collect()
        };
        Stats {
            requests: some(&self.requests).into_iter().map(|(at, count)| (Kind::NAMES[at], count)).collect(),
            statuses: some(&self.statuses)
                .into_iter()
                .map(|(at, count)| (u16::try_from(at).unwrap_or(0), count))
                .collect(),
            faults: some(&self.faults)
                .into_iter()
                .map(|(at, count)| (FaultKind::ALL[at].name(), count))
                .collect(),
            limited: read(&self.limited),
            connections: read(&self.connections),
            in_flight: read(&self.in_flight),
            highest_in_flight: read(&self.highest),
            input_tokens: read(&self.input),
            cached_tokens: read(&self.cached),
            output_tokens: read(&self.output),
            disconnects: read(&self.disconnects),
        }
    }
}

fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

/// A request in flight. If it is dropped unfinished, its client disconnected.
pub(crate) struct Passage {
    counters: Arc<Counters>,
    /// How many requests were in flight when this one arrived.
    pub(crate) others: u64,
    finished: bool,
}

impl Passage {
    /// Marks the answer as complete, or as ended early by the server itself.
    pub(crate) fn finish(&mut self) {
        self.finished = true;
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        if !self.finished && !self.counters.stopping.load(Ordering::Relaxed) {
            add(&self.counters.disconnects, 1);
        }
        self.counters.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_are_counted_and_unfinished_ones_are_disconnects() {
        let counters = Arc::new(Counters::new());
        let mut first = counters.enter();
        let second = counters.enter();
        assert_eq!((first.others, second.others), (0, 1));
        first.finish();
        drop(first);
        drop(second);
        counters.request(Kind::Messages);
        counters.status(429);
        counters.fault(FaultKind::Rate);
        let stats = counters.snapshot();
        assert_eq!((stats.in_flight, stats.highest_in_flight, stats.disconnects), (0, 2, 1));
        assert_eq!((stats.requests["messages"], stats.statuses[&429], stats.faults["rate"]), (1, 1, 1));
        counters.stop();
        drop(counters.enter());
        assert_eq!(counters.snapshot().disconnects, 1, "the server itself stopped");
    }
}
