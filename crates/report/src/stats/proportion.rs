//! Intervals for a share of independent trials.

use super::distribution::{beta_quantile, normal_quantile};
use super::interval::{Bounds, Confidence, Interval};
use super::real;

/// Wilson's score interval; `None` without trials or with more successes than trials.
pub fn wilson(successes: usize, trials: usize, confidence: Confidence) -> Option<Interval> {
    let share = share(successes, trials)?;
    let size = real(trials);
    let z = normal_quantile(1.0 - confidence.tail());
    let weight = z * z / size;
    let center = (share + weight / 2.0) / (1.0 + weight);
    let reach = z / (1.0 + weight) * (share * (1.0 - share) / size + weight / (4.0 * size)).sqrt();
    Some(Interval { low: center - reach, high: center + reach }.within(Bounds::REWARD, share))
}

/// The interval of Clopper and Pearson, whose coverage is at least nominal for every true value; `None` without trials
/// or with more successes than trials.
pub fn clopper_pearson(successes: usize, trials: usize, confidence: Confidence) -> Option<Interval> {
    let share = share(successes, trials)?;
    let tail = confidence.tail();
    let (successes, failures) = (real(successes), real(trials - successes));
    let low = if successes > 0.0 { beta_quantile(successes, failures + 1.0, tail) } else { 0.0 };
    // The upper end is one minus the lower end of the failures, which keeps its digits near 1.
    let high = if failures > 0.0 { 1.0 - beta_quantile(failures, successes + 1.0, tail) } else { 1.0 };
    Some(Interval { low, high }.within(Bounds::REWARD, share))
}

fn share(successes: usize, trials: usize) -> Option<f64> {
    (trials > 0 && successes <= trials).then(|| real(successes) / real(trials))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        interval: fn(usize, usize, Confidence) -> Option<Interval>,
        (successes, trials, level): (usize, usize, f64),
        (low, high): (f64, f64),
    ) {
        let found = interval(successes, trials, Confidence::new(level).unwrap()).unwrap();
        assert!((found.low - low).abs() < 1e-11, "{found:?}");
        assert!((found.high - high).abs() < 1e-11, "{found:?}");
    }

    #[test]
    fn wilsons_interval_is_that_of_statsmodels() {
        // proportion_confint(successes, trials, alpha, method="wilson")
        check(wilson, (7, 20, 0.95), (0.181_191_824_101_082_03, 0.567_145_723_314_763_8));
        check(wilson, (0, 10, 0.95), (0.0, 0.277_532_799_862_889_26));
        check(wilson, (10, 10, 0.95), (0.722_467_200_137_110_6, 1.0));
        check(wilson, (1, 3, 0.9), (0.078_265_726_333_728_36, 0.746_466_131_718_776));
        check(wilson, (99_713, 100_000, 0.95), (0.996_778_798_439_116_5, 0.997_443_008_939_566_7));
    }

    #[test]
    fn clopper_and_pearsons_interval_is_that_of_statsmodels() {
        // proportion_confint(successes, trials, alpha, method="beta")
        check(clopper_pearson, (7, 20, 0.95), (0.153_909_204_784_541_18, 0.592_188_534_532_828_2));
        check(clopper_pearson, (0, 10, 0.95), (0.0, 0.308_497_107_818_760_83));
        check(clopper_pearson, (10, 10, 0.95), (0.691_502_892_181_239_2, 1.0));
        check(clopper_pearson, (1, 3, 0.9), (0.016_952_427_508_441_5, 0.864_649_637_828_416_2));
        check(clopper_pearson, (99_713, 100_000, 0.95), (0.996_778_582_557_166, 0.997_452_070_023_102_2));
    }

    #[test]
    fn shares_that_cannot_be_are_refused() {
        for (successes, trials) in [(0, 0), (3, 2)] {
            assert_eq!(wilson(successes, trials, Confidence::default()), None);
            assert_eq!(clopper_pearson(successes, trials, Confidence::default()), None);
        }
    }
}
