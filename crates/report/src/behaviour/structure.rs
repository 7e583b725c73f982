//! The structure of a trace: how kinds of turns follow each other, and how similar that is to successful traces.

use std::collections::HashMap;

use serde::Serialize;

use super::kind::Kind;

/// Longer sequences have no edit distance: its time grows with the product of the lengths.
pub const LONGEST_SEQUENCE: usize = 65_536;
/// A matrix with a smaller norm has no direction.
const SMALLEST_NORM: f64 = 1e-12;

/// How often one kind follows another, as shares of each row. Rows and columns are in the order of [`Kind::ALL`]; a
/// kind without a successor has a row of zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Transitions {
    pub rows: [[f64; 4]; 4],
    /// The number of turns, which is the weight in an aggregate.
    pub turns: usize,
}

/// The structure of successful traces.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reference {
    /// The aggregate of their transitions.
    pub transitions: Transitions,
    /// Their most frequent sequence; of several, the longest, then the first by name.
    pub sequence: Vec<Kind>,
    pub traces: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Nearness {
    /// Cosine of the angle between the transitions; absent if either has none.
    pub cosine_similarity: Option<f64>,
    /// Insertions, removals and replacements between the sequences; absent for very long ones.
    pub edit_distance: Option<usize>,
    /// The same divided by the longer length.
    pub normalized_edit_distance: Option<f64>,
}

impl Transitions {
    /// The transitions of a sequence. A turn without a kind interrupts it.
    pub fn of(sequence: &[Option<Kind>]) -> Self {
        let mut counts = [[0_usize; 4]; 4];
        for pair in sequence.windows(2) {
            if let [Some(from), Some(to)] = pair {
                counts[from.index()][to.index()] += 1;
            }
        }
        let rows = counts.map(|row| {
            let sum: usize = row.iter().sum();
            row.map(|count| ratio(count, sum.max(1)))
        });
        Self { rows, turns: sequence.iter().flatten().count() }
    }

    /// The mean of several, weighted by their turns.
    pub fn aggregate<'m>(all: impl IntoIterator<Item = &'m Self>) -> Self {
        let mut sum = Self::default();
        for one in all {
            let weight = as_f64(one.turns);
            for (total, row) in sum.rows.iter_mut().flatten().zip(one.rows.iter().flatten()) {
                *total += weight * row;
            }
            sum.turns += one.turns;
        }
        if sum.turns > 0 {
            let weight = as_f64(sum.turns);
            sum.rows.iter_mut().flatten().for_each(|share| *share /= weight);
        }
        sum
    }

    /// Cosine of the angle between two of them; absent if either has no transitions.
    pub fn cosine(&self, other: &Self) -> Option<f64> {
        let pairs = || self.rows.iter().flatten().zip(other.rows.iter().flatten());
        let product: f64 = pairs().map(|(a, b)| a * b).sum();
        let norm =
            |matrix: &Self| matrix.rows.iter().flatten().map(|share| share * share).sum::<f64>().sqrt();
        let (a, b) = (norm(self), norm(other));
        (a > SMALLEST_NORM && b > SMALLEST_NORM).then(|| (product / (a * b)).clamp(0.0, 1.0))
    }
}

impl Reference {
    /// The reference of traces, each with its reward. Traces with less than full reward or without kinds are ignored.
    pub fn of<'s>(traces: impl IntoIterator<Item = (&'s [Option<Kind>], Option<f64>)>) -> Option<Self> {
        let mut all = Vec::new();
        let mut sequences: HashMap<Vec<Kind>, usize> = HashMap::new();
        for (sequence, reward) in traces {
            if reward.is_some_and(|reward| reward >= 1.0) && sequence.iter().any(Option::is_some) {
                all.push(Transitions::of(sequence));
                *sequences.entry(sequence.iter().copied().flatten().collect()).or_default() += 1;
            }
        }
        let names = |sequence: &[Kind]| sequence.iter().map(|kind| kind.name()).collect::<Vec<_>>();
        let (sequence, _) = sequences.into_iter().max_by(|(a, many), (b, more)| {
            many.cmp(more).then(a.len().cmp(&b.len())).then_with(|| names(b).cmp(&names(a)))
        })?;
        Some(Self { transitions: Transitions::aggregate(&all), sequence, traces: all.len() })
    }

    pub fn nearness(&self, sequence: &[Option<Kind>]) -> Nearness {
        let kinds: Vec<Kind> = sequence.iter().copied().flatten().collect();
        let distance = edit_distance(&kinds, &self.sequence);
        let longer = kinds.len().max(self.sequence.len()).max(1);
        Nearness {
            cosine_similarity: Transitions::of(sequence).cosine(&self.transitions),
            edit_distance: distance,
            normalized_edit_distance: distance.map(|distance| ratio(distance, longer)),
        }
    }
}

