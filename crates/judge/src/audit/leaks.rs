//! Checks whether the agent's files already contain the answer.

use std::io;

use aec_base::problem::Problem;
use aec_task::task::Task;
use serde_json::{Map, Value};

use super::answer::Answer;
use crate::golden::{Expectation, golden_outputs};

/// Larger workspace files are data, not prose; a number in them proves nothing.
const FILE_LIMIT: u64 = 4 * 1024 * 1024;
/// A text with this many numbers does not reveal which one is the answer.
const HAYSTACK: usize = 20;
/// Numbers with fewer digits occur by chance.
const SIGNIFICANT_DIGITS: usize = 4;

/// Searches the instruction and the workspace for expected values, golden answers and parts of the verifier.
pub(crate) fn leaks(task: &Task, golden: &Map<String, Value>, instruction: &str) -> io::Result<Vec<Problem>> {
    let mut problems = Vec::new();
    let mut texts = vec![("instruction.md".to_owned(), instruction.to_owned())];
    for file in task.workspace_files()? {
        if file.source.metadata()?.len() <= FILE_LIMIT {
            let text = String::from_utf8_lossy(&fs_err::read(&file.source)?).into_owned();
            texts.push((file.place, text));
        }
    }
    let mut numbers = Vec::new();
    collect_numbers("", golden, &mut numbers);
    for (place, text) in &texts {
        for (key, number) in numbers.iter().filter(|(_, number)| contains_number(text, number)) {
            let haystack = telling_numbers(text);
            if haystack >= HAYSTACK {
                problems.push(
                    Problem::note(format!(
                        "the expected value of `{key}` is one of {haystack} numbers in {place}"
                    ))
                    .id("A052")
                    .why("an agent must still find out which one it is")
                    .fix("nothing, if the file is data to be evaluated"),
                );
            } else {
                problems.push(
                    Problem::error(format!("the expected value of `{key}`, {number}, is in {place}"))
                        .id("A050")
                        .why("an agent can copy it without doing the work")
                        .fix("take it out, or ask for something that must be worked out"),
                );
            }
        }
    }
    let verifier = fs_err::read_to_string(task.path.join("tests/verify.py")).unwrap_or_default();
    let tell_tale: Vec<&str> = verifier
        .lines()
        .map(str::trim)
        .filter(|line| line.len() > 40 && !line.starts_with(['#', '"']))
        .collect();
    for (place, text) in &texts {
        let shared = tell_tale.iter().filter(|line| text.contains(**line)).count();
        if shared >= 3 {
            problems.push(
                Problem::error(format!("{place} contains {shared} lines of the verifier"))
                    .id("A051")
                    .why("the agent can read how it is judged, perhaps with the answers")
                    .fix("keep the verifier's code out of environment/ and tools/"),
            );
        }
    }
    Ok(problems)
}

/// Expected values of a task that do not occur in a text by chance and are not in its own prompt.
pub fn telling_answers(task: &Task) -> Vec<String> {
    let instruction = task.instruction().unwrap_or_default();
    let golden = golden_outputs(task, Expectation::Full).unwrap_or_default();
    let mut numbers = Vec::new();
    for answer in golden.iter().filter_map(|(_, output)| Answer::parse(output)) {
        collect_numbers("", &answer.object, &mut numbers);
    }
    let mut values: Vec<String> = numbers.into_iter().map(|(_, number)| number).collect();
    values.retain(|number| !contains_number(&instruction, number));
    values.sort();
    values.dedup();
    values
}

/// How many expected values of a task occur in a text; `None` if so few that it may be chance: at least two are
/// needed, or the only one.
pub fn answers_in(answers: &[String], text: &str) -> Option<usize> {
    let found = answers.iter().filter(|number| contains_number(text, number)).count();
    (found >= 2 || found == 1 && answers.len() == 1).then_some(found)
}

fn collect_numbers(prefix: &str, object: &Map<String, Value>, numbers: &mut Vec<(String, String)>) {
    for (key, value) in object {
        let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            Value::Number(number) => {
                let text = number.to_string();
                if significant_digits(&text) >= SIGNIFICANT_DIGITS {
                    numbers.push((key, text));
                }
            }
            Value::Object(inner) => collect_numbers(&key, inner, numbers),
            _ => {}
        }
    }
}

/// How many numbers of a text have as many significant digits as an expected value.
fn telling_numbers(text: &str) -> usize {
    text.split(|c: char| !(c.is_ascii_digit() || c == '.'))
        .filter(|word| significant_digits(word) >= SIGNIFICANT_DIGITS)
        .count()
}

/// The number of significant digits: 1000 has as many as 1.
fn significant_digits(number: &str) -> usize {
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').len()
}

/// Whether a text contains a number by itself, not as part of a longer one.
fn contains_number(text: &str, number: &str) -> bool {
    text.match_indices(number).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + number.len()..].chars().next();
        let part_of_number = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        !part_of_number(before) && before != Some('.') && !part_of_number(after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_numbers_say_little() {
        for (number, digits) in [("1000", 1), ("0.0025", 2), ("1250.0", 3), ("3.217", 4), ("-120.04", 5)] {
            assert_eq!(significant_digits(number), digits, "{number}");
        }
    }

    #[test]
    fn numbers_are_found_by_themselves_only() {
        assert!(contains_number("flow is 3.217 m3/s", "3.217"));
        assert!(contains_number("3.217", "3.217"));
        assert!(!contains_number("13.217", "3.217"));
        assert!(!contains_number("3.2175", "3.217"));
        assert!(!contains_number("0.3.217", "3.217"));
    }
}
