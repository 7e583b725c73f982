//! One side of a comparison.

use std::collections::{BTreeMap, BTreeSet};

use aec_base::content::ContentStore;
use aec_base::digest::Digest;
use aec_judge::settle::order::AnswerOrder;
use aec_judge::verdict::Outcome;
use aec_ledger::record::TrialRecord;

use crate::frame::Framed;
use crate::selection::is_full;
use crate::trace::TraceFacts;

/// A trial in a comparison.
#[derive(Clone, Debug)]
pub struct Sample {
    pub facts: TraceFacts,
    pub revision: Digest,
    pub difficulty: Option<String>,
    pub framed: Framed,
    /// Which of several answers counted.
    pub answer_order: AnswerOrder,
}

impl Sample {
    pub fn read(record: &TrialRecord, contents: &ContentStore) -> Self {
        Self {
            facts: TraceFacts::read(record, contents),
            revision: record.task.task_revision,
            difficulty: record.task.difficulty.clone(),
            framed: Framed::of(record),
            answer_order: record.outputs.answer_order,
        }
    }

    /// The reward that counts.
    pub fn counted(&self) -> Option<f64> {
        match self.facts.outcome {
            Outcome::Scored => self.facts.reward,
            Outcome::AgentFault => Some(0.0),
            _ => None,
        }
    }

    /// Whether the agent had its chance, so that its work counts.
    pub(super) fn is_worked(&self) -> bool {
        matches!(self.facts.outcome, Outcome::Scored | Outcome::AgentFault | Outcome::Unverified)
    }

    pub(super) fn task(&self) -> (&str, Digest) {
        (&self.facts.task_id, self.revision)
    }

    pub(super) fn place(&self) -> (&str, Digest, u32) {
        (&self.facts.task_id, self.revision, self.facts.repetition)
    }
}

/// One side of a comparison.
#[derive(Clone, Debug)]
pub struct Arm {
    pub name: String,
    /// The latest attempt of each trial.
    pub samples: Vec<Sample>,
    /// Tasks of trials whose records packages withheld; absent where no plan names the trial.
    pub withheld: Vec<Option<(String, Digest)>>,
}

impl Arm {
    /// Tasks of the trials whose rewards are unknown.
    pub(super) fn unknown(&self) -> impl Iterator<Item = Option<(&str, Digest)>> {
        let withheld =
            self.withheld.iter().map(|of| of.as_ref().map(|(task, revision)| (task.as_str(), *revision)));
        let unverified = self.samples.iter().filter(|sample| sample.facts.outcome == Outcome::Unverified);
        withheld.chain(unverified.map(|sample| Some(sample.task())))
    }

    pub(super) fn places(&self) -> BTreeSet<(&str, Digest, u32)> {
        self.samples.iter().map(Sample::place).collect()
    }

    /// Whether each repetition that counts was solved.
    pub(super) fn solved(&self) -> BTreeMap<(&str, Digest, u32), bool> {
        let counted = self.samples.iter().filter_map(|sample| Some((sample.place(), sample.counted()?)));
        counted.map(|(place, reward)| (place, is_full(reward))).collect()
    }

    pub(super) fn tasks(&self) -> BTreeSet<(&str, Digest)> {
        self.samples.iter().map(Sample::task).collect()
    }
}
