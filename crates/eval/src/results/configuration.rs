//! Checks that a resumed run continues with the configuration that it began with.

use std::fmt;

use aec_base::problem::Problem;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::results::metadata::{Description, Metadata};
use crate::results::problems;

/// Longer values are cut in messages.
const LONGEST_VALUE: usize = 120;

/// The only key that may grow from one session to the next.
const NUM_EXAMPLES: &str = "num_examples";

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The key, with nested keys joined by dots, such as `env_args.difficulty`.
    pub key: String,
    /// The value at the beginning of the run; null if the key was missing.
    pub saved: Value,
    /// The value now; null if the key is missing.
    pub now: Value,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` was {} and is now {}", self.key, shown(&self.saved), shown(&self.now))
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The differences since a run began. The number of examples may grow. A file of verifiers has no configuration; for
/// it, environment, model, address, rollouts and sampling are compared.
pub fn differences(saved: &Metadata, now: &Description) -> Vec<Difference> {
    let (before, after) = match &saved.configuration {
        Some(configuration) => (configuration.clone(), now.configuration.clone()),
        None => (of_saved(saved), of_now(now)),
    };
    let mut differences = Vec::new();
    compare_objects("", &before, &after, &mut differences);
    differences.retain(|difference| !(difference.key == NUM_EXAMPLES && has_grown(difference)));
    differences
}

/// The differences between the configurations of two runs, including the number of examples.
pub fn configurations(first: &Metadata, other: &Metadata) -> Vec<Difference> {
    let mut differences = Vec::new();
    match (&first.configuration, &other.configuration) {
        (Some(first), Some(other)) => compare_objects("", first, other, &mut differences),
        _ => compare_objects("", &of_saved(first), &of_saved(other), &mut differences),
    }
    differences
}

fn has_grown(difference: &Difference) -> bool {
    match (difference.saved.as_i64(), difference.now.as_i64()) {
        // Negative means all examples, which cannot be fewer than before.
        (_, Some(now)) if now < 0 => true,
        (Some(saved), Some(now)) => (0..=now).contains(&saved),
        _ => difference.now.is_null(),
    }
}

fn of_saved(saved: &Metadata) -> Map<String, Value> {
    compared([
        ("env_id", saved.env_id.as_str().into()),
        ("env_args", Value::Object(saved.env_args.clone())),
        ("model", saved.model.as_str().into()),
        ("base_url", saved.base_url.as_str().into()),
        (NUM_EXAMPLES, saved.num_examples.into()),
        ("rollouts_per_example", saved.rollouts_per_example.into()),
        ("sampling_args", Value::Object(saved.sampling_args.clone())),
    ])
}

fn of_now(now: &Description) -> Map<String, Value> {
    compared([
        ("env_id", now.env_id.as_str().into()),
        ("env_args", Value::Object(now.env_args.clone())),
        ("model", now.model.as_str().into()),
        ("base_url", now.base_url.as_str().into()),
        (NUM_EXAMPLES, now.num_examples.into()),
        ("rollouts_per_example", now.rollouts_per_example.into()),
        ("sampling_args", Value::Object(now.sampling_args.clone())),
    ])
}

fn compared<const N: usize>(values: [(&str, Value); N]) -> Map<String, Value> {
    values.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn compare_objects(
    path: &str,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    to: &mut Vec<Difference>,
) {
    let null = Value::Null;
    let keys = before.keys().chain(after.keys().filter(|key| !before.contains_key(*key)));
    for key in keys {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let (saved, now) = (before.get(key).unwrap_or(&null), after.get(key).unwrap_or(&null));
        match (saved, now) {
            (Value::Object(saved), Value::Object(now)) => compare_objects(&path, saved, now, to),
            _ if is_same(saved, now) => {}
            _ => to.push(Difference { key: path, saved: saved.clone(), now: now.clone() }),
        }
    }
}

/// Null, an empty object and a missing key are the same, as are 1 and 1.0.
fn is_same(saved: &Value, now: &Value) -> bool {
    let says_nothing = |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
    match (saved, now) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.is_f64() != b.is_f64() && a.as_f64() == b.as_f64())
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let mut found = Vec::new();
            compare_objects("", a, b, &mut found);
            found.is_empty()
        }
        _ => saved == now || (says_nothing(saved) && says_nothing(now)),
    }
}

/// One problem that names every difference.
pub fn mismatch(differences: &[Difference]) -> Option<Problem> {
    if differences.is_empty() {
        return None;
    }
    let told: Vec<_> = differences.iter().map(ToString::to_string).collect();
    Some(
        problems::error(32, format!("the run was begun with another configuration: {}", told.join("; ")))
            .why("its rows and the new ones would not belong together")
            .fix("use the configuration with which the run was begun, or start a new run without --resume"),
    )
}
