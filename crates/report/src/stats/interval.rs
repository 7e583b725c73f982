//! Intervals, their confidence, and their bounds.

use serde::Serialize;

/// A range of values that are consistent with the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// Whether it contains a value; the ends are included.
    pub fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    pub fn width(self) -> f64 {
        self.high - self.low
    }

    /// The interval cut at the bounds, but never so far that it loses `estimate`.
    pub(super) fn within(self, bounds: Bounds, estimate: f64) -> Self {
        Self { low: self.low.max(bounds.low).min(estimate), high: self.high.min(bounds.high).max(estimate) }
    }
}

/// The share of repeated experiments in which an interval should contain the truth: above 0 and below 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Confidence(f64);

impl Confidence {
    /// `None` unless the level is above 0 and below 1.
    pub fn new(level: f64) -> Option<Self> {
        (level > 0.0 && level < 1.0).then_some(Self(level))
    }

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

/// The possible values of a mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    pub low: f64,
    pub high: f64,
}

impl Bounds {
    /// Rewards are between 0 and 1.
    pub const REWARD: Self = Self { low: 0.0, high: 1.0 };
    /// Differences of rewards, and measures of agreement, are between -1 and 1.
    pub const DIFFERENCE: Self = Self { low: -1.0, high: 1.0 };
    /// Costs and times have no bounds.
    pub const NONE: Self = Self { low: f64::NEG_INFINITY, high: f64::INFINITY };

    /// The bounds of differences of two such values.
    #[must_use]
    pub fn of_differences(self) -> Self {
        Self { low: self.low - self.high, high: self.high - self.low }
    }

    /// The interval if `clusters` clusters all gave `value`: there is no variance to estimate from.
    ///
    /// If a share q of all clusters were different, the probability to see none of them would be (1 − q)^G, so q is
    /// bounded, and the mean moves by at most q times the distance to a bound. At a bound itself this is the
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
