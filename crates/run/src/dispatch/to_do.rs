//! Which trials of a run are still to be done.

use std::collections::BTreeSet;

use aec_base::name::Name;
use aec_judge::verdict::Outcome;

use crate::plan::PlannedTrial;
use crate::session::{Past, PastTrial};

/// Trials that are run again although they have a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rerun {
    /// Those that ended in a fault of any kind.
    pub failed: bool,
    /// Those that ended in a fault that is not the agent's.
    pub infra: bool,
    /// These.
    pub trials: BTreeSet<Name>,
}

impl Rerun {
    fn takes(&self, id: &Name, past: &PastTrial) -> bool {
        let infra = matches!(past.outcome, Outcome::InfraFault | Outcome::VerifierFault);
        let failed = infra || past.outcome == Outcome::AgentFault;
        // What was cancelled never had its chance.
        past.outcome == Outcome::Cancelled
            || self.infra && infra
            || self.failed && failed
            || self.trials.contains(id)
    }
}

/// Which trials of a run are still to be done, and from which attempt on.
pub fn to_do(trials: &[PlannedTrial], past: &Past, rerun: &Rerun) -> Vec<(usize, u32)> {
    let next = |trial: &PlannedTrial| match past.trials.get(&trial.id) {
        None => Some(1),
        Some(found) => rerun.takes(&trial.id, found).then_some(found.attempt + 1),
    };
    trials.iter().enumerate().filter_map(|(index, trial)| Some((index, next(trial)?))).collect()
}
