//! The probability that any, or that all, of k attempts pass.
//!
//! Both values are averages over all ways to choose k of the attempts, so neither is biased, as a power of the observed
//! share would be. For an interval of their mean over tasks, pass each task's value to
//! [`clustered_mean`](super::clustered_mean) as a cluster of one observation.

use super::real;

/// Probability that at least one of `k` attempts passes, from `attempts` of which `passes` passed.
///
/// `None` if k is 0 or more than the attempts, or with more passes than attempts.
pub fn pass_at_k(attempts: usize, passes: usize, k: usize) -> Option<f64> {
    if k == 0 || k > attempts || passes > attempts {
        return None;
    }
    if attempts - passes < k {
        return Some(1.0);
    }
    // Choosing k attempts and looking for passes is equivalent to choosing the passes and looking for the k; this takes
    // the shorter way. Adding keeps the digits of a small probability, and no binomial coefficient is ever formed.
    let (steps, parts) = if passes < k { (passes, k) } else { (k, passes) };
    let mut chance = 0.0;
    for step in 0..steps {
        chance += (1.0 - chance) * real(parts) / real(attempts - step);
        if chance >= 1.0 {
            break;
        }
    }
    Some(chance.min(1.0))
}

/// Probability that all of `k` attempts pass, from `attempts` of which `passes` passed.
///
/// `None` if k is 0 or more than the attempts, or with more passes than attempts.
pub fn pass_hat_k(attempts: usize, passes: usize, k: usize) -> Option<f64> {
    if k == 0 || k > attempts || passes > attempts {
        return None;
    }
    if passes < k {
        return Some(0.0);
    }
    let failures = attempts - passes;
    let (steps, parts) = if failures < k { (failures, k) } else { (k, failures) };
    let mut chance = 1.0;
    for step in 0..steps {
        chance *= real(attempts - step - parts) / real(attempts - step);
        if chance <= 0.0 {
            break;
        }
    }
    Some(chance)
}

/// Mean of [`pass_at_k`] over tasks, each given as attempts and passes.
///
/// `None` without tasks or if it is `None` for one of them: leaving tasks out would change the question.
pub fn mean_pass_at_k(tasks: &[(usize, usize)], k: usize) -> Option<f64> {
    mean_over(tasks, |attempts, passes| pass_at_k(attempts, passes, k))
}

/// Mean of [`pass_hat_k`] over tasks, each given as attempts and passes; `None` as for [`mean_pass_at_k`].
pub fn mean_pass_hat_k(tasks: &[(usize, usize)], k: usize) -> Option<f64> {
    mean_over(tasks, |attempts, passes| pass_hat_k(attempts, passes, k))
}

fn mean_over(tasks: &[(usize, usize)], figure: impl Fn(usize, usize) -> Option<f64>) -> Option<f64> {
    let sum: Option<f64> = tasks.iter().map(|(attempts, passes)| figure(*attempts, *passes)).sum();
    sum.filter(|_| !tasks.is_empty()).map(|sum| sum / real(tasks.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    use super::super::assert_close;

    /// Shares of all ways to choose k of the attempts in which any and in which all pass.
    fn enumerated(attempts: usize, passes: usize, k: usize) -> (f64, f64) {
        let passed = (1_u32 << passes) - 1;
        let (mut ways, mut any, mut all) = (0, 0, 0);
        for chosen in (0_u32..1 << attempts).filter(|chosen| chosen.count_ones() as usize == k) {
            ways += 1;
            any += usize::from(chosen & passed != 0);
            all += usize::from(chosen & !passed == 0);
        }
        (real(any) / real(ways), real(all) / real(ways))
    }

    #[test]
    fn chances_are_shares_of_all_choices() {
        for attempts in 1..=10 {
            for passes in 0..=attempts {
                for k in 1..=attempts {
                    let (any, all) = enumerated(attempts, passes, k);
                    assert!((pass_at_k(attempts, passes, k).unwrap() - any).abs() < 1e-14);
                    assert!((pass_hat_k(attempts, passes, k).unwrap() - all).abs() < 1e-14);
                }
            }
        }
    }

    #[test]
    fn many_attempts_neither_overflow_nor_lose_digits() {
        // 1 - C(99999, 50000) / C(100000, 50000) = 1/2, and one pass in 10^9 attempts.
        assert_close(pass_at_k(100_000, 1, 50_000).unwrap(), 0.5, 1e-14);
        assert_close(pass_at_k(1_000_000_000, 1, 3).unwrap(), 3e-9, 1e-12);
        assert_close(pass_hat_k(100_000, 99_999, 50_000).unwrap(), 0.5, 1e-14);
        // C(50000, 2) / C(100000, 2) = 50000 * 49999 / (100000 * 99999)
        assert_close(pass_hat_k(100_000, 50_000, 2).unwrap(), 50_000.0 * 49_999.0 / 9_999_900_000.0, 1e-14);
        assert_eq!(pass_at_k(100_000, 50_000, 50_001), Some(1.0));
        assert_eq!(pass_hat_k(usize::MAX, usize::MAX / 2, usize::MAX / 2), Some(0.0));
    }

    #[test]
    fn more_than_was_tried_cannot_be_said() {
        for (attempts, passes, k) in [(3, 1, 4), (3, 1, 0), (3, 4, 1), (0, 0, 1)] {
            assert_eq!(pass_at_k(attempts, passes, k), None);
            assert_eq!(pass_hat_k(attempts, passes, k), None);
        }
    }

    #[test]
    fn means_are_over_all_tasks_or_none() {
        assert_eq!(mean_pass_at_k(&[(2, 1), (2, 0), (4, 4), (2, 2)], 2), Some(0.75));
        assert_eq!(mean_pass_hat_k(&[(2, 1), (2, 0), (4, 4), (2, 2)], 2), Some(0.5));
        assert_eq!(mean_pass_at_k(&[(2, 1), (1, 1)], 2), None);
        assert_eq!(mean_pass_hat_k(&[], 1), None);
    }
}
