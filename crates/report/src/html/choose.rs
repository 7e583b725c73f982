//! Chooses the traces of a report if not all fit.
//!
//! Trials are divided into classes: agent by result, which is fail, fault, partial or pass. First comes one typical
//! trace of each class, the one of median length. Then come all others: fails, faults, partial results and passes in
//! this order, and within a result the shortest of each agent, then the second shortest of each agent, and so on.
//! Traces of equal length are in the order of the document.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::Budget;
use super::document::{Document, Trial};

/// How a trial ended, as coarsely as needed to choose traces. They are chosen in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultClass {
    /// Scored with 0.
    Fail,
    Fault,
    /// Scored below a pass.
    Partial,
    /// Scored with at least the pass reward.
    Pass,
}

impl ResultClass {
    pub fn of(trial: &Trial, pass_reward: f64) -> Self {
        match trial.reward.filter(|reward| reward.is_finite()) {
            Some(reward) if trial.outcome == "scored" => {
                if reward >= pass_reward {
                    Self::Pass
                } else if reward <= 0.0 {
                    Self::Fail
                } else {
                    Self::Partial
                }
            }
            _ => Self::Fault,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Fault => "fault",
            Self::Partial => "partial",
            Self::Pass => "pass",
        }
    }
}

/// The indices of the trials with a trace, in the order in which the report takes them.
pub fn trace_order(document: &Document) -> Vec<usize> {
    let given: HashMap<usize, u64> =
        document.traces.iter().map(|trace| (trace.trial, super::traces::text_length(trace))).collect();
    let mut classes: BTreeMap<(ResultClass, usize), Vec<(u64, usize)>> = BTreeMap::new();
    for (place, trial) in document.trials.iter().enumerate() {
        if let Some(length) = trial.trace_bytes.or_else(|| given.get(&place).copied()) {
            let class = ResultClass::of(trial, document.pass_reward);
            classes.entry((class, trial.agent)).or_default().push((length, place));
        }
    }
    let mut typical = Vec::with_capacity(classes.len());
    let mut others = Vec::new();
    for ((class, agent), mut members) in classes {
        members.sort_unstable();
        let median = members.remove((members.len() - 1) / 2);
        typical.push((agent, class, median.1));
        let ranked = members.into_iter().enumerate();
        others.extend(ranked.map(|(rank, (_, place))| (class, rank, agent, place)));
    }
    typical.sort_unstable();
    others.sort_unstable();
    let typical = typical.into_iter().map(|(_, _, place)| place);
    typical.chain(others.into_iter().map(|(_, _, _, place)| place)).collect()
}

/// The trials whose traces are worth reading for a report of this size, in order. More would not fit.
///
/// A caller with far more traces than memory need read only these.
pub fn wanted_traces(document: &Document, budget: &Budget) -> Vec<usize> {
    // Traces shrink to between a third and a sixteenth.
    let enough = (budget.bytes as u64).saturating_mul(16);
    let mut total = 0_u64;
    trace_order(document)
        .into_iter()
        .take_while(|&place| {
            let room = total <= enough;
            total = total.saturating_add(document.trials[place].trace_bytes.unwrap_or(0));
            room
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(agent: usize, reward: Option<f64>, bytes: u64) -> Trial {
        let outcome = if reward.is_some() { "scored" } else { "infra_fault" };
        Trial { agent, outcome: outcome.into(), reward, trace_bytes: Some(bytes), ..Trial::default() }
    }

    #[test]
    fn results_fall_into_four_classes() {
        let class = |reward| ResultClass::of(&trial(0, reward, 1), 1.0);
        assert_eq!(class(Some(1.0)), ResultClass::Pass);
        assert_eq!(class(Some(0.5)), ResultClass::Partial);
        assert_eq!(class(Some(0.0)), ResultClass::Fail);
        assert_eq!(class(Some(-1.0)), ResultClass::Fail);
        assert_eq!(class(Some(f64::NAN)), ResultClass::Fault);
        assert_eq!(class(None), ResultClass::Fault);
        let faulty = Trial { outcome: "agent_fault".into(), ..trial(0, Some(0.0), 1) };
        assert_eq!(ResultClass::of(&faulty, 1.0), ResultClass::Fault);
    }

    #[test]
    fn one_typical_of_each_class_then_failures_then_short_ones_agent_by_agent() {
        let trials = vec![
            trial(0, Some(1.0), 10), // 0
            trial(0, Some(1.0), 30), // 1
            trial(0, Some(1.0), 20), // 2: typical pass of agent 0
            trial(1, Some(0.0), 9),  // 3: typical fail of agent 1, lower median of 9 and 90
            trial(1, Some(0.0), 90), // 4
            trial(1, Some(1.0), 5),  // 5: typical pass of agent 1
            trial(0, None, 7),       // 6: typical fault of agent 0
            trial(0, None, 8),       // 7
            trial(1, Some(1.0), 6),  // 8
            trial(1, Some(1.0), 60), // 9
        ];
        let document = Document { pass_reward: 1.0, trials, ..Document::default() };
        // 5, 6 and 60 have the median 6, which is trial 8.
        assert_eq!(trace_order(&document), [6, 2, 3, 8, 4, 7, 0, 5, 1, 9]);
    }

    #[test]
    fn trials_without_a_trace_are_not_wanted_and_reading_stops_when_no_more_fits() {
        let mut trials: Vec<Trial> = (0..100).map(|_| trial(0, Some(0.0), 100)).collect();
        trials[0].trace_bytes = None;
        let document = Document { pass_reward: 1.0, trials, ..Document::default() };
        assert_eq!(trace_order(&document).len(), 99);
        assert_eq!(wanted_traces(&document, &Budget { bytes: 19, ..Budget::default() }).len(), 4);
    }
}
