//! Decides when a candidate is accepted: by a paired test on tasks that no agent learns from, checked after every
//! batch.
//!
//! The null hypothesis is that the candidate exceeds the challenged one by no more than the threshold. The evidence is
//! a betting capital (see `aec_report::stats::sequential`), so frequent checks cost nothing. A run makes several tests;
//! each needs more evidence than a single one would: with `horizon` tests at most, the k-th needs
//! `horizon / (error_rate · (accepted + 1))`. That is LOND with e-values (Xu and Ramdas, 2024): over the whole run the
//! share of wrong acceptances is at most the error rate, and if there is no improvement at all, the chance to accept
//! anything is at most the error rate. This holds however the tests depend on each other.
//!
//! The pairs of one test are different tasks. Repeating a task would say nothing about other tasks, yet the evidence
//! would grow; so a test that has used all available tasks ends undecided.

use aec_report::stats::{
    Bounds, Confidence, Interval, confidence_sequence, evidence_above, fewest_observations,
};
use serde::{Deserialize, Serialize};

use crate::config::Acceptance;

/// Pairs after which a test without any gain may be given up.
const PATIENCE: usize = 20;

/// The requirements of a test, fixed before its first task.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// The number of the test within the run, from 1.
    pub test: u32,
    pub needed: f64,
    /// By how much the candidate must be better.
    pub threshold: f64,
    /// Most tasks.
    pub max_tasks: u32,
}

/// The result of a test so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The candidate is better by more than the threshold.
    Accepted,
    /// The candidate was not shown to be better.
    Rejected(Rejection),
    Open,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rejection {
    /// It was worse than its parent on the tasks that it was made from.
    WorseThanParent,
    /// The test showed no gain so far.
    NoGain,
    /// The test used its most tasks without enough evidence.
    NotShown,
    /// No task was left that was new to the test.
    TasksRanOut,
    NoTestLeft,
    /// It contains expected values of tasks.
    HoldsAnswers,
    /// Too many trials had no reward through no fault of the agents.
    TooManyFaults,
}

impl Rejection {
    pub fn words(self) -> &'static str {
        match self {
            Self::WorseThanParent => "worse than its parent on the tasks that it was made from",
            Self::NoGain => "nothing gained in its test",
            Self::NotShown => "not shown to be better in its test",
            Self::TasksRanOut => "undecided: the tasks for tests ran out",
            Self::NoTestLeft => "all tests of the run are used up",
            Self::HoldsAnswers => "it holds expected values of tasks",
            Self::TooManyFaults => "too many trials had no reward",
        }
    }
}

/// The state of a test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Pairs that count.
    pub pairs: usize,
    /// Pairs left out, because one side had no reward.
    pub left_out: usize,
    pub difference: f64,
    /// Lower end of the difference's interval, valid at every check.
    pub low: f64,
    pub high: f64,
    pub evidence: f64,
}

/// The requirements of the next test of a run; absent if its tests are used up.
pub fn bar(acceptance: &Acceptance, tests: u32, accepted: u32, horizon: u32) -> Option<Bar> {
    (tests < horizon).then(|| Bar {
        test: tests + 1,
        needed: f64::from(horizon) / (acceptance.error_rate * f64::from(accepted + 1)),
        threshold: acceptance.improvement_threshold,
        max_tasks: acceptance.max_tasks,
    })
}

/// The fewest tasks with which the first test of a run can be passed, if every reward went from 0 to 1.
pub fn fewest_tasks(acceptance: &Acceptance, horizon: u32) -> Option<usize> {
    let needed = bar(acceptance, 0, 0, horizon)?.needed;
    fewest_observations(acceptance.improvement_threshold, Bounds::DIFFERENCE, needed)
}

/// Rewards of candidate and champion on the same tasks, each task once. A pair without both rewards is left out.
pub type Pairs = [(Option<f64>, Option<f64>)];

