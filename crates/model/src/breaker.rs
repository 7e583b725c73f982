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
    /// It is left alone until this moment; after it somebody is finding out.
    Closed(Instant),
}

/// What a failure says about the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// It may go better.
    Open,
    /// It will fail as well.
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
    /// Failures in a row after which an endpoint is left alone.
    const ROW: u32 = 10;
    const FIRST_PAUSE: Duration = Duration::from_millis(250);
    const LONGEST_PAUSE: Duration = Duration::from_mins(1);

    fn state(&self) -> MutexGuard<'_, BreakerState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a call may go, without taking the place of the probe.
    pub fn look(&self) -> Admission {
        self.state().look()
    }

    /// Whether a call may go; the answer `Probe` is given to one caller.
    pub fn admit(&self) -> Admission {
        let mut state = self.state();
        let admission = state.look();
        state.probing |= admission == Admission::Probe;
        admission
    }

    /// The endpoint answered.
    pub fn worked(&self) {
        *self.state() = BreakerState::default();
    }

    /// The endpoint failed; `outlook` says whether more of the same is certain.
    pub fn failed(&self, call: Admission, outlook: Outlook) {
        let mut state = self.state();
        // What was under way when it was left alone says nothing new.
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

    /// The call that was to find out never came to an end.
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
