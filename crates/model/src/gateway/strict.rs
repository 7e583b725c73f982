//! Strict reading of untrusted JSON: no duplicate keys, no unknown keys, no values of another type.

use aec_base::json::Strict;
use serde_json::{Map, Value};

/// Parses JSON without duplicate keys. Two readers of a duplicate key could see different values.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, String> {
    let Strict(value) =
        aec_base::json::from_slice(bytes).map_err(|error| format!("the body is not sound JSON: {error}"))?;
    Ok(value)
}

/// An object whose keys are removed one by one; remaining keys are refused. Null counts as absent.
pub(super) struct Fields {
    object: Map<String, Value>,
    place: String,
}

impl Fields {
    /// The fields of a value that must be an object. The place is empty for the whole body.
    pub(super) fn of(value: Value, place: impl Into<String>) -> Result<Self, String> {
        let place = place.into();
        match value {
            Value::Object(object) => Ok(Self { object, place }),
            _ if place.is_empty() => Err("the body is not an object".to_owned()),
            _ => Err(format!("`{place}` is not an object")),
        }
    }

    /// The path of a key, for messages.
    pub(super) fn place(&self, key: &str) -> String {
        if self.place.is_empty() { key.to_owned() } else { format!("{}.{key}", self.place) }
    }

    /// The message that a value has the wrong type.
    pub(super) fn objection(&self, key: &str, expected: &str) -> String {
        format!("`{}` is not {expected}", self.place(key))
    }

    /// The message that a required key is missing.
    pub(super) fn missing(&self, key: &str) -> String {
        format!("`{}` is missing", self.place(key))
    }

    /// Removes a value of any type.
    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        self.object.shift_remove(key).filter(|value| !value.is_null())
    }

    fn take_as<T>(
        &mut self,
        key: &str,
        expected: &str,
        read: impl FnOnce(Value) -> Option<T>,
    ) -> Result<Option<T>, String> {
        match self.take(key) {
            None => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| self.objection(key, expected)),
        }
    }

    /// Removes a text.
    pub(super) fn text(&mut self, key: &str) -> Result<Option<String>, String> {
        self.take_as(key, "a text", |value| match value {
            Value::String(text) => Some(text),
            _ => None,
        })
    }

    /// Removes a required text that must not be empty.
    pub(super) fn name(&mut self, key: &str) -> Result<String, String> {
        match self.text(key)? {
            Some(name) if !name.is_empty() => Ok(name),
            Some(_) => Err(self.objection(key, "given")),
            None => Err(self.missing(key)),
        }
    }

    /// Removes a boolean.
    pub(super) fn flag(&mut self, key: &str) -> Result<Option<bool>, String> {
        self.take_as(key, "true or false", |value| value.as_bool())
    }

    /// Removes a number.
    pub(super) fn number(&mut self, key: &str) -> Result<Option<f64>, String> {
        self.take_as(key, "a number", |value| value.as_f64())
    }

    /// Removes a whole number.
    pub(super) fn whole(&mut self, key: &str) -> Result<Option<i64>, String> {
        self.take_as(key, "a whole number", |value| value.as_i64())
    }

    /// Removes a list.
    pub(super) fn list(&mut self, key: &str) -> Result<Option<Vec<Value>>, String> {
        self.take_as(key, "a list", |value| match value {
            Value::Array(items) => Some(items),
            _ => None,
        })
    }

    /// Removes an object.
    pub(super) fn fields(&mut self, key: &str) -> Result<Option<Self>, String> {
        let place = self.place(key);
        self.take(key).map(|value| Self::of(value, place)).transpose()
    }

    /// Refuses remaining keys.
    pub(super) fn finish(self) -> Result<(), String> {
        match self.object.keys().next() {
            None => Ok(()),
            Some(key) => Err(format!("`{}` is not supported here; leave it out", self.place(key))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn doubled_keys_are_refused() {
        let said = parse(br#"{"a":1,"a":1}"#).unwrap_err();
        assert!(said.contains("the key \"a\" occurs twice"), "{said}");
    }

    #[test]
    fn what_is_left_is_named() {
        let mut fields = Fields::of(json!({"a": 1, "b": null, "c": {"d": 2}}), "").unwrap();
        assert_eq!(fields.whole("a"), Ok(Some(1)));
        assert_eq!(fields.text("b"), Ok(None));
        let inner = fields.fields("c").unwrap().unwrap();
        assert!(inner.finish().unwrap_err().contains("`c.d`"));
        fields.finish().unwrap();
    }
}
