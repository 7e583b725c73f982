//! How long the statistics of a large experiment take: `cargo bench --bench statistics`.

#![expect(clippy::print_stdout, reason = "times are what it is for")]

use std::hint::black_box;
use std::time::Instant;

use aec_report::stats::{
    Cluster, Confidence, DEFAULT_BOOTSTRAP_RESAMPLES, Goal, bootstrap_bca, clopper_pearson,
    clustered_mean_logit, minimal_detectable_effect, paired_permutation,
};

fn time<R>(what: &str, work: impl Fn() -> R) {
    let mut times: Vec<_> = (0..5)
        .map(|_| {
            let start = Instant::now();
            black_box(work());
            start.elapsed()
        })
        .collect();
    times.sort();
    println!("{what}: {:?} (fastest {:?})", times[2], times[0]);
}

fn main() {
    let confidence = Confidence::default();
    let rewards = |tasks: u32| (0..tasks).map(|task| f64::from(task * task % 5) / 4.0);
    let clusters: Vec<Cluster> = rewards(10_000).map(|reward| std::iter::once(reward).collect()).collect();
    let differences: Vec<f64> = rewards(10_000).map(|reward| reward - 0.49).collect();

    time("bootstrap, 10,000 resamples of 10,000 clusters", || {
        bootstrap_bca(&clusters, DEFAULT_BOOTSTRAP_RESAMPLES, confidence, 1)
    });
    time("permutation, 100,000 assignments to 10,000 tasks", || paired_permutation(&differences, 1));
    time("permutation, 40 tasks, exact", || paired_permutation(&differences[..40], 1));
    time("mean of 10,000 clusters", || clustered_mean_logit(&clusters, confidence));
    time("Clopper-Pearson, 100,000 trials", || clopper_pearson(49_000, 100_000, confidence));
    time("detectable effect, 39 degrees of freedom", || {
        minimal_detectable_effect(0.1, Some(39.0), Goal::default())
    });
}
