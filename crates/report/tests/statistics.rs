//! Properties of the statistics that hold for any input.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

use aec_report::stats::*;
use proptest::prelude::*;

#[expect(clippy::cast_precision_loss, reason = "counts in these tests are small")]
fn real(count: usize) -> f64 {
    count as f64
}

/// Rewards, many of them 0, 1 or one of a few steps between, as in benchmarks.
fn reward() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), (0..=4_u8).prop_map(|parts| f64::from(parts) / 4.0), 0.0..=1.0]
}

fn cluster() -> impl Strategy<Value = Cluster> {
    prop::collection::vec(reward(), 0..5).prop_map(|rewards| rewards.into_iter().collect())
}

fn clusters() -> impl Strategy<Value = Vec<Cluster>> {
    prop::collection::vec(cluster(), 0..12)
}

fn pairs() -> impl Strategy<Value = Vec<(Cluster, Cluster)>> {
    prop::collection::vec((cluster(), cluster()), 0..12)
}

fn differences() -> impl Strategy<Value = Vec<f64>> {
    let difference = prop_oneof![-1.0..=1.0, (-3..=3_i8).prop_map(|thirds| f64::from(thirds) / 3.0)];
    // The first are few enough to be counted and the others so many that they are drawn.
    prop_oneof![prop::collection::vec(difference.clone(), 1..20), prop::collection::vec(difference, 60..80),]
}

fn finite() -> impl Strategy<Value = f64> {
    prop_oneof![prop::num::f64::NORMAL, prop::num::f64::SUBNORMAL, prop::num::f64::ZERO]
}

/// Two levels, the higher one second.
fn levels() -> impl Strategy<Value = (Confidence, Confidence)> {
    (0.5..0.999, 0.5..0.999).prop_map(|(a, b): (f64, f64)| {
        (Confidence::new(a.min(b)).unwrap(), Confidence::new(a.max(b)).unwrap())
    })
}

fn assert_sound(estimate: &Estimate, bounds: Bounds) -> Result<(), TestCaseError> {
    prop_assert!(estimate.mean.is_finite());
    prop_assert!(estimate.standard_error.is_none_or(|error| error.is_finite() && error >= 0.0));
    if let Some(interval) = estimate.interval {
        prop_assert!(interval.contains(estimate.mean), "{estimate:?}");
        prop_assert!(bounds.low <= interval.low && interval.high <= bounds.high, "{estimate:?}");
    }
    prop_assert_eq!(estimate.interval.is_some(), estimate.standard_error.is_some());
    if let Some(p_value) = estimate.p_value(0.0) {
        prop_assert!(p_value > 0.0 && p_value <= 1.0);
    }
    Ok(())
}

fn assert_wider(narrow: Option<Interval>, wide: Option<Interval>) -> Result<(), TestCaseError> {
    prop_assert_eq!(narrow.is_some(), wide.is_some());
    if let (Some(narrow), Some(wide)) = (narrow, wide) {
        prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high, "{narrow:?} {wide:?}");
    }
    Ok(())
}

fn nearly(a: Option<Interval>, b: Option<Interval>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a.low - b.low).abs() < 1e-9 && (a.high - b.high).abs() < 1e-9,
        (None, None) => true,
        _ => false,
    }
}

fn negated(interval: Option<Interval>) -> Option<Interval> {
    interval.map(|interval| Interval { low: -interval.high, high: -interval.low })
}

