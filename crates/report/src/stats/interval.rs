//! Intervals, how sure they are, and what they may not leave.

use serde::Serialize;

/// A range of values that the data agree with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether a value lies in it; the ends do.
    pub fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Upper end less lower end.
    pub fn width(self) -> f64 {
        self.high - self.low
    }

    /// The interval cut off at the bounds, but never so far that it loses `estimate`.
    pub(super) fn within(self, bounds: Bounds, estimate: f64) -> Self {
        Self { low: self.low.max(bounds.low).min(estimate), high: self.high.min(bounds.high).max(estimate) }
    }
}

/// In which share of repeated experiments an interval is to contain the truth: above 0 and below 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Confidence(f64);

impl Confidence {
    /// `None` unless the level lies above 0 and below 1.
    pub fn new(level: f64) -> Option<Self> {
        (level > 0.0 && level < 1.0).then_some(Self(level))
    }

    /// The level itself, such as 0.95.
    pub fn level(self) -> f64 {
        self.0
    }

    /// The share of misses allowed on each side.
    pub(super) fn tail(self) -> f64 {
        (1.0 - self.0) / 2.0
    }
}

impl Default for Confidence {
    fn default() -> Self {
        Self(0.95)
    }
}

/// The values that a mean can have at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Smallest value.
    pub low: f64,
    /// Largest value.
    pub high: f64,
}

impl Bounds {
    /// Rewards lie between 0 and 1.
    pub const REWARD: Self = Self { low: 0.0, high: 1.0 };
    /// Differences of rewards, and measures of agreement, lie between -1 and 1.
    pub const DIFFERENCE: Self = Self { low: -1.0, high: 1.0 };
    /// Costs and times know no bounds.
    pub const NONE: Self = Self { low: f64::NEG_INFINITY, high: f64::INFINITY };

    /// The bounds of differences of two such values.
    #[must_use]
    pub fn of_differences(self) -> Self {
        Self { low: self.low - self.high, high: self.high - self.low }
    }

    /// What can be said when `clusters` clusters all gave `value`: no variance tells how far the next one may lie.
    ///
    /// If a share q of all clusters were different, none of them would have been met with probability (1 − q)^G, so
    /// q is bounded, and the mean is moved by at most q times the way to a bound. At a bound itself this is the
    /// Clopper–Pearson interval with clusters as trials.
    pub(super) fn interval_without_variance(
        self,
        value: f64,
        clusters: usize,
        confidence: Confidence,
    ) -> Option<Interval> {
        if !self.low.is_finite() || !self.high.is_finite() {
            return None;
        }
        let unseen = -(confidence.tail().ln() / super::real(clusters)).exp_m1();
        let low = value - unseen * (value - self.low);
        let high = value + unseen * (self.high - value);
        Some(Interval { low, high }.within(self, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confidence_is_a_probability_and_no_certainty() {
        for level in [0.0, 1.0, -0.5, 1.5, f64::NAN, f64::INFINITY] {
            assert_eq!(Confidence::new(level), None, "{level}");
        }
        assert_eq!(Confidence::new(0.9).map(Confidence::level), Some(0.9));
        assert!((Confidence::default().level() - 0.95).abs() < f64::EPSILON);
    }

    #[test]
    fn bounds_never_cut_the_estimate_off() {
        let wide = Interval { low: -0.2, high: 1.3 };
        assert_eq!(wide.within(Bounds::REWARD, 0.5), Interval { low: 0.0, high: 1.0 });
        assert_eq!(wide.within(Bounds::REWARD, -0.1), Interval { low: -0.1, high: 1.0 });
        assert_eq!(wide.within(Bounds::NONE, 0.5), wide);
    }
}
