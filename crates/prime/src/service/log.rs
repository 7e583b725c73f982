//! Finds the new lines of a log that the service returns whole each time.
//!
//! The service may drop old lines from the front, and its last line may still be growing. Lines are remembered as
//! hashes, so that a long log need not be kept.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Texts that the service returns while there is no log yet.
const PLACEHOLDERS: [&str; 5] = [
    "Waiting for container to start",
    "No logs available",
    "Unable to retrieve logs",
    "Failed to fetch logs from sandbox",
    "The hosted eval is still initializing",
];

#[derive(Debug, Default)]
pub struct LogReader {
    seen: Vec<u64>,
}

impl LogReader {
    /// New lines. A last line without its end is left for later.
    pub fn take(&mut self, log: &str) -> Vec<String> {
        let complete = log.rfind('\n').map_or("", |end| &log[..end]);
        self.lines(complete)
    }

    /// New lines of a log that will not grow.
    pub fn finish(&mut self, log: &str) -> Vec<String> {
        self.lines(log)
    }

    fn lines(&mut self, log: &str) -> Vec<String> {
        if PLACEHOLDERS.iter().any(|placeholder| log.trim_start().starts_with(placeholder)) {
            return Vec::new();
        }
        let lines: Vec<&str> = log.lines().collect();
        let hashes: Vec<u64> = lines.iter().map(|line| hash(line)).collect();
        let known = overlap(&self.seen, &hashes);
        // An answer shorter than before is incomplete; its lines are already known.
        if hashes.len() < self.seen.len() && self.seen.starts_with(&hashes) {
            return Vec::new();
        }
        self.seen = hashes;
        lines[known..].iter().map(|line| plain(line)).filter(|line| !line.trim().is_empty()).collect()
    }
}

fn hash(line: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}

/// Length of the longest end of `old` that `new` begins with, by the failure function of Knuth, Morris and Pratt.
fn overlap(old: &[u64], new: &[u64]) -> usize {
    if new.is_empty() {
        return 0;
    }
    let mut failure = vec![0; new.len()];
    for at in 1..new.len() {
        failure[at] = extend(new, &failure, failure[at - 1], new[at]);
    }
    let mut matched = 0;
    for line in old {
        if matched == new.len() {
            matched = failure[matched - 1];
        }
        matched = extend(new, &failure, matched, *line);
    }
    matched
}

fn extend(new: &[u64], failure: &[usize], mut matched: usize, line: u64) -> usize {
    while matched > 0 && new[matched] != line {
        matched = failure[matched - 1];
    }
    matched + usize::from(new[matched] == line)
}

/// A line without colours, cursor movements and text that a carriage return overwrote, because it goes to a terminal.
fn plain(line: &str) -> String {
    let line = line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
    let mut text = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            if chars.next_if_eq(&'[').is_some() {
                // Parameters up to the letter that ends the sequence.
                while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {}
            }
        } else if c == '\t' || !c.is_control() {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_new_lines_come() {
        let mut log = LogReader::default();
        assert_eq!(log.take("one\ntw"), ["one"]);
        assert_eq!(log.take("one\ntwo\nthree"), ["two"]);
        assert_eq!(log.take("one\ntwo\nthree\n"), ["three"]);
        assert_eq!(log.take("one\ntwo\nthree\n"), [""; 0]);
        assert_eq!(log.take("two\nthree\nfour\n"), ["four"], "the front may be dropped");
        assert_eq!(log.take("two\n"), [""; 0], "a shorter answer brings nothing");
        assert_eq!(log.finish("three\nfour\nfive"), ["five"]);
        assert_eq!(log.take(""), [""; 0]);
    }

    #[test]
    fn equal_lines_count() {
        let mut log = LogReader::default();
        assert_eq!(log.take("x\nx\n").len(), 2);
        assert_eq!(log.take("x\nx\nx\n").len(), 1);
    }

    #[test]
    fn placeholders_and_control_characters_do_not_come() {
        let mut log = LogReader::default();
        assert!(log.take("Waiting for container to start...\n").is_empty());
        let lines = log.take("\u{1b}[31mred\u{1b}[0m\u{7}\n 10%|#|\r100%|##|\r\n\u{1b}]0;title\u{7}x\n\n");
        assert_eq!(lines, ["red", "100%|##|", "]0;titlex"]);
    }

    proptest! {
        #[test]
        fn any_growth_is_read_once(lines in prop::collection::vec("[ab]{0,2}x", 0..40), cuts in prop::collection::vec(0usize..160, 0..8)) {
            let whole = lines.iter().map(|line| format!("{line}\n")).collect::<Vec<_>>().concat();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(whole.len())).collect();
            cuts.sort_unstable();
            let mut log = LogReader::default();
            let mut got = Vec::new();
            for cut in cuts {
                got.extend(log.take(&whole[..cut]));
            }
            got.extend(log.finish(&whole));
            prop_assert_eq!(got, lines);
        }
    }
}
