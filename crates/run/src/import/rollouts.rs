//! Which rows of a results file belong to one rollout, and which of them counts.
//!
//! A rollout has one row, and another one for each time that it was run again after an error; the last of them counts.
//! Whoever reads such files asks [`refusal`], so that an evaluation, its resume and its import agree.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;

use aec_base::name::Name;

/// What decides whether a row counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Which try at the rollout, from 1.
    pub attempt: u32,
    /// Whether an error ended it.
    pub has_error: bool,
}

/// The rollout that a row belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutKey {
    /// The example of the dataset.
    pub example: String,
    /// Which rollout of the example, from 0. Rows of verifiers do not say.
    pub number: Option<u32>,
    /// The row.
    pub row: Row,
    /// Whether the row has an id of its own, which tells it from other rows.
    pub is_named: bool,
}

/// Why a later row of a rollout may not take the place of an earlier one; `None` when it may.
pub fn refusal(example: impl Display, number: u32, earlier: Row, later: Row) -> Option<String> {
    let which = format!("rollout {number} of example {example}");
    if later.attempt <= earlier.attempt {
        return Some(format!("{which} has two rows for attempt {}", later.attempt));
    }
    let needless =
        || format!("{which} was run again although attempt {} of it has no error", earlier.attempt);
    (!earlier.has_error).then(needless)
}

/// A rollout that has a trial.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) row: Row,
    pub(super) trial: Name,
    pub(super) repetition: u32,
}

/// The rollouts of a run that have a trial.
#[derive(Debug, Default)]
pub(super) struct Rollouts(HashMap<String, Example>);

#[derive(Debug, Default)]
struct Example {
    numbered: BTreeMap<u32, Taken>,
    /// Rollouts whose rows do not say their numbers: they have the numbers that are free, in their order.
    unnumbered: Vec<Taken>,
}

impl Rollouts {
    /// The rollout of a row, if an earlier row belongs to it.
    pub(super) fn find(&mut self, key: &RolloutKey) -> Option<&mut Taken> {
        let example = self.0.get_mut(&key.example)?;
        let number = key.number?;
        if key.row.attempt == 1 || example.numbered.contains_key(&number) {
            return example.numbered.get_mut(&number);
        }
        let before = example.numbered.range(..number).count();
        let place = usize::try_from(number).ok()?.checked_sub(before)?;
        example.unnumbered.get_mut(place)
    }

    pub(super) fn insert(&mut self, key: &RolloutKey, taken: Taken) {
        let example = self.0.entry(key.example.clone()).or_default();
        match key.number {
            Some(number) => drop(example.numbered.insert(number, taken)),
            None => example.unnumbered.push(taken),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: Option<u32>, attempt: u32) -> RolloutKey {
        let row = Row { attempt, has_error: true };
        RolloutKey { example: "0".to_owned(), number, row, is_named: false }
    }

    #[test]
    fn rows_without_a_number_have_those_that_are_free() {
        let mut rollouts = Rollouts::default();
        for (number, trial) in [(None, "a"), (Some(1), "b"), (None, "c")] {
            let key = key(number, 1);
            assert!(rollouts.find(&key).is_none(), "{trial}");
            let trial = Name::nearest(trial);
            rollouts.insert(&key, Taken { row: key.row, trial, repetition: 1 });
        }
        for (number, trial) in [(0, Some("a")), (1, Some("b")), (2, Some("c")), (3, None)] {
            let found = rollouts.find(&key(Some(number), 2)).map(|taken| taken.trial.as_str().to_owned());
            assert_eq!(found.as_deref(), trial, "{number}");
        }
    }

    #[test]
    fn only_an_error_is_run_again() {
        let row = |attempt, has_error| Row { attempt, has_error };
        assert_eq!(refusal(0, 0, row(1, true), row(2, false)), None);
        assert!(refusal(0, 0, row(1, false), row(2, false)).is_some());
        assert!(refusal(0, 0, row(1, true), row(1, false)).is_some());
        assert!(refusal(0, 0, row(3, true), row(2, false)).is_some());
    }
}
