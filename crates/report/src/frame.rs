//! The frame of a run: everything that must be equal before two runs can be compared.

use std::collections::{BTreeMap, BTreeSet};

use aec_base::digest::{Digest, Hasher};
use aec_ledger::record::TrialRecord;
use serde::Serialize;
use serde_json::Value;

/// Parameters that belong to the frame, and their names in the frame.
const PARAMETERS: [(&str, &str); 6] = [
    ("environment", "environment"),
    ("split", "split"),
    ("seed", "seed"),
    ("max_tokens", "token_budget"),
    ("max_turns", "turns"),
    ("max_total_tokens", "tokens_in_all"),
];

/// The value of a part that a record does not have.
const SILENT: &str = "-";

/// The frame of one record.
#[derive(Clone, Debug)]
pub struct Framed {
    values: BTreeMap<&'static str, String>,
    task: (String, Digest),
    repetition: u32,
}

impl Framed {
    pub fn of(record: &TrialRecord) -> Self {
        let mut values = BTreeMap::new();
        for (key, name) in PARAMETERS {
            let value = match record.agent.configuration.get(key) {
                None | Some(Value::Null) => SILENT.to_owned(),
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
            };
            values.insert(name, value);
        }
        if let (Some(dataset), Some(environment)) = (&record.dataset_id, values.get_mut("environment"))
            && environment == SILENT
        {
            environment.clone_from(dataset);
        }
        // Environments of packages support several ways of working, which the record has beside its harness.
        let mode = record.agent.configuration.get("harness").and_then(Value::as_str);
        let adapter = &record.agent.adapter;
        values.insert("harness", mode.map_or_else(|| adapter.clone(), |mode| format!("{adapter}/{mode}")));
        values.insert("difficulty", record.task.difficulty.clone().unwrap_or_else(|| "unknown".to_owned()));
        values.insert("backend", record.environment.compute_backend.clone());
        Self {
            values,
            task: (record.task.task_id.clone(), record.task.task_revision),
            repetition: record.repetition,
        }
    }
}

/// The frame of a run: each part with all its values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Frame(BTreeMap<&'static str, BTreeSet<String>>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub what: String,
    /// The value in the first run; `-` if it has none.
    pub base: String,
    pub other: String,
}

impl Frame {
    pub fn of<'a>(records: impl IntoIterator<Item = &'a Framed>) -> Self {
        let mut parts: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
        let mut rollouts: BTreeMap<&(String, Digest), u32> = BTreeMap::new();
        for record in records {
            for (name, value) in &record.values {
                parts.entry(name).or_default().insert(value.clone());
            }
            let most = rollouts.entry(&record.task).or_default();
            *most = record.repetition.max(*most);
        }
        // A part that no record has does not belong to the frame.
        parts.retain(|_, values| values.iter().any(|value| value != SILENT));
        let mut hasher = Hasher::default();
        for (id, revision) in rollouts.keys() {
            hasher.part(id.as_bytes());
            hasher.part(revision.bytes());
        }
        let mut only = |name, value: String| drop(parts.insert(name, BTreeSet::from([value])));
        only("examples", rollouts.len().to_string());
        only("tasks", hasher.finish().hex()[..12].to_owned());
        let counts: BTreeSet<String> = rollouts.values().map(u32::to_string).collect();
        parts.insert("rollouts", counts);
        Self(parts)
    }

    /// The parts that differ from another frame.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let names: BTreeSet<&'static str> = self.0.keys().chain(other.0.keys()).copied().collect();
        let shown = |frame: &Self, name: &str| match frame.0.get(name) {
            Some(values) => values.iter().cloned().collect::<Vec<_>>().join(", "),
            None => SILENT.to_owned(),
        };
        names
            .into_iter()
            .filter(|name| self.0.get(name) != other.0.get(name))
            .map(|name| Difference {
                what: name.to_owned(),
                base: shown(self, name),
                other: shown(other, name),
            })
            .collect()
    }
}
