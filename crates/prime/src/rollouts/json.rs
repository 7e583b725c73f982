//! Reads one row of JSON as Python writes it: stricter than Python about size and depth, laxer than the standard about
//! `NaN` and lone surrogates.
//!
//! Python writes `NaN`, `Infinity` and lone surrogates, which are not JSON. A row that is JSON is read in one pass;
//! only one that is not is corrected and read again.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;

use aec_base::json::repaired;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::rollouts::problem::{Note, ProblemKind};

/// Deepest nesting of a row. The parser counts levels, so that no row exhausts the stack.
pub const DEPTH_LIMIT: usize = 127;

/// Most values of a row. A value takes some eighty bytes of memory, however short its text is.
pub const VALUE_LIMIT: usize = 1_000_000;

/// Token ids that verifiers stores for training with each message. They are most of a trace's bytes, and this crate
/// does not use them.
const TOKEN_KEYS: [&str; 7] =
    ["token_ids", "mask", "is_content", "logprobs", "renderer_token_ids", "routed_experts", "sampling_mask"];

#[derive(Debug)]
pub struct Parsed {
    pub value: Value,
    /// What was read differently from how it was written.
    pub notes: Vec<Note>,
}

/// Reads one row. Token ids are skipped.
pub fn parse(bytes: &[u8]) -> Result<Parsed, ProblemKind> {
    let text = std::str::from_utf8(bytes).map_err(|_| ProblemKind::NotText)?;
    parse_from(text, Place::Row)
}

/// Reads JSON that a row contains as text. Nothing is skipped.
pub(crate) fn parse_text(text: &str) -> Option<Value> {
    parse_from(text, Place::Elsewhere).ok().map(|parsed| parsed.value)
}

fn parse_from(text: &str, place: Place) -> Result<Parsed, ProblemKind> {
    let (outcome, notes) = parse_strictly(text, place);
    let error = match outcome {
        Ok(value) => return Ok(Parsed { value, notes }),
        Err(error) => error,
    };
    if is_deeper(text, DEPTH_LIMIT) {
        return Err(ProblemKind::TooDeep { limit: DEPTH_LIMIT });
    }
    let repaired = repaired(text);
    if let Cow::Borrowed(_) = repaired.text {
        return Err(problem(&error));
    }
    let (outcome, mut notes) = parse_strictly(&repaired.text, place);
    notes.extend((repaired.numbers > 0).then_some(Note::NotANumber { count: repaired.numbers }));
    notes.extend((repaired.surrogates > 0).then_some(Note::HalfSurrogate { count: repaired.surrogates }));
    outcome.map(|value| Parsed { value, notes }).map_err(|error| problem(&error))
}

fn problem(error: &serde_json::Error) -> ProblemKind {
    if error.is_eof() {
        ProblemKind::Torn
    } else if error.is_data() {
        // The visitor below refuses nothing else.
        ProblemKind::TooManyValues { limit: VALUE_LIMIT }
    } else {
        ProblemKind::Malformed(error.to_string())
    }
}

fn parse_strictly(text: &str, place: Place) -> (serde_json::Result<Value>, Vec<Note>) {
    let shared = Shared::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let seed = Seed { shared: &shared, place };
    let outcome = seed.deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    let notes = shared.duplicates.into_inner().into_iter().map(|key| Note::DuplicateKey { key }).collect();
    (outcome, notes)
}

/// State shared by all values of a row while it is read.
#[derive(Default)]
struct Shared {
    values: Cell<usize>,
    duplicates: RefCell<BTreeSet<String>>,
}

/// The position of a value in a row, as far as it decides what is skipped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Row,
    Traces,
    Trace,
    Nodes,
    Node,
    Elsewhere,
}

impl Place {
    fn of_item(self) -> Self {
        match self {
            Self::Traces => Self::Trace,
            Self::Nodes => Self::Node,
            _ => Self::Elsewhere,
        }
    }

    fn of_member(self, key: &str) -> Self {
        match (self, key) {
            (Self::Row, "traces") => Self::Traces,
            (Self::Row | Self::Trace, "nodes") => Self::Nodes,
            _ => Self::Elsewhere,
        }
    }
}

#[derive(Clone, Copy)]
struct Seed<'a> {
    shared: &'a Shared,
    place: Place,
}

impl Seed<'_> {
    fn below(self, place: Place) -> Self {
        Self { place, ..self }
    }

    fn is_passed_over(self, key: &str) -> bool {
        match self.place {
            // A state column that holds every step of the rollout with its tokens.
            Place::Row => key == "trajectory",
            Place::Node => TOKEN_KEYS.contains(&key),
            _ => false,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let values = self.shared.values.get() + 1;
        self.shared.values.set(values);
        if values > VALUE_LIMIT {
            return Err(D::Error::custom("too many values"));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let place = self.place.of_item();
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(self.below(place))? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            if self.is_passed_over(&key) {
                access.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = access.next_value_seed(self.below(self.place.of_member(&key)))?;
            if object.contains_key(&key) {
                self.shared.duplicates.borrow_mut().insert(key.clone());
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

/// Whether brackets are nested deeper than some levels.
fn is_deeper(text: &str, limit: usize) -> bool {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => depth += 1,
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limit {
            return true;
        }
    }
    false
}
