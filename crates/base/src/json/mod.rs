//! JSON beyond what `serde_json` offers: reading within limits, objects without duplicate keys, Python's extensions of
//! JSON, and text written straight into bytes.
//!
//! Documents that people write are read by [`crate::document`], which keeps positions.

mod bounded;
mod python;
mod write;

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

pub use bounded::{Excess, Limits, check, from_slice, from_slice_within, from_str, from_str_within, values};
pub use python::{Repaired, float_text, repaired};
pub use write::{push_ascii, push_line, push_text};

/// A value whose objects have no duplicate keys: two readers of such an object could see different values. Numbers
/// are finite, and the parser limits the depth.
#[derive(Clone, Debug, PartialEq)]
pub struct Strict(pub Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("is not a finite number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = access.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {key:?} occurs twice")));
            }
            let Strict(value) = access.next_value()?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

/// The byte offset of a parser error, moved to a character boundary.
pub fn error_offset(text: &str, error: &serde_json::Error) -> usize {
    let start: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    text.floor_char_boundary(start + error.column().saturating_sub(1))
}

/// The parser's message without the position.
pub fn error_text(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {

    use proptest::prelude::*;

    use super::*;

    fn strict(text: &[u8]) -> Result<Value, serde_json::Error> {
        serde_json::from_slice(text).map(|Strict(value)| value)
    }

    #[test]
    fn keys_occur_once_at_any_depth() {
        for text in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"c":2,"a":3}}]"#, r#"{"a":1,"\u0061":2}"#] {
            let error = strict(text.as_bytes()).unwrap_err();
            assert_eq!(error_text(&error), "the key \"a\" occurs twice", "{text}");
        }
    }

    #[test]
    fn unsound_json_is_refused() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for text in ["", "{", "{} {}", "{\"a\":1e999}", "nul", "NaN", "-Infinity", "\"\\ud800\"", &deep] {
            assert!(strict(text.as_bytes()).is_err(), "{}", &text[..text.len().min(20)]);
        }
        assert!(strict(b"\"\xff\"").is_err());
    }

    #[test]
    fn errors_have_a_place_between_characters() {
        for (text, place) in [("{\n  \"ü\": ü}", "{\n  \"ü\": "), ("", ""), ("[1,\n2", "[1,\n")] {
            let error = strict(text.as_bytes()).unwrap_err();
            let offset = error_offset(text, &error);
            assert!(text[..offset].starts_with(place), "{text:?}: {offset}");
            assert!(!error_text(&error).contains("line"), "{error}");
        }
    }

    /// Any JSON value.
    pub(super) fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|map| map.into_iter().collect::<Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn sound_json_is_read_as_it_is(value in value()) {
            prop_assert_eq!(strict(value.to_string().as_bytes()).unwrap(), value);
        }
    }
}
