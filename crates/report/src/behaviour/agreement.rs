//! How often two judges assign the same kind to a turn.

use std::collections::HashMap;

use serde::Serialize;

use super::kind::{Kind, Label};
use super::structure::ratio;

/// Turns that two judges labelled, counted by both labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// Rows are the first judge's kinds, columns the second's, in the order of [`Kind::ALL`].
    pub counts: [[usize; 4]; 4],
    /// Turns that only one judge labelled.
    pub unpaired: usize,
}

impl Agreement {
    pub fn of(first: &[Label], second: &[Label]) -> Self {
        let mut agreement = Self::default();
        let mut others: HashMap<u32, Kind> = HashMap::new();
        for label in second {
            others.entry(label.turn_index).or_insert(label.kind);
        }
        for label in first {
            match others.remove(&label.turn_index) {
                Some(other) => agreement.counts[label.kind.index()][other.index()] += 1,
                None => agreement.unpaired += 1,
            }
        }
        agreement.unpaired += others.len();
        agreement
    }

    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().flatten().zip(other.counts.iter().flatten()) {
            *count += more;
        }
        self.unpaired += other.unpaired;
    }

    /// Turns that both judges labelled.
    pub fn turns(&self) -> usize {
        self.counts.iter().flatten().sum()
    }

    /// The share of those on which they agree. It means little by itself; see Cohen's κ.
    pub fn observed(&self) -> Option<f64> {
        let same: usize = (0..4).map(|at| self.counts[at][at]).sum();
        (self.turns() > 0).then(|| ratio(same, self.turns()))
    }

    /// Every pair of labels, as often as it occurred.
    pub fn pairs(&self) -> impl Iterator<Item = (Kind, Kind)> + '_ {
        Kind::ALL.into_iter().flat_map(move |first| {
            Kind::ALL.into_iter().flat_map(move |second| {
                std::iter::repeat_n((first, second), self.counts[first.index()][second.index()])
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind::Kind::{Execution as E, Verification as V};
    use super::*;

    fn labels(given: &[(u32, Kind)]) -> Vec<Label> {
        let label = |(turn_index, kind): &(u32, Kind)| Label {
            turn_index: *turn_index,
            kind: *kind,
            confidence: 1.0,
            evidence: Vec::new(),
        };
        given.iter().map(label).collect()
    }

    #[test]
    fn turns_are_paired_by_number() {
        let rules = labels(&[(1, E), (2, V), (3, E), (4, E)]);
        let model = labels(&[(3, V), (1, E), (2, V), (9, E)]);
        let mut agreement = Agreement::of(&rules, &model);
        assert_eq!(agreement.counts[0], [1, 1, 0, 0]);
        assert_eq!((agreement.counts[1][1], agreement.unpaired, agreement.turns()), (1, 2, 3));
        assert_eq!(agreement.observed(), Some(2.0 / 3.0));
        assert_eq!(agreement.pairs().collect::<Vec<_>>(), [(E, E), (E, V), (V, V)]);
        agreement.add(&agreement.clone());
        assert_eq!((agreement.turns(), agreement.unpaired), (6, 4));
        assert_eq!(Agreement::default().observed(), None);
    }
}