/// Levenshtein distance, by Myers' algorithm on words of 64 turns (Hyyrö 2003 for more than one word). Absent for
/// sequences longer than [`LONGEST_SEQUENCE`].
pub fn edit_distance(a: &[Kind], b: &[Kind]) -> Option<usize> {
    if a.len() > LONGEST_SEQUENCE || b.len() > LONGEST_SEQUENCE {
        return None;
    }
    if a.is_empty() || b.is_empty() {
        return Some(a.len().max(b.len()));
    }
    let words = a.len().div_ceil(64);
    let mut places = vec![[0_u64; 4]; words];
    for (at, kind) in a.iter().enumerate() {
        places[at / 64][kind.index()] |= 1 << (at % 64);
    }
    let last = 1_u64 << ((a.len() - 1) % 64);
    let mut up = vec![u64::MAX; words];
    let mut down = vec![0_u64; words];
    let mut distance = a.len();
    for kind in b {
        // The first row grows by one in each column.
        let (mut carry_up, mut carry_down) = (1_u64, 0_u64);
        for word in 0..words {
            let (plus, minus) = (up[word], down[word]);
            let same = places[word][kind.index()];
            let vertical = same | minus;
            let same = same | carry_down;
            let horizontal = ((same & plus).wrapping_add(plus) ^ plus) | same;
            let mut plus_out = minus | !(horizontal | plus);
            let mut minus_out = plus & horizontal;
            if word + 1 == words {
                distance += usize::from(plus_out & last != 0);
                distance -= usize::from(minus_out & last != 0);
            }
            let (next_up, next_down) = (plus_out >> 63, minus_out >> 63);
            plus_out = (plus_out << 1) | carry_up;
            minus_out = (minus_out << 1) | carry_down;
            (carry_up, carry_down) = (next_up, next_down);
            up[word] = minus_out | !(vertical | plus_out);
            down[word] = plus_out & vertical;
        }
    }
    Some(distance)
}

/// Counts are far below the largest exact float.
pub(crate) fn ratio(part: usize, whole: usize) -> f64 {
    as_f64(part) / as_f64(whole)
}

