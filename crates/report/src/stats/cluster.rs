//! The sums of the trials of one task, and the share of the variance between tasks.

use serde::Serialize;

use super::real;

/// The sums of the trials of one task. Means and their errors need no more, so a hundred thousand trials cost little.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cluster {
    pub count: usize,
    pub sum: f64,
    pub sum_of_squares: f64,
}

impl Cluster {
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.sum_of_squares += value * value;
    }

    pub fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
    }

    /// `None` without observations.
    pub fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.size())
    }

    pub(super) fn size(self) -> f64 {
        real(self.count)
    }

    /// The sum minus what it would be if every observation were `mean`.
    pub(super) fn residual(self, mean: f64) -> f64 {
        self.sum - mean * self.size()
    }

    fn is_finite(self) -> bool {
        self.sum.is_finite() && self.sum_of_squares.is_finite()
    }
}

impl FromIterator<f64> for Cluster {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut cluster = Self::default();
        for value in values {
            cluster.add(value);
        }
        cluster
    }
}

/// The clusters with observations and their total; `None` if there is none or if a sum is not finite.
pub(super) fn occupied(clusters: &[Cluster]) -> Option<(Vec<Cluster>, Cluster)> {
    let occupied: Vec<Cluster> = clusters.iter().copied().filter(|cluster| cluster.count > 0).collect();
    let mut total = Cluster::default();
    for cluster in &occupied {
        total.merge(*cluster);
    }
    (total.count > 0 && total.is_finite()).then_some((occupied, total))
}

/// Variances of a one-way layout with random effects.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct VarianceComponents {
    /// Variance of the true means of clusters: how much tasks differ in difficulty.
    pub between: f64,
    /// Variance of observations within a cluster: how much repetitions differ.
    pub within: f64,
}

/// Analysis of variance for clusters of any sizes. The part between clusters is at least 0.
///
/// `None` with fewer than two clusters or without a repetition in any of them.
pub fn variance_components(clusters: &[Cluster]) -> Option<VarianceComponents> {
    let (clusters, total) = occupied(clusters)?;
    let groups = clusters.len();
    if groups < 2 || total.count == groups {
        return None;
    }
    let mean = total.sum / total.size();
    let mut between_squares = 0.0;
    let mut within_squares = 0.0;
    let mut squared_sizes = 0.0;
    for cluster in &clusters {
        let size = cluster.size();
        between_squares += cluster.residual(mean).powi(2) / size;
        within_squares += (cluster.sum_of_squares - cluster.sum * cluster.sum / size).max(0.0);
        squared_sizes += size * size;
    }
    let within = within_squares / real(total.count - groups);
    let degrees = real(groups - 1);
    let typical_size = (total.size() - squared_sizes / total.size()) / degrees;
    let between = ((between_squares / degrees - within) / typical_size).max(0.0);
    (between.is_finite() && within.is_finite()).then_some(VarianceComponents { between, within })
}

/// How similarly two agents find tasks difficult: the correlation of the true means of tasks.
///
/// The noise of repetitions is removed, so few repetitions do not pull the value towards 0. `None` if the tasks of
/// either agent cannot be distinguished from noise, or with fewer than two tasks that both did.
pub fn task_correlation(pairs: &[(Cluster, Cluster)]) -> Option<f64> {
    let (first, second): (Vec<Cluster>, Vec<Cluster>) =
        pairs.iter().filter(|(first, second)| first.count > 0 && second.count > 0).copied().unzip();
    let spread = (variance_components(&first)?.between * variance_components(&second)?.between).sqrt();
    if spread <= 0.0 {
        return None;
    }
    let means: Vec<(f64, f64)> =
        first.iter().zip(&second).filter_map(|(a, b)| Some((a.mean()?, b.mean()?))).collect();
    let count = real(means.len());
    let center = means.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0 / count, sum.1 + pair.1 / count));
    let products: f64 = means.iter().map(|(a, b)| (a - center.0) * (b - center.1)).sum();
    let correlation = products / (count - 1.0) / spread;
    correlation.is_finite().then(|| correlation.clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    use super::super::assert_close;

    fn clusters(rewards: &[&[f64]]) -> Vec<Cluster> {
        rewards.iter().map(|rewards| rewards.iter().copied().collect()).collect()
    }

    #[test]
    fn merging_is_adding_one_by_one() {
        let mut merged: Cluster = [0.25, 1.0].into_iter().collect();
        merged.merge([0.5].into_iter().collect());
        assert_eq!(merged, Cluster { count: 3, sum: 1.75, sum_of_squares: 1.3125 });
        assert_eq!(merged.mean(), Some(1.75 / 3.0));
        assert_eq!(Cluster::default().mean(), None);
    }

    #[test]
    fn components_of_unequal_clusters_are_those_of_the_analysis_of_variance() {
        // Mean squares of statsmodels anova_lm(ols("y ~ C(g)")), put into the textbook formula.
        let clusters = clusters(&[
            &[1.0, 0.0, 1.0],
            &[0.5, 0.25],
            &[0.0, 0.0, 0.0, 0.5],
            &[1.0],
            &[0.75, 1.0, 1.0],
            &[0.0, 1.0],
        ]);
        let components = variance_components(&clusters).unwrap();
        assert_close(components.between, 0.052_617_521_367_521_29, 1e-12);
        assert_close(components.within, 0.158_564_814_814_814_83, 1e-12);
    }

    #[test]
    fn a_negative_component_is_zero() {
        let components = variance_components(&clusters(&[&[0.0, 1.0], &[1.0, 0.0]])).unwrap();
        assert_eq!(components, VarianceComponents { between: 0.0, within: 0.5 });
    }

    #[test]
    fn components_need_two_clusters_and_a_repetition() {
        assert_eq!(variance_components(&[]), None);
        assert_eq!(variance_components(&clusters(&[&[0.0, 1.0], &[]])), None);
        assert_eq!(variance_components(&clusters(&[&[0.0], &[1.0]])), None);
        assert_eq!(variance_components(&clusters(&[&[0.0, f64::NAN], &[1.0]])), None);
    }

    #[test]
    fn agents_who_find_the_same_tasks_hard_are_correlated() {
        let first = clusters(&[&[1.0, 1.0], &[0.0, 0.0], &[0.5, 0.5]]);
        let reversed = clusters(&[&[0.0, 0.0], &[1.0, 1.0], &[0.5, 0.5]]);
        let pair = |second: &[Cluster]| -> Vec<(Cluster, Cluster)> {
            first.iter().copied().zip(second.iter().copied()).collect()
        };
        assert_close(task_correlation(&pair(&first)).unwrap(), 1.0, 1e-12);
        assert_close(task_correlation(&pair(&reversed)).unwrap(), -1.0, 1e-12);
        let flat = clusters(&[&[1.0, 0.0], &[0.0, 1.0], &[1.0, 0.0]]);
        assert_eq!(task_correlation(&pair(&flat)), None);
        assert_eq!(task_correlation(&[]), None);
    }
}
