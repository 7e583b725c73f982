//! Faults by agent, counted in one place for every report, and whether agents differ in them: a fault that is not part
//! of the mean helps an agent that has it when it would have lost.

use std::collections::BTreeMap;

use aec_base::decimal::rounded;
use aec_judge::settle::outcome::{AGENT_ERROR, BROKE_VERIFIER, CRASHED, ROOM_LOST, is_crash};
use aec_judge::verdict::Outcome;
use serde::Serialize;

use crate::stats::{fisher_exact, holm};

/// Differences that chance makes more often than this are not mentioned.
const CLEAR: f64 = 0.05;

/// Trials that ended in a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Faults {
    /// Through no fault of the agent: they are not part of the mean.
    pub uncounted: usize,
    /// By the agent itself: they are part of the mean, as 0 or as what the agent left was worth.
    pub agents: usize,
    /// The agent's program ended with an error and left no answer. They are part of `agents`.
    pub crashed: usize,
}

impl Faults {
    pub(crate) fn count(&mut self, outcome: Outcome, kind: Option<&str>) {
        const OF_AGENTS: [&str; 4] = [AGENT_ERROR, CRASHED, ROOM_LOST, BROKE_VERIFIER];
        let own = kind.is_some_and(|kind| OF_AGENTS.contains(&kind));
        self.uncounted += usize::from(matches!(outcome, Outcome::InfraFault | Outcome::VerifierFault));
        self.agents += usize::from(outcome == Outcome::AgentFault || outcome == Outcome::Scored && own);
        self.crashed += usize::from(is_crash(outcome, kind));
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.uncounted += other.uncounted;
        self.agents += other.agents;
        self.crashed += other.crashed;
    }
}

/// How often trials of one agent, and those of all others, ended in faults that are not part of the mean.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FaultRate {
    pub agent: String,
    pub faults: usize,
    /// Trials that count or have such a fault.
    pub trials: usize,
    pub others_faults: usize,
    pub others_trials: usize,
    /// The probability of such a difference by chance: Fisher's exact test, two-sided.
    pub p_value: f64,
    /// Adjusted for all agents (Holm).
    pub adjusted_p_value: f64,
    /// Whether the agent clearly has more faults than the others.
    pub flagged: bool,
}

/// Compares the agents; empty if there is only one, or if there are no faults.
pub fn fault_rates<'a>(agents: impl IntoIterator<Item = (&'a str, Faults, usize)>) -> Vec<FaultRate> {
    // One name is one agent here, whatever its revisions did.
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (agent, faults, counted) in agents {
        let count = counts.entry(agent).or_default();
        *count = (count.0 + faults.uncounted, count.1 + faults.uncounted + counted);
    }
    let all = counts.values().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    if counts.len() < 2 || all.0 == 0 {
        return Vec::new();
    }
    let mut rates: Vec<FaultRate> = counts
        .into_iter()
        .map(|(agent, (faults, trials))| {
            let (others_faults, others_trials) = (all.0 - faults, all.1 - trials);
            let p_value = fisher_exact((faults, trials), (others_faults, others_trials)).unwrap_or(1.0);
            FaultRate {
                agent: agent.to_owned(),
                faults,
                trials,
                others_faults,
                others_trials,
                p_value,
                adjusted_p_value: p_value,
                flagged: false,
            }
        })
        .collect();
    let p_values: Vec<f64> = rates.iter().map(|rate| rate.p_value).collect();
    for (rate, adjusted) in rates.iter_mut().zip(holm(&p_values).unwrap_or_default()) {
        rate.adjusted_p_value = adjusted;
        rate.flagged = adjusted < CLEAR && rate.is_higher();
    }
    rates
}

impl FaultRate {
    fn is_higher(&self) -> bool {
        // Shares compared without division: counts of trials are far below 2^32.
        self.faults * self.others_trials > self.others_faults * self.trials
    }

    /// A warning, if the difference is clear.
    pub fn note(&self) -> Option<String> {
        let chance = match self.adjusted_p_value {
            p_value if p_value < 0.001 => "p < 0.001".to_owned(),
            p_value => format!("p = {}", rounded(p_value, 3)),
        };
        self.flagged.then(|| {
            format!(
                "{} has more faults that are not part of the mean than the other agents: {} of {} trials against \
                 {} of {} (Fisher's exact test, {chance}); look at them, and compare the means with faults as 0",
                self.agent, self.faults, self.trials, self.others_faults, self.others_trials
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(uncounted: usize) -> Faults {
        Faults { uncounted, ..Faults::default() }
    }

    /// An agent with 7 of 30 trials out of its mean stood first, and nothing said so.
    #[test]
    fn an_agent_with_clearly_more_faults_is_flagged_and_the_others_are_not() {
        let rates =
            fault_rates([("coin", faults(7), 23), ("honest", faults(0), 30), ("other", faults(0), 30)]);
        let flagged: Vec<&str> =
            rates.iter().filter(|rate| rate.flagged).map(|rate| rate.agent.as_str()).collect();
        assert_eq!(flagged, ["coin"]);
        let coin = rates.iter().find(|rate| rate.agent == "coin").unwrap();
        assert_eq!((coin.faults, coin.trials, coin.others_faults, coin.others_trials), (7, 30, 0, 60));
        assert!(coin.note().unwrap().contains("7 of 30 trials against 0 of 60"), "{coin:?}");
        assert!(rates.iter().filter(|rate| !rate.flagged).all(|rate| rate.note().is_none()));
    }

    #[test]
    fn chance_is_not_mentioned() {
        let rates = fault_rates([("a", faults(2), 28), ("b", faults(1), 29)]);
        assert_eq!(rates.len(), 2);
        assert!(rates.iter().all(|rate| !rate.flagged && rate.p_value > 0.5));
        assert!(fault_rates([("a", faults(9), 1)]).is_empty(), "nobody to compare with");
        assert!(fault_rates([("a", faults(0), 9), ("b", faults(0), 9)]).is_empty());
    }

    #[test]
    fn a_crash_is_counted_by_what_it_is() {
        let mut counted = Faults::default();
        for (outcome, kind) in [
            (Outcome::Scored, Some(CRASHED)),
            (Outcome::Scored, Some(BROKE_VERIFIER)),
            (Outcome::Scored, Some("timeout")),
            (Outcome::Scored, None),
            (Outcome::AgentFault, None),
            (Outcome::InfraFault, Some("rate")),
            (Outcome::VerifierFault, Some("exit_code")),
            (Outcome::Cancelled, None),
        ] {
            counted.count(outcome, kind);
        }
        assert_eq!(counted, Faults { uncounted: 2, agents: 3, crashed: 1 });
    }
}
