//! Selects the trials of a run that still must be done.

use std::collections::BTreeSet;

use aec_base::name::Name;
use aec_judge::verdict::Outcome;

use super::{Past, PastTrial};
use crate::campaign::Waiting;
use crate::campaign::faults::is_infra;
use crate::plan::PlannedTrial;

/// Trials to run again although they have a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rerun {
    /// Those with a fault that the agent cannot have caused. A fault of the agent is its result, which no other attempt
    /// replaces, unless the user names the trial.
    pub infra: bool,
    /// These trials.
    pub trials: BTreeSet<Name>,
}

impl Rerun {
    fn takes(&self, id: &Name, past: &PastTrial) -> bool {
        let infra = is_infra(past.outcome);
        // A cancelled trial always runs again.
        past.outcome == Outcome::Cancelled || self.infra && infra || self.trials.contains(id)
    }

    /// Which of these trials to run, and from which attempt on, given the latest attempt of each.
    pub(crate) fn choose<'a>(
        &self,
        trials: &'a [PlannedTrial],
        latest: impl Fn(usize, &'a PlannedTrial) -> Option<PastTrial>,
    ) -> Vec<Waiting> {
        let next = |(trial, planned): (usize, &'a PlannedTrial)| match latest(trial, planned) {
            None => Some(Waiting { trial, attempt: 1 }),
            Some(past) => {
                self.takes(&planned.id, &past).then_some(Waiting { trial, attempt: past.attempt + 1 })
            }
        };
        trials.iter().enumerate().filter_map(next).collect()
    }
}

/// Which trials of a run still must be done, and from which attempt on.
pub fn to_do(trials: &[PlannedTrial], past: &Past, rerun: &Rerun) -> Vec<Waiting> {
    rerun.choose(trials, |_, trial| past.trials.get(&trial.id).copied())
}
