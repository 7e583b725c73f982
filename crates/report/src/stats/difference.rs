//! Differences of two means, on the same tasks or on different ones.

use serde::Serialize;
use statrs::function::gamma::ln_gamma;

use super::cluster::{Cluster, occupied};
use super::interval::{Bounds, Confidence, Interval};
use super::mean::{Estimate, ROUNDING, clustered_mean, without_variance};
use super::real;

/// Mean of the first minus mean of the second over the tasks that both did, with the t interval over tasks.
///
/// Both are means over observations, so the difference is that of the values of [`clustered_mean`]. `bounds` are those
/// of the values. With equal numbers of repetitions it is the paired t interval over differences of tasks. Tasks
/// without observations on one side are left out, and `observations` counts both sides.
///
/// `None` without a common task and for sums that are not finite.
pub fn paired_difference(
    pairs: &[(Cluster, Cluster)],
    bounds: Bounds,
    confidence: Confidence,
) -> Option<Estimate> {
    let (first, second): (Vec<Cluster>, Vec<Cluster>) =
        pairs.iter().filter(|(first, second)| first.count > 0 && second.count > 0).copied().unzip();
    let (first, first_total) = occupied(&first)?;
    let (second, second_total) = occupied(&second)?;
    let (first_size, second_size) = (first_total.size(), second_total.size());
    let (first_mean, second_mean) = (first_total.sum / first_size, second_total.sum / second_size);
    let groups = first.len();
    let mut estimate = Estimate {
        mean: first_mean - second_mean,
        standard_error: None,
        degrees_of_freedom: None,
        interval: None,
        clusters: groups,
        observations: first_total.count + second_total.count,
    };
    if groups < 2 {
        return Some(estimate);
    }
    let squares: f64 = first
        .iter()
        .zip(&second)
        .map(|(a, b)| a.residual(first_mean) / first_size - b.residual(second_mean) / second_size)
        .map(|residual| residual * residual)
        .sum();
    let error = (real(groups) / real(groups - 1) * squares).sqrt();
    let typical =
        (first_total.sum_of_squares / first_size + second_total.sum_of_squares / second_size).sqrt();
    if error <= ROUNDING * typical {
        estimate.standard_error = Some(0.0);
        return Some(without_variance(estimate, bounds.of_differences(), confidence));
    }
    estimate.standard_error = Some(error);
    Some(estimate.with_student(real(groups - 1), bounds.of_differences(), confidence))
}

/// Mean of the first minus mean of the second if tasks cannot be paired: independent clustered means with
/// Satterthwaite's degrees of freedom. With one observation in each cluster it is Welch's interval.
///
/// If one side has no variance, the distances from both means to the ends of their own intervals are combined instead,
/// so that the side without variance does not count as exactly known.
///
/// `None` without observations on one side and for sums that are not finite.
pub fn unpaired_difference(
    first: &[Cluster],
    second: &[Cluster],
    bounds: Bounds,
    confidence: Confidence,
) -> Option<Estimate> {
    let first = clustered_mean(first, bounds, confidence)?;
    let second = clustered_mean(second, bounds, confidence)?;
    let mut estimate = Estimate {
        mean: first.mean - second.mean,
        standard_error: None,
        degrees_of_freedom: None,
        interval: None,
        clusters: first.clusters + second.clusters,
        observations: first.observations + second.observations,
    };
    let (Some(first_error), Some(second_error)) = (first.standard_error, second.standard_error) else {
        return Some(estimate);
    };
    let error = first_error.hypot(second_error);
    estimate.standard_error = Some(error);
    // As shares, so that fourth powers do not underflow.
    let share = |error_of: f64, clusters: usize| (error_of / error).powi(4) / real(clusters - 1);
    let degrees = 1.0 / (share(first_error, first.clusters) + share(second_error, second.clusters));
    if first_error > 0.0 && second_error > 0.0 {
        return Some(estimate.with_student(degrees, bounds.of_differences(), confidence));
    }
    estimate.degrees_of_freedom = (error > 0.0).then_some(degrees);
    if let (Some(a), Some(b)) = (first.interval, second.interval) {
        let below = (first.mean - a.low).hypot(b.high - second.mean);
        let above = (a.high - first.mean).hypot(second.mean - b.low);
        let around = Interval { low: estimate.mean - below, high: estimate.mean + above };
        estimate.interval = Some(around.within(bounds.of_differences(), estimate.mean));
    }
    Some(estimate)
}

