//! The result of scoring and its canonical JSON, byte for byte what `verify.py` writes.

use std::fmt;

use aec_base::json::{float_text, push_text};

use super::REVISION;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Fully right.
    Correct,
    /// A list or table that is partly right.
    Partial,
    /// Readable, but not as expected.
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

/// Why there are no bytes to score. This is the agent's fault: the reward is 0.
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
    pub status: Status,
    /// The expected value, for people.
    pub expected: String,
    /// The given value as written, shortened.
    pub got: Option<String>,
    /// The reason, if it is not correct.
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
        let mut json = Vec::with_capacity(64 + 128 * self.fields.len());
        json.extend_from_slice(b"{\"reward\": ");
        json.extend_from_slice(float_text(self.reward).as_bytes());
        json.extend_from_slice(b", \"fields\": {");
        for (at, field) in self.fields.iter().enumerate() {
            json.extend_from_slice(if at == 0 { b"" } else { b", " });
            push_text(&mut json, &field.name);
            json.extend_from_slice(b": {\"score\": ");
            json.extend_from_slice(float_text(field.score).as_bytes());
            json.extend_from_slice(b", \"status\": ");
            push_text(&mut json, field.status.as_str());
            json.extend_from_slice(b", \"expected\": ");
            push_text(&mut json, &field.expected);
            json.extend_from_slice(b", \"got\": ");
            push_text_or_null(&mut json, field.got.as_deref());
            json.extend_from_slice(b", \"message\": ");
            push_text(&mut json, &field.message);
            json.push(b'}');
        }
        json.extend_from_slice(b"}, \"problem\": ");
        push_text_or_null(&mut json, self.problem.as_deref());
        json.extend_from_slice(format!(", \"scorer\": {REVISION}}}\n").as_bytes());
        // Only valid text was written.
        String::from_utf8(json).unwrap_or_default()
    }

    /// The text of `reward.json`.
    pub fn to_reward_json(&self) -> String {
        format!("{{\"reward\": {}}}\n", float_text(self.reward))
    }
}

fn push_text_or_null(json: &mut Vec<u8>, text: Option<&str>) {
    match text {
        Some(text) => push_text(json, text),
        None => json.extend_from_slice(b"null"),
    }
}
