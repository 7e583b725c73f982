//! The conclusion of a comparison, in one word and one sentence.

use aec_base::decimal::{rounded, signed};
use serde::Serialize;

use super::{Alignment, Arm, Power, Question, RewardChange, UnknownTrials};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// The second run is better.
    Improved,
    /// Any difference is within the margin.
    Equivalent,
    /// The second run may be better, and is worse by no more than the margin.
    NotWorse,
    /// The second run is worse.
    Regressed,
    /// The data do not decide.
    Undecided,
}

impl VerdictKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Improved => "improved",
            Self::Equivalent => "equivalent",
            Self::NotWorse => "not_worse",
            Self::Regressed => "regressed",
            Self::Undecided => "undecided",
        }
    }

    /// Whether a gate lets the second run pass.
    pub fn is_fine(self) -> bool {
        matches!(self, Self::Improved | Self::Equivalent | Self::NotWorse)
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    pub kind: VerdictKind,
    pub sentence: String,
}

impl Verdict {
    /// The verdict when the rewards of some trials are unknown: it holds only if it holds whatever they are. `kinds` are
    /// the verdicts in both extreme cases, where it is known which tasks the trials are of.
    pub(super) fn with_unknown(self, unknown: &UnknownTrials, kinds: [Option<VerdictKind>; 2]) -> Self {
        let count = unknown.base + unknown.other;
        if kinds.iter().all(|kind| *kind == Some(self.kind)) {
            let sentence = format!("{}; this holds whatever the {count} unknown rewards are", self.sentence);
            return Self { sentence, ..self };
        }
        let span = match (unknown.low, unknown.high) {
            (Some(low), Some(high)) => {
                format!("they leave a difference of {} to {} possible", signed(low, 3), signed(high, 3))
            }
            _ => "nothing here says of which tasks they are".to_owned(),
        };
        let sentence = format!("{}; but the rewards of {count} trials are unknown: {span}", self.sentence);
        Self { kind: VerdictKind::Undecided, sentence }
    }
}

pub(super) fn decide(
    base: &Arm,
    other: &Arm,
    reward: &RewardChange,
    alignment: &Alignment,
    power: &Power,
    question: &Question,
) -> Verdict {
    let (Some(difference), Some(interval)) = (reward.difference, reward.interval) else {
        let sentence = format!(
            "{} and {} cannot be compared: a difference needs two tasks with a reward on both sides",
            base.name, other.name
        );
        return Verdict { kind: VerdictKind::Undecided, sentence };
    };
    // Unpaired runs have no signs to flip; for them the interval decides.
    let p_value = reward.permutation.as_ref().filter(|_| alignment.paired).map(|test| test.p_value);
    let is_clear = match p_value {
        Some(p_value) => p_value < question.goal.alpha,
        None => !interval.contains(0.0),
    };
    let kind = if is_clear && difference > 0.0 {
        VerdictKind::Improved
    } else if is_clear && difference < 0.0 {
        VerdictKind::Regressed
    } else if interval.low >= -question.margin && interval.high <= question.margin {
        VerdictKind::Equivalent
    } else if interval.low >= -question.margin {
        VerdictKind::NotWorse
    } else {
        VerdictKind::Undecided
    };
    let says = match kind {
        VerdictKind::Improved => "is better than",
        VerdictKind::Regressed => "is worse than",
        VerdictKind::Equivalent => "is as good as",
        VerdictKind::NotWorse => "is not worse than",
        VerdictKind::Undecided => "may be better or worse than",
    };
    let how = if alignment.paired {
        format!("paired over {} tasks", alignment.tasks)
    } else {
        "not paired: no task was done by both".to_owned()
    };
    let chance = match p_value {
        Some(p_value) if p_value < 0.001 => ", p < 0.001".to_owned(),
        Some(p_value) => format!(", p = {}", rounded(p_value, 3)),
        None => String::new(),
    };
    let mut sentence = format!(
        "{} {says} {}: mean reward differs by {} (95 % {} to {}, {how}{chance})",
        other.name,
        base.name,
        signed(difference, 3),
        signed(interval.low, 3),
        signed(interval.high, 3)
    );
    if kind == VerdictKind::Undecided
        && let Some(smallest) = power.minimal_detectable_effect
    {
        sentence
            .push_str(&format!("; a comparison of this size sees differences from {}", rounded(smallest, 3)));
    }
    Verdict { kind, sentence }
}
