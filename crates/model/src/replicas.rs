//! The addresses at which one model answers, and which of them gets the next call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::breaker::{Admission, Breaker};
use crate::endpoint::Endpoint;
use crate::failure::{Failure, FailureKind};
use crate::gate::Gate;
use crate::price::{Price, PriceList};
use crate::transport::Line;

/// All addresses of one model.
#[derive(Debug)]
pub struct Replicas {
    list: Vec<Replica>,
    turn: AtomicUsize,
}

/// One address, with what is known of its state.
#[derive(Debug)]
pub struct Replica {
    /// The way there.
    pub line: Line,
    /// How many calls it gets.
    pub gate: Arc<Gate>,
    /// Whether it is alive.
    pub breaker: Breaker,
    /// What it charges, if known.
    pub price: Option<Price>,
}

/// A replica that was chosen for a call. Dropping it without a result gives back its place as a probe.
#[derive(Debug)]
pub struct Chosen<'a> {
    /// The replica.
    pub replica: &'a Replica,
    is_probe: bool,
}

impl Replicas {
    /// Makes endpoints ready.
    pub fn new(endpoints: Vec<Endpoint>, prices: &PriceList) -> Result<Self, Failure> {
        let list = endpoints.into_iter().map(|endpoint| {
            let price =
                prices.find(endpoint.provider.name(), &endpoint.model, endpoint.endpoint_id.as_deref());
            let gate = Gate::new(endpoint.limits);
            Ok(Replica { line: Line::new(endpoint)?, gate, breaker: Breaker::default(), price })
        });
        Ok(Self { list: list.collect::<Result<_, Failure>>()?, turn: AtomicUsize::new(0) })
    }

    /// All of them.
    pub fn list(&self) -> &[Replica] {
        &self.list
    }

    /// Chooses the replica with the least to do, waiting while all of them are left alone. One that may be
    /// back is asked first, so that it is not forgotten.
    pub async fn choose(&self) -> Chosen<'_> {
        loop {
            match self.pick() {
                Ok(chosen) => return chosen,
                Err(at) => tokio::time::sleep_until(at).await,
            }
        }
    }

    fn pick(&self) -> Result<Chosen<'_>, Instant> {
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let count = self.list.len();
        let mut best: Option<&Replica> = None;
        let mut earliest = None;
        for replica in (0..count).map(|step| &self.list[(first.wrapping_add(step)) % count]) {
            match replica.breaker.admit() {
                Admission::Probe => return Ok(Chosen { replica, is_probe: true }),
                Admission::Open if best.is_none_or(|best| replica.gate.load() < best.gate.load()) => {
                    best = Some(replica);
                }
                Admission::Open => {}
                Admission::Closed(until) => {
                    earliest = Some(earliest.map_or(until, |known: Instant| known.min(until)));
                }
            }
        }
        match best {
            Some(replica) => Ok(Chosen { replica, is_probe: false }),
            // Without any address there is nothing to wait for; routing never gives an empty list.
            None => Err(earliest.unwrap_or_else(|| Instant::now() + Duration::from_secs(1))),
        }
    }

    /// Whether somebody else can be asked at once.
    pub fn has_other(&self, than: &Replica) -> bool {
        self.list
            .iter()
            .any(|replica| !std::ptr::eq(replica, than) && replica.breaker.look() == Admission::Open)
    }
}

impl Chosen<'_> {
    /// The replica answered.
    pub fn worked(mut self) {
        self.is_probe = false;
        self.replica.breaker.worked();
        self.replica.gate.answered();
    }

    /// The replica failed.
    pub fn failed(mut self, failure: &Failure, has_others: bool) {
        self.is_probe = false;
        let Replica { breaker, gate, .. } = self.replica;
        match failure.kind {
            FailureKind::Rate => {
                gate.complained(failure.retry_after_ms.map(Duration::from_millis));
                // It is alive, only busy.
                breaker.worked();
            }
            FailureKind::Server => {
                gate.complained(None);
                breaker.failed(false);
            }
            FailureKind::Network | FailureKind::Protocol => breaker.failed(false),
            // A key that one replica refuses will be refused again; while others work, it is left alone.
            FailureKind::Auth if has_others => breaker.failed(true),
            _ => breaker.worked(),
        }
    }
}

impl Drop for Chosen<'_> {
    fn drop(&mut self) {
        if self.is_probe {
            self.replica.breaker.abandoned();
        }
    }
}
