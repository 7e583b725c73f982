//! Exact tests of two agents on the same tasks.

use serde::Serialize;

use super::distribution::beta_cdf;
use super::random::Generator;
use super::{parallel, real};

/// Random assignments of signs if there are too many to count all.
pub const DEFAULT_PERMUTATIONS: usize = 100_000;

/// Up to this many differences, all assignments are counted: each half gives a sorted list of a million sums.
const MOST_EXACT: usize = 40;

const CHUNK: usize = 64;

/// Assignments drawn from one generator. Changing it changes the results of a seed.
const BLOCK: usize = 4096;

/// Sums that differ by less than this share of the largest possible one differ only by rounding.
const TIE: f64 = 1e-12;

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PermutationTest {
    /// Two-sided p value, above 0.
    pub p_value: f64,
    pub exact: bool,
    /// Assignments that were counted or drawn.
    pub resamples: u64,
}

pub fn paired_permutation(differences: &[f64], seed: u64) -> Option<PermutationTest> {
    paired_permutation_with(differences, DEFAULT_PERMUTATIONS, seed)
}

/// Tests whether two agents differ, from one difference of means for each task.
///
/// If the agents did not differ, each difference could as well have the other sign. The p value is the share of all
/// assignments of signs whose sum is at least as far from 0 as the observed one. Up to 40 non-zero differences it is
/// exact; beyond, it comes from `resamples` random assignments plus the observed one. Tasks must be independent;
/// repetitions within a task need not be, because they form one difference.
///
/// `None` without differences, with one that is not finite, and if resamples are needed but `resamples` is 0.
pub fn paired_permutation_with(differences: &[f64], resamples: usize, seed: u64) -> Option<PermutationTest> {
    if differences.is_empty() || differences.iter().any(|difference| !difference.is_finite()) {
        return None;
    }
    // Sorted by size and without signs, so that neither order nor naming of the agents matters. Zeros add nothing.
    let mut ordered: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
    ordered.sort_by(|a, b| b.abs().total_cmp(&a.abs()));
    let Some(largest) = ordered.first().map(|difference| difference.abs()) else {
        return Some(PermutationTest { p_value: 1.0, exact: true, resamples: 1 });
    };
    let magnitudes: Vec<f64> = ordered.iter().map(|difference| difference.abs() / largest).collect();
    let sum_where = |is_side: fn(f64) -> bool| -> f64 {
        magnitudes.iter().zip(&ordered).filter(|(_, signed)| is_side(**signed)).map(|(size, _)| size).sum()
    };
    let observed = (sum_where(|signed| signed > 0.0) - sum_where(|signed| signed < 0.0)).abs();
    let threshold = observed - TIE * magnitudes.iter().sum::<f64>();
    if magnitudes.len() <= MOST_EXACT {
        return Some(exact(&magnitudes, threshold));
    }
    if resamples == 0 {
        return None;
    }
    let as_far = drawn_as_far(&magnitudes, threshold, resamples, seed);
    let p_value = (real(as_far) + 1.0) / (real(resamples) + 1.0);
    Some(PermutationTest { p_value, exact: false, resamples: resamples as u64 })
}

/// Counts all assignments by pairing the sums of two halves, both sorted.
fn exact(magnitudes: &[f64], threshold: f64) -> PermutationTest {
    let resamples = 1_u64 << magnitudes.len();
    if threshold <= 0.0 {
        return PermutationTest { p_value: 1.0, exact: true, resamples };
    }
    let (first, second) = magnitudes.split_at(magnitudes.len() / 2);
    let (first, second) = (signed_sums(first), signed_sums(second));
    let mut above = 0;
    let mut place = second.len();
    for sum in &first {
        while place > 0 && sum + second[place - 1] >= threshold {
            place -= 1;
        }
        above += second.len() - place;
    }
    // Just as many are as far below 0.
    let p_value = 2.0 * real(above) / real(first.len() * second.len());
    PermutationTest { p_value: p_value.min(1.0), exact: true, resamples }
}

/// Sums under all assignments of signs, sorted.
fn signed_sums(magnitudes: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for size in magnitudes {
        let mut merged = Vec::with_capacity(2 * sums.len());
        let mut raised = sums.iter().map(|sum| sum + size).peekable();
        for lowered in sums.iter().map(|sum| sum - size) {
            while let Some(sum) = raised.next_if(|sum| *sum < lowered) {
                merged.push(sum);
            }
            merged.push(lowered);
        }
        merged.extend(raised);
        sums = merged;
    }
    sums
}

/// How many random assignments give a sum at least as far from 0 as the threshold.
fn drawn_as_far(magnitudes: &[f64], threshold: f64, resamples: usize, seed: u64) -> usize {
    let counts = parallel::blocks(resamples.div_ceil(BLOCK), BLOCK * magnitudes.len() / 8, |block| {
        let mut generator = Generator::new(seed, block as u64);
        let mut sums = vec![0.0; BLOCK.min(resamples - block * BLOCK)];
        for chunk in magnitudes.chunks(CHUNK) {
            let tables: Vec<[f64; 256]> = chunk.chunks(8).map(sums_by_signs).collect();
            for sum in &mut sums {
                for (table, signs) in tables.iter().zip(generator.word().to_le_bytes()) {
                    *sum += table[usize::from(signs)];
                }
            }
        }
        sums.iter().filter(|sum| sum.abs() >= threshold).count()
    });
    counts.iter().sum()
}

