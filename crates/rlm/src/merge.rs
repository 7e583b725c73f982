//! Merges the facts of many parts and sources by fixed rules.
//!
//! For one key the source of higher authority wins, then the greater confidence, then the earlier place. Equal values
//! are one fact with several provenances: numbers are compared by value, texts without regard to case and blanks.
//! Losing values are kept as conflicts with their provenance. The result does not depend on the order of the facts.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

use aec_base::decimal::Decimal;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Something that a call found in a part of a source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    pub key: String,
    pub value: Value,
    /// The label of the source.
    pub source: String,
    /// The bytes of the source that were read.
    pub range: Range<usize>,
    /// The confidence that the model stated; an absent one is lower than any.
    pub confidence: Option<f64>,
}

/// Where a value was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// The label of the source.
    pub source: String,
    /// The bytes of the source that were read.
    pub range: Range<usize>,
    /// The confidence that the model stated.
    pub confidence: Option<f64>,
}

/// A value that lost to another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conflict {
    pub value: Value,
    /// Where it was found, best place first.
    pub provenance: Vec<Provenance>,
}

/// The value chosen for one key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergedFact {
    pub key: String,
    pub value: Value,
    /// Where it was found, best place first.
    pub provenance: Vec<Provenance>,
    /// Values that lost to it, best first.
    pub conflicts: Vec<Conflict>,
}

/// The order in which sources are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authority {
    /// Priority and position of each label; a lower number has more authority.
    ranks: BTreeMap<String, (i64, usize)>,
}

impl Authority {
    /// Labels with priorities, lower first. Of equal priorities the earlier label wins; unlisted labels come last.
    pub fn from_priorities<'a>(sources: impl IntoIterator<Item = (&'a str, i64)>) -> Self {
        let mut ranks = BTreeMap::new();
        for (position, (label, priority)) in sources.into_iter().enumerate() {
            ranks.entry(label.to_owned()).or_insert((priority, position));
        }
        Self { ranks }
    }

    fn rank(&self, source: &str) -> (i64, usize) {
        self.ranks.get(source).copied().unwrap_or((i64::MAX, usize::MAX))
    }

    /// Orders the more credible provenance first.
    fn compare(&self, one: &Provenance, other: &Provenance) -> Ordering {
        let ((priority, position), (other_priority, other_position)) =
            (self.rank(&one.source), self.rank(&other.source));
        let sureness = |provenance: &Provenance| provenance.confidence.unwrap_or(-1.0);
        priority
            .cmp(&other_priority)
            .then_with(|| sureness(other).total_cmp(&sureness(one)))
            .then_with(|| position.cmp(&other_position))
            .then_with(|| one.source.cmp(&other.source))
            .then_with(|| (one.range.start, one.range.end).cmp(&(other.range.start, other.range.end)))
    }
}

/// Merges facts; the keys are in alphabetical order.
pub fn merge(facts: impl IntoIterator<Item = Fact>, authority: &Authority) -> Vec<MergedFact> {
    let mut found: BTreeMap<String, IndexMap<String, Conflict>> = BTreeMap::new();
    for fact in facts {
        let values = found.entry(fact.key).or_default();
        let provenance = Provenance { source: fact.source, range: fact.range, confidence: fact.confidence };
        match values.entry(canonical(&fact.value)) {
            indexmap::map::Entry::Occupied(mut entry) => {
                let known = entry.get_mut();
                let best = known.provenance.first();
                let order = best.map_or(Ordering::Less, |best| authority.compare(&provenance, best));
                // Of several spellings the one in the best place wins; of two there, the alphabetically first.
                let earlier = || fact.value.to_string().as_str() < known.value.to_string().as_str();
                if order == Ordering::Less || (order == Ordering::Equal && earlier()) {
                    known.value = fact.value;
                    known.provenance.insert(0, provenance);
                } else {
                    known.provenance.push(provenance);
                }
            }
            indexmap::map::Entry::Vacant(entry) => {
                entry.insert(Conflict { value: fact.value, provenance: vec![provenance] });
            }
        }
    }
    found.into_iter().filter_map(|(key, values)| merge_key(key, values, authority)).collect()
}

fn merge_key(key: String, values: IndexMap<String, Conflict>, authority: &Authority) -> Option<MergedFact> {
    let mut ranked: Vec<(String, Conflict)> = values.into_iter().collect();
    for (_, value) in &mut ranked {
        value.provenance.sort_by(|one, other| authority.compare(one, other));
    }
    ranked.sort_by(|(name, one), (other_name, other)| {
        let places = match (one.provenance.first(), other.provenance.first()) {
            (Some(one), Some(other)) => authority.compare(one, other),
            _ => Ordering::Equal,
        };
        places.then_with(|| name.cmp(other_name))
    });
    let mut values = ranked.into_iter().map(|(_, value)| value);
    let best = values.next()?;
    Some(MergedFact { key, value: best.value, provenance: best.provenance, conflicts: values.collect() })
}

