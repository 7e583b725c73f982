//! Extracts the values for each field from the bytes of a submission.

use super::answers::Answers;
use super::relaxed::{Parser, Value};
use super::report::Status;
use super::text::{compact, is_space};
use super::{MAX_BLOCKS, MAX_SUBMISSION};

/// Why the submission as a whole cannot be scored.
#[derive(Debug)]
pub(super) struct Unread {
    pub(super) problem: &'static str,
    /// The status of its fields.
    pub(super) status: Status,
}

impl Unread {
    fn missing(problem: &'static str) -> Self {
        Self { problem, status: Status::Missing }
    }
}

/// A value given for a field.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) value: Value,
    /// The unit that its key states.
    pub(super) unit: String,
    /// Whether it stands one level below an object that names other fields.
    pub(super) deeper: bool,
}

/// UTF-8, UTF-16 with a byte-order mark, else Latin-1: no byte is an error.
fn decode(bytes: &[u8]) -> Vec<char> {
    let wide = |little: bool| -> Option<Vec<char>> {
        let pairs = bytes[2..].chunks(2);
        let units: Option<Vec<u16>> = pairs
            .map(|pair| match pair {
                [low, high] if little => Some(u16::from_le_bytes([*low, *high])),
                [high, low] => Some(u16::from_be_bytes([*high, *low])),
                _ => None,
            })
            .collect();
        char::decode_utf16(units?).collect::<Result<_, _>>().ok()
    };
    let decoded = match bytes {
        [0xff, 0xfe, ..] => wide(true),
        [0xfe, 0xff, ..] => wide(false),
        _ => std::str::from_utf8(bytes).ok().map(|text| text.chars().collect()),
    };
    match decoded {
        Some(text) => text.into_iter().skip_while(|c| *c == '\u{feff}').collect(),
        None => bytes.iter().copied().map(char::from).collect(),
    }
}

/// The claims for each field, by position, from all objects of the submission.
pub(super) fn claims_of(answers: &Answers, bytes: &[u8]) -> Result<Vec<Vec<Claim>>, Unread> {
    if bytes.len() > MAX_SUBMISSION {
        return Err(Unread::missing("the submission is larger than 1 MiB"));
    }
    let mut text = decode(bytes);
    if text.iter().all(|c| is_space(*c)) {
        return Err(Unread::missing("the submission is empty"));
    }
    if !text.contains(&'"') {
        // Word processors replace plain quotation marks.
        for c in &mut text {
            if matches!(c, '\u{201c}' | '\u{201d}') {
                *c = '"';
            }
        }
    }
    let text = unquoted(&text).unwrap_or(text);
    let mut parser = Parser::relaxed(&text);
    let mut claims = vec![Vec::new(); answers.fields.len()];
    let (mut count, mut spent) = (0, 0);
    let mut at = 0;
    while let Some(offset) = text.get(at..).and_then(|rest| rest.iter().position(|c| *c == '{')) {
        at += offset;
        parser.at = at;
        match parser.object(1) {
            Ok(object) => {
                count += collect(answers, object, &mut claims);
                at = parser.at;
            }
            // A failed attempt may read far, and the next one begins right after its brace: the sum of characters
            // read by failed attempts is bounded, so the time is linear.
            Err(_) => {
                spent += parser.at - at + 4;
                at += 1;
            }
        }
        if spent > 2 * text.len() + 65536 {
            return Err(Unread::missing("the submission has too many unfinished objects"));
        }
        if count > MAX_BLOCKS {
            let problem = "the submission gives more than 64 answers";
            return Err(Unread { problem, status: Status::Contradictory });
        }
    }
    if claims.iter().all(Vec::is_empty) {
        return Err(Unread::missing("the submission has no JSON object with an expected key"));
    }
    Ok(claims)
}

/// The content of a file that consists of one JSON string.
fn unquoted(text: &[char]) -> Option<Vec<char>> {
    let mut parser = Parser::relaxed(text);
    parser.space().ok()?;
    if parser.peek() != Some('"') {
        return None;
    }
    let inner = parser.string('"').ok()?;
    parser.space().ok()?;
    parser.peek().is_none().then(|| inner.chars().collect())
}

/// Collects the fields of an object; searches the values of an object that has none. Below an object with fields, the
/// objects in it are searched as well, but no deeper. Returns the number of objects with fields.
fn collect(answers: &Answers, value: Value, claims: &mut [Vec<Claim>]) -> usize {
    match value {
        Value::List(items) => items.into_iter().map(|item| collect(answers, item, claims)).sum(),
        Value::Object(pairs) => {
            let all = pairs.len();
            let silent = claim(answers, pairs, claims, false);
            if silent.len() == all {
                return silent.into_iter().map(|(_, item)| collect(answers, item, claims)).sum();
            }
            for (key, item) in silent {
                let inner = match item {
                    Value::Object(pairs) => pairs,
                    Value::List(items) => match <[Value; 1]>::try_from(items) {
                        Ok([Value::Object(pairs)]) => pairs,
                        _ => continue,
                    },
                    Value::Bare(_) | Value::Quoted(_) => continue,
                };
                if !matches!(compact(&key).as_str(), "unit" | "units") {
                    claim(answers, inner, claims, true);
                }
            }
            1
        }
        Value::Bare(_) | Value::Quoted(_) => 0,
    }
}

/// Collects the fields of one object and returns its other pairs.
fn claim(
    answers: &Answers,
    pairs: Vec<(String, Value)>,
    claims: &mut [Vec<Claim>],
    deeper: bool,
) -> Vec<(String, Value)> {
    let mut silent = Vec::new();
    for (key, value) in pairs {
        let named = answers.position(&key);
        match named.and_then(|(position, unit)| claims.get_mut(position).map(|claims| (claims, unit))) {
            Some((claims, unit)) => claims.push(Claim { value, unit, deeper }),
            None => silent.push((key, value)),
        }
    }
    silent
}
