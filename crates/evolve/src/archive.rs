//! The archive: the best known candidate of each way of working. Candidates that behave differently do not compete, so
//! a search that is stuck can continue from another of them. Evolutions and swarms share this code.

use std::collections::BTreeMap;

use aec_base::digest::Digest;
use serde::{Deserialize, Serialize};

/// Upper ends of the classes of each measure; values above the last form one more class.
const PROMPT_LETTERS: [f64; 4] = [500.0, 1_500.0, 4_000.0, 10_000.0];
const TOKENS: [f64; 5] = [1.0, 2_000.0, 8_000.0, 32_000.0, 128_000.0];
const CALLS: [f64; 4] = [0.0, 0.5, 1.0, 2.0];
const CHECKS: [f64; 3] = [0.0, 0.1, 0.3];

/// How a candidate works, measured from its trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Behaviour {
    /// Letters of the system prompt.
    pub prompt_letters: f64,
    /// Tokens per trial.
    pub tokens: f64,
    /// Tool calls per turn.
    pub calls: f64,
    /// Share of turns in which the agent checks its own work.
    pub checks: f64,
}

/// A class of behaviour: the class of each measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cell([u8; 4]);

impl Behaviour {
    pub fn cell(&self) -> Cell {
        let class = |value: f64, ends: &[f64]| {
            let class = ends.iter().position(|end| value <= *end).unwrap_or(ends.len());
            u8::try_from(class).unwrap_or(u8::MAX)
        };
        Cell([
            class(self.prompt_letters, &PROMPT_LETTERS),
            class(self.tokens, &TOKENS),
            class(self.calls, &CALLS),
            class(self.checks, &CHECKS),
        ])
    }
}

impl Cell {
    pub const COUNT: usize =
        (PROMPT_LETTERS.len() + 1) * (TOKENS.len() + 1) * (CALLS.len() + 1) * (CHECKS.len() + 1);

    /// The distance of two cells, in steps from class to class.
    pub fn distance(self, other: Self) -> u32 {
        self.0.iter().zip(other.0).map(|(one, other)| u32::from(one.abs_diff(other))).sum()
    }
}

impl From<Cell> for String {
    fn from(cell: Cell) -> Self {
        let [prompt, tokens, calls, checks] = cell.0;
        format!("{prompt}.{tokens}.{calls}.{checks}")
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from(*self))
    }
}

