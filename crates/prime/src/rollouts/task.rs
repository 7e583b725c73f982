//! The task of a rollout, from the data that the environment's package stored with the example, or from other hints.

use serde_json::Value;

use crate::rollouts::json::parse_text;
use crate::rollouts::value::{Object, count, first_text, id, object, text};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    /// Its id: from the package, else the expected answer, else the label of the example.
    pub task_id: Option<String>,
    pub id_source: Option<IdSource>,
    /// Digest of its files, in the package's format.
    pub revision: Option<String>,
    pub family: Option<String>,
    pub difficulty: Option<String>,
    pub discipline: Option<String>,
    pub visibility: Option<String>,
    pub instruction: Option<String>,
    /// The dataset that it was taken from.
    pub dataset: Option<String>,
    pub package: Package,
    /// Which part of the tasks was asked for.
    pub split: Option<String>,
    /// The seed with which the tasks were shuffled.
    pub seed: Option<Value>,
    /// The package's data about tasks that are in several splits.
    pub overlap: Option<Value>,
    pub harness: Option<String>,
    /// Most turns of the model.
    pub max_turns: Option<u64>,
    /// Most tokens of the model in all.
    pub max_total_tokens: Option<u64>,
    /// How well tools and verifier were isolated.
    pub isolation: Option<String>,
    pub verifier: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Package {
    pub name: Option<String>,
    pub version: Option<String>,
}

/// Where the id of a task comes from, the most reliable first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdSource {
    Info,
    /// Packages put the id where others put the expected answer.
    Answer,
    Label,
}

impl Task {
    /// Reads a task from the data that the package stored with the example. `answer` and `label` may also name it.
    pub(crate) fn read(info: Option<&Object>, answer: Option<String>, label: Option<String>) -> Self {
        let empty = Object::new();
        let info = info.unwrap_or(&empty);
        let limits = object(info, "rollout_limits").unwrap_or(&empty);
        let named = id(info, "task_id").map(|id| (id, IdSource::Info));
        let named = named.or_else(|| answer.map(|id| (id, IdSource::Answer)));
        let named = named.or_else(|| label.map(|id| (id, IdSource::Label)));
        let (task_id, id_source) = named.unzip();
        let some = |key: &str| info.get(key).filter(|value| !value.is_null()).cloned();
        Self {
            task_id,
            id_source,
            revision: first_text(info, &["task_revision", "revision"]),
            family: text(info, "family"),
            difficulty: text(info, "difficulty"),
            discipline: first_text(info, &["discipline", "domain"]),
            visibility: text(info, "visibility"),
            instruction: text(info, "instruction"),
            dataset: text(info, "dataset").or_else(|| text(object(info, "dataset")?, "dataset_id")),
            package: Package::read(info),
            split: text(info, "split"),
            seed: some("seed"),
            overlap: some("overlap"),
            harness: text(info, "harness"),
            max_turns: count(info, "max_turns").or_else(|| count(limits, "max_turns")),
            max_total_tokens: ["max_total_tokens", "token_budget"]
                .into_iter()
                .find_map(|key| count(info, key).or_else(|| count(limits, key))),
            isolation: text(info, "isolation"),
            verifier: first_text(info, &["verifier_digest", "verifier"]),
        }
    }
}

impl Package {
    fn read(info: &Object) -> Self {
        let inner = object(info, "package");
        let within = |key: &str| inner.and_then(|package| text(package, key));
        Self {
            name: within("name").or_else(|| first_text(info, &["package_name", "package"])),
            version: within("version").or_else(|| text(info, "package_version")),
        }
    }
}

/// The data that the package stored with an example: an object, or JSON text of one.
pub(crate) fn read_info(value: Option<Value>) -> Result<Option<Object>, Value> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
        Some(Value::String(text)) => match parse_text(&text) {
            Some(Value::Object(object)) => Ok(Some(object)),
            _ => Err(Value::String(text)),
        },
        Some(other) => Err(other),
    }
}