/// A text that is equal exactly for equivalent values.
fn canonical(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => match Decimal::parse(&number.to_string()) {
            Some(decimal) => decimal.canonical(),
            None => number.to_string(),
        },
        Value::String(text) => match plain_number(text) {
            Some(decimal) => decimal.canonical(),
            None => format!("{:?}", folded(text)),
        },
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(entries) => {
            let mut entries: Vec<String> =
                entries.iter().map(|(key, value)| format!("{key:?}:{}", canonical(value))).collect();
            entries.sort();
            format!("{{{}}}", entries.join(","))
        }
    }
}

/// A text that is a number and nothing else. `007` is a name.
fn plain_number(text: &str) -> Option<Decimal> {
    let text = text.trim();
    let digits = text.trim_start_matches(['-', '−', '+']);
    if digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.") {
        return None;
    }
    match crate::number::tokens(text).as_slice() {
        [token] if token.range == (0..text.len()) => Some(token.value.clone()),
        _ => None,
    }
}

/// A text without regard to case and blanks.
pub(crate) fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn fact(key: &str, value: Value, source: &str, start: usize, confidence: Option<f64>) -> Fact {
        Fact { key: key.into(), value, source: source.into(), range: start..start + 10, confidence }
    }

    fn authority() -> Authority {
        Authority::from_priorities([("low", 2), ("high", 1), ("also", 2)])
    }

    #[test]
    fn authority_then_confidence_then_place() {
        let merged = merge(
            [
                fact("k", json!(1), "low", 0, Some(1.0)),
                fact("k", json!(2), "high", 50, Some(0.1)),
                fact("k", json!(3), "high", 70, None),
                fact("k", json!(4), "unknown", 0, Some(1.0)),
                fact("j", json!("x"), "low", 9, Some(0.5)),
                fact("j", json!("y"), "low", 5, Some(0.5)),
                fact("j", json!("z"), "low", 1, Some(0.4)),
                fact("j", json!("w"), "also", 0, Some(0.5)),
            ],
            &authority(),
        );
        let values = |at: usize| {
            let rest = merged[at].conflicts.iter().map(|conflict| conflict.value.clone());
            std::iter::once(merged[at].value.clone()).chain(rest).collect::<Vec<_>>()
        };
        assert_eq!(
            (merged[0].key.as_str(), values(0)),
            ("j", vec![json!("y"), json!("x"), json!("w"), json!("z")])
        );
        assert_eq!((merged[1].key.as_str(), values(1)), ("k", vec![json!(2), json!(3), json!(1), json!(4)]));
    }

    #[test]
    fn equal_values_are_one_fact() {
        for (one, other) in [
            (json!(1250), json!(1250.0)),
            (json!("1,250"), json!(1250)),
            (json!("Main  Street"), json!("main street\n")),
            (json!({"a": 1, "b": [2]}), json!({"b": [2.0], "a": 1})),
        ] {
            let merged = merge(
                [fact("k", one, "low", 0, None), fact("k", other.clone(), "high", 0, None)],
                &authority(),
            );
            assert_eq!((merged[0].provenance.len(), merged[0].conflicts.len()), (2, 0), "{other}");
            assert_eq!((&merged[0].value, merged[0].provenance[0].source.as_str()), (&other, "high"));
        }
        for (one, other) in [
            (json!("007"), json!(7)),
            (json!("true"), json!(true)),
            (json!([1, 2]), json!([2, 1])),
            (json!("a\",\"b"), json!(["a", "b"])),
            (json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64)),
        ] {
            assert_ne!(canonical(&one), canonical(&other));
        }
    }

    fn facts() -> impl Strategy<Value = Vec<Fact>> {
        let value = prop_oneof![
            Just(json!(1)),
            Just(json!(1.0)),
            Just(json!("1")),
            Just(json!("A b")),
            Just(json!("a  B")),
            Just(json!([1])),
            Just(json!(null))
        ];
        let source = prop_oneof![Just("low"), Just("high"), Just("also"), Just("other")];
        let one = ("[ab]", value, source, 0usize..3, proptest::option::of(0u8..3));
        proptest::collection::vec(one, 0..12).prop_map(|list| {
            list.into_iter()
                .map(|(key, value, source, start, confidence)| {
                    fact(&key, value, source, start, confidence.map(|tenths| f64::from(tenths) / 10.0))
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn the_order_of_facts_does_not_matter_and_none_is_lost(facts in facts(), turn in 0usize..12) {
            let merged = merge(facts.clone(), &authority());
            let mut turned = facts.clone();
            turned.rotate_left(turn.min(facts.len()));
            prop_assert_eq!(&merge(turned.clone(), &authority()), &merged);
            turned.reverse();
            prop_assert_eq!(&merge(turned, &authority()), &merged);
            let kept: usize = merged
                .iter()
                .map(|fact| fact.provenance.len() + fact.conflicts.iter().map(|c| c.provenance.len()).sum::<usize>())
                .sum();
            prop_assert_eq!(kept, facts.len());
        }
    }
}
