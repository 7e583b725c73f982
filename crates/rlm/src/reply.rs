//! Extracts facts from a model's reply, which is at best JSON and otherwise text around JSON.
//!
//! The last fenced block that holds JSON counts, else the whole text, else the largest balanced object in it. An
//! unreadable reply is a named error, never an empty success.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::merge::Fact;

/// The key in which a model states its confidence.
pub const CONFIDENCE_KEY: &str = "__confidence__";

/// How many blocks and beginnings of objects are tried before a reply counts as unreadable.
const MOST_TRIES: usize = 256;

#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// Keys and values in the order of the reply. Duplicate keys are kept.
    pub values: Vec<(String, Value)>,
    /// Keys that the model gave without a value: null, or an empty text, list or object.
    pub absent: Vec<String>,
    /// The confidence that the model states, from 0 to 1.
    pub confidence: Option<f64>,
}

/// Why a reply gives no facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    #[error("the reply is empty")]
    Empty,
    #[error("the reply holds no JSON")]
    NotJson,
    #[error("the reply is JSON, but {0} and not an object")]
    NotAnObject(&'static str),
}

impl Reply {
    pub fn read(text: &str) -> Result<Self, ReplyError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(ReplyError::Empty);
        }
        let mut not_an_object = None;
        for candidate in fenced_blocks(text).into_iter().rev().take(MOST_TRIES).chain([text]) {
            match aec_base::json::from_str::<Top>(candidate) {
                Ok(Top::Object(pairs)) => return Ok(Self::of(pairs)),
                Ok(Top::Other(kind)) => {
                    not_an_object.get_or_insert(ReplyError::NotAnObject(kind));
                }
                Err(_) => {}
            }
        }
        if let Some(error) = not_an_object {
            return Err(error);
        }
        largest_object(text).map(Self::of).ok_or(ReplyError::NotJson)
    }

    fn of(pairs: Vec<(String, Value)>) -> Self {
        let mut reply =
            Self { values: Vec::with_capacity(pairs.len()), absent: Vec::new(), confidence: None };
        for (key, value) in pairs {
            if key == CONFIDENCE_KEY {
                let text = value.as_str().and_then(|text| text.trim().parse().ok());
                let number = value.as_f64().or(text).filter(|number: &f64| number.is_finite());
                reply.confidence = number.map(|number| number.clamp(0.0, 1.0));
            } else if is_absent(&value) {
                reply.absent.push(key);
            } else {
                reply.values.push((key, value));
            }
        }
        reply
    }

    /// The facts of a reply to a part of a source.
    pub fn facts(&self, source: &str, range: &Range<usize>) -> Vec<Fact> {
        let fact = |(key, value): &(String, Value)| Fact {
            key: key.clone(),
            value: value.clone(),
            source: source.to_owned(),
            range: range.clone(),
            confidence: self.confidence,
        };
        self.values.iter().map(fact).collect()
    }
}

fn is_absent(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The outermost value: an object with every key, even duplicates, or the name of another type.
enum Top {
    Object(Vec<(String, Value)>),
    Other(&'static str),
}

impl<'de> Deserialize<'de> for Top {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TopVisitor)
    }
}

struct TopVisitor;

