//! Aggregates do not depend on the order of rows, and equal those of numpy and verifiers.

use std::collections::BTreeMap;

use aec_eval::results::aggregate::Aggregate;
use aec_eval::results::facts::RowFacts;
use aec_eval::results::metadata::Metadata;
use aec_eval::results::moments::{ExactSum, Moments};
use aec_eval::results::passes::{pass_all, pass_at, sizes};
use aec_eval::results::scan::scan;
use aec_eval::results::summary::Summary;
use proptest::prelude::*;

use super::support::{errored, fixture, fixtures, row};

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * b.abs().max(1.0)
}

fn moments(numbers: &[f64]) -> Moments {
    let mut moments = Moments::default();
    for number in numbers {
        moments.add(*number);
    }
    moments
}

#[test]
fn statistics_are_those_of_numpy() {
    // numpy: std([2, 4, 4, 4, 5, 5, 7, 9]) = sqrt(((-3)²+3·(-1)²+0+0+2²+4²)/8) = sqrt(32/8) = 2
    let some = moments(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
    assert_eq!((some.mean(), some.deviation(), some.count()), (Some(5.0), Some(2.0), 8));
    // ddof 1: sqrt(32/7); its standard error: sqrt(32/7/8) = sqrt(4/7)
    assert!(near(some.sample_deviation().unwrap(), (32.0_f64 / 7.0).sqrt()));
    assert!(near(some.standard_error().unwrap(), (4.0_f64 / 7.0).sqrt()));
    // The textbook formula with rounded sums gives 0 or NaN here: 1e9 + {4, 7, 13, 16}, variance (36+9+9+36)/4 = 22.5
    let far = moments(&[1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0]);
    assert_eq!(far.deviation(), Some(22.5_f64.sqrt()));
    let none = Moments::default();
    assert_eq!((none.mean(), none.deviation(), none.standard_error()), (None, None, None));
    assert_eq!(moments(&[3.0]).standard_error(), None);
}

#[test]
fn equal_numbers_have_no_deviation() {
    for number in [0.1, 1.0 / 3.0, 1e140, -1e-120, 123_456.789] {
        for count in [1, 2, 3, 7, 1000] {
            let equal = moments(&vec![number; count]);
            assert_eq!(
                (equal.mean(), equal.deviation()),
                (Some(number), Some(0.0)),
                "{count} times {number}"
            );
        }
    }
}

#[test]
fn sums_are_exact() {
    let sum = |numbers: &[f64]| {
        let mut sum = ExactSum::default();
        for number in numbers {
            sum.add(*number);
        }
        sum.value()
    };
    assert_eq!(sum(&[0.1; 10]), 1.0);
    assert_eq!(sum(&[1e100, 1.0, -1e100]), 1.0);
    // Halfway between two numbers, the last bit decides: Python's `math.fsum` gives the same.
    assert_eq!(sum(&[1.0, 2.0_f64.powi(-53)]), 1.0);
    assert_eq!(sum(&[1.0, 2.0_f64.powi(-53), 2.0_f64.powi(-106)]), 1.0 + f64::EPSILON);
    assert_eq!(sum(&[]), 0.0);
}

fn summary_of(rows: &[RowFacts], rollouts: u32) -> Summary {
    let mut aggregate = Aggregate::new(rollouts, 0.5);
    for row in rows {
        aggregate.add(row);
    }
    aggregate.summary()
}

#[test]
fn samples_have_the_aggregates_that_verifiers_wrote() {
    for directory in fixtures() {
        let metadata = Metadata::read(&directory.join("metadata.json")).unwrap();
        let aggregate = Aggregate::new(metadata.rollouts_of_example(), 0.5);
        let scanned = scan(&directory.join("results.jsonl"), aggregate, |_, _| {}).unwrap();
        let summary = scanned.aggregate.summary();
        let name = directory.display();
        assert!(near(summary.reward.unwrap().mean, metadata.avg_reward.unwrap()), "{name}");
        assert!(near(summary.error_share(), metadata.avg_error.unwrap()), "{name}");
        let means: Vec<_> = summary.metrics.iter().map(|(name, statistic)| (name, statistic.mean)).collect();
        assert!(means.iter().map(|(name, _)| *name).eq(metadata.avg_metrics.keys()), "{name}");
        assert!(means.iter().all(|(key, mean)| near(*mean, metadata.avg_metrics[*key])), "{name}");
        for (ours, theirs) in
            [(&summary.pass_at_k, &metadata.pass_at_k), (&summary.pass_all_k, &metadata.pass_all_k)]
        {
            assert!(ours.keys().eq(theirs.keys()), "{name}: {ours:?} {theirs:?}");
            assert!(ours.iter().all(|(k, value)| near(*value, theirs[k])), "{name}: {ours:?} {theirs:?}");
        }
        assert_eq!(summary.usage.map(|usage| usage.mean), metadata.usage, "{name}");
        assert_eq!(summary.has_same_tools, metadata.tools.is_some(), "{name}");
    }
}

#[test]
fn the_sample_of_passes() {
    let scanned = scan(&fixture("passk").join("results.jsonl"), Aggregate::new(4, 0.5), |_, _| {}).unwrap();
    let summary = scanned.aggregate.summary();
    // Correct of 4 rollouts: 0, 2, 1, 3.
    let at: Vec<_> = summary.pass_at_k.iter().map(|(k, value)| (k.as_str(), *value)).collect();
    let all: Vec<_> = summary.pass_all_k.iter().map(|(k, value)| (k.as_str(), *value)).collect();
    assert!(near(at[0].1, 0.375) && near(at[1].1, 7.0 / 12.0) && near(at[2].1, 0.75), "{at:?}");
    assert!(near(all[0].1, 0.375) && near(all[1].1, 1.0 / 6.0) && near(all[2].1, 0.0), "{all:?}");
    assert_eq!(at.iter().map(|(k, _)| *k).collect::<Vec<_>>(), ["1", "2", "4"]);
    // Its log says: reward std 0.484, response_length avg 3.500 std 1.936, max_turns_reached everywhere.
    let reward = summary.reward.unwrap();
    assert_eq!(format!("{:.3} {:.3}", reward.mean, reward.deviation), "0.375 0.484");
    let length = summary.metrics["response_length"];
    assert_eq!(format!("{:.3} {:.3}", length.mean, length.deviation), "3.500 1.936");
    assert_eq!(summary.metrics["num_turns"].deviation, 0.0);
    // Means of examples 0, 1/2, 1/4, 3/4: sd(ddof 1) = sqrt(0.3125/3), by sqrt(4).
    assert!(near(reward.standard_error.unwrap(), (0.3125_f64 / 3.0).sqrt() / 2.0));
    assert_eq!(summary.stop_conditions, BTreeMap::from([("max_turns_reached".to_owned(), 16)]));
    // Its log says: total min 217 ms, mean 238 ms, max 410 ms.
    let total = summary.timing.unwrap().total;
    assert_eq!(format!("{:.3} {:.3} {:.3}", total.min, total.mean, total.max), "0.217 0.238 0.410");
}

#[test]
fn only_complete_examples_count_for_passes_and_errors_are_wrong() {
    let mut rows: Vec<_> =
        [(0, 0, 1.0), (0, 1, 0.0), (1, 0, 1.0)].map(|(e, n, r)| RowFacts::of(&row(e, n, r))).into();
    assert_eq!(summary_of(&rows, 2).pass_at_k["2"], 1.0);
    let mut wrong = errored(1, 1);
    wrong.reward = row(0, 0, 1.0).reward;
    rows.push(RowFacts::of(&wrong));
    let summary = summary_of(&rows, 2);
    assert_eq!((summary.pass_at_k["1"], summary.pass_all_k["2"]), (0.5, 0.0));
    assert_eq!((summary.errored, summary.error_share()), (1, 0.25));
    assert_eq!(summary.errors, BTreeMap::from([("ModelError -> APIError".to_owned(), 1)]));
    assert!(summary_of(&rows, 1).pass_at_k.is_empty());
    assert_eq!(summary_of(&[], 2).reward, None);
}

#[test]
fn another_attempt_replaces_the_row_with_the_error() {
    let mut slow = errored(1, 1);
    slow.timing.scoring = super::support::span(102.0, 900.0);
    let before = [RowFacts::of(&row(0, 0, 1.0)), RowFacts::of(&slow), RowFacts::of(&row(0, 1, 0.3))];
    let mut again = row(1, 1, 0.7);
    again.attempt = 2;
    let last = RowFacts::of(&again);
    let with: Vec<_> = before.iter().chain([&last]).cloned().collect();
    let without = [before[0].clone(), last, before[2].clone()];
    assert_eq!(summary_of(&with, 2), summary_of(&without, 2));
    assert!(summary_of(&before, 2).timing.unwrap().total.max > 700.0);
    assert_ne!(summary_of(&with, 2), summary_of(&before, 2));
}

/// Subsets of k rollouts, of which the first `correct` are correct, that hold one, and that are all correct.
fn count(rollouts: u32, correct: u32, k: u32) -> (f64, f64) {
    let (mut all, mut any, mut every) = (0, 0, 0);
    for subset in 0_u32..1 << rollouts {
        if subset.count_ones() == k {
            let right = (subset & ((1 << correct) - 1)).count_ones();
            all += 1;
            any += u32::from(right > 0);
            every += u32::from(right == k);
        }
    }
    (f64::from(any) / f64::from(all), f64::from(every) / f64::from(all))
}

#[test]
fn passes_are_what_counting_gives() {
    for rollouts in 1..=12 {
        for correct in 0..=rollouts {
            for k in 1..=rollouts {
                let (any, every) = count(rollouts, correct, k);
                assert!((pass_at(rollouts, correct, k) - any).abs() < 1e-14, "{rollouts} {correct} {k}");
                assert!((pass_all(rollouts, correct, k) - every).abs() < 1e-14, "{rollouts} {correct} {k}");
            }
        }
    }
    assert_eq!(sizes(1).count(), 0);
    assert_eq!(sizes(9).collect::<Vec<_>>(), [1, 2, 4, 8]);
    assert_eq!(sizes(u32::MAX).count(), 32);
    let large = pass_at(1_000_000, 500_000, 65_536);
    assert!((0.0..=1.0).contains(&large) && large > 0.999);
}

fn any_rows() -> impl Strategy<Value = Vec<(RowFacts, u32)>> {
    let number = prop_oneof![
        Just(0.1),
        Just(1.0),
        -10.0..10.0_f64,
        proptest::num::f64::NORMAL
            .prop_map(|number| aec_eval::results::number::countable(number).unwrap_or(0.0)),
    ];
    let facts =
        (0..5_i64, number.clone(), number, any::<bool>()).prop_map(|(example, reward, metric, has_error)| {
            let row = if has_error { errored(example, 0) } else { row(example, 0, reward) };
            let mut facts = RowFacts::of(&row);
            facts.reward = Some(reward);
            facts.metrics.push(("other".into(), metric));
            facts
        });
    // Shuffled.
    proptest::collection::vec((facts, any::<u32>()), 0..30).prop_map(|mut rows| {
        for (index, (facts, _)) in rows.iter_mut().enumerate() {
            facts.rollout_number = u32::try_from(index).ok();
        }
        rows
    })
}

proptest! {
    #[test]
    fn the_order_of_rows_changes_nothing(mut rows in any_rows()) {
        let summary = |rows: &[(RowFacts, u32)]| {
            let rows: Vec<_> = rows.iter().map(|(facts, _)| facts.clone()).collect();
            summary_of(&rows, 3)
        };
        let before = summary(&rows);
        rows.sort_by_key(|(_, place)| *place);
        // To the last bit: these are comparisons of floats.
        prop_assert_eq!(&summary(&rows), &before);
    }

    #[test]
    fn the_deviation_is_that_of_two_passes(numbers in proptest::collection::vec(-1e6..1e6_f64, 1..50)) {
        let count = numbers.len() as f64;
        let mean = numbers.iter().sum::<f64>() / count;
        let variance = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / count;
        let exact = moments(&numbers);
        prop_assert!((exact.mean().unwrap() - mean).abs() <= 1e-9);
        prop_assert!((exact.deviation().unwrap() - variance.sqrt()).abs() <= 1e-6);
        let mut back = exact.clone();
        back.add(0.1);
        back.take_back(0.1);
        prop_assert_eq!(back.deviation(), exact.deviation());
    }
}
