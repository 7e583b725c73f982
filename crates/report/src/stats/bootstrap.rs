//! Bootstrap interval of a mean, drawing whole clusters.

use super::cluster::{Cluster, occupied};
use super::distribution::{normal_cdf, normal_quantile};
use super::interval::{Confidence, Interval};
use super::mean::ROUNDING;
use super::quantile::quantile_of_sorted;
use super::random::Generator;
use super::{parallel, real};

/// With this many resamples, the ends of a 95 % interval are stable to about a hundredth of its width.
pub const DEFAULT_BOOTSTRAP_RESAMPLES: usize = 10_000;

/// Resamples drawn from one generator. Changing it changes the results of a seed.
const BLOCK: usize = 128;

/// Interval of the mean over observations by the bootstrap over clusters, with bias correction and acceleration.
///
/// The order of the clusters does not matter. With a few dozen clusters and a mean near 0 or 1 its coverage is below
/// that of [`clustered_mean_logit`](super::clustered_mean_logit), though above that of the t interval.
///
/// `None` with fewer than two clusters, without resamples, for sums that are not finite, and if all clusters have the
/// same mean, because resampling then shows nothing.
pub fn bootstrap_bca(
    clusters: &[Cluster],
    resamples: usize,
    confidence: Confidence,
    seed: u64,
) -> Option<Interval> {
    // Sorted, so that the given order changes neither the draws nor the rounding of sums.
    let mut clusters = clusters.to_vec();
    clusters.sort_by(|a, b| a.sum.total_cmp(&b.sum).then(a.count.cmp(&b.count)));
    let (clusters, total) = occupied(&clusters)?;
    let bound = u32::try_from(clusters.len()).ok()?;
    if bound < 2 || resamples == 0 {
        return None;
    }
    let mean = total.sum / total.size();
    let rounding = ROUNDING * (total.sum_of_squares / total.size()).sqrt();
    let acceleration = acceleration(&clusters, total, rounding)?;
    let parts: Vec<[f64; 2]> = clusters.iter().map(|cluster| [cluster.size(), cluster.sum]).collect();
    let mut means = parallel::blocks(resamples.div_ceil(BLOCK), BLOCK * parts.len(), |block| {
        let mut generator = Generator::new(seed, block as u64);
        let size = BLOCK.min(resamples - block * BLOCK);
        (0..size).map(|_| resampled_mean(&parts, bound, &mut generator)).collect::<Vec<_>>()
    })
    .concat();
    means.sort_by(f64::total_cmp);

    // A resample that differs from the mean only by rounding counts as half below it.
    let below = means.partition_point(|value| *value < mean - rounding);
    let not_above = means.partition_point(|value| *value <= mean + rounding);
    let half_of_one = 0.5 / real(resamples);
    let share_below = real(below + not_above) / 2.0 / real(resamples);
    let bias = normal_quantile(share_below.clamp(half_of_one, 1.0 - half_of_one));
    let end = |z: f64| {
        let shifted = bias + z;
        let slope = 1.0 - acceleration * shifted;
        // Beyond the pole of the acceleration, the level covers everything that was drawn.
        let level = if slope > 0.0 { normal_cdf(bias + shifted / slope) } else { f64::from(shifted > 0.0) };
        quantile_of_sorted(&means, level)
    };
    let z = normal_quantile(1.0 - confidence.tail());
    Some(Interval { low: end(-z).min(mean), high: end(z).max(mean) })
}

/// Skewness of the jackknife over clusters, relative to its spread; `None` if leaving out a cluster changes nothing.
fn acceleration(clusters: &[Cluster], total: Cluster, rounding: f64) -> Option<f64> {
    let left_out: Vec<f64> =
        clusters.iter().map(|one| (total.sum - one.sum) / real(total.count - one.count)).collect();
    let center = left_out.iter().sum::<f64>() / real(left_out.len());
    let largest = left_out.iter().fold(0.0, |largest: f64, value| largest.max((center - value).abs()));
    if largest * real(clusters.len()) <= rounding {
        return None;
    }
    let (squares, cubes) = left_out
        .iter()
        .map(|value| (center - value) / largest)
        .fold((0.0, 0.0), |(squares, cubes): (f64, f64), value| {
            (squares + value.powi(2), cubes + value.powi(3))
        });
    Some(cubes / (6.0 * squares.powf(1.5)))
}

