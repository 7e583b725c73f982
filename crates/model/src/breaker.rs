//! Circuit breaking: an endpoint that keeps failing is left alone, then asked once whether it is back.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Whether an endpoint is worth asking. After a row of failures it is left alone for a while, then one call
/// finds out whether it is back.
#[derive(Debug, Default)]
pub struct Breaker(Mutex<BreakerState>);

#[derive(Debug, Default)]
struct BreakerState {
    /// Failures in a row.
    row: u32,
    open_until: Option<Instant>,
    /// How often it was opened without an answer in between.
    rounds: u32,
    probing: bool,
}

/// Whether a call may go to an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Yes.
    Open,
    /// Yes, to find out whether it is back; nobody else for now.
    Probe,
    /// Not before this.
    Closed(Instant),
}

impl Breaker {
    /// Failures in a row after which an endpoint is left alone.
    const ROW: u32 = 10;
    const FIRST_PAUSE: Duration = Duration::from_millis(250);
    const LONGEST_PAUSE: Duration = Duration::from_secs(60);

    fn state(&self) -> MutexGuard<'_, BreakerState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a call may go, without taking the place of the probe.
    pub fn look(&self) -> Admission {
        let state = self.state();
        match state.open_until {
            None => Admission::Open,
            Some(until) if until > Instant::now() => Admission::Closed(until),
            Some(_) if state.probing => Admission::Closed(Instant::now() + Self::FIRST_PAUSE),
            Some(_) => Admission::Probe,
        }
    }

    /// Whether a call may go; the answer `Probe` is given to one caller.
    pub fn admit(&self) -> Admission {
        let admission = self.look();
        if admission == Admission::Probe {
            self.state().probing = true;
        }
        admission
    }

    /// The endpoint answered.
    pub fn worked(&self) {
        *self.state() = BreakerState::default();
    }

    /// The endpoint failed; `dead` when more of the same is certain.
    pub fn failed(&self, dead: bool) {
        let mut state = self.state();
        state.row += 1;
        if state.probing || dead || state.row >= Self::ROW {
            let pause = Self::FIRST_PAUSE.saturating_mul(1 << state.rounds.min(16)).min(Self::LONGEST_PAUSE);
            let pause = if dead { Self::LONGEST_PAUSE } else { pause };
            state.rounds += 1;
            state.row = 0;
            state.probing = false;
            state.open_until = Some(Instant::now() + pause);
        }
    }

    /// The call that was to find out never came to an end.
    pub fn abandoned(&self) {
        self.state().probing = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_dead_endpoint_is_left_alone_and_probed() {
        let breaker = Breaker::default();
        for _ in 0..Breaker::ROW - 1 {
            breaker.failed(false);
        }
        breaker.worked();
        for _ in 0..Breaker::ROW {
            assert_eq!(breaker.admit(), Admission::Open);
            breaker.failed(false);
        }
        assert!(matches!(breaker.admit(), Admission::Closed(_)));
        tokio::time::advance(Breaker::FIRST_PAUSE).await;
        assert_eq!(breaker.admit(), Admission::Probe);
        assert!(matches!(breaker.admit(), Admission::Closed(_)), "one probe at a time");
        breaker.failed(false);
        let Admission::Closed(until) = breaker.admit() else { panic!("open") };
        assert_eq!(until - Instant::now(), Breaker::FIRST_PAUSE * 2);
        tokio::time::advance(Breaker::FIRST_PAUSE * 2).await;
        assert_eq!(breaker.admit(), Admission::Probe);
        breaker.abandoned();
        assert_eq!(breaker.admit(), Admission::Probe);
        breaker.worked();
        assert_eq!(breaker.admit(), Admission::Open);
        breaker.failed(true);
        let Admission::Closed(until) = breaker.admit() else { panic!("open") };
        assert_eq!(until - Instant::now(), Breaker::LONGEST_PAUSE);
    }
}
