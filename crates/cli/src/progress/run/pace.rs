//! How fast a run goes, how long its trials take, and when it may end.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The window for the current rate, in seconds.
const WINDOW: u64 = 30;

/// A rate over less time than this means little.
const SHORTEST: Duration = Duration::from_secs(5);

/// Latest durations in the median. Older ones do not count: trials of one agent may take longer than another's.
const DURATIONS: usize = 255;

/// With fewer ended attempts than this there is no estimate.
const ENOUGH: usize = 5;

/// Ends of trials and their durations, bounded however many trials there are.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    began: Instant,
    ended: u64,
    /// Ended trials for each whole second since the beginning, latest last.
    seconds: VecDeque<(u64, u32)>,
    durations: VecDeque<Duration>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    /// Trials that have not begun yet and will.
    pub(crate) queued: usize,
    pub(crate) running: usize,
    /// How long the youngest running trial has been running.
    pub(crate) youngest: Duration,
    pub(crate) concurrency: usize,
}

impl Pace {
    pub(crate) fn new(began: Instant) -> Self {
        Self { began, ended: 0, seconds: VecDeque::new(), durations: VecDeque::new() }
    }

    /// Records that a trial is done.
    pub(crate) fn done(&mut self, now: Instant) {
        self.ended += 1;
        let second = now.saturating_duration_since(self.began).as_secs();
        match self.seconds.back_mut() {
            Some((last, count)) if *last >= second => *count = count.saturating_add(1),
            _ => self.seconds.push_back((second, 1)),
        }
        while self.seconds.front().is_some_and(|(first, _)| first + WINDOW < second) {
            self.seconds.pop_front();
        }
    }

    /// Records how long an attempt took.
    pub(crate) fn took(&mut self, duration: Duration) {
        if self.durations.len() == DURATIONS {
            self.durations.pop_front();
        }
        self.durations.push_back(duration);
    }

    /// The median of the latest durations.
    pub(crate) fn median(&self) -> Option<Duration> {
        let mut sorted: Vec<Duration> = self.durations.iter().copied().collect();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied()
    }

    /// Trials per second since the beginning.
    pub(crate) fn overall(&self, now: Instant) -> Option<f64> {
        let time = now.saturating_duration_since(self.began).as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a rate with three figures")]
        (self.ended > 0 && time > 0.0).then(|| self.ended as f64 / time)
    }

    /// Trials per second over the last half minute, or since the beginning if that is less.
    pub(crate) fn present(&self, now: Instant) -> Option<f64> {
        let time = now.saturating_duration_since(self.began);
        if time < SHORTEST {
            return self.overall(now);
        }
        let second = time.as_secs();
        // The current second is left out, because it has only just begun.
        let from = second.saturating_sub(WINDOW);
        let inside = self.seconds.iter().filter(|(at, _)| (from..second).contains(at));
        let count: u64 = inside.map(|(_, count)| u64::from(*count)).sum();
        #[expect(clippy::cast_precision_loss, reason = "a rate with three figures")]
        (self.ended > 0).then(|| count as f64 / (second - from) as f64)
    }

    /// How long the rest may take, or `None` if too little is known. The longer of two estimates counts, one from
    /// durations and one from the rate so far: a queue at the provider shows in the rate alone.
    pub(crate) fn left(&self, left: Left, now: Instant) -> Option<Duration> {
        if self.durations.len() < ENOUGH {
            return None;
        }
        let median = self.median()?;
        if left.queued == 0 {
            // There is no telling when trials end that take longer than usual.
            return Some(median.saturating_sub(left.youngest))
                .filter(|rest| left.running > 0 && !rest.is_zero());
        }
        #[expect(clippy::cast_precision_loss, reason = "a guess")]
        let (trials, at_once) = ((left.queued + left.running) as f64, left.concurrency.max(1) as f64);
        let by_duration = median.as_secs_f64() * (trials / at_once).max(1.0);
        let by_rate = self.present(now).filter(|rate| *rate > 0.0).or_else(|| self.overall(now));
        let by_rate = by_rate.map_or(0.0, |rate| trials / rate);
        Duration::try_from_secs_f64(by_duration.max(by_rate)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    /// One trial per second for this long; each took 4 seconds.
    fn steady(began: Instant, ends: u64) -> Pace {
        let mut pace = Pace::new(began);
        for second in 0..ends {
            pace.done(began + seconds(second));
            pace.took(seconds(4));
        }
        pace
    }

    fn about(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found - expected).abs() < 1e-9)
    }

    #[test]
    fn rates_slide() {
        let began = Instant::now();
        let pace = steady(began, 100);
        assert!(about(pace.overall(began + seconds(100)), 1.0));
        assert!(about(pace.present(began + seconds(100)), 1.0));
        assert!(about(pace.present(began + seconds(115)), 0.5), "{:?}", pace.present(began + seconds(115)));
        assert!(about(pace.present(began + seconds(500)), 0.0));
        assert!(about(pace.overall(began + seconds(500)), 0.2));
        assert_eq!(Pace::new(began).present(began + seconds(9)), None);
        assert_eq!(steady(began, 1).overall(began), None);
    }

    #[test]
    fn memory_is_bounded() {
        let began = Instant::now();
        let mut pace = Pace::new(began);
        for trial in 0..200_000_u64 {
            pace.done(began + Duration::from_millis(trial * 10));
            pace.took(Duration::from_millis(trial));
        }
        assert!(pace.seconds.len() <= 32, "{}", pace.seconds.len());
        assert_eq!(pace.durations.len(), DURATIONS);
        assert_eq!(pace.median(), Some(Duration::from_millis(199_872)));
        assert!(about(pace.present(began + seconds(2_000)), 100.0));
    }

    #[test]
    fn nothing_is_foretold_from_too_little() {
        let began = Instant::now();
        let left = Left { queued: 100, running: 4, youngest: Duration::ZERO, concurrency: 4 };
        assert_eq!(steady(began, 4).left(left, began + seconds(4)), None);
        assert!(steady(began, 5).left(left, began + seconds(5)).is_some());
    }

    #[test]
    fn the_longer_guess_counts() {
        let began = Instant::now();
        let pace = steady(began, 100);
        let now = began + seconds(100);
        let left = |concurrency| Left { queued: 96, running: 4, youngest: Duration::ZERO, concurrency };
        assert_eq!(pace.left(left(4), now), Some(seconds(100)));
        // More trials run at once than the rate confirms: the rate counts.
        assert_eq!(pace.left(left(8), now), Some(seconds(100)));
        // Fewer trials run at once than before: the durations count.
        assert_eq!(pace.left(left(1), now), Some(seconds(400)));
    }

    #[test]
    fn the_last_trials_are_waited_for() {
        let began = Instant::now();
        let pace = steady(began, 100);
        let now = began + seconds(100);
        let left = |running, youngest| Left { queued: 0, running, youngest, concurrency: 4 };
        assert_eq!(pace.left(left(2, seconds(1)), now), Some(seconds(3)));
        assert_eq!(pace.left(left(2, seconds(9)), now), None);
        assert_eq!(pace.left(left(0, Duration::ZERO), now), None);
    }
}