fn differences(pairs: &Pairs) -> Vec<f64> {
    pairs.iter().filter_map(|(candidate, champion)| Some((*candidate)? - (*champion)?)).collect()
}

pub fn standing(bar: &Bar, pairs: &Pairs) -> Standing {
    let Interval { low, high } =
        confidence_sequence(&differences(pairs), Bounds::DIFFERENCE, Confidence::default());
    Standing { low, high, ..without_interval(bar, pairs) }
}

/// Leaves out the interval, which takes a hundred times as long and does not affect the decision.
#[expect(clippy::cast_precision_loss, reason = "pairs are few")]
fn without_interval(bar: &Bar, pairs: &Pairs) -> Standing {
    let differences = differences(pairs);
    let count = differences.len();
    Standing {
        pairs: count,
        left_out: pairs.len() - count,
        difference: if count == 0 { 0.0 } else { differences.iter().sum::<f64>() / count as f64 },
        low: -1.0,
        high: 1.0,
        evidence: evidence_above(&differences, bar.threshold, Bounds::DIFFERENCE).unwrap_or(0.0),
    }
}

/// The result of a test. Giving up early can only lose acceptances, never cause one.
pub fn verdict(bar: &Bar, pairs: &Pairs) -> Verdict {
    let standing = without_interval(bar, pairs);
    let seen = standing.pairs + standing.left_out;
    let most = bar.max_tasks as usize;
    if standing.evidence >= bar.needed {
        Verdict::Accepted
    } else if standing.left_out > standing.pairs.max(PATIENCE / 2) {
        Verdict::Rejected(Rejection::TooManyFaults)
    } else if seen >= most {
        Verdict::Rejected(Rejection::NotShown)
    } else if standing.pairs >= PATIENCE.min(most.div_ceil(2)) && standing.difference <= bar.threshold {
        Verdict::Rejected(Rejection::NoGain)
    } else {
        Verdict::Open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCEPTANCE: Acceptance =
        Acceptance { error_rate: 0.05, max_tasks: 100, improvement_threshold: 0.01 };

    #[test]
    fn later_tests_need_as_much_and_acceptances_earn_some_back() {
        let needed = |tests, accepted| bar(&ACCEPTANCE, tests, accepted, 10).map(|bar| bar.needed);
        assert_eq!(needed(0, 0), Some(200.0));
        assert_eq!(needed(9, 0), Some(200.0));
        assert_eq!(needed(5, 1), Some(100.0));
        assert_eq!(needed(10, 3), None);
        let fewest = fewest_tasks(&ACCEPTANCE, 10).unwrap();
        assert!((8..=14).contains(&fewest), "{fewest}");
    }

    #[test]
    fn a_test_ends_in_one_of_its_ways() {
        let bar = bar(&ACCEPTANCE, 0, 0, 10).unwrap();
        let say = |pairs: &Pairs| verdict(&bar, pairs);
        assert_eq!(say(&[]), Verdict::Open);
        assert_eq!(say(&[(Some(1.0), Some(0.0)); 20]), Verdict::Accepted);
        assert_eq!(say(&[(Some(0.5), Some(0.5)); 10]), Verdict::Open);
        assert_eq!(say(&[(Some(0.5), Some(0.5)); 20]), Verdict::Rejected(Rejection::NoGain));
        assert_eq!(say(&[(Some(0.0), Some(1.0)); 20]), Verdict::Rejected(Rejection::NoGain));
        assert_eq!(say(&[(Some(0.55), Some(0.5)); 100]), Verdict::Rejected(Rejection::NotShown));
        assert_eq!(say(&[(None, Some(0.5)); 11]), Verdict::Rejected(Rejection::TooManyFaults));
        let standing = standing(&bar, &[(Some(1.0), Some(0.0)), (None, Some(1.0)), (Some(0.5), Some(0.5))]);
        assert_eq!((standing.pairs, standing.left_out), (2, 1));
        assert!((standing.difference - 0.5).abs() < 1e-12 && standing.low < 0.5 && standing.high > 0.5);
    }
}
