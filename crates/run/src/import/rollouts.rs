//! Which rows of a results file belong to one rollout, and which of them counts.
//!
//! A rollout has one row, and another one for each time that it was run again after an error; the last of them counts.
//! All readers of such files use [`refusal`], so that an evaluation, its resume and its import agree.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;

use aec_base::name::Name;

/// The part of a row that decides whether it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The attempt at the rollout, from 1.
    pub attempt: u32,
    /// Whether an error ended it.
    pub has_error: bool,
}

/// The rollout of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutKey {
    /// The example of the dataset.
    pub example: String,
    /// The number of the rollout within the example, from 0. Rows of verifiers do not have it.
    pub number: Option<u32>,
    pub row: Row,
    /// Whether the row has its own id, which distinguishes it from other rows.
    pub is_named: bool,
}

/// Why a later row of a rollout may not replace an earlier one; `None` when it may.
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
    /// Rollouts whose rows have no numbers: they get the free numbers, in their order.
    unnumbered: Vec<Taken>,
}

impl Rollouts {
    /// The rollout of a row, if it had an earlier row.
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