impl TryFrom<String> for Cell {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let parts: Vec<u8> = text.split('.').filter_map(|part| part.parse().ok()).collect();
        <[u8; 4]>::try_from(parts).map(Self).map_err(|_| format!("`{text}` is not a cell"))
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Elite {
    pub candidate: Digest,
    /// The agent that found it.
    pub agent: String,
    /// The agent's cycle in which it was found.
    pub cycle: u32,
    pub behaviour: Behaviour,
    /// Trials with a reward.
    pub trials: usize,
    pub mean: f64,
    /// Lower end of its interval, by which elites of a cell are compared: few trials cannot displace many.
    pub low: f64,
    pub high: f64,
    /// Whether it was accepted, that is, shown to be better than the candidate it challenged.
    pub accepted: bool,
    /// How often it was chosen as a parent.
    pub selected: u32,
    pub improved: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Archive {
    pub cells: BTreeMap<Cell, Elite>,
}

impl Archive {
    /// Puts a candidate into its cell if the cell is empty, already holds it, or holds one that is not known to be as
    /// good. Returns whether the candidate is in the cell now.
    pub fn offer(&mut self, elite: Elite) -> bool {
        let cell = elite.behaviour.cell();
        // New measurements may move a candidate to another cell; it must not be in two.
        let counts = self.take(elite.candidate).map(|known| (known.selected, known.improved));
        let (selected, improved) = counts.unwrap_or((elite.selected, elite.improved));
        let elite = Elite { selected, improved, ..elite };
        match self.cells.get(&cell) {
            // An accepted candidate gives way only to another accepted one.
            Some(holder) if (holder.accepted, holder.low) >= (elite.accepted, elite.low) => false,
            _ => {
                self.cells.insert(cell, elite);
                true
            }
        }
    }

    fn take(&mut self, candidate: Digest) -> Option<Elite> {
        let cell = *self.cells.iter().find(|(_, elite)| elite.candidate == candidate)?.0;
        self.cells.remove(&cell)
    }

    pub fn find(&self, candidate: Digest) -> Option<(&Cell, &Elite)> {
        self.cells.iter().find(|(_, elite)| elite.candidate == candidate)
    }

    pub fn note_selected(&mut self, candidate: Digest) {
        if let Some(elite) = self.cells.values_mut().find(|elite| elite.candidate == candidate) {
            elite.selected += 1;
        }
    }

    pub fn note_improved(&mut self, candidate: Digest) {
        if let Some(elite) = self.cells.values_mut().find(|elite| elite.candidate == candidate) {
            elite.improved += 1;
        }
    }

    /// The elite to continue from: prefers good ones and rarely tried ones, by the upper confidence bound of a bandit.
    pub fn choose(&self) -> Option<&Elite> {
        let tried: u32 = self.cells.values().map(|elite| elite.selected + 1).sum();
        let worth = |elite: &Elite| {
            let own = f64::from(elite.selected + 1);
            elite.mean + (0.5 * f64::from(tried).ln() / own).sqrt()
        };
        self.cells.values().max_by(|one, other| {
            worth(one).total_cmp(&worth(other)).then_with(|| other.candidate.cmp(&one.candidate))
        })
    }

    /// The elite that works most differently from a candidate; of several, the best.
    pub fn farthest(&self, from: Digest) -> Option<&Elite> {
        let (cell, _) = self.find(from)?;
        self.cells
            .iter()
            .filter(|(_, elite)| elite.candidate != from)
            .max_by(|(one_cell, one), (other_cell, other)| {
                let distance = cell.distance(**one_cell).cmp(&cell.distance(**other_cell));
                distance
                    .then_with(|| one.mean.total_cmp(&other.mean))
                    .then_with(|| other.candidate.cmp(&one.candidate))
            })
            .map(|(_, elite)| elite)
    }

    pub fn ranked(&self) -> Vec<(&Cell, &Elite)> {
        let mut elites: Vec<_> = self.cells.iter().collect();
        elites.sort_by(|(_, one), (_, other)| {
            other.mean.total_cmp(&one.mean).then_with(|| one.candidate.cmp(&other.candidate))
        });
        elites
    }

    /// The archive as a file: the same elites give the same bytes.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elite(id: &str, letters: f64, mean: f64) -> Elite {
        Elite {
            candidate: Digest::of(id.as_bytes()),
            agent: "evolve".to_owned(),
            cycle: 1,
            behaviour: Behaviour { prompt_letters: letters, ..Behaviour::default() },
            trials: 10,
            mean,
            low: mean - 0.1,
            high: mean + 0.1,
            accepted: false,
            selected: 0,
            improved: 0,
        }
    }

    #[test]
    fn cells_keep_the_best_known() {
        let mut archive = Archive::default();
        assert!(archive.offer(elite("a", 100.0, 0.5)));
        assert!(!archive.offer(elite("b", 100.0, 0.4)), "no better");
        assert!(archive.offer(elite("c", 100.0, 0.6)));
        assert!(archive.offer(Elite { accepted: true, ..elite("e", 100.0, 0.55) }), "shown to be better");
        assert!(!archive.offer(elite("f", 100.0, 0.9)), "not shown to be better");
        assert!(archive.offer(Elite { accepted: true, ..elite("c", 100.0, 0.6) }));
        assert!(archive.offer(elite("d", 9_000.0, 0.1)), "nobody was there");
        assert_eq!(archive.cells.len(), 2);
        archive.note_selected(Digest::of(b"c"));
        assert!(archive.offer(elite("c", 2_000.0, 0.6)), "it moves when it is seen to work otherwise");
        assert_eq!(archive.cells.len(), 2);
        assert_eq!(archive.find(Digest::of(b"c")).unwrap().1.selected, 1);
        assert_eq!(archive.farthest(Digest::of(b"c")).unwrap().candidate, Digest::of(b"d"));
        assert_eq!(archive.farthest(Digest::of(b"nobody")), None);
    }

    #[test]
    fn good_and_seldom_tried_ones_are_chosen() {
        let mut archive = Archive::default();
        archive.offer(elite("good", 100.0, 0.8));
        archive.offer(elite("poor", 9_000.0, 0.3));
        let mut counts = [0, 0];
        for _ in 0..40 {
            let chosen = archive.choose().unwrap().candidate;
            counts[usize::from(chosen != Digest::of(b"good"))] += 1;
            archive.note_selected(chosen);
        }
        assert!(counts[0] > counts[1] && counts[1] > 0, "{counts:?}");
        assert_eq!(Archive::default().choose(), None);
    }

    #[test]
    fn an_archive_is_what_its_file_says() {
        let mut archive = Archive::default();
        archive.offer(elite("a", 100.0, 0.5));
        archive.offer(elite("d", 9_000.0, 0.1));
        let text = archive.to_json();
        let read: Archive = serde_json::from_str(&text).unwrap();
        assert_eq!(read, archive);
        assert_eq!(read.to_json(), text);
        assert!(serde_json::from_str::<Archive>("{\"cells\": {\"1.2.3\": {}}}").is_err());
    }
}
