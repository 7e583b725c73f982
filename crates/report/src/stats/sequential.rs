//! A test that may be checked after every observation, and stopped at any time.
//!
//! A gambler bets that the mean is above `null`. If it is not, no strategy is expected to win, so the probability that
//! the capital ever grows a hundredfold is at most one in a hundred, whenever one checks (Ville's inequality). The
//! capital is the evidence: an e-value. The only assumptions are that values are within their bounds and that each has
//! the mean, given those before it. The bets are those of Waudby-Smith and Ramdas, "Estimating means of bounded random
//! variables by betting" (2024), with stakes spread evenly instead of chosen from the data.

use super::interval::{Bounds, Confidence, Interval};
use super::real;

/// Number of gamblers, each of whom always bets the same share of what can be bet. Together they do well for any mean.
const STAKES: usize = 20;
/// Halvings of an interval after which its end is exact to every digit that is shown.
const HALVINGS: usize = 40;

/// Evidence that a mean is above a value.
#[derive(Clone, Debug)]
pub struct Wager {
    /// Distance of the null from the lowest value.
    reach: f64,
    bounds: Bounds,
    /// Logarithms of the gamblers' capitals.
    capitals: [f64; STAKES],
}

impl Wager {
    /// Bets that the mean of values within the bounds is above `null`. `None` if that is impossible.
    pub fn above(null: f64, bounds: Bounds) -> Option<Self> {
        (null > bounds.low && null < bounds.high).then_some(Self {
            reach: null - bounds.low,
            bounds,
            capitals: [0.0; STAKES],
        })
    }

    /// Adds the next value. A value outside the bounds is moved to the nearest bound; NaN is ignored.
    pub fn observe(&mut self, value: f64) {
        if value.is_nan() {
            return;
        }
        let gain = (value.clamp(self.bounds.low, self.bounds.high) - self.bounds.low) / self.reach;
        for (at, capital) in self.capitals.iter_mut().enumerate() {
            let stake = (real(at) + 0.5) / real(STAKES);
            *capital += (1.0 - stake + stake * gain).ln();
        }
    }

    /// The evidence: the gamblers' mean capital, where each began with 1.
    pub fn evidence(&self) -> f64 {
        self.capitals.iter().map(|capital| capital.exp()).sum::<f64>() / real(STAKES)
    }
}

/// The evidence of some values that their mean is above `null`; `None` if that is impossible.
pub fn evidence_above(values: &[f64], null: f64, bounds: Bounds) -> Option<f64> {
    let mut wager = Wager::above(null, bounds)?;
    for value in values {
        wager.observe(*value);
    }
    Some(wager.evidence())
}

/// An interval for the mean that may be checked after every value: the probability that it ever misses the mean is one
/// minus the confidence. It is wider than one that may be checked only once.
pub fn confidence_sequence(values: &[f64], bounds: Bounds, confidence: Confidence) -> Interval {
    let needed = 1.0 / confidence.tail();
    let mirrored: Vec<f64> = values.iter().map(|value| bounds.low + bounds.high - value).collect();
    let low = lowest_mean(values, bounds, needed);
    let high = bounds.low + bounds.high - lowest_mean(&mirrored, bounds, needed);
    Interval { low, high }
}

/// The smallest mean against which there is not enough evidence. Evidence falls as the null rises.
fn lowest_mean(values: &[f64], bounds: Bounds, needed: f64) -> f64 {
    let (mut low, mut high) = (bounds.low, bounds.high);
    for _ in 0..HALVINGS {
        let middle = low + (high - low) / 2.0;
        match evidence_above(values, middle, bounds) {
            Some(evidence) if evidence >= needed => low = middle,
            _ => high = middle,
        }
    }
    low
}

/// The number of pairs after which the evidence can first be enough, if every pair had the largest possible gain.
pub fn fewest_observations(null: f64, bounds: Bounds, needed: f64) -> Option<usize> {
    const MOST: usize = 1_000_000;
    let mut wager = Wager::above(null, bounds)?;
    (1..=MOST).find(|_| {
        wager.observe(bounds.high);
        wager.evidence() >= needed
    })
}

#[cfg(test)]
mod tests {
    use super::super::assert_close;
    use super::super::random::Generator;
    use super::*;

    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    fn unit(generator: &mut Generator) -> f64 {
        (generator.word() >> 11) as f64 / 9_007_199_254_740_992.0
    }

