//! Statistics of rewards: pure functions from numbers to numbers.
//!
//! Repetitions of one task are alike, so tasks are the clusters, and every measure of certainty counts tasks, not
//! trials. Random draws take a seed and give the same answer for any number of cores. `None` means that the input is
//! insufficient (too few clusters, a number that is not finite), never a failure.

mod adjust;
mod agreement;
mod bootstrap;
mod cluster;
mod difference;
mod distribution;
mod fisher;
mod interval;
mod mean;
mod parallel;
mod pass;
mod permutation;
mod power;
mod proportion;
mod quantile;
mod random;
mod scale;
mod sequential;
#[cfg(test)]
mod simulations;

pub use adjust::{benjamini_hochberg, holm};
pub use agreement::{Kappa, cohens_kappa};
pub use bootstrap::{DEFAULT_BOOTSTRAP_RESAMPLES, bootstrap_bca};
pub use cluster::{Cluster, VarianceComponents, task_correlation, variance_components};
pub use difference::{EffectSize, effect_size, paired_difference, unpaired_difference};
pub use fisher::fisher_exact;
pub use interval::{Bounds, Confidence, Interval};
pub use mean::{Estimate, clustered_mean, clustered_mean_logit};
pub use pass::{mean_pass_at_k, mean_pass_hat_k, pass_at_k, pass_hat_k};
pub use permutation::{
    DEFAULT_PERMUTATIONS, PermutationTest, mcnemar_exact, paired_permutation, paired_permutation_with,
};
pub use power::{Design, Goal, minimal_detectable_effect, power, repetitions_needed, tasks_needed};
pub use proportion::{clopper_pearson, wilson};
pub use quantile::{median, quantile};
pub use scale::rescale;
pub use sequential::{Wager, confidence_sequence, evidence_above, fewest_observations};

#[expect(clippy::cast_precision_loss, reason = "counts of trials are far below 2^53")]
fn real(count: usize) -> f64 {
    count as f64
}

/// Figures in tests are from `SciPy` 1.17.1 and statsmodels 0.15.0, by the call named beside them.
#[cfg(test)]
#[track_caller]
fn assert_close(actual: f64, expected: f64, relative: f64) {
    let off = (actual - expected).abs();
    assert!(off <= relative * expected.abs().max(1e-300), "{actual} instead of {expected}");
}
