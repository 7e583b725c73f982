//! A bucket of requests that refills evenly, as providers describe their limits.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A limit of requests per minute: the bucket starts full and refills at that rate.
pub(crate) struct Bucket {
    capacity: f64,
    state: Mutex<(f64, Instant)>,
}

/// The state of the bucket after one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Level {
    pub(crate) limit: u32,
    pub(crate) remaining: u32,
    /// How long the request must wait; zero if it was admitted.
    pub(crate) wait: Duration,
    /// How long until the bucket is full.
    pub(crate) reset: Duration,
}

impl Bucket {
    pub(crate) fn new(per_minute: u32) -> Self {
        let capacity = f64::from(per_minute);
        Self { capacity, state: Mutex::new((capacity, Instant::now())) }
    }

    /// Takes one request from the bucket, if there is one.
    pub(crate) fn take(&self) -> Level {
        let per_second = self.capacity / 60.0;
        let now = Instant::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = now.saturating_duration_since(state.1).as_secs_f64();
        let level = (state.0 + elapsed * per_second).min(self.capacity);
        let granted = level >= 1.0;
        let left = if granted { level - 1.0 } else { level };
        *state = (left, now);
        let until = |wanted: f64| Duration::from_secs_f64(((wanted - left) / per_second).max(0.0));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the level fits its capacity"
        )]
        Level {
            limit: self.capacity as u32,
            remaining: left as u32,
            wait: if granted { Duration::ZERO } else { until(1.0) },
            reset: until(self.capacity),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_bucket_empties_and_refills() {
        let bucket = Bucket::new(60);
        for left in (0..60).rev() {
            let level = bucket.take();
            assert_eq!((level.remaining, level.wait), (left, Duration::ZERO));
        }
        let refused = bucket.take();
        assert_eq!((refused.limit, refused.wait), (60, Duration::from_secs(1)));
        tokio::time::advance(Duration::from_millis(1_500)).await;
        assert_eq!(bucket.take().wait, Duration::ZERO);
        assert_eq!(bucket.take().wait, Duration::from_millis(500));
        tokio::time::advance(Duration::from_mins(10)).await;
        assert_eq!(bucket.take().remaining, 59, "it holds a minute's worth and no more");
    }
}
