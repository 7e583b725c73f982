//! How to watch a long task: how often to ask about it, and how many failures to tolerate.

use std::time::Duration;

use crate::service::client::ApiError;

/// Failures in a row after which pauses get longer.
const FEW_TROUBLES: u32 = 3;

/// Longest pause, even if the service asks for a longer one.
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

#[derive(Clone, Debug)]
pub struct WatchOptions {
    pub interval: Duration,
    /// Least pause after a failure.
    pub trouble_pause: Duration,
    /// Least pause after several failures in a row.
    pub long_trouble_pause: Duration,
    /// How many failures in a row are tolerated.
    pub most_troubles: u32,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(10),
            trouble_pause: Duration::from_secs(10),
            long_trouble_pause: Duration::from_secs(30),
            most_troubles: 20,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Troubles<'a> {
    options: &'a WatchOptions,
    count: u32,
}

impl<'a> Troubles<'a> {
    pub(crate) fn new(options: &'a WatchOptions) -> Self {
        Self { options, count: 0 }
    }

    pub(crate) fn over(&mut self) {
        self.count = 0;
    }

    /// The pause after an error; absent if the error is permanent or there were too many.
    pub(crate) fn pause(&mut self, error: &ApiError) -> Option<Duration> {
        if !error.is_passing() || self.count >= self.options.most_troubles {
            return None;
        }
        self.count += 1;
        let few = self.count <= FEW_TROUBLES;
        let own = if few { self.options.trouble_pause } else { self.options.long_trouble_pause };
        Some(error.retry_after().unwrap_or_default().min(LONGEST_PAUSE).max(own))
    }
}
