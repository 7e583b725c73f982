//! How long to wait before a call is sent again, and when to stop.

use std::time::Duration;

use super::{ApiError, ClientOptions};

/// Pauses of one call.
#[derive(Debug)]
pub(crate) struct Pause {
    left: u32,
    next: Duration,
    longest: Duration,
}

impl Pause {
    pub(crate) fn new(options: &ClientOptions) -> Self {
        Self {
            left: options.attempts.saturating_sub(1),
            next: options.first_pause,
            longest: options.longest_pause,
        }
    }

    /// The pause after an error, or nothing if there is no point in another attempt.
    pub(crate) fn after(&mut self, error: &ApiError) -> Option<Duration> {
        if self.left == 0 || !error.is_passing() {
            return None;
        }
        self.left -= 1;
        let own = self.next.min(self.longest);
        self.next = self.next.saturating_mul(2);
        match error.retry_after() {
            Some(asked) if asked > self.longest => None,
            Some(asked) => Some(asked.max(own)),
            None => Some(own),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(status: u16, retry_after: Option<u64>) -> ApiError {
        ApiError::of_status("GET /x", status, retry_after.map(Duration::from_secs), b"")
    }

    #[test]
    fn pauses_double_and_end() {
        let mut pause = Pause::new(&ClientOptions { attempts: 4, ..ClientOptions::default() });
        let waits: Vec<_> =
            std::iter::from_fn(|| pause.after(&error(500, None))).map(|w| w.as_secs()).collect();
        assert_eq!(waits, [1, 2, 4]);
    }

    #[test]
    fn the_service_may_ask_for_more_but_not_for_too_much() {
        let mut pause = Pause::new(&ClientOptions::default());
        assert_eq!(pause.after(&error(429, Some(7))), Some(Duration::from_secs(7)));
        assert_eq!(pause.after(&error(429, Some(0))), Some(Duration::from_secs(2)));
        assert_eq!(pause.after(&error(429, Some(3600))), None);
    }

    #[test]
    fn refusals_are_final() {
        let mut pause = Pause::new(&ClientOptions::default());
        for status in [400, 401, 402, 403, 404, 405, 409, 422] {
            assert_eq!(pause.after(&error(status, None)), None, "{status}");
        }
    }
}
