//! Reads JSON objects from a provider: known fields are removed and checked; the remaining ones are unknown.

use serde_json::{Map, Value};

use crate::failure::{Failure, FailureKind, excerpt};

/// An object and its path in the answer.
pub(crate) struct Fields {
    at: String,
    map: Map<String, Value>,
}

/// The failure of an answer that violates its format.
pub(crate) fn malformed(at: &str, wanted: &str) -> Failure {
    Failure::passing(FailureKind::Protocol, format!("`{at}` in the provider's answer is not {wanted}"))
}

pub(crate) fn parse(bytes: &[u8], what: &str) -> Result<Value, Failure> {
    aec_base::json::from_slice(bytes).map_err(|error| {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(2_000)]);
        let message = format!("{what} is not JSON ({error}): {}", excerpt(&text));
        Failure::passing(FailureKind::Protocol, message)
    })
}

impl Fields {
    /// The fields of an object; `at` is its path in messages, empty for the outermost one.
    pub(crate) fn of(value: Value, at: impl Into<String>) -> Result<Self, Failure> {
        let at = at.into();
        match value {
            Value::Object(map) => Ok(Self { at, map }),
            _ if at.is_empty() => {
                Err(Failure::passing(FailureKind::Protocol, "the provider's answer is not a JSON object"))
            }
            _ => Err(malformed(&at, "an object")),
        }
    }

    /// The path of a field in messages.
    pub(crate) fn path(&self, key: &str) -> String {
        if self.at.is_empty() { key.to_owned() } else { format!("{}.{key}", self.at) }
    }

    /// Removes a field; null counts as absent.
    pub(crate) fn take(&mut self, key: &str) -> Option<Value> {
        // Not `remove`, which would reorder the remaining fields.
        self.map.shift_remove(key).filter(|value| !value.is_null())
    }

    /// Removes a required field.
    pub(crate) fn need(&mut self, key: &str) -> Result<Value, Failure> {
        self.take(key).ok_or_else(|| malformed(&self.path(key), "there"))
    }

    pub(crate) fn text(&mut self, key: &str) -> Result<Option<String>, Failure> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(malformed(&self.path(key), "a text")),
        }
    }

    /// Removes a required text.
    pub(crate) fn need_text(&mut self, key: &str) -> Result<String, Failure> {
        self.text(key)?.ok_or_else(|| malformed(&self.path(key), "a text"))
    }

    /// Removes an unsigned number.
    pub(crate) fn count(&mut self, key: &str) -> Result<Option<u64>, Failure> {
        match self.take(key) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(count) => Ok(Some(count)),
                None => Err(malformed(&self.path(key), "a count")),
            },
        }
    }

    /// Removes a required unsigned number.
    pub(crate) fn need_count(&mut self, key: &str) -> Result<u64, Failure> {
        self.count(key)?.ok_or_else(|| malformed(&self.path(key), "a count"))
    }

    pub(crate) fn object(&mut self, key: &str) -> Result<Option<Self>, Failure> {
        let at = self.path(key);
        self.take(key).map(|value| Self::of(value, at)).transpose()
    }

    /// Removes a required object.
    pub(crate) fn need_object(&mut self, key: &str) -> Result<Self, Failure> {
        self.object(key)?.ok_or_else(|| malformed(&self.path(key), "an object"))
    }

    /// Removes a required list.
    pub(crate) fn need_list(&mut self, key: &str) -> Result<Vec<Value>, Failure> {
        match self.take(key) {
            Some(Value::Array(list)) => Ok(list),
            _ => Err(malformed(&self.path(key), "a list")),
        }
    }

    pub(crate) fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.map.insert(key.to_owned(), value.into());
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.map.get(key).is_some_and(|value| !value.is_null())
    }

    /// The fields that were not removed, without nulls.
    pub(crate) fn rest(mut self) -> Map<String, Value> {
        self.map.retain(|_, value| !value.is_null());
        self.map
    }

    /// The remaining fields of an answer, of its blocks and of its usage.
    pub(crate) fn rest_with(self, blocks: Vec<Value>, usage: Map<String, Value>) -> Map<String, Value> {
        let mut rest = self.rest();
        rest.extend((!blocks.is_empty()).then(|| ("blocks".to_owned(), blocks.into())));
        rest.extend((!usage.is_empty()).then(|| ("usage".to_owned(), usage.into())));
        rest
    }
}

/// Adds values that are not null; a later value replaces an earlier one.
pub(crate) fn merge(target: &mut Map<String, Value>, source: Map<String, Value>) {
    for (key, value) in source {
        if !value.is_null() {
            target.insert(key, value);
        }
    }
}

/// Appends to a text that arrives in pieces.
pub(crate) fn append(block: &mut Map<String, Value>, key: &str, piece: &str) {
    match block.get_mut(key) {
        Some(Value::String(text)) => text.push_str(piece),
        _ => {
            block.insert(key.to_owned(), Value::from(piece));
        }
    }
}

/// Appends to a list that arrives in pieces.
pub(crate) fn push(block: &mut Map<String, Value>, key: &str, item: Value) {
    match block.get_mut(key) {
        Some(Value::Array(list)) => list.push(item),
        _ => {
            block.insert(key.to_owned(), Value::Array(vec![item]));
        }
    }
}

/// Arguments of a tool call that arrived in pieces: as JSON if valid, else as text. A model cut off by its limit leaves
/// half an object.
pub(crate) fn arguments(text: String) -> Value {
    if text.trim().is_empty() {
        return Value::Object(Map::new());
    }
    aec_base::json::from_str(&text).unwrap_or(Value::String(text))
}

pub(crate) fn arguments_text(input: Value) -> String {
    match input {
        Value::String(text) => text,
        other => other.to_string(),
    }
}
