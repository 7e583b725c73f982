//! Normal, Student and beta distributions, as far as intervals and tests need them.
//!
//! The incomplete beta function of `statrs` stops after 140 terms, which is too few for 100,000 trials, and its inverse
//! may not terminate; this one uses as many terms as matter, and finds inverses by bisection.

use std::f64::consts::SQRT_2;

use statrs::function::erf::erfc;
use statrs::function::gamma::ln_gamma;

/// More terms than any pair of parameters below 10^11 needs.
const MOST_TERMS: u32 = 1_000_000;

/// Halvings after which an interval between doubles of ordinary size is empty.
const MOST_HALVINGS: usize = 200;

/// Probability that a standard normal variable is at most `x`.
pub(super) fn normal_cdf(x: f64) -> f64 {
    0.5 * erfc(-x / SQRT_2)
}

/// The value that a standard normal variable does not exceed with the given probability, strictly between 0 and 1.
pub(super) fn normal_quantile(probability: f64) -> f64 {
    // Computed from the nearer tail, where a small probability keeps its digits.
    if probability > 0.5 {
        return -normal_quantile(1.0 - probability);
    }
    -bisect(0.0, 40.0, |x| normal_cdf(-x) < probability)
}

/// Probability that a Student variable is further from 0 than `t`, on either side.
pub(super) fn student_two_sided(t: f64, degrees: f64) -> f64 {
    let square = t * t;
    if square.is_infinite() {
        return 0.0;
    }
    let whole = degrees + square;
    beta_cdf(degrees / 2.0, 0.5, degrees / whole, square / whole)
}

/// The value that a Student variable exceeds with the probability `tail`, between 0 and 0.5.
pub(super) fn student_upper_quantile(tail: f64, degrees: f64) -> f64 {
    let exceeds = |t: f64| student_two_sided(t, degrees) < 2.0 * tail;
    let mut high = 2.0;
    while !exceeds(high) && high < 1e150 {
        high *= 2.0;
    }
    bisect(0.0, high, exceeds)
}

/// The value that a beta variable does not exceed with the given probability.
pub(super) fn beta_quantile(a: f64, b: f64, probability: f64) -> f64 {
    bisect(0.0, 1.0, |x| beta_cdf(a, b, x, 1.0 - x) > probability)
}

/// Regularised incomplete beta function at `x`; `rest` is 1 − x, which the caller may know more exactly.
pub(super) fn beta_cdf(a: f64, b: f64, x: f64, rest: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if rest <= 0.0 {
        return 1.0;
    }
    let scale = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * rest.ln()).exp();
    // The fraction converges fast on the side of the mean where its variable is small.
    let value = if x < (a + 1.0) / (a + b + 2.0) {
        scale * fraction(a, b, x) / a
    } else {
        1.0 - scale * fraction(b, a, rest) / b
    };
    value.clamp(0.0, 1.0)
}

/// The continued fraction of the incomplete beta function, by the modified Lentz method.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let away_from_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut numerator_ratio = 1.0;
    let mut denominator_ratio = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = denominator_ratio;
    for term in 1..=MOST_TERMS {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for coefficient in [even, odd] {
            denominator_ratio = 1.0 / away_from_zero(1.0 + coefficient * denominator_ratio);
            numerator_ratio = away_from_zero(1.0 + coefficient / numerator_ratio);
            change = numerator_ratio * denominator_ratio;
            value *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// The point between `low` and `high` where `is_above` turns from false to true.
pub(super) fn bisect(mut low: f64, mut high: f64, is_above: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..MOST_HALVINGS {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if is_above(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    use super::super::assert_close;

    #[test]
    fn the_normal_distribution_is_that_of_scipy() {
        // scipy.stats.norm.ppf and .cdf
        for (probability, expected) in
            [(0.975, 1.959_963_984_540_054), (1e-12, -7.034_483_825_301_131), (0.2, -0.841_621_233_572_914_2)]
        {
            assert_close(normal_quantile(probability), expected, 1e-10);
        }
        assert!(normal_quantile(0.5).abs() < 1e-12);
        assert_close(normal_cdf(-3.5), 0.000_232_629_079_035_525_02, 1e-9);
    }

    #[test]
    fn students_distribution_is_that_of_scipy() {
        // scipy.stats.t.isf(tail, df)
        for (tail, degrees, expected) in [
            (0.025, 1.0, 12.706_204_736_174_705),
            (0.025, 2.0, 4.302_652_729_749_464),
            (0.025, 39.0, 2.022_690_920_036_761),
            (0.005, 7.5, 3.421_422_688_124_044_6),
            (0.025, 99_999.0, 1.959_987_707_771_844_8),
            (1e-9, 3.0, 1_033.109_674_503_807_8),
        ] {
            assert_close(student_upper_quantile(tail, degrees), expected, 1e-9);
        }
        // 2 * scipy.stats.t.sf(t, df)
        for (t, degrees, expected) in [
            (2.0, 39.0, 0.052_499_015_343_854_746),
            (0.1, 3.0, 0.926_652_348_800_805_9),
            (12.0, 5.5, 3.748_050_062_923_341e-5),
            (40.0, 200.0, 2.248_739_653_520_219_7e-97),
        ] {
            assert_close(student_two_sided(t, degrees), expected, 1e-10);
        }
    }

    #[test]
    fn the_beta_distribution_is_that_of_scipy_even_for_many_trials() {
        // scipy.stats.beta.ppf(p, a, b)
        for (a, b, probability, expected) in [
            (3.0, 8.0, 0.025, 0.066_739_511_177_734_47),
            (50_000.0, 50_001.0, 0.025, 0.496_896_062_491_800_4),
            (0.5, 0.5, 0.1, 0.024_471_741_852_423_214),
            (1.0, 100_000.0, 0.025, 2.531_780_477_933_314e-7),
            (2e6, 3e6, 0.975, 0.400_429_444_418_347_16),
        ] {
            assert_close(beta_quantile(a, b, probability), expected, 1e-9);
        }
        // scipy.stats.beta.cdf(x, a, b)
        for (a, b, x, expected) in [
            (50_000.0, 50_000.0, 0.501, 0.736_455_061_702_955_2),
            (30_000.0, 70_000.0, 0.301, 0.755_074_851_289_970_8),
            (2.0, 3.0, 0.4, 0.524_8),
        ] {
            assert_close(beta_cdf(a, b, x, 1.0 - x), expected, 1e-8);
        }
    }
}
