//! The probability that at least one, or every one, of k rollouts is correct.

use indexmap::IndexMap;

use crate::results::moments::{ExactSum, as_number};

/// Probability that at least one of k rollouts, drawn from `rollouts` of which `correct` are correct, is correct:
/// 1 − C(n − c, k) / C(n, k).
pub fn pass_at(rollouts: u32, correct: u32, k: u32) -> f64 {
    1.0 - all_from(rollouts, rollouts.saturating_sub(correct), k)
}

/// Probability that k rollouts, drawn from `rollouts` of which `correct` are correct, are all correct:
/// C(c, k) / C(n, k).
pub fn pass_all(rollouts: u32, correct: u32, k: u32) -> f64 {
    all_from(rollouts, correct, k)
}

/// C(some, k) / C(all, k) as a product of k factors between 0 and 1, which cannot overflow.
fn all_from(all: u32, some: u32, k: u32) -> f64 {
    if some < k || all < k {
        return 0.0;
    }
    (0..k).fold(1.0, |product, drawn| product * f64::from(some - drawn) / f64::from(all - drawn))
}

/// The k for which probabilities are reported: 1, 2, 4, … up to the number of rollouts, if that is more than 1.
pub fn sizes(rollouts: u32) -> impl Iterator<Item = u32> {
    (0..32).map(|power| 1_u32 << power).take_while(move |k| rollouts > 1 && *k <= rollouts)
}

/// How many examples have each number of correct rollouts; both probabilities depend on nothing else.
pub(crate) type Correct = IndexMap<u32, u64>;

/// The mean over examples of one of the probabilities, by k as text. Empty if no example is complete.
pub(crate) fn means(
    rollouts: u32,
    examples: &Correct,
    of: fn(u32, u32, u32) -> f64,
) -> IndexMap<String, f64> {
    let total = examples.values().sum();
    if total == 0 {
        return IndexMap::new();
    }
    let mean = |k| {
        let mut sum = ExactSum::default();
        for (correct, count) in examples {
            let term = of(rollouts, *correct, k);
            let product = term * as_number(*count);
            sum.add(product);
            sum.add(term.mul_add(as_number(*count), -product));
        }
        sum.divided_by(total)
    };
    sizes(rollouts).map(|k| (k.to_string(), mean(k))).collect()
}