impl<'de> Visitor<'de> for TopVisitor {
    type Value = Top;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Top, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(Top::Object(pairs))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Top, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Top::Other("a list"))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Top, E> {
        Ok(Top::Other("true or false"))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Top, E> {
        Ok(Top::Other("a number"))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Top, E> {
        Ok(Top::Other("a number"))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Top, E> {
        Ok(Top::Other("a number"))
    }

    fn visit_str<E>(self, _: &str) -> Result<Top, E> {
        Ok(Top::Other("a text"))
    }

    fn visit_unit<E>(self) -> Result<Top, E> {
        Ok(Top::Other("null"))
    }
}

/// Contents of fenced blocks marked as JSON or not marked at all. An unclosed block ends with the text.
fn fenced_blocks(text: &str) -> Vec<&str> {
    let mut blocks = Vec::new();
    // The beginning of the open block; `Some(None)` for a block in another language.
    let mut open: Option<Option<usize>> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let Some(mark) = line.trim().strip_prefix("```") else { continue };
        match open.take() {
            Some(begin) => blocks.extend(begin.map(|begin| &text[begin..start])),
            None => {
                let is_json = mark.is_empty() || mark.to_ascii_lowercase().starts_with("json");
                open = Some(is_json.then_some(at));
            }
        }
    }
    blocks.extend(open.flatten().map(|begin| &text[begin..]));
    blocks
}

/// The largest object in a text. An empty one in prose means nothing.
fn largest_object(text: &str) -> Option<Vec<(String, Value)>> {
    let mut best: Option<(usize, Vec<(String, Value)>)> = None;
    let mut tries = 0;
    let mut at = 0;
    while let Some(start) = text[at..].find('{').map(|offset| at + offset) {
        at = start + 1;
        if !text[at..].trim_start().starts_with('"') {
            continue;
        }
        if tries == MOST_TRIES {
            break;
        }
        tries += 1;
        let mut stream = aec_base::json::values::<Top>(&text[start..]);
        if let Some(Ok(Top::Object(pairs))) = stream.next() {
            let length = stream.byte_offset();
            at = start + length.max(1);
            if best.as_ref().is_none_or(|(longest, _)| length > *longest) {
                best = Some((length, pairs));
            }
        }
    }
    best.map(|(_, pairs)| pairs)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn keys(text: &str) -> Vec<String> {
        Reply::read(text).unwrap().values.into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn json_is_found_wherever_it_is() {
        for text in [
            "{\"a\": 1}",
            "  {\"a\": 1}\n",
            "Here:\n```json\n{\"a\": 1}\n```\nDone.",
            "```json\n{\"b\": 1}\n```\nbetter:\n```JSON\n{\"a\": 1}\n```",
            "```\n{\"a\": 1}\n```",
            "```json\n{\"a\": 1}",
            "The answer is {\"a\": 1}, I think.",
            "Use { like so. It said \"no. {\"a\": 1}",
            "{\"x\": } and {see {\"a\": 1}}",
            "```json\nbroken\n```\n{\"a\": 1}",
            "```python\nx = {\"b\": 1}\n```\n```json\n{\"a\": 1}\n```",
            "{\"b\": 1} or rather {\"a\": \"longer\"} or {}",
        ] {
            assert_eq!(keys(text), ["a"], "{text}");
        }
    }

    #[test]
    fn what_is_not_an_object_is_named() {
        for (text, error) in [
            ("", ReplyError::Empty),
            (" \n", ReplyError::Empty),
            ("none", ReplyError::NotJson),
            ("{\"a\": ", ReplyError::NotJson),
            ("[1]", ReplyError::NotAnObject("a list")),
            ("```json\n[{\"a\": 1}]\n```", ReplyError::NotAnObject("a list")),
            ("3", ReplyError::NotAnObject("a number")),
            ("null", ReplyError::NotAnObject("null")),
        ] {
            assert_eq!(Reply::read(text), Err(error), "{text}");
        }
        for deep in ["[".repeat(100_000), "{\"a\":".repeat(100_000), "{".repeat(50_000) + &"}".repeat(50_000)]
        {
            assert_eq!(Reply::read(&deep), Err(ReplyError::NotJson));
        }
    }

    #[test]
    fn confidence_and_absent_values_are_apart() {
        let reply =
            Reply::read(r#"{"a": 1, "b": null, "c": " ", "__confidence__": 1.4, "a": 2, "d": []}"#).unwrap();
        assert_eq!(reply.values, [("a".to_owned(), json!(1)), ("a".to_owned(), json!(2))]);
        assert_eq!((reply.absent, reply.confidence), (vec!["b".into(), "c".into(), "d".into()], Some(1.0)));
        let said = |text: &str| Reply::read(text).unwrap().confidence;
        assert_eq!(said(r#"{"__confidence__": "0.5"}"#), Some(0.5));
        assert_eq!(said(r#"{"__confidence__": "high"}"#), None);
        assert_eq!(said("{}"), None);
    }

    proptest! {
        #[test]
        fn no_reply_is_too_strange(text in "(```(json)?\n?|[{}\\[\\]\":,\\\\\n ]|\"a\": 1|\\PC){0,60}") {
            let blank = text.trim().is_empty();
            prop_assert_eq!(Reply::read(&text) == Err(ReplyError::Empty), blank);
        }

        #[test]
        fn an_object_in_prose_is_found(before in "[a-z .]{0,20}", key in "[a-z{}\\\\\" ]{1,8}", after in "[a-z .]{0,20}") {
            let object = json!({ key.clone(): 1 });
            prop_assert_eq!(keys(&format!("{before}{object}{after}")), [key]);
        }
    }
}