proptest! {
    #[test]
    fn intervals_of_means_contain_the_mean_and_grow_with_confidence(
        clusters in clusters(),
        (low, high) in levels(),
        seed: u64,
    ) {
        let t = |confidence| clustered_mean(&clusters, Bounds::REWARD, confidence);
        let log_odds = |confidence| clustered_mean_logit(&clusters, confidence);
        for estimate in [t(low), log_odds(low)].into_iter().flatten() {
            assert_sound(&estimate, Bounds::REWARD)?;
        }
        assert_wider(t(low).and_then(|it| it.interval), t(high).and_then(|it| it.interval))?;
        assert_wider(log_odds(low).and_then(|it| it.interval), log_odds(high).and_then(|it| it.interval))?;
        let bca = |confidence| bootstrap_bca(&clusters, 200, confidence, seed);
        if let (Some(interval), Some(estimate)) = (bca(low), t(low)) {
            // Both add the same numbers, in another order.
            prop_assert!(interval.low <= estimate.mean + 1e-12 && estimate.mean - 1e-12 <= interval.high);
            prop_assert!(0.0 <= interval.low && interval.high <= 1.0);
        }
        assert_wider(bca(low), bca(high))?;
    }

    #[test]
    fn the_order_of_clusters_does_not_matter(
        (clusters, shuffled) in clusters().prop_flat_map(|it| (Just(it.clone()), Just(it).prop_shuffle())),
        seed: u64,
    ) {
        let confidence = Confidence::default();
        let interval = |clusters: &[Cluster]| clustered_mean_logit(clusters, confidence).and_then(|it| it.interval);
        prop_assert!(nearly(interval(&clusters), interval(&shuffled)));
        let bca = |clusters: &[Cluster]| bootstrap_bca(clusters, 200, confidence, seed);
        prop_assert!(nearly(bca(&clusters), bca(&shuffled)));
    }

    #[test]
    fn differences_are_sound_and_change_sign_with_the_names(pairs in pairs(), (low, high) in levels()) {
        let swapped: Vec<(Cluster, Cluster)> = pairs.iter().map(|(first, second)| (*second, *first)).collect();
        let (first, second): (Vec<Cluster>, Vec<Cluster>) = pairs.iter().copied().unzip();
        let both = [paired_difference(&pairs, Bounds::REWARD, low), unpaired_difference(&first, &second, Bounds::REWARD, low)];
        let wider = [paired_difference(&pairs, Bounds::REWARD, high), unpaired_difference(&first, &second, Bounds::REWARD, high)];
        let reversed = [paired_difference(&swapped, Bounds::REWARD, low), unpaired_difference(&second, &first, Bounds::REWARD, low)];
        for ((estimate, wider), reversed) in both.into_iter().zip(wider).zip(reversed) {
            if let Some(estimate) = estimate {
                assert_sound(&estimate, Bounds::DIFFERENCE)?;
            }
            assert_wider(estimate.and_then(|it| it.interval), wider.and_then(|it| it.interval))?;
            prop_assert!(nearly(
                estimate.and_then(|it| it.interval),
                negated(reversed.and_then(|it| it.interval)),
            ));
        }
    }

    #[test]
    fn components_are_variances(clusters in clusters(), pairs in pairs()) {
        if let Some(components) = variance_components(&clusters) {
            prop_assert!(components.between >= 0.0 && components.within >= 0.0);
            prop_assert!(components.between <= 1.0 && components.within <= 1.0);
        }
        if let Some(correlation) = task_correlation(&pairs) {
            prop_assert!((-1.0..=1.0).contains(&correlation));
        }
    }

    #[test]
    fn shares_lie_in_their_intervals(trials in 1..5000_usize, part in 0.0..=1.0, (low, high) in levels()) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the trials")]
        let successes = (real(trials) * part) as usize;
        for interval in [wilson, clopper_pearson] {
            let narrow = interval(successes, trials, low);
            prop_assert!(narrow.unwrap().contains(real(successes) / real(trials)));
            assert_wider(narrow, interval(successes, trials, high))?;
        }
    }

    #[test]
    fn any_of_k_is_at_least_all_of_k(
        (attempts, passes, k) in (1..60_usize).prop_flat_map(|all| (Just(all), 0..=all, 1..=all)),
    ) {
        let (any, all) = (pass_at_k(attempts, passes, k).unwrap(), pass_hat_k(attempts, passes, k).unwrap());
        let share = real(passes) / real(attempts);
        prop_assert!(0.0 <= all && all <= share + 1e-12 && share <= any + 1e-12 && any <= 1.0);
        // All pass unless any of the others does.
        prop_assert!((pass_at_k(attempts, attempts - passes, k).unwrap() + all - 1.0).abs() < 1e-12);
    }

    #[test]
    fn permutation_tests_know_neither_order_nor_names(
        (differences, shuffled) in differences().prop_flat_map(|it| (Just(it.clone()), Just(it).prop_shuffle())),
        seed: u64,
    ) {
        let test = |differences: &[f64]| paired_permutation_with(differences, 99, seed).unwrap();
        let found = test(&differences);
        prop_assert!(found.p_value > 0.0 && found.p_value <= 1.0);
        prop_assert_eq!(found.exact, differences.len() < 20);
        prop_assert_eq!(found, test(&shuffled));
        let opposite: Vec<f64> = differences.iter().map(|difference| -difference).collect();
        prop_assert_eq!(found, test(&opposite));
    }

    #[test]
    fn adjusted_p_values_are_no_smaller_and_keep_the_order(p_values in prop::collection::vec(0.0..=1.0, 0..30)) {
        let (holm, hochberg) = (holm(&p_values).unwrap(), benjamini_hochberg(&p_values).unwrap());
        for (index, p_value) in p_values.iter().enumerate() {
            prop_assert!(*p_value <= hochberg[index] && hochberg[index] <= 1.0);
            prop_assert!(hochberg[index] <= holm[index] + 1e-15 && holm[index] <= 1.0);
            for (other, other_p) in p_values.iter().enumerate() {
                prop_assert!(p_value > other_p || (holm[index] <= holm[other] && hochberg[index] <= hochberg[other]));
            }
        }
    }

    #[test]
    fn mcnemars_p_values_are_probabilities(first in 0..100_000_usize, second in 0..100_000_usize) {
        let p_value = mcnemar_exact(first, second);
        prop_assert!(p_value > 0.0 && p_value <= 1.0);
    }

    #[test]
    fn power_grows_with_the_effect(
        effect in 0.001..2.0,
        more in 0.0..1.0,
        degrees in prop::option::of(4.0..1e6),
        alpha in 0.001..0.2,
    ) {
        let power = |effect: f64| power(effect, 0.3, degrees, alpha).unwrap();
        prop_assert!(power(effect) >= alpha - 1e-9 && power(effect) <= 1.0 + 1e-9);
        prop_assert!(power(effect + more) >= power(effect) - 1e-9);
    }

    #[test]
    fn kappa_is_at_most_one(pairs in prop::collection::vec((0..4_u8, 0..4_u8), 0..40)) {
        if let Some(found) = cohens_kappa(&pairs, Confidence::default()) {
            prop_assert!(found.kappa <= 1.0 + 1e-12 && found.kappa >= -1.0 - 1e-12);
            prop_assert!(found.standard_error.is_finite());
            prop_assert!(found.interval.is_none_or(|interval| interval.contains(found.kappa)));
        }
    }

    #[test]
    fn quantiles_lie_between_values_and_never_fall(
        values in prop::collection::vec(finite(), 1..20),
        a in 0.0..=1.0,
        b in 0.0..=1.0,
    ) {
        let (a, b): (f64, f64) = (a, b);
        let (low, high) = (quantile(&values, a.min(b)).unwrap(), quantile(&values, a.max(b)).unwrap());
        prop_assert!(quantile(&values, 0.0).unwrap() <= low && high <= quantile(&values, 1.0).unwrap());
        prop_assert!(low <= high);
    }

    #[test]
    fn finite_numbers_never_give_what_is_not_a_number(
        values in prop::collection::vec(finite(), 1..8),
        others in prop::collection::vec(finite(), 1..8),
        extreme in finite(),
    ) {
        let confidence = Confidence::default();
        let single = |values: &[f64]| -> Vec<Cluster> {
            values.iter().map(|value| [*value].into_iter().collect()).collect()
        };
        let pairs: Vec<(Cluster, Cluster)> = single(&values).into_iter().zip(single(&others)).collect();
        let estimates = [
            clustered_mean(&single(&values), Bounds::NONE, confidence),
            clustered_mean(&single(&values), Bounds::REWARD, confidence),
            clustered_mean_logit(&single(&values), confidence),
            paired_difference(&pairs, Bounds::REWARD, confidence),
            unpaired_difference(&single(&values), &single(&others), Bounds::REWARD, confidence),
        ];
        for estimate in estimates.into_iter().flatten() {
            prop_assert!(!estimate.mean.is_nan());
            prop_assert!(!estimate.standard_error.is_some_and(f64::is_nan));
            prop_assert!(!estimate.degrees_of_freedom.is_some_and(f64::is_nan), "{:?}", estimate);
            prop_assert!(estimate.interval.is_none_or(|interval| interval.contains(estimate.mean)), "{:?}", estimate);
            prop_assert!(!estimate.p_value(extreme).is_some_and(f64::is_nan));
        }
        let interval = bootstrap_bca(&single(&values), 50, confidence, 1);
        prop_assert!(interval.is_none_or(|interval| interval.low <= interval.high));
        prop_assert!(paired_permutation(&values, 1).is_some_and(|test| test.p_value > 0.0 && test.p_value <= 1.0));
        prop_assert!(effect_size(&values).is_none_or(|size| !size.cohens_dz.is_nan()));
        prop_assert!(variance_components(&single(&values)).is_none());
        prop_assert!(rescale(values[0], extreme).is_none_or(f64::is_finite));
        prop_assert!(!power(values[0], extreme.abs(), Some(5.0), 0.05).is_some_and(f64::is_nan));
        prop_assert!(!minimal_detectable_effect(extreme.abs(), Some(5.0), Goal::default()).is_some_and(f64::is_nan));
    }
}
