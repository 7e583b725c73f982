//! A TOML file that is being read: its document and all problems found so far.

use std::path::Path;

use aec_base::document::{CONFIG_FILE_LIMIT, Decoded, Document, Shared, Syntax};
use aec_base::problem::{Place, Problem, Severity};
use aec_base::text;
use serde::de::DeserializeOwned;

use crate::long_documents::{FAMILY, number_of};

/// A text of the file for use in a sentence: safe to print and short.
pub(crate) fn shown(foreign: &str) -> String {
    const MOST: usize = 60;
    let short: String = foreign.chars().take(MOST).collect();
    let more = if short.len() < foreign.len() { "…" } else { "" };
    format!("{}{more}", text::printable(&short).replace('\n', "\\n"))
}

/// Parses a file, if it is TOML and not too large.
pub(crate) fn parse(path: &Path, text: String) -> Result<Document, Vec<Problem>> {
    if text.len() as u64 > CONFIG_FILE_LIMIT {
        let what = format!("the file has {} bytes; the limit is {CONFIG_FILE_LIMIT}", text.len());
        let problem = Problem::error(what).id(FAMILY.number(number_of::TOO_LARGE)).in_file(path);
        return Err(vec![problem.fix("keep settings here, and texts in separate files")]);
    }
    Document::parse(path, text, Syntax::Toml, FAMILY)
}

/// A document, and the problems found in it so far.
pub(crate) struct Checker<'a> {
    document: &'a Document,
    pub(crate) problems: Vec<Problem>,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(document: &'a Document) -> Self {
        Self { document, problems: Vec::new() }
    }

    /// Decodes a `T` and records what does not fit.
    pub(crate) fn decode<T: DeserializeOwned>(&mut self) -> Option<T> {
        let Decoded { value, problems, .. } = self.document.decode::<T>();
        self.problems.extend(problems);
        value
    }

    pub(crate) fn place(&self, key: &str) -> Place {
        self.document.place(key)
    }

    pub(crate) fn place_in_list(&self, key: &str, index: usize) -> Place {
        self.document.place_in_list(key, index)
    }

    /// Records a problem at a dotted key.
    pub(crate) fn push(&mut self, key: &str, problem: Problem) {
        let place = self.place(key);
        self.problems.push(problem.at(place));
    }

    /// Records a problem that only these files have at a dotted key.
    pub(crate) fn own(&mut self, number: u32, key: &str, what: String, fix: impl Into<String>) {
        self.push(key, Problem::error(what).id(FAMILY.number(number)).fix(fix));
    }

    pub(crate) fn shared(&mut self, shared: Shared, key: &str, what: String, fix: impl Into<String>) {
        self.push(key, Problem::error(what).id(FAMILY.id(shared)).fix(fix));
    }

    /// The value if there is no error, and all problems in the order of the file.
    pub(crate) fn finish<T>(mut self, value: Option<T>) -> (Option<T>, Vec<Problem>) {
        self.problems.sort_by_key(|problem| (problem.line, problem.column));
        let wrong = self.problems.iter().any(|problem| problem.severity == Severity::Error);
        (value.filter(|_| !wrong), self.problems)
    }
}

/// Why a text is not a plain path below a directory, such as `fixtures/spec.md`.
///
/// This checks only the form: code that opens the path must still refuse links.
pub(crate) fn path_fault(path: &str) -> Option<&'static str> {
    const LONGEST: usize = 1024;
    if path.is_empty() {
        return Some("is empty");
    }
    if path.len() > LONGEST {
        return Some("is longer than any path");
    }
    if path.starts_with('/') {
        return Some("is absolute");
    }
    if path.chars().any(|letter| letter.is_control() || letter == '\\') {
        return Some("has a control character or a backslash");
    }
    path.split('/').find_map(|part| match part {
        "" => Some("has an empty part"),
        "." | ".." => Some("has a part `.` or `..`"),
        // `C:` is a drive, and `name:part` denotes a function of a file.
        _ if part.contains(':') => Some("has a colon"),
        _ if part.trim() != part => Some("has a part that begins or ends with a blank"),
        _ => None,
    })
}

/// Whether a text can name a variable in Python. Only ASCII, because Python normalises other letters, so that two
/// spellings could be one name.
pub(crate) fn is_python_name(text: &str) -> bool {
    let mut letters = text.chars();
    text.len() <= 128
        && letters.next().is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_plain() {
        for good in ["a", "a/b.md", "a b/c", "ü/x.toml", "..a/b..", ".hidden"] {
            assert_eq!(path_fault(good), None, "{good}");
        }
        for bad in ["", "/a", "../a", "a/../b", "a//b", "a/", "./a", "a\\b", "a\0b", "C:/x", "a/ b", "a\n"] {
            assert!(path_fault(bad).is_some(), "{bad:?}");
        }
        assert!(path_fault(&"x/".repeat(600)).is_some());
    }

    #[test]
    fn python_names() {
        for good in ["a", "_a1", "source_doc", "Z"] {
            assert!(is_python_name(good), "{good}");
        }
        for bad in ["", "1a", "a-b", "a b", "ä", "a.b", "a\n"] {
            assert!(!is_python_name(bad), "{bad:?}");
        }
    }
}