/// Mean of as many clusters as there are, drawn with replacement. Two sums are computed in parallel, because one
/// addition would have to wait for the other.
fn resampled_mean(parts: &[[f64; 2]], bound: u32, generator: &mut Generator) -> f64 {
    let mut sums = [[0.0; 2]; 2];
    for _ in 0..parts.len() / 2 {
        for (sum, index) in sums.iter_mut().zip(generator.two_below(bound)) {
            sum[0] += parts[index][0];
            sum[1] += parts[index][1];
        }
    }
    if parts.len() % 2 == 1 {
        let [index, _] = generator.two_below(bound);
        sums[0][0] += parts[index][0];
        sums[0][1] += parts[index][1];
    }
    (sums[0][1] + sums[1][1]) / (sums[0][0] + sums[1][0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clusters(parts: &[(usize, f64)]) -> Vec<Cluster> {
        parts.iter().map(|(count, sum)| Cluster { count: *count, sum: *sum, sum_of_squares: *sum }).collect()
    }

    #[test]
    fn single_observations_give_the_interval_of_scipy() {
        // scipy.stats.bootstrap((data,), np.mean, n_resamples=200_000, method="BCa"): 0.5375 to 0.8225 for three
        // seeds. The data are multiples of 0.05 and there are 20, so means are multiples of 0.0025.
        let data = [
            0.9, 0.2, 1.0, 0.4, 0.7, 0.65, 0.0, 0.95, 1.0, 0.85, 0.3, 1.0, 0.9, 0.75, 1.0, 0.1, 0.8, 0.6,
            1.0, 0.95,
        ];
        let clusters: Vec<Cluster> = data.iter().map(|value| [*value].into_iter().collect()).collect();
        for seed in 0..3 {
            let interval = bootstrap_bca(&clusters, 50_000, Confidence::default(), seed).unwrap();
            assert!((interval.low - 0.5375).abs() < 0.0051, "{interval:?}");
            assert!((interval.high - 0.8225).abs() < 0.0051, "{interval:?}");
        }
    }

    #[test]
    fn unequal_clusters_give_the_interval_of_scipy() {
        // scipy.stats.bootstrap((sums, counts), ratio of sums, paired=True, n_resamples=200_000, method="BCa") for
        // three seeds: low 0.32366, 0.32328, 0.32424; high 0.55783, 0.55766, 0.55802.
        let first = [(3, 2.0), (2, 0.75), (4, 0.5), (1, 1.0), (3, 2.75), (2, 1.0)];
        let others = [(3, 1.8), (2, 0.375), (4, 0.5), (1, 0.3), (3, 2.2), (2, 1.0)];
        let clusters = clusters(&[first, others, others, others].concat());
        for seed in 0..3 {
            let interval = bootstrap_bca(&clusters, 50_000, Confidence::default(), seed).unwrap();
            assert!((interval.low - 0.3237).abs() < 0.004, "{interval:?}");
            assert!((interval.high - 0.5578).abs() < 0.004, "{interval:?}");
        }
    }

    #[test]
    fn a_seed_means_the_same_everywhere() {
        // Recorded here; if it changes, reports change for the same seed.
        let clusters = clusters(&[(1, 0.0), (1, 0.5), (1, 1.0), (2, 1.5), (3, 0.75), (1, 1.0), (2, 0.25)]);
        let interval = bootstrap_bca(&clusters, 1000, Confidence::default(), 7).unwrap();
        assert_eq!((interval.low, interval.high), (0.229_166_666_666_666_66, 0.725));
        assert_ne!(bootstrap_bca(&clusters, 1000, Confidence::default(), 8), Some(interval));
        let mut reversed = clusters;
        reversed.reverse();
        assert_eq!(bootstrap_bca(&reversed, 1000, Confidence::default(), 7), Some(interval));
    }

    #[test]
    fn what_does_not_vary_has_no_bootstrap_interval() {
        let same = clusters(&[(1, 0.5), (2, 1.0), (3, 1.5)]);
        assert_eq!(bootstrap_bca(&same, 100, Confidence::default(), 1), None);
        assert_eq!(bootstrap_bca(&clusters(&[(3, 1.0)]), 100, Confidence::default(), 1), None);
        assert_eq!(bootstrap_bca(&clusters(&[(3, 1.0), (1, 1.0)]), 0, Confidence::default(), 1), None);
        assert_eq!(bootstrap_bca(&clusters(&[(3, f64::NAN), (1, 1.0)]), 10, Confidence::default(), 1), None);
    }
}
