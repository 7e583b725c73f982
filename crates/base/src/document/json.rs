//! Parses JSON text into a [`Node`] tree.
//!
//! `serde_json` keeps no positions, but its raw values are slices of the source, so their offsets are known. A value
//! is scanned once for each level of nesting above it, which is fast enough for files of this size. The parser's
//! depth limit bounds the recursion here too.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::json::{error_offset, error_text};

use super::{Entry, Node, SyntaxError, Value};

pub(super) fn parse(text: &str) -> Result<Node, SyntaxError> {
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| SyntaxError {
        message: error_text(&error),
        offset: Some(error_offset(text, &error)),
    })?;
    convert(text, raw.get())
}

fn convert(source: &str, raw: &str) -> Result<Node, SyntaxError> {
    let offset = offset_in(source, raw);
    let wrong = |error: serde_json::Error| SyntaxError { message: error.to_string(), offset: Some(offset) };
    let value = match raw.as_bytes().first() {
        Some(b'{') => {
            let Pairs(pairs) = serde_json::from_str(raw).map_err(wrong)?;
            let mut entries: Vec<Entry> = Vec::with_capacity(pairs.len());
            for (key, value) in pairs {
                // A key with escapes is not a slice of the source; its value's position is near enough.
                let value = convert(source, value.get())?;
                let offset = match &key {
                    Cow::Borrowed(key) => offset_in(source, key).saturating_sub(1),
                    Cow::Owned(_) => value.offset,
                };
                if entries.iter().any(|entry| entry.key == key) {
                    return Err(SyntaxError {
                        message: format!("the key \"{key}\" occurs twice"),
                        offset: Some(offset),
                    });
                }
                entries.push(Entry { key: key.into_owned(), offset, value });
            }
            Value::Table(entries)
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(raw).map_err(wrong)?;
            Value::List(items.into_iter().map(|item| convert(source, item.get())).collect::<Result<_, _>>()?)
        }
        _ => match serde_json::from_str(raw).map_err(wrong)? {
            serde_json::Value::Bool(value) => Value::Bool(value),
            serde_json::Value::String(value) => Value::String(value),
            serde_json::Value::Number(value) => match (value.as_i64(), value.as_f64()) {
                (Some(integer), _) => Value::Integer(integer),
                (None, Some(float)) => Value::Float(float),
                (None, None) => {
                    return Err(SyntaxError {
                        message: "the number is out of range".into(),
                        offset: Some(offset),
                    });
                }
            },
            _ => Value::Null,
        },
    };
    Ok(Node { value, offset })
}

/// The byte offset of a slice of `source`.
fn offset_in(source: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(source.as_ptr() as usize)
}

/// An object as its pairs, duplicates included.
struct Pairs<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(Key(key)) = access.next_key()? {
                    pairs.push((key, access.next_value()?));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(PairsVisitor)
    }
}

/// A key that stays a slice of the source when it has no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
