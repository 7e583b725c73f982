//! The result of scoring and its canonical JSON, byte for byte what `verify.py` writes.

use std::fmt;

use super::text::float_text;

/// How a field came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Right in full.
    Correct,
    /// A list or table that is right in part.
    Partial,
    /// Readable, and not what was expected.
    Wrong,
    /// No value was given.
    Missing,
    /// Not readable as a value of its type.
    Invalid,
    /// A number with a unit that is unknown or of another kind.
    WrongUnit,
    /// Different values for one key.
    Contradictory,
}

impl Status {
    /// The word in `details.json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Correct => "correct",
            Self::Partial => "partial",
            Self::Wrong => "wrong",
            Self::Missing => "missing",
            Self::Invalid => "invalid",
            Self::WrongUnit => "wrong_unit",
            Self::Contradictory => "contradictory",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why there are no bytes to score. This is the agent's doing: the reward is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// No such file.
    Missing,
    /// A directory, a pipe or another thing that is not a regular file.
    NotRegular,
    /// A link, or no permission.
    Failed,
}

impl Unreadable {
    /// The `problem` in `details.json`.
    pub fn problem(self) -> &'static str {
        match self {
            Self::Missing => "there is no submission",
            Self::NotRegular => "the submission is not a regular file",
            Self::Failed => "the submission cannot be read or is a link",
        }
    }
}

/// The result of one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldScore {
    /// Name in the answers file.
    pub name: String,
    /// From 0 to 1.
    pub score: f64,
    /// How it came out.
    pub status: Status,
    /// The expected value, for people.
    pub expected: String,
    /// The given value as written, shortened.
    pub got: Option<String>,
    /// Why, if it is not correct.
    pub message: String,
}

/// The result of a submission.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// From 0 to 1; 1 only if every field is correct.
    pub reward: f64,
    /// One result for each field, in the order of the answers file.
    pub fields: Vec<FieldScore>,
    /// Why the submission as a whole could not be scored.
    pub problem: Option<String>,
}

impl Score {
    /// The text of `details.json`.
    pub fn to_details_json(&self) -> String {
        let mut json = String::with_capacity(64 + 128 * self.fields.len());
        json.push_str("{\"reward\": ");
        json.push_str(&float_text(self.reward));
        json.push_str(", \"fields\": {");
        for (at, field) in self.fields.iter().enumerate() {
            json.push_str(if at == 0 { "" } else { ", " });
            quote(&field.name, &mut json);
            json.push_str(": {\"score\": ");
            json.push_str(&float_text(field.score));
            json.push_str(", \"status\": ");
            quote(field.status.as_str(), &mut json);
            json.push_str(", \"expected\": ");
            quote(&field.expected, &mut json);
            json.push_str(", \"got\": ");
            quote_or_null(field.got.as_deref(), &mut json);
            json.push_str(", \"message\": ");
            quote(&field.message, &mut json);
            json.push('}');
        }
        json.push_str("}, \"problem\": ");
        quote_or_null(self.problem.as_deref(), &mut json);
        json.push_str("}\n");
        json
    }

    /// The text of `reward.json`.
    pub fn to_reward_json(&self) -> String {
        format!("{{\"reward\": {}}}\n", float_text(self.reward))
    }
}

fn quote_or_null(text: Option<&str>, json: &mut String) {
    match text {
        Some(text) => quote(text, json),
        None => json.push_str("null"),
    }
}

fn quote(text: &str, json: &mut String) {
    json.push('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            '\u{8}' => json.push_str("\\b"),
            '\u{c}' => json.push_str("\\f"),
            c if c < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
}
