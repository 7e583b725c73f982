//! When a candidate is accepted: a paired test on tasks that nobody learns from, which may be looked at after every batch.
//!
//! The test's null is that the candidate is better than what it challenges by no more than the threshold. Its evidence
//! is a betting capital (see `aec_report::stats::sequential`), so looking often costs nothing. A run makes several
//! tests; each needs more evidence than a single one would: with `horizon` tests at most, the k-th needs
//! `horizon / (error_rate · (accepted + 1))`. That is LOND with e-values (Xu and Ramdas, 2024): over the whole run the
//! share of acceptances that are wrong is at most the error rate, and where nothing is an improvement at all, the chance
//! to accept anything is at most the error rate. It holds however the tests depend on each other.
//!
//! The pairs of one test are different tasks. A task that came up again would say nothing new about other tasks, and the
//! evidence would grow without any: where a test has used all tasks that there are, it ends undecided.

use aec_report::stats::{
    Bounds, Confidence, Interval, confidence_sequence, evidence_above, fewest_observations,
};
use serde::{Deserialize, Serialize};

use crate::config::Acceptance;

/// Pairs before a test may be given up because nothing is gained so far.
const PATIENCE: usize = 20;

/// What a test needs, decided before its first task.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// Which test of the run, from 1.
    pub test: u32,
    /// Evidence that is needed.
    pub needed: f64,
    /// By how much the candidate must be better.
    pub threshold: f64,
    /// Tasks at most.
    pub max_tasks: u32,
}

/// What a test says so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The candidate is better by more than the threshold.
    Accepted,
    /// It is not shown to be.
    Rejected(Rejection),
    /// More tasks are needed.
    Open,
}

/// Why a candidate is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rejection {
    /// It was worse than its parent on the tasks that it was made from.
    WorseThanParent,
    /// Nothing was gained by then.
    NoGain,
    /// As many tasks as a test may have were used without enough evidence.
    NotShown,
    /// There was no further task that the test had not had.
    TasksRanOut,
    /// All tests of the run were used up.
    NoTestLeft,
    /// It holds expected values of tasks.
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

/// How far a test is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Pairs that count.
    pub pairs: usize,
    /// Pairs left out, because one of them had no reward.
    pub left_out: usize,
    /// Mean difference of rewards.
    pub difference: f64,
    /// Lower end of its interval, valid at every look.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    pub evidence: f64,
}

/// The bar of the next test of a run; none when its tests are used up.
pub fn bar(acceptance: &Acceptance, tests: u32, accepted: u32, horizon: u32) -> Option<Bar> {
    (tests < horizon).then(|| Bar {
        test: tests + 1,
        needed: f64::from(horizon) / (acceptance.error_rate * f64::from(accepted + 1)),
        threshold: acceptance.improvement_threshold,
        max_tasks: acceptance.max_tasks,
    })
}

/// Tasks with which the first test of a run can be passed at all, if every task went from 0 to 1.
pub fn fewest_tasks(acceptance: &Acceptance, horizon: u32) -> Option<usize> {
    let needed = bar(acceptance, 0, 0, horizon)?.needed;
    fewest_observations(acceptance.improvement_threshold, Bounds::DIFFERENCE, needed)
}

/// Rewards of candidate and champion on the same tasks, each of them once. A pair without both is left out.
pub type Pairs = [(Option<f64>, Option<f64>)];

fn differences(pairs: &Pairs) -> Vec<f64> {
    pairs.iter().filter_map(|(candidate, champion)| Some((*candidate)? - (*champion)?)).collect()
}

/// How far a test is.
pub fn standing(bar: &Bar, pairs: &Pairs) -> Standing {
    let Interval { low, high } =
        confidence_sequence(&differences(pairs), Bounds::DIFFERENCE, Confidence::default());
    Standing { low, high, ..without_interval(bar, pairs) }
}

/// The same without the interval, which takes a hundred times as long and decides nothing.
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

/// What a test says. Giving up early can only lose acceptances, never make one.
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
