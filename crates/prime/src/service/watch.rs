//! How something that takes long is watched: how often it is asked about, and how much trouble is borne.

use std::time::Duration;

use crate::service::client::ApiError;

/// Troubles in a row after which pauses get longer.
const FEW_TROUBLES: u32 = 3;

/// Longest pause that a service is granted.
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

/// How something is watched.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// Pause between questions.
    pub interval: Duration,
    /// Least pause after the service could not answer.
    pub trouble_pause: Duration,
    /// Least pause after it could not answer several times.
    pub long_trouble_pause: Duration,
    /// How often in a row it may fail to answer.
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

/// Troubles in a row.
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

    /// The pause after an error, or nothing if it is final or one too many.
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
