//! The endpoints of one model, and which of them gets the next call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::breaker::{Admission, Breaker, Outlook};
use crate::endpoint::Endpoint;
use crate::failure::{Failure, FailureKind};
use crate::gate::{Gate, Share};
use crate::money::MicroDollars;
use crate::price::{Missing, Price, PriceList};
use crate::retry::RetryBudget;
use crate::transport::Line;

/// All endpoints of one model.
#[derive(Debug)]
pub struct Replicas {
    list: Vec<Replica>,
    turn: AtomicUsize,
    /// Retries that all calls of the model share.
    pub(crate) retries: RetryBudget,
}

/// One endpoint with its state.
#[derive(Debug)]
pub struct Replica {
    pub line: Line,
    pub gate: Arc<Gate>,
    pub breaker: Breaker,
    pub price: Option<Price>,
}

/// A replica chosen for a call. Dropping it without a result releases its role as a probe.
#[derive(Debug)]
pub struct Chosen<'a> {
    pub replica: &'a Replica,
    admission: Admission,
    since: Instant,
    settled: bool,
}

impl Replicas {
    /// Prepares endpoints, with a share of their limits.
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

    pub fn list(&self) -> &[Replica] {
        &self.list
    }

    /// Chooses the least loaded replica. One that was suspended and may work again is tried first, so that it is not
    /// forgotten. If all are suspended, the one whose pause ends first is used nevertheless: a call should rather fail
    /// than wait. `None` only if there is no endpoint at all.
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

    /// Whether another replica can be called at once.
    pub fn has_other(&self, than: &Replica) -> bool {
        self.list
            .iter()
            .any(|replica| !std::ptr::eq(replica, than) && replica.breaker.look() == Admission::Open)
    }

    /// The first endpoint without a price, as price lists name it.
    pub fn missing_price(&self) -> Option<Missing> {
        let endpoint = &self.list.iter().find(|replica| replica.price.is_none())?.line.endpoint;
        Some(Missing { provider: endpoint.provider.name().to_owned(), model: endpoint.model.clone() })
    }

    /// The highest price, which is reserved before the replica is chosen; `None` if any replica is unpriced.
    pub fn dearest(&self, of: impl Fn(&Price) -> MicroDollars) -> Option<&Price> {
        let prices: Option<Vec<&Price>> = self.list.iter().map(|replica| replica.price.as_ref()).collect();
        prices?.into_iter().max_by_key(|price| of(price))
    }
}

impl<'a> Chosen<'a> {
    /// Silence of this length counts against a replica, even if the caller gave up and no timeout fired.
    const SILENCE: Duration = Duration::from_secs(30);

    fn new(replica: &'a Replica, admission: Admission) -> Self {
        Self { replica, admission, since: Instant::now(), settled: false }
    }

    /// Reports a success.
    pub fn worked(mut self) {
        self.settled = true;
        self.replica.breaker.worked();
        self.replica.gate.answered();
    }

    /// Reports a failure.
    pub fn failed(mut self, failure: &Failure, has_others: bool) {
        self.settled = true;
        let Replica { breaker, gate, .. } = self.replica;
        match failure.kind {
            FailureKind::Rate => {
                gate.complained(failure.retry_after_ms.map(Duration::from_millis));
                // It works, but is busy.
                breaker.worked();
            }
            FailureKind::Server | FailureKind::Network => {
                gate.complained(None);
                breaker.failed(self.admission, Outlook::Open);
            }
            FailureKind::Truncated if failure.retryable => breaker.failed(self.admission, Outlook::Open),
            FailureKind::Protocol | FailureKind::Cancelled => breaker.failed(self.admission, Outlook::Open),
            // A replica that refuses a key will refuse it again; while others work, it is suspended.
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
