//! The addresses at which one model answers, and which of them gets the next call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::breaker::{Admission, Breaker, Outlook};
use crate::endpoint::Endpoint;
use crate::failure::{Failure, FailureKind};
use crate::gate::{Gate, Share};
use crate::money::MicroDollars;
use crate::price::{Price, PriceList};
use crate::retry::RetryBudget;
use crate::transport::Line;

/// All addresses of one model.
#[derive(Debug)]
pub struct Replicas {
    list: Vec<Replica>,
    turn: AtomicUsize,
    /// Retries that all calls of the model share.
    pub(crate) retries: RetryBudget,
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
    pub replica: &'a Replica,
    admission: Admission,
    since: Instant,
    settled: bool,
}

impl Replicas {
    /// Makes endpoints ready, with a share of their limits.
    pub fn new(endpoints: Vec<Endpoint>, prices: &PriceList, share: &Share) -> Result<Self, Failure> {
        let list = endpoints.into_iter().map(|endpoint| {
            let price =
                prices.find(endpoint.provider.name(), &endpoint.model, endpoint.endpoint_id.as_deref());
            let gate = Gate::shared(endpoint.limits, share.clone());
            Ok(Replica { line: Line::new(endpoint)?, gate, breaker: Breaker::default(), price })
        });
        let list = list.collect::<Result<_, Failure>>()?;
        Ok(Self { list, turn: AtomicUsize::new(0), retries: RetryBudget::default() })
    }

    /// All of them.
    pub fn list(&self) -> &[Replica] {
        &self.list
    }

    /// Chooses the replica with the least to do. One that was left alone and may be back is asked first, so that it
    /// is not forgotten; when all of them are left alone, the one whose pause ends first is asked all the same: a call
    /// fails by itself and is not kept waiting. Nothing only when there is no address at all.
    pub fn choose(&self) -> Option<Chosen<'_>> {
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let count = self.list.len();
        let mut open: Option<(f64, &Replica)> = None;
        let mut closed: Option<(Instant, &Replica)> = None;
        for replica in (0..count).map(|step| &self.list[(first.wrapping_add(step)) % count]) {
            match replica.breaker.admit() {
                Admission::Probe => return Some(Chosen::new(replica, Admission::Probe)),
                Admission::Open => {
                    let load = replica.gate.load();
                    if open.is_none_or(|(least, _)| load < least) {
                        open = Some((load, replica));
                    }
                }
                Admission::Closed(until) if closed.is_none_or(|(earliest, _)| until < earliest) => {
                    closed = Some((until, replica));
                }
                Admission::Closed(_) => {}
            }
        }
        let replica = open.map(|(_, replica)| replica).or_else(|| closed.map(|(_, replica)| replica))?;
        Some(Chosen::new(replica, Admission::Open))
    }

    /// Whether somebody else can be asked at once.
    pub fn has_other(&self, than: &Replica) -> bool {
        self.list
            .iter()
            .any(|replica| !std::ptr::eq(replica, than) && replica.breaker.look() == Admission::Open)
    }

    /// The dearest price, by which calls are reserved before it is known who answers; nothing if one of them has none.
    pub fn dearest(&self, of: impl Fn(&Price) -> MicroDollars) -> Option<&Price> {
        let prices: Option<Vec<&Price>> = self.list.iter().map(|replica| replica.price.as_ref()).collect();
        prices?.into_iter().max_by_key(|price| of(price))
    }
}

impl<'a> Chosen<'a> {
    /// Silence of this length says something about a replica, even if the caller and not we gave up.
    const SILENCE: Duration = Duration::from_secs(30);

    fn new(replica: &'a Replica, admission: Admission) -> Self {
        Self { replica, admission, since: Instant::now(), settled: false }
    }

    /// The replica answered.
    pub fn worked(mut self) {
        self.settled = true;
        self.replica.breaker.worked();
        self.replica.gate.answered();
    }

    /// The replica failed.
    pub fn failed(mut self, failure: &Failure, has_others: bool) {
        self.settled = true;
        let Replica { breaker, gate, .. } = self.replica;
        match failure.kind {
            FailureKind::Rate => {
                gate.complained(failure.retry_after_ms.map(Duration::from_millis));
                // It is alive, only busy.
                breaker.worked();
            }
            FailureKind::Server | FailureKind::Network => {
                gate.complained(None);
                breaker.failed(self.admission, Outlook::Open);
            }
            FailureKind::Truncated if failure.retryable => breaker.failed(self.admission, Outlook::Open),
            FailureKind::Protocol | FailureKind::Cancelled => breaker.failed(self.admission, Outlook::Open),
            // A key that one replica refuses will be refused again; while others work, it is left alone.
            FailureKind::Auth if has_others => breaker.failed(self.admission, Outlook::Hopeless),
            _ => breaker.worked(),
        }
    }
}

impl Drop for Chosen<'_> {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        if self.since.elapsed() > Self::SILENCE {
            self.replica.breaker.failed(self.admission, Outlook::Open);
        } else if self.admission == Admission::Probe {
            self.replica.breaker.abandoned();
        }
    }
}
