//! The four kinds of turns, and labels that assign kinds to turns.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::trace::Trace;

/// The purpose of a turn. Matrices have their rows and columns in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Does something that advances the task.
    Execution,
    /// Checks what was done.
    Verification,
    /// Reasons step by step towards a decision.
    Deliberation,
    /// Looks around, or weighs alternatives.
    Exploration,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Execution, Self::Verification, Self::Deliberation, Self::Exploration];

    /// All kinds; the first of two equally strong ones wins.
    pub const BY_PRECEDENCE: [Self; 4] =
        [Self::Verification, Self::Exploration, Self::Deliberation, Self::Execution];

    pub fn name(self) -> &'static str {
        match self {
            Self::Execution => "execution",
            Self::Verification => "verification",
            Self::Deliberation => "deliberation",
            Self::Exploration => "exploration",
        }
    }

    pub fn letter(self) -> char {
        match self {
            Self::Execution => 'E',
            Self::Verification => 'V',
            Self::Deliberation => 'D',
            Self::Exploration => 'X',
        }
    }

    /// Its index in [`Kind::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// The kind with a name or letter, in any case.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        Self::ALL.into_iter().find(|kind| {
            text.eq_ignore_ascii_case(kind.name())
                || (text.len() == 1 && text.starts_with(|c: char| c.eq_ignore_ascii_case(&kind.letter())))
        })
    }
}

/// The kind of one turn, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Label {
    pub turn_index: u32,
    #[serde(rename = "bond_type")]
    pub kind: Kind,
    /// From 0 to 1.
    pub confidence: f64,
    /// The rules that support the kind, or a model's rationale.
    pub evidence: Vec<Cow<'static, str>>,
}

/// Labels in the order of the turns; absent for turns without one.
pub fn in_order(trace: &Trace, labels: Vec<Label>) -> Vec<Option<Label>> {
    let mut by_turn: HashMap<u32, Label> = HashMap::new();
    for label in labels {
        by_turn.entry(label.turn_index).or_insert(label);
    }
    trace.turns.iter().map(|turn| by_turn.remove(&turn.index)).collect()
}

/// The number of labels of each kind, in the order of [`Kind::ALL`].
pub fn counts<'l>(labels: impl IntoIterator<Item = &'l Label>) -> [usize; 4] {
    let mut counts = [0; 4];
    for label in labels {
        counts[label.kind.index()] += 1;
    }
    counts
}

/// The most frequent kind; ties are broken by precedence.
pub fn dominant(counts: [usize; 4]) -> Option<Kind> {
    let most = counts.into_iter().max().filter(|most| *most > 0)?;
    Kind::BY_PRECEDENCE.into_iter().find(|kind| counts[kind.index()] == most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_letters_are_read() {
        for kind in Kind::ALL {
            assert_eq!(Kind::parse(kind.name()), Some(kind));
            assert_eq!(Kind::parse(&kind.letter().to_string()), Some(kind));
            assert_eq!(Kind::ALL[kind.index()], kind);
        }
        assert_eq!(Kind::parse(" Exploration "), Some(Kind::Exploration));
        assert_eq!(Kind::parse("exec"), None);
    }

    #[test]
    fn labels_are_put_into_the_order_of_turns() {
        let turns =
            [7, 9, 11].map(|index| aec_ledger::transcript::turns::Turn { index, ..Default::default() });
        let trace = Trace { turns: turns.into(), ..Trace::default() };
        let label = |turn_index, kind| Label { turn_index, kind, confidence: 1.0, evidence: Vec::new() };
        let given = vec![label(11, Kind::Execution), label(7, Kind::Exploration), label(7, Kind::Execution)];
        let kinds: Vec<_> =
            in_order(&trace, given).iter().map(|label| label.as_ref().map(|label| label.kind)).collect();
        assert_eq!(kinds, [Some(Kind::Exploration), None, Some(Kind::Execution)]);
    }

    #[test]
    fn ties_go_by_precedence() {
        assert_eq!(dominant([2, 1, 2, 0]), Some(Kind::Deliberation));
        assert_eq!(dominant([1, 1, 1, 1]), Some(Kind::Verification));
        assert_eq!(dominant([0; 4]), None);
    }
}