/// The sum of up to eight numbers for each byte of signs.
fn sums_by_signs(magnitudes: &[f64]) -> [f64; 256] {
    let mut table = [0.0; 256];
    for (signs, sum) in table.iter_mut().enumerate() {
        *sum = magnitudes
            .iter()
            .enumerate()
            .map(|(bit, size)| if signs >> bit & 1 == 1 { *size } else { -size })
            .sum();
    }
    table
}

/// Two-sided exact p value of `McNemar`'s test: `first_only` tasks were solved only by the first agent, `second_only`
/// only by the second. Each counts as one trial; with repetitions use [`paired_permutation`].
pub fn mcnemar_exact(first_only: usize, second_only: usize) -> f64 {
    let fewer = real(first_only.min(second_only));
    let more = real(first_only.max(second_only));
    if fewer >= more {
        return 1.0;
    }
    // A binomial tail is an incomplete beta function.
    (2.0 * beta_cdf(more, fewer + 1.0, 0.5, 0.5)).clamp(f64::MIN_POSITIVE, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    use super::super::assert_close;

    #[test]
    fn exact_p_values_are_those_of_scipy() {
        // scipy.stats.permutation_test((x,), mean, permutation_type="samples", n_resamples=inf)
        let mixed = [0.5, -0.25, 1.0, 0.75, 1.0 / 3.0, -0.1, 2.0 / 3.0, 0.2, 0.0, 0.4];
        let test = paired_permutation(&mixed, 1).unwrap();
        assert_eq!((test.p_value, test.exact, test.resamples), (0.027_343_75, true, 512));
        let thirds = [1.0, -1.0, 2.0, 1.0, 1.0, -2.0, 3.0, 1.0].map(|parts| parts / 3.0);
        assert_close(paired_permutation(&thirds, 1).unwrap().p_value, 0.304_687_5, 1e-15);
    }

    #[test]
    fn forty_equal_differences_are_a_sign_test() {
        // 30 of 40 for one agent: the sum is the number of signs, so the exact McNemar test must give the same.
        let differences: Vec<f64> = (0..40).map(|task| if task < 30 { 0.1 } else { -0.1 }).collect();
        let test = paired_permutation(&differences, 1).unwrap();
        assert!(test.exact);
        assert_close(test.p_value, mcnemar_exact(30, 10), 1e-10);
    }

    #[test]
    fn drawn_assignments_agree_with_the_exact_answer() {
        // 41 equal differences are one too many to count; McNemar's test still gives the answer, 0.0115.
        let differences: Vec<f64> = (0..41).map(|task| if task < 29 { 0.5 } else { -0.5 }).collect();
        let test = paired_permutation(&differences, 3).unwrap();
        let expected = mcnemar_exact(29, 12);
        let error = (expected * (1.0 - expected) / real(DEFAULT_PERMUTATIONS)).sqrt();
        assert!((test.p_value - expected).abs() < 4.0 * error, "{test:?} {expected}");
        assert_eq!((test.exact, test.resamples), (false, 100_000));
        assert_eq!(paired_permutation(&differences, 3), Some(test));
        assert_ne!(paired_permutation(&differences, 4), Some(test));
    }

    #[test]
    fn a_seed_means_the_same_everywhere() {
        // Recorded here; if it changes, reports change for the same seed.
        let differences: Vec<f64> = (0..100).map(|task| real(task * task % 17) / 17.0 - 0.4).collect();
        assert_close(paired_permutation_with(&differences, 9999, 5).unwrap().p_value, 0.0242, 1e-15);
    }

    #[test]
    fn p_values_are_never_zero_and_nothing_is_no_evidence() {
        let clear = vec![1.0; 500];
        assert_close(paired_permutation_with(&clear, 999, 1).unwrap().p_value, 0.001, 1e-15);
        let none = paired_permutation(&[0.0, 0.0], 1).unwrap();
        assert_eq!((none.p_value, none.exact), (1.0, true));
        assert_close(paired_permutation(&[0.5], 1).unwrap().p_value, 1.0, 1e-15);
        assert_close(paired_permutation(&[0.5, -0.5], 1).unwrap().p_value, 1.0, 1e-15);
    }

    #[test]
    fn differences_that_cannot_be_are_refused() {
        assert_eq!(paired_permutation(&[], 1), None);
        assert_eq!(paired_permutation(&[0.5, f64::NAN], 1), None);
        assert_eq!(paired_permutation(&[f64::INFINITY], 1), None);
        assert_eq!(paired_permutation_with(&[1.0; 41], 0, 1), None);
        assert_close(
            paired_permutation(&[f64::MAX, f64::MAX, f64::MAX / 2.0], 1).unwrap().p_value,
            0.25,
            1e-15,
        );
    }

    #[test]
    fn mcnemars_test_is_that_of_statsmodels() {
        // statsmodels.stats.contingency_tables.mcnemar(table, exact=True).pvalue
        for (first, second, expected) in [
            (3, 12, 0.035_156_25),
            (5, 5, 1.0),
            (0, 6, 0.031_25),
            (1, 0, 1.0),
            (150, 200, 0.008_720_036_530_555_947),
            (6, 5, 1.0),
            (0, 0, 1.0),
        ] {
            assert_close(mcnemar_exact(first, second), expected, 1e-11);
            assert_close(mcnemar_exact(second, first), expected, 1e-11);
        }
    }
}