#[expect(clippy::cast_precision_loss, reason = "counts of turns and calls are far below 2^52")]
pub(crate) fn as_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use Kind::{Deliberation as D, Execution as E, Exploration as X, Verification as V};
    use proptest::prelude::*;

    fn some(kinds: &[Kind]) -> Vec<Option<Kind>> {
        kinds.iter().copied().map(Some).collect()
    }

    /// The textbook's table, row by row.
    fn plain_distance(a: &[Kind], b: &[Kind]) -> usize {
        let mut row: Vec<usize> = (0..=b.len()).collect();
        for (i, x) in a.iter().enumerate() {
            let mut corner = row[0];
            row[0] = i + 1;
            for (j, y) in b.iter().enumerate() {
                let next = (corner + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
                corner = std::mem::replace(&mut row[j + 1], next);
            }
        }
        row[b.len()]
    }

    fn kinds(longest: usize) -> impl Strategy<Value = Vec<Kind>> {
        prop::collection::vec(prop::sample::select(Kind::ALL.to_vec()), 0..longest)
    }

    #[test]
    fn rows_are_shares() {
        let matrix = Transitions::of(&some(&[X, X, E, E, V, E]));
        assert_eq!(matrix.rows, [[0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0; 4], [0.5, 0.0, 0.0, 0.5]]);
        assert_eq!(matrix.turns, 6);
    }

    #[test]
    fn a_gap_is_no_transition() {
        let matrix = Transitions::of(&[Some(E), None, Some(V), Some(E)]);
        assert_eq!(matrix.rows, [[0.0; 4], [1.0, 0.0, 0.0, 0.0], [0.0; 4], [0.0; 4]]);
        assert_eq!(matrix.turns, 3);
    }

    #[test]
    fn an_aggregate_is_weighted_by_turns() {
        let long = Transitions::of(&some(&[E, E, E, E, E, E]));
        let short = Transitions::of(&some(&[E, V]));
        // (6 * 1 + 2 * 0) / 8 and (6 * 0 + 2 * 1) / 8.
        let rows = Transitions::aggregate([&long, &short]).rows;
        assert_eq!(rows, [[0.75, 0.25, 0.0, 0.0], [0.0; 4], [0.0; 4], [0.0; 4]]);
        assert_eq!(Transitions::aggregate([]), Transitions::default());
    }

    #[test]
    fn a_cosine_needs_two_directions() {
        let a = Transitions::of(&some(&[E, V]));
        let b = Transitions::of(&some(&[E, V, E, E]));
        assert_eq!(a.cosine(&a), Some(1.0));
        // a = (E→V: 1); b = (E→E: 1/2, E→V: 1/2, V→E: 1); cosine = 0.5 / sqrt(1.5).
        let expected = 0.5 / 1.5_f64.sqrt();
        assert!((a.cosine(&b).unwrap() - expected).abs() < 1e-15);
        assert_eq!(a.cosine(&Transitions::of(&some(&[E]))), None);
        assert_eq!(a.cosine(&Transitions::of(&some(&[V, V]))), Some(0.0));
    }

    #[test]
    fn the_reference_sequence_is_frequent_then_long_then_first() {
        let pick = |sequences: &[(&[Kind], f64)]| {
            let all: Vec<_> = sequences.iter().map(|(kinds, reward)| (some(kinds), *reward)).collect();
            Reference::of(all.iter().map(|(kinds, reward)| (kinds.as_slice(), Some(*reward))))
        };
        assert_eq!(pick(&[(&[E], 1.0), (&[E], 1.0), (&[X, E, V], 1.0)]).unwrap().sequence, [E]);
        assert_eq!(pick(&[(&[E], 1.0), (&[X, E], 1.0)]).unwrap().sequence, [X, E]);
        // deliberation < execution < exploration < verification.
        assert_eq!(pick(&[(&[X, E], 1.0), (&[D, E], 1.0), (&[V, E], 1.0)]).unwrap().sequence, [D, E]);
        assert_eq!(pick(&[(&[E], 0.9), (&[], 1.0), (&[V], f64::NAN)]), None);
        assert_eq!(pick(&[(&[E, E], 1.5), (&[V], 1.0)]).unwrap().traces, 2);
    }

    #[test]
    fn nearness_is_told_apart_from_ignorance() {
        let reference = Reference::of([(some(&[X, E, V]).as_slice(), Some(1.0))]).unwrap();
        let same = reference.nearness(&some(&[X, E, V]));
        assert_eq!((same.edit_distance, same.normalized_edit_distance), (Some(0), Some(0.0)));
        assert!((same.cosine_similarity.unwrap() - 1.0).abs() < 1e-12);
        let one = reference.nearness(&some(&[E]));
        assert_eq!((one.cosine_similarity, one.edit_distance), (None, Some(2)));
        assert!((one.normalized_edit_distance.unwrap() - 2.0 / 3.0).abs() < 1e-15);
        let long = vec![Some(E); LONGEST_SEQUENCE + 1];
        assert_eq!(reference.nearness(&long).edit_distance, None);
        assert!(reference.nearness(&long).cosine_similarity.is_some());
    }

    proptest! {
        #[test]
        fn the_fast_distance_is_the_textbooks(a in kinds(200), b in kinds(200)) {
            prop_assert_eq!(edit_distance(&a, &b), Some(plain_distance(&a, &b)));
        }

        #[test]
        fn distances_are_a_metric(a in kinds(100), b in kinds(100), c in kinds(100)) {
            let d = |x: &[Kind], y: &[Kind]| edit_distance(x, y).unwrap();
            prop_assert_eq!(d(&a, &b), d(&b, &a));
            prop_assert!(d(&a, &c) <= d(&a, &b) + d(&b, &c));
            prop_assert_eq!(d(&a, &b) == 0, a == b);
        }
    }
}
