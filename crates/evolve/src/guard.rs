//! Keeps the text of tasks out of prompts: a prompt that repeats a task, or contains its answers, only looks better.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use aec_judge::audit::{answers_in, telling_answers};
use aec_task::task::Task;

/// This many equal words in a row are not a coincidence.
const RUN: usize = 10;

/// The words of some tasks, and their answers.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    runs: HashSet<u64>,
    answers: Vec<Vec<String>>,
}

impl Guard {
    pub fn of(tasks: &[Task]) -> Self {
        let mut guard = Self::default();
        for task in tasks {
            guard.add_text(&task.instruction().unwrap_or_default());
            guard.answers.push(telling_answers(task));
        }
        guard
    }

    fn add_text(&mut self, text: &str) {
        let words = words(text);
        self.runs.extend(words.windows(RUN).map(fingerprint));
    }

    /// The first words of a text that repeat a task, unless they were already in `before`.
    pub fn repeats(&self, text: &str, before: &str) -> Option<String> {
        let known: HashSet<u64> = words(before).windows(RUN).map(fingerprint).collect();
        let words = words(text);
        words
            .windows(RUN)
            .find(|run| {
                let print = fingerprint(run);
                self.runs.contains(&print) && !known.contains(&print)
            })
            .map(|run| run.join(" "))
    }

    /// Whether a text contains more expected values of a task than chance explains.
    pub fn holds_answers(&self, text: &str) -> bool {
        self.answers.iter().any(|answers| answers_in(answers, text).is_some())
    }
}

/// The words of a text in lower case, without surrounding punctuation.
fn words(text: &str) -> Vec<String> {
    text.split_whitespace()
        .map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase())
        .filter(|word| !word.is_empty())
        .collect()
}

fn fingerprint(run: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    run.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: &str = "A 45 m long cable feeds a pump of 15 kW at 400 V; find the voltage drop in percent.";

    fn guard() -> Guard {
        let mut guard = Guard::default();
        guard.add_text(TASK);
        guard.answers.push(vec!["3.1416".to_owned(), "27.1828".to_owned()]);
        guard
    }

    #[test]
    fn ten_words_in_a_row_are_no_accident() {
        let guard = guard();
        assert!(guard.repeats(TASK, "").is_some());
        assert!(guard.repeats("Note: a 45 M LONG cable — feeds a \"pump\" of 15 kW at 400 V.", "").is_some());
        assert!(guard.repeats("A long cable feeds a pump; find the voltage drop in percent.", "").is_none());
        assert!(guard.repeats("a 45 m long cable feeds a pump of", "").is_none(), "nine words");
        assert!(guard.repeats(TASK, TASK).is_none(), "what was there before is not new");
        assert!(guard.repeats("", "").is_none());
    }

    #[test]
    fn answers_are_found() {
        let guard = guard();
        assert!(guard.holds_answers("Use 3.1416 for the first, 27.1828 for the second."));
        assert!(!guard.holds_answers("Use 3.1416 for the first."), "one of two may be chance");
        assert!(!guard.holds_answers("Check units."));
    }
}
