//! Lists of words: one table shared with `python/verify.py`, which explains it.

use std::sync::OnceLock;

/// The name of a list and its words on each line; `_` in a word is a space.
pub(super) const TABLE: &str = include_str!("words.txt");

/// The lists, each in the order of the table.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Words for about before a number, and behind it.
    pub(super) approximately: Vec<String>,
    pub(super) nearly: Vec<String>,
    /// What may follow a count.
    pub(super) counters: Vec<String>,
    /// Words of a passed and of a failed check, without spaces.
    pub(super) passed: Vec<String>,
    pub(super) failed: Vec<String>,
    /// Words that negate the name of a boolean.
    pub(super) negations: Vec<String>,
    /// Words in a remark that offer a second answer, doubt the first one or take it back.
    pub(super) hedges: Vec<String>,
    /// Words in a remark that may multiply a number.
    pub(super) multipliers: Vec<String>,
    /// Words that may stand alone in brackets behind a number without a unit, where another word could be a unit.
    pub(super) remarks: Vec<String>,
    /// Words before a number, and behind it, that make it no second value.
    pub(super) references: Vec<String>,
    pub(super) rounding: Vec<String>,
    /// Texts that hold the place of a value.
    pub(super) placeholders: Vec<String>,
    /// LaTeX commands that only change how their argument looks.
    pub(super) wrappers: Vec<String>,
}

pub(super) fn words() -> &'static Words {
    static WORDS: OnceLock<Words> = OnceLock::new();
    WORDS.get_or_init(|| {
        let mut words = Words::default();
        for line in TABLE.lines() {
            let (name, rest) = line.split_once(' ').unwrap_or_default();
            // A test reads every line of the table.
            if let Some(list) = words.list(name) {
                list.extend(rest.split(' ').map(|word| word.replace('_', " ")));
            }
        }
        words
    })
}

impl Words {
    fn list(&mut self, name: &str) -> Option<&mut Vec<String>> {
        Some(match name {
            "approximately" => &mut self.approximately,
            "nearly" => &mut self.nearly,
            "counters" => &mut self.counters,
            "passed" => &mut self.passed,
            "failed" => &mut self.failed,
            "negations" => &mut self.negations,
            "hedges" => &mut self.hedges,
            "multipliers" => &mut self.multipliers,
            "remarks" => &mut self.remarks,
            "references" => &mut self.references,
            "rounding" => &mut self.rounding,
            "placeholders" => &mut self.placeholders,
            "wrappers" => &mut self.wrappers,
            _ => return None,
        })
    }
}

/// Whether a list has a word.
pub(super) fn has(list: &[String], word: &str) -> bool {
    list.iter().any(|known| known == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        for line in TABLE.lines() {
            let (name, rest) = line.split_once(' ').unwrap();
            let mut read = Words::default();
            assert!(read.list(name).is_some(), "{line}");
            assert!(rest.split(' ').all(|word| !word.is_empty()), "{line}");
        }
        assert!(has(&words().hedges, "or") && has(&words().placeholders, "your answer"));
        assert!(words().passed.iter().all(|word| !has(&words().failed, word)));
    }
}
