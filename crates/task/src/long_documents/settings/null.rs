//! The word `null` as a value, which TOML does not have, but users write it because the documents of this format do.
//!
//! The text keeps its length, so that all positions stay right: the four letters become `[[]]`, a value that no key
//! of these files accepts. The decoder then reports a wrong type and leaves the key unset, and that error is replaced
//! by a note.

use std::path::Path;

use aec_base::document::{Shared, place};
use aec_base::problem::Problem;

use crate::long_documents::{FAMILY, number_of};

const WORD: &str = "null";
const STAND_IN: &str = "[[]]";

/// The text with the replacements, and the byte offset of each.
pub(super) fn stand_in(text: &str) -> (String, Vec<usize>) {
    let mut changed = String::with_capacity(text.len());
    let mut offsets = Vec::new();
    let mut copied = 0;
    for offset in values(text) {
        changed.push_str(&text[copied..offset]);
        changed.push_str(STAND_IN);
        copied = offset + WORD.len();
        offsets.push(offset);
    }
    changed.push_str(&text[copied..]);
    (changed, offsets)
}

/// Turns the errors about replaced values into notes.
pub(super) fn explain(path: &Path, text: &str, offsets: &[usize], problems: &mut Vec<Problem>) {
    let wrong_type = FAMILY.id(Shared::WrongType);
    for offset in offsets {
        let place = place(path, text, *offset);
        problems.retain(|problem| {
            let same_line = problem.line == Some(place.line) && problem.id.as_ref() == Some(&wrong_type);
            // The error about a list of texts is at its first element, one column further.
            !(same_line
                && problem.column.is_some_and(|column| (place.column..=place.column + 1).contains(&column)))
        });
        let note = Problem::note("`null` is not TOML; the key is read as not set")
            .id(FAMILY.number(number_of::NULL))
            .fix("remove the line, or put # in front of it");
        problems.push(note.at(place));
    }
}

/// Offsets of the word `null` as a value: after an equals sign that is outside strings and comments.
fn values(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    let mut after_equals = false;
    while at < bytes.len() {
        match bytes[at] {
            b'#' => {
                at = bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| at + end);
                after_equals = false;
            }
            b'"' | b'\'' => {
                at = end_of_string(bytes, at);
                after_equals = false;
            }
            b'=' => {
                after_equals = true;
                at += 1;
            }
            b' ' | b'\t' => at += 1,
            _ if after_equals && is_word(&bytes[at..]) => {
                found.push(at);
                after_equals = false;
                at += WORD.len();
            }
            _ => {
                after_equals = false;
                at += 1;
            }
        }
    }
    found
}

fn is_word(rest: &[u8]) -> bool {
    rest.strip_prefix(WORD.as_bytes()).is_some_and(|after| {
        after.first().is_none_or(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',' | b'}' | b'#'))
    })
}

/// The offset after the string that begins at `start`. An unclosed single-line string ends with its line.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let long = bytes[start..].starts_with(&[quote; 3]);
    let mut at = start + if long { 3 } else { 1 };
    while at < bytes.len() {
        if bytes[at] == b'\\' && quote == b'"' {
            at += 2;
        } else if long && bytes[at..].starts_with(&[quote; 3]) {
            // Up to two quotes may come directly before the closing three.
            let quotes = bytes[at..].iter().take(5).take_while(|byte| **byte == quote).count();
            return at + quotes;
        } else if !long && bytes[at] == quote {
            return at + 1;
        } else if !long && bytes[at] == b'\n' {
            return at;
        } else {
            at += 1;
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_values_are_found() {
        let found = |text: &str| values(text).len();
        for one in
            ["a = null", "a=null # x", "a = null\r\n", "a = {b = null}", "a = {b=null,c=1}", "\"=\" = null"]
        {
            assert_eq!(found(one), 1, "{one}");
        }
        for none in [
            "a = 'null'",
            "a = \"= null\"",
            "# a = null",
            "a = nullable",
            "null = 1",
            "a = \"\"\"\nb = null\n\"\"\"",
            "a = '''\nb = null\n'''",
            "a = \"\"\"x\"\"\"\"\" # = null",
            "a = \"\\\" = null\"",
            "a = [null]",
            "a = null-x",
        ] {
            assert_eq!(found(none), 0, "{none}");
        }
        assert_eq!(found("a = '''x'''\nb = null\nc = \"\"\nd = null"), 2);
    }

    proptest! {
        #[test]
        fn the_length_stays(text in "([a-c =\"'#\\n\\\\{},ü]|null| = null){0,40}") {
            let (changed, offsets) = stand_in(&text);
            prop_assert_eq!(changed.len(), text.len());
            for offset in offsets {
                prop_assert_eq!(&text[offset..offset + 4], "null");
            }
        }
    }
}
