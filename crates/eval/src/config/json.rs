//! JSON objects on the command line. A duplicate key and a number that JSON does not have are refused, because either
//! would silently become something that the user did not mean.

use aec_base::json::{Strict, error_offset, error_text};
use aec_base::problem::Problem;
use aec_base::text::printable;
use serde_json::{Map, Value};

use crate::config::{FAMILY, number};

/// How other languages write numbers that JSON does not have.
const NOT_NUMBERS: [&str; 4] = ["NaN", "nan", "Infinity", "inf"];

/// The text before and after the key in the error about a duplicate key.
const TWICE: (&str, &str) = ("the key \"", "\" occurs twice");

/// Reads the value of a flag that takes a JSON object, such as `-a`. The problem names the flag and the place in the
/// text.
pub fn parse_json_object(flag: &str, text: &str) -> Result<Map<String, Value>, Problem> {
    let problem = |what: String| {
        Problem::error(what)
            .id(FAMILY.number(number::NOT_AN_OBJECT))
            .fix(format!("write an object, such as {flag} '{{\"key\": 1}}'"))
    };
    if text.trim().is_empty() {
        return Err(problem(format!("the value of {flag} is empty")));
    }
    match aec_base::json::from_str(text) {
        Ok(Strict(Value::Object(map))) => Ok(map),
        Ok(Strict(other)) => {
            Err(problem(format!("the value of {flag} must be a JSON object, not {}", kind(&other))))
        }
        Err(error) => {
            let message = error_text(&error);
            let offset = offset_of(text, &error, &message);
            let (before, rest) = text.split_at(offset);
            let word_start = before.trim_end_matches(|letter: char| letter.is_ascii_alphabetic()).len();
            let word = text[word_start..].trim_start_matches(['-', '+']);
            let reason = match NOT_NUMBERS.iter().find(|name| word.starts_with(**name)) {
                Some(name) => format!("JSON has no {name}"),
                None if rest.starts_with('\'') => "JSON has only double quotes".to_owned(),
                None if error.is_eof() => "it ends too early".to_owned(),
                None => printable(&message).into_owned(),
            };
            Err(problem(format!("the value of {flag} is not valid JSON at {}: {reason}", place(before))))
        }
    }
}

/// The offset at which the user looks for the error.
fn offset_of(text: &str, error: &serde_json::Error, message: &str) -> usize {
    let offset = error_offset(text, error);
    // The parser notices a duplicate key at its end; the user looks for its beginning.
    let key = message.strip_prefix(TWICE.0).and_then(|rest| rest.strip_suffix(TWICE.1));
    let beginning = key.and_then(|key| text[..offset].strip_suffix(key)?.strip_suffix('"'));
    beginning.map_or(offset, str::len)
}

/// The place after `before` in words, counted in characters, not bytes.
fn place(before: &str) -> String {
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before[line_start..].chars().count() + 1;
    match before.matches('\n').count() {
        0 => format!("column {column}"),
        lines => format!("line {}, column {column}", lines + 1),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