    #[test]
    fn the_evidence_of_coin_tosses_is_the_integral_over_stakes() {
        // Values 0 and 1 with null 1/2: a gambler with stake s has (1+s)^k (1-s)^(n-k). The average over 20 midpoints
        // of s, by hand for one win: 1 + mean stake = 1.5.
        let coin = Bounds { low: 0.0, high: 1.0 };
        assert_close(evidence_above(&[1.0], 0.5, coin).unwrap(), 1.5, 1e-12);
        assert_close(evidence_above(&[0.0], 0.5, coin).unwrap(), 0.5, 1e-12);
        // Sum over i of (1 + (i + 1/2) / 20)^10 / 20 from Python's fractions.
        assert_close(evidence_above(&[1.0; 10], 0.5, coin).unwrap(), TEN_WINS, 1e-12);
        // And of (1 + s)^7 (1 - s)^3.
        let mixed = [1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0];
        assert_close(evidence_above(&mixed, 0.5, coin).unwrap(), SEVEN_OF_TEN, 1e-12);
    }

    const TEN_WINS: f64 = 185.559_311_486_389_8;
    const SEVEN_OF_TEN: f64 = 1.376_168_813_992_324_3;

    #[test]
    fn without_an_effect_it_seldom_finds_one_however_often_one_looks() {
        let mut found = 0;
        for run in 0..2000 {
            let mut generator = Generator::new(7, run);
            let mut wager = Wager::above(0.0, Bounds::DIFFERENCE).unwrap();
            // Rewards of two equal agents: differences are -1, 0 or 1.
            found += u32::from((0..200).any(|_| {
                let (a, b) = (unit(&mut generator) < 0.6, unit(&mut generator) < 0.6);
                wager.observe(f64::from(a) - f64::from(b));
                wager.evidence() >= 20.0
            }));
        }
        // 100 of 2000 is the bound.
        assert!(found <= 100, "{found}");
        assert!(found >= 10, "a test that never errs is no test: {found}");
    }

    #[test]
    fn an_effect_is_found_with_enough_pairs() {
        let needed = |gain: f64| {
            let mut sum = 0_usize;
            for run in 0..200 {
                let mut generator = Generator::new(11, run);
                let mut wager = Wager::above(0.01, Bounds::DIFFERENCE).unwrap();
                sum += (1..=1000)
                    .find(|_| {
                        let (a, b) = (unit(&mut generator) < 0.4 + gain, unit(&mut generator) < 0.4);
                        wager.observe(f64::from(a) - f64::from(b));
                        wager.evidence() >= 200.0
                    })
                    .unwrap_or(1000);
            }
            sum / 200
        };
        let (small, large) = (needed(0.2), needed(0.5));
        assert!((100..250).contains(&small), "{small}");
        assert!((15..45).contains(&large), "{large}");
    }

    #[test]
    fn the_interval_never_misses_more_often_than_it_says() {
        let confidence = Confidence::new(0.9).unwrap();
        let mut missed = 0;
        for run in 0..300 {
            let mut generator = Generator::new(3, run);
            let values: Vec<f64> = (0..60).map(|_| unit(&mut generator).powi(2)).collect();
            let looks = (5..=60).step_by(5);
            let ever = looks
                .map(|count| confidence_sequence(&values[..count], Bounds::REWARD, confidence))
                .any(|interval| !interval.contains(1.0 / 3.0));
            missed += u32::from(ever);
        }
        assert!(missed <= 30, "{missed} of 300");
        let narrow = confidence_sequence(&[0.5; 200], Bounds::REWARD, Confidence::default());
        assert!(narrow.contains(0.5) && narrow.width() < 0.1, "{narrow:?}");
        let nothing = confidence_sequence(&[], Bounds::REWARD, Confidence::default());
        assert_close(nothing.width(), 1.0, 1e-9);
    }

    #[test]
    fn odd_values_do_no_harm() {
        assert!(
            Wager::above(-1.0, Bounds::DIFFERENCE).is_none()
                && Wager::above(1.0, Bounds::DIFFERENCE).is_none()
        );
        assert!(Wager::above(f64::NAN, Bounds::DIFFERENCE).is_none());
        let mut wager = Wager::above(0.0, Bounds::DIFFERENCE).unwrap();
        wager.observe(f64::NAN);
        assert_close(wager.evidence(), 1.0, 1e-12);
        for _ in 0..10_000 {
            wager.observe(-1.0);
        }
        assert!(wager.evidence() >= 0.0 && wager.evidence() < 1e-9);
        for _ in 0..100_000 {
            wager.observe(1.0);
        }
        assert!(wager.evidence() > 1e9);
    }

    #[test]
    fn the_fewest_pairs_are_those_that_all_gain() {
        let fewest = fewest_observations(0.0, Bounds::DIFFERENCE, 20.0).unwrap();
        assert!(evidence_above(&vec![1.0; fewest], 0.0, Bounds::DIFFERENCE).unwrap() >= 20.0);
        assert!(evidence_above(&vec![1.0; fewest - 1], 0.0, Bounds::DIFFERENCE).unwrap() < 20.0);
        assert_eq!(fewest_observations(2.0, Bounds::DIFFERENCE, 20.0), None);
    }
}
