//! Fisher's exact test: whether two shares differ by more than chance.

use super::real;

/// Probabilities that differ by less than this, relatively, are taken as equal, as `SciPy` does: sums of logarithms
/// are not exact.
const SLACK: f64 = 1e-7;

/// The probability that two shares, each a count and the number of which it is a part, differ as much by chance. Exact
/// and two-sided.
///
/// `None` if a count is larger than its whole.
pub fn fisher_exact(first: (usize, usize), second: (usize, usize)) -> Option<f64> {
    if first.0 > first.1 || second.0 > second.1 {
        return None;
    }
    let counted = first.0 + second.0;
    let (least, most) = (counted.saturating_sub(second.1), counted.min(first.1));
    let factorials = log_factorials(first.1 + second.1);
    let choices = |of: usize, some: usize| factorials[of] - factorials[some] - factorials[of - some];
    let all = choices(first.1 + second.1, counted);
    let chance = |here: usize| (choices(first.1, here) + choices(second.1, counted - here) - all).exp();
    let found = chance(first.0) * (1.0 + SLACK);
    let sum: f64 = (least..=most).map(chance).filter(|chance| *chance <= found).sum();
    Some(sum.min(1.0))
}

/// Logarithms of the factorials from 0 to `most`.
fn log_factorials(most: usize) -> Vec<f64> {
    let mut logs = vec![0.0];
    let (mut sum, mut lost) = (0.0, 0.0);
    for number in 1..=most {
        // Compensated, so that the error does not grow with the number of terms.
        let term = real(number).ln() - lost;
        let next: f64 = sum + term;
        lost = (next - sum) - term;
        sum = next;
        logs.push(sum);
    }
    logs
}

#[cfg(test)]
mod tests {
    use super::super::assert_close;
    use super::*;

    #[test]
    fn values_are_those_of_scipy() {
        // scipy.stats.fisher_exact([[a, b - a], [c, d - c]]).pvalue
        for ((a, b, c, d), expected) in [
            ((8, 10, 1, 6), 0.034_965_034_965_034_97),
            ((1, 10, 11, 14), 0.002_759_456_185_220_083_6),
            ((3, 4, 1, 4), 0.485_714_285_714_285_7),
            ((7, 30, 0, 30), 0.010_542_535_074_203_227),
            ((10, 30, 0, 30), 0.000_797_013_131_410_139),
            ((0, 5, 0, 7), 1.0),
            ((5, 5, 0, 5), 0.007_936_507_936_507_936),
            ((100, 1000, 140, 1000), 0.007_185_428_104_075_212),
            ((2, 100, 1, 1000), 0.023_105_953_251_092_65),
            ((20, 100, 35, 100), 0.026_117_952_125_054_356),
        ] {
            assert_close(fisher_exact((a, b), (c, d)).unwrap(), expected, 1e-10);
            assert_close(fisher_exact((c, d), (a, b)).unwrap(), expected, 1e-10);
        }
    }

    #[test]
    fn the_lady_who_tasted_tea() {
        // Fisher, The Design of Experiments (1935): all eight cups right has a probability of 1 in 70 on each side.
        assert_close(fisher_exact((4, 4), (0, 4)).unwrap(), 2.0 / 70.0, 1e-12);
    }

    #[test]
    fn nothing_is_no_difference_and_nonsense_is_refused() {
        assert_eq!(fisher_exact((0, 0), (0, 0)), Some(1.0));
        assert_eq!(fisher_exact((0, 0), (3, 9)), Some(1.0));
        assert_eq!(fisher_exact((2, 1), (0, 9)), None);
    }
}