/// The size of a difference, relative to its own standard deviation over tasks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EffectSize {
    /// Cohen's d of pairs: mean difference divided by the standard deviation of differences.
    pub cohens_dz: f64,
    /// With Hedges' correction for few pairs; absent for two pairs, where it is not defined.
    pub hedges_gz: Option<f64>,
}

/// Effect size of differences of tasks; `None` if they do not vary, are fewer than two, or one is not finite.
pub fn effect_size(differences: &[f64]) -> Option<EffectSize> {
    // Neither value has a unit, so the numbers are scaled to avoid an overflow of sums.
    let largest = differences.iter().fold(0.0, |largest: f64, difference| largest.max(difference.abs()));
    if differences.len() < 2 || differences.iter().any(|difference| !difference.is_finite()) || largest <= 0.0
    {
        return None;
    }
    let count = real(differences.len());
    let degrees = count - 1.0;
    let mean = differences.iter().map(|difference| difference / largest).sum::<f64>() / count;
    let squares: f64 = differences.iter().map(|difference| (difference / largest - mean).powi(2)).sum();
    let deviation = (squares / degrees).sqrt();
    if deviation <= ROUNDING {
        return None;
    }
    let cohens_dz = mean / deviation;
    let correction =
        || (ln_gamma(degrees / 2.0) - ln_gamma((degrees - 1.0) / 2.0)).exp() / (degrees / 2.0).sqrt();
    Some(EffectSize { cohens_dz, hedges_gz: (degrees > 1.0).then(|| cohens_dz * correction()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    use super::super::assert_close;

    fn clusters(rewards: &[&[f64]]) -> Vec<Cluster> {
        rewards.iter().map(|rewards| rewards.iter().copied().collect()).collect()
    }

    fn pairs(first: &[&[f64]], second: &[&[f64]]) -> Vec<(Cluster, Cluster)> {
        clusters(first).into_iter().zip(clusters(second)).collect()
    }

    #[test]
    fn equal_repetitions_give_the_paired_t_interval() {
        // scipy.stats.ttest_rel on means of tasks, with .confidence_interval(0.95)
        let pairs = pairs(
            &[&[1.0, 0.0, 1.0], &[0.5, 0.25, 0.75], &[0.0, 0.0, 0.5], &[1.0, 1.0, 1.0], &[0.0, 1.0, 0.25]],
            &[&[0.0, 0.0, 1.0], &[0.5, 0.5, 0.5], &[0.0, 0.25, 0.0], &[1.0, 0.5, 1.0], &[0.0, 0.5, 0.25]],
        );
        let estimate = paired_difference(&pairs, Bounds::REWARD, Confidence::default()).unwrap();
        assert_close(estimate.mean, 0.15, 1e-14);
        assert_close(estimate.interval.unwrap().low, -0.003_473_777_749_331_802_3, 1e-7);
        assert_close(estimate.interval.unwrap().high, 0.303_473_777_749_331_8, 1e-9);
        assert_close(estimate.p_value(0.0).unwrap(), 0.053_338_261_045_689_04, 1e-9);
        assert_eq!((estimate.clusters, estimate.observations), (5, 30));
    }

    #[test]
    fn unequal_repetitions_give_the_stacked_cluster_robust_regression() {
        // statsmodels OLS of reward on agent, fit(cov_type="cluster", use_correction=False), times sqrt(6 / 5)
        let first: [&[f64]; 6] =
            [&[1.0, 0.0, 1.0], &[0.5, 0.25], &[0.0, 0.0, 0.0, 0.5], &[1.0], &[0.75, 1.0, 1.0], &[0.0, 1.0]];
        let second: [&[f64]; 6] =
            [&[0.0, 0.0, 1.0], &[0.5], &[0.0, 0.5, 0.5], &[0.0, 1.0], &[0.75, 0.5, 1.0], &[0.0, 0.0]];
        let mut pairs = pairs(&first, &second);
        // A task that only one of them did is left out.
        pairs.push(([1.0].into_iter().collect(), Cluster::default()));
        let estimate = paired_difference(&pairs, Bounds::REWARD, Confidence::default()).unwrap();
        assert_close(estimate.mean, 0.122_619_047_619_047_46, 1e-12);
        assert_close(estimate.standard_error.unwrap(), 0.131_636_334_447_867_82, 1e-12);
        assert_close(estimate.interval.unwrap().low, -0.215_762_922_622_388_55, 1e-9);
        assert_close(estimate.interval.unwrap().high, 0.461_001_017_860_483_5, 1e-9);
    }

    #[test]
    fn agents_that_never_differ_are_not_proven_equal() {
        let same: Vec<(Cluster, Cluster)> =
            vec![([0.1, 0.7].into_iter().collect(), [0.7, 0.1].into_iter().collect()); 40];
        let estimate = paired_difference(&same, Bounds::REWARD, Confidence::default()).unwrap();
        assert_eq!((estimate.mean, estimate.standard_error), (0.0, Some(0.0)));
        // 1 - 0.025 ** (1 / 40)
        assert_close(estimate.interval.unwrap().high, 0.088_097_302_878_802_35, 1e-12);
        assert_close(estimate.interval.unwrap().low, -0.088_097_302_878_802_35, 1e-12);
        assert_eq!(
            paired_difference(&same[..1], Bounds::REWARD, Confidence::default()).unwrap().interval,
            None
        );
        assert_eq!(paired_difference(&[], Bounds::REWARD, Confidence::default()), None);
    }

    #[test]
    fn one_observation_in_each_cluster_is_welchs_test() {
        // scipy.stats.ttest_ind(a, b, equal_var=False) with .confidence_interval(0.95)
        let single = |values: &[f64]| -> Vec<Cluster> {
            values.iter().map(|value| [*value].into_iter().collect()).collect()
        };
        let first = single(&[1.0, 0.5, 0.75, 0.0, 0.25, 1.0, 1.0, 0.8]);
        let second = single(&[0.2, 0.0, 0.5, 0.1, 0.6]);
        let estimate = unpaired_difference(&first, &second, Bounds::REWARD, Confidence::default()).unwrap();
        assert_close(estimate.mean, 0.3825, 1e-12);
        assert_close(estimate.standard_error.unwrap(), 0.176_986_177_829_956_96, 1e-12);
        assert_close(estimate.degrees_of_freedom.unwrap(), 10.807_802_875_967_363, 1e-12);
        assert_close(estimate.p_value(0.0).unwrap(), 0.054_019_960_111_967_434, 1e-9);
        assert_close(estimate.interval.unwrap().low, -0.007_890_797_797_729_387, 1e-7);
        assert_close(estimate.interval.unwrap().high, 0.772_890_797_797_729_4, 1e-9);
    }

    #[test]
    fn a_side_without_variance_is_not_taken_for_certain() {
        let always: Vec<Cluster> = vec![[1.0].into_iter().collect(); 10];
        let never: Vec<Cluster> = vec![[0.0].into_iter().collect(); 10];
        // Both ends are hypot(0.3085, 0.3085) at most, with 0.3085 from Clopper and Pearson for 0 of 10.
        let apart = unpaired_difference(&always, &never, Bounds::REWARD, Confidence::default()).unwrap();
        assert_close(apart.interval.unwrap().low, 1.0 - 0.308_497_107_818_760_83 * 2.0_f64.sqrt(), 1e-9);
        assert_eq!(apart.interval.map(|interval| interval.high), Some(1.0));
        assert_eq!(apart.p_value(0.0), None);
        let one = unpaired_difference(&always[..1], &never, Bounds::REWARD, Confidence::default()).unwrap();
        assert_eq!((one.mean, one.interval), (1.0, None));
        assert_eq!(unpaired_difference(&[], &never, Bounds::REWARD, Confidence::default()), None);
    }

    #[test]
    fn effect_sizes_are_those_of_the_formulas() {
        // NumPy: d.mean() / d.std(ddof=1); scipy.special.gammaln for the correction.
        let differences = [0.5, -0.25, 1.0, 0.75, 1.0 / 3.0, -0.1, 2.0 / 3.0, 0.2, 0.0, 0.4];
        let size = effect_size(&differences).unwrap();
        assert_close(size.cohens_dz, 0.882_522_608_121_828, 1e-12);
        assert_close(size.hedges_gz.unwrap(), 0.806_515_253_001_816_8, 1e-10);
        assert_eq!(effect_size(&[0.1, 0.1, 0.1]), None);
        assert_eq!(effect_size(&[0.0, 0.0]), None);
        assert_eq!(effect_size(&[0.3]), None);
        assert_eq!(effect_size(&[0.3, f64::NAN]), None);
        assert_eq!(effect_size(&[0.0, 1.0]).unwrap().hedges_gz, None);
        assert_close(effect_size(&[1e308, -1e308, 1e308]).unwrap().cohens_dz, 1.0 / 12.0_f64.sqrt(), 1e-12);
    }
}
