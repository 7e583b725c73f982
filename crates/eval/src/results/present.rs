//! Which rollouts of a run have a row.

use std::collections::HashMap;

use aec_base::problem::Problem;
use aec_run::import::{Row, refusal};

use crate::results::facts::RowFacts;
use crate::results::problems;

#[derive(Clone, Debug, Default)]
pub struct Present {
    rows: HashMap<(i64, u32), Row>,
}

impl Present {
    pub fn get(&self, example_id: i64, rollout_number: u32) -> Option<Row> {
        self.rows.get(&(example_id, rollout_number)).copied()
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Rollouts that have no row, in the order of the examples.
    pub fn missing(
        &self,
        examples: impl IntoIterator<Item = i64>,
        rollouts_per_example: u32,
    ) -> impl Iterator<Item = (i64, u32)> {
        let all = move |example| (0..rollouts_per_example).map(move |number| (example, number));
        examples.into_iter().flat_map(all).filter(|key| !self.rows.contains_key(key))
    }

    /// Rollouts whose last attempt has an error, with the number of that attempt; sorted.
    pub fn errored(&self) -> Vec<(i64, u32, u32)> {
        let errored = self.rows.iter().filter(|(_, row)| row.has_error);
        let mut errored: Vec<_> =
            errored.map(|((example, number), row)| (*example, *number, row.attempt)).collect();
        errored.sort_unstable();
        errored
    }

    /// The lowest rollout number of an example that no row has, starting at `from`.
    pub(crate) fn free_from(&self, example_id: i64, from: u32) -> u32 {
        (from..=u32::MAX).find(|number| !self.rows.contains_key(&(example_id, *number))).unwrap_or(u32::MAX)
    }

    /// Adds a row under a number. A second row of the same rollout must be a later attempt after an error.
    pub(crate) fn take(&mut self, facts: &RowFacts, rollout_number: u32) -> Result<(), Problem> {
        let row = Row { attempt: facts.attempt, has_error: facts.error.is_some() };
        let Some(earlier) = self.rows.insert((facts.example_id, rollout_number), row) else { return Ok(()) };
        let Some(what) = refusal(facts.example_id, rollout_number, earlier, row) else { return Ok(()) };
        Err(problems::error(22, what)
            .why("two processes wrote to the file, or lines were copied")
            .fix("remove one of the two lines"))
    }
}
