//! A circuit breaker: an endpoint that keeps failing gets no calls for a while, then one call tests it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Whether calls may go to an endpoint. After several failures in a row it gets no calls for a while; then one call
/// tests whether it works again.
#[derive(Debug, Default)]
pub struct Breaker(Mutex<BreakerState>);

#[derive(Debug, Default)]
struct BreakerState {
    row: u32,
    open_until: Option<Instant>,
    /// How often it was opened without an answer in between.
    rounds: u32,
    probing: bool,
}

/// Whether a call may go to an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Open,
    /// Yes, as the only call, to test whether the endpoint works again.
    Probe,
    /// Not before this moment; after it another call is testing the endpoint.
    Closed(Instant),
}

/// What a failure means for the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// The next call may succeed.
    Open,
    /// The next call will fail as well.
    Hopeless,
}

impl BreakerState {
    fn look(&self) -> Admission {
        match self.open_until {
            None => Admission::Open,
            Some(until) if until > Instant::now() || self.probing => Admission::Closed(until),
            Some(_) => Admission::Probe,
        }
    }
}

impl Breaker {
    /// Failures in a row after which an endpoint gets no calls for a while.
    const ROW: u32 = 10;
    const FIRST_PAUSE: Duration = Duration::from_millis(250);
    const LONGEST_PAUSE: Duration = Duration::from_mins(1);

    fn state(&self) -> MutexGuard<'_, BreakerState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a call may go, without becoming the probe.
    pub fn look(&self) -> Admission {
        self.state().look()
    }

    /// Whether a call may go; only one caller becomes the `Probe`.
    pub fn admit(&self) -> Admission {
        let mut state = self.state();
        let admission = state.look();
        state.probing |= admission == Admission::Probe;
        admission
    }

    /// Reports that the endpoint answered.
    pub fn worked(&self) {
        *self.state() = BreakerState::default();
    }

    /// Reports that the endpoint failed; `outlook` says whether the next call is certain to fail.
    pub fn failed(&self, call: Admission, outlook: Outlook) {
        let mut state = self.state();
        // Calls that were in flight when the breaker opened tell nothing new.
        if state.open_until.is_some() && call != Admission::Probe {
            return;
        }
        state.row += 1;
        if call != Admission::Probe && outlook == Outlook::Open && state.row < Self::ROW {
            return;
        }
        let pause = match outlook {
            Outlook::Hopeless => Self::LONGEST_PAUSE,
            Outlook::Open => {
                Self::FIRST_PAUSE.saturating_mul(1 << state.rounds.min(16)).min(Self::LONGEST_PAUSE)
            }
        };
        state.rounds += 1;
        state.row = 0;
        state.probing = false;
        state.open_until = Some(Instant::now() + pause);
    }

    /// Reports that the probe was dropped before its end.
    pub fn abandoned(&self) {
        self.state().probing = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Admission = Admission::Open;

    #[tokio::test(start_paused = true)]
    async fn a_dead_endpoint_is_left_alone_and_probed() {
        let breaker = Breaker::default();
        for _ in 0..Breaker::ROW - 1 {
            breaker.failed(CALL, Outlook::Open);
        }
        breaker.worked();
        for _ in 0..Breaker::ROW {
            assert_eq!(breaker.admit(), Admission::Open);
            breaker.failed(CALL, Outlook::Open);
        }
        assert!(matches!(breaker.admit(), Admission::Closed(_)));
        for _ in 0..100 {
            breaker.failed(CALL, Outlook::Open);
        }
        tokio::time::advance(Breaker::FIRST_PAUSE).await;
        assert_eq!(breaker.admit(), Admission::Probe, "calls that were under way do not prolong the pause");
        assert!(matches!(breaker.admit(), Admission::Closed(_)), "one probe at a time");
        breaker.failed(CALL, Outlook::Open);
        assert!(matches!(breaker.admit(), Admission::Closed(_)), "a straggler is not the probe");
        breaker.failed(Admission::Probe, Outlook::Open);
        let Admission::Closed(until) = breaker.admit() else { panic!("open") };
        assert_eq!(until - Instant::now(), Breaker::FIRST_PAUSE * 2);
        tokio::time::advance(Breaker::FIRST_PAUSE * 2).await;
        assert_eq!(breaker.admit(), Admission::Probe);
        breaker.abandoned();
        assert_eq!(breaker.admit(), Admission::Probe);
        breaker.worked();
        assert_eq!(breaker.admit(), Admission::Open);
        breaker.failed(CALL, Outlook::Hopeless);
        let Admission::Closed(until) = breaker.admit() else { panic!("open") };
        assert_eq!(until - Instant::now(), Breaker::LONGEST_PAUSE);
    }
}
