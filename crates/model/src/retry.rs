//! Whether to retry, and after how long.

use std::sync::Mutex;
use std::time::Duration;

use aec_http::pause::Rule;

use crate::failure::{Failure, FailureKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Total attempts; rate limits do not count, since they only ask for a wait.
    pub attempts: u32,
    /// Total attempts while answers are empty: each of them is paid for.
    pub empty_attempts: u32,
    pub pauses: Rule,
    /// Longest total time that one call waits for rate limits.
    pub patience: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 8,
            empty_attempts: 3,
            pauses: Rule {
                first: Duration::from_millis(500),
                longest: Duration::from_secs(30),
                longest_asked: Duration::from_mins(2),
            },
            patience: Duration::from_mins(15),
        }
    }
}

impl RetryPolicy {
    /// No retries.
    pub fn once() -> Self {
        Self { attempts: 1, patience: Duration::ZERO, ..Self::default() }
    }
}

/// The failures of one call so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct History {
    failures: u32,
    rate_limits: u32,
    empty: u32,
    waited_for_rates: Duration,
}

impl History {
    /// How long this call will still wait for rate limits.
    pub fn patience_left(&self, policy: &RetryPolicy) -> Duration {
        policy.patience.saturating_sub(self.waited_for_rates)
    }

    /// Records a failure; returns the wait before the next attempt, or `None` if a retry is useless.
    pub fn next(&mut self, failure: &Failure, policy: &RetryPolicy, chance: f64) -> Option<Duration> {
        if !failure.retryable {
            return None;
        }
        let count = if failure.kind == FailureKind::Rate {
            self.rate_limits += 1;
            self.rate_limits
        } else {
            self.failures += 1;
            self.empty += u32::from(failure.kind == FailureKind::Empty);
            if self.failures >= policy.attempts || self.empty >= policy.empty_attempts {
                return None;
            }
            self.failures
        };
        let asked = failure.retry_after_ms.map(Duration::from_millis);
        let wait = policy.pauses.wait(count, asked, chance)?;
        if failure.kind == FailureKind::Rate {
            self.waited_for_rates += wait;
            if self.waited_for_rates > policy.patience {
                return None;
            }
        }
        Some(wait)
    }
}

/// Remaining retries, shared by all calls of a model: an outage must not multiply the load on a provider that is down.
/// Answers earn retries, retries spend them. Rate limits do not count; they state their own wait.
#[derive(Debug)]
pub struct RetryBudget(Mutex<f64>);

impl RetryBudget {
    const FULL: f64 = 1000.0;
    const EARNED_BY_AN_ANSWER: f64 = 0.5;

    /// Records an answer.
    pub fn earn(&self) {
        if let Ok(mut left) = self.0.lock() {
            *left = (*left + Self::EARNED_BY_AN_ANSWER).min(Self::FULL);
        }
    }

    /// Whether one more retry may be made.
    pub fn spend(&self) -> bool {
        let Ok(mut left) = self.0.lock() else { return true };
        let allowed = *left >= 1.0;
        if allowed {
            *left -= 1.0;
        }
        allowed
    }
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self(Mutex::new(Self::FULL))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(failure: &Failure, policy: &RetryPolicy, chance: f64) -> Vec<u128> {
        let mut history = History::default();
        std::iter::from_fn(|| history.next(failure, policy, chance).map(|wait| wait.as_millis())).collect()
    }

    #[test]
    fn waits_double_and_end() {
        let policy = RetryPolicy { attempts: 8, ..RetryPolicy::default() };
        let failure = Failure::passing(FailureKind::Server, "x");
        assert_eq!(waits(&failure, &policy, 1.0), [500, 1000, 2000, 4000, 8000, 16000, 30000]);
        assert_eq!(waits(&failure, &policy, 0.0), [250, 500, 1000, 2000, 4000, 8000, 15000]);
        assert!(waits(&Failure::lasting(FailureKind::Server, "x"), &policy, 0.0).is_empty());
        assert!(waits(&failure, &RetryPolicy::once(), 0.0).is_empty());
    }

    #[test]
    fn rate_limits_are_waited_for_as_asked_and_not_for_ever() {
        let policy = RetryPolicy { patience: Duration::from_secs(10), attempts: 2, ..RetryPolicy::default() };
        let asked =
            |ms| Failure::passing(FailureKind::Rate, "x").retry_after(Some(Duration::from_millis(ms)));
        assert_eq!(waits(&asked(3000), &policy, 0.0), [3000, 3000, 3000]);
        assert_eq!(waits(&asked(3000), &policy, 1.0), [3750, 3750]);
        assert!(waits(&asked(121_000), &policy, 0.0).is_empty(), "longer than anybody should wait");
        let soon = waits(&asked(0), &policy, 1.0);
        assert_eq!(soon[..3], [125, 1250, 2500], "even `now` is spread, and not believed twice");
    }

    #[test]
    fn silence_is_not_paid_for_eight_times() {
        let failure = Failure::passing(FailureKind::Empty, "x");
        assert_eq!(waits(&failure, &RetryPolicy::default(), 0.0).len(), 2);
    }

    #[test]
    fn an_outage_spends_the_retries() {
        let budget = RetryBudget::default();
        assert_eq!((0..2000).filter(|_| budget.spend()).count(), 1000);
        budget.earn();
        assert!(!budget.spend());
        budget.earn();
        assert!(budget.spend());
    }
}
