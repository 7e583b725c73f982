//! Planned and executed trials: how many trials of a plan have a result, by outcome, and their rewards.

use std::collections::BTreeMap;

use aec_base::name::Name;
use aec_judge::verdict::Outcome;
use aec_ledger::unknown::Unknown;
use serde::Serialize;

use crate::plan::{Plan, PlannedTrial};
use crate::resume::PastTrial;

/// Planned and executed trials. The latest attempt of a trial counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AgentTally {
    /// The agent; absent for the sum over all agents.
    pub agent: Option<Name>,
    /// Trials planned.
    pub planned: usize,
    /// Trials with a result. A trial whose latest attempt was cancelled has none.
    pub executed: usize,
    /// Trials by outcome.
    pub outcomes: BTreeMap<Outcome, usize>,
    /// Scored trials in which the agent's program ended with an error and left no answer.
    pub crashed: usize,
    /// What such a program printed last, in this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceback: Option<String>,
    /// Sum of the rewards of scored trials.
    pub reward_sum: f64,
    /// Trials that were run elsewhere and whose records a package withheld.
    #[serde(skip_serializing_if = "is_zero")]
    pub withheld: usize,
    /// What is unknown, and what that means for the mean; absent if nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Unknown>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl AgentTally {
    pub fn scored(&self) -> usize {
        self.of(Outcome::Scored)
    }

    /// Trials that are part of the mean.
    pub fn counted(&self) -> usize {
        self.outcomes.iter().filter(|(outcome, _)| outcome.is_counted()).map(|(_, count)| count).sum()
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of trials are small")]
    pub fn mean_reward(&self) -> Option<f64> {
        (self.counted() > 0).then(|| self.reward_sum / self.counted() as f64)
    }

    /// Planned trials without a result and without a cancelled attempt.
    pub fn missing(&self) -> usize {
        self.planned.saturating_sub(self.executed + self.of(Outcome::Cancelled))
    }

    fn of(&self, outcome: Outcome) -> usize {
        self.outcomes.get(&outcome).copied().unwrap_or(0)
    }

    /// The command that runs what is left, and `None` if nothing is: trials without a result run again by themselves,
    /// those that ended in faults that are not the agents' only if the user asks for it.
    pub fn continuation(&self, experiment: &Name) -> Option<String> {
        let faults = self.of(Outcome::InfraFault) + self.of(Outcome::VerifierFault);
        let again = if faults > 0 { " --rerun infra" } else { "" };
        (self.missing() + self.of(Outcome::Cancelled) + faults > 0)
            .then(|| format!("aec-bench run --resume {experiment}{again}"))
    }

    /// Counts trials that a package withheld.
    pub fn withhold(&mut self, count: usize) {
        self.withheld += count;
    }

    /// Computes what is unknown from the counts.
    pub fn settle(&mut self) {
        let unverified = self.outcomes.get(&Outcome::Unverified).copied().unwrap_or(0);
        self.unknown = Unknown::of(self.reward_sum, self.counted(), self.withheld, unverified);
    }

    /// Whether the agent never came to anything: its program crashed in every trial that has a result.
    pub fn only_crashed(&self) -> bool {
        self.crashed > 0 && self.crashed == self.executed
    }

    /// Counts one trial by its latest attempt.
    pub fn add(&mut self, outcome: Outcome, reward: Option<f64>) {
        self.executed += usize::from(outcome.is_settled());
        *self.outcomes.entry(outcome).or_default() += 1;
        self.reward_sum += reward.unwrap_or(0.0);
    }

    /// Removes one trial, because a newer attempt replaces it.
    pub fn remove(&mut self, outcome: Outcome, reward: Option<f64>) {
        self.executed -= usize::from(outcome.is_settled());
        if let Some(count) = self.outcomes.get_mut(&outcome) {
            *count -= 1;
            if *count == 0 {
                self.outcomes.remove(&outcome);
            }
        }
        self.reward_sum -= reward.unwrap_or(0.0);
    }
}

/// Counts the trials of a plan by their latest attempts: by agent in the plan's order, and all together.
pub fn tallies<'a>(
    plan: &Plan,
    trials: impl IntoIterator<Item = (&'a PlannedTrial, Option<PastTrial>)>,
) -> (Vec<AgentTally>, AgentTally) {
    let agent = |name: &Name| AgentTally { agent: Some(name.clone()), ..AgentTally::default() };
    let mut agents: Vec<AgentTally> = plan.agents.iter().map(|planned| agent(&planned.name)).collect();
    let mut all = AgentTally::default();
    for (trial, latest) in trials {
        for tally in [&mut agents[trial.agent], &mut all] {
            tally.planned += 1;
            if let Some(PastTrial { outcome, reward, crashed, .. }) = latest {
                tally.add(outcome, reward);
                tally.crashed += usize::from(crashed);
            }
        }
    }
    (agents, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_goes_on_does_something() {
        let name = Name::parse("x").unwrap();
        let advice = |outcomes: &[Outcome]| {
            let mut tally = AgentTally { planned: 2, ..AgentTally::default() };
            for outcome in outcomes {
                tally.add(*outcome, None);
            }
            tally.continuation(&name)
        };
        let resume = || Some("aec-bench run --resume x".to_owned());
        let again = || Some("aec-bench run --resume x --rerun infra".to_owned());
        assert_eq!(advice(&[Outcome::Scored, Outcome::AgentFault]), None);
        assert_eq!(advice(&[Outcome::Scored]), resume());
        assert_eq!(advice(&[Outcome::Scored, Outcome::Cancelled]), resume());
        assert_eq!(advice(&[Outcome::Scored, Outcome::InfraFault]), again());
        assert_eq!(advice(&[Outcome::VerifierFault]), again());
    }
}
