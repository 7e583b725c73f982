//! Facts about the run that rollouts belong to: environment, model, and their settings.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::rollouts::value::{Object, count, first_text, id, object, text};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Present if the evaluation is hosted.
    pub evaluation_id: Option<String>,
    pub environment: Option<String>,
    pub environment_args: Object,
    pub model: Option<String>,
    pub sampling: Object,
    pub num_examples: Option<u64>,
    pub rollouts_per_example: Option<u64>,
    /// Most turns of the model.
    pub max_turns: Option<u64>,
    /// Most tokens of the model in all.
    pub max_total_tokens: Option<u64>,
    pub harness: Option<String>,
    /// Versions of the programs that took part.
    pub versions: BTreeMap<String, String>,
    /// As the writer put it.
    pub date: Option<String>,
    pub total_samples: Option<u64>,
}

impl Run {
    /// From `metadata.json` of verifiers up to 0.3.
    pub fn from_metadata(metadata: &Value) -> Self {
        let Some(metadata) = metadata.as_object() else { return Self::default() };
        let versions = ["vf_version", "vf_commit", "env_version", "env_commit"];
        let version_info = object(metadata, "version_info");
        Self {
            environment: first_text(metadata, &["env_id", "env"]),
            environment_args: object(metadata, "env_args").cloned().unwrap_or_default(),
            model: text(metadata, "model"),
            sampling: said(object(metadata, "sampling_args")),
            num_examples: count(metadata, "num_examples"),
            rollouts_per_example: count(metadata, "rollouts_per_example"),
            versions: versions
                .into_iter()
                .filter_map(|key| Some((key.to_owned(), text(version_info?, key)?)))
                .collect(),
            date: text(metadata, "date"),
            ..Self::default()
        }
        .with_limits()
    }

    /// From `configs/resolved/eval.json` of verifiers from 0.4 on.
    pub fn from_config(config: &Value) -> Self {
        let Some(config) = config.as_object() else { return Self::default() };
        let empty = Object::new();
        let environment = object(config, "env").unwrap_or(&empty);
        let taskset = object(environment, "taskset").unwrap_or(&empty);
        let agent = object(environment, "agent").unwrap_or(&empty);
        let select = object(config, "select").unwrap_or(&empty);
        let mut arguments = said(Some(taskset));
        for key in ["id", "task", "system_prompt"] {
            arguments.shift_remove(key);
        }
        Self {
            environment: text(taskset, "id").or_else(|| text(environment, "id")),
            model: text(config, "model").or_else(|| text(agent, "model")),
            sampling: said(object(agent, "sampling").or_else(|| object(config, "sampling"))),
            num_examples: count(select, "limit").or_else(|| count(taskset, "num_examples")),
            rollouts_per_example: count(config, "num_rollouts"),
            max_turns: count(agent, "max_turns"),
            max_total_tokens: count(agent, "max_total_tokens"),
            harness: object(agent, "harness").and_then(|harness| text(harness, "id")),
            environment_args: arguments,
            ..Self::default()
        }
        .with_limits()
    }

    /// From a hosted evaluation, with or without `data` around it.
    pub fn from_evaluation(evaluation: &Value) -> Self {
        let Some(evaluation) = evaluation.as_object() else { return Self::default() };
        let evaluation = object(evaluation, "data").unwrap_or(evaluation);
        let empty = Object::new();
        let config = object(evaluation, "eval_config").unwrap_or(&empty);
        let metadata = object(evaluation, "metadata").unwrap_or(&empty);
        let first = |key: &str| match evaluation.get(key)?.as_array()?.first()? {
            Value::String(name) => Some(name.clone()),
            other => first_text(other.as_object()?, &["name", "id"]),
        };
        // Runs that were made elsewhere and pushed have their settings in `metadata`.
        let either = |key: &str| count(config, key).or_else(|| count(metadata, key));
        let table = |key: &str| object(config, key).or_else(|| object(metadata, key));
        Self {
            evaluation_id: id(evaluation, "evaluation_id").or_else(|| id(evaluation, "id")),
            environment: first("environment_names")
                .or_else(|| first("environments"))
                .or_else(|| text(metadata, "env_id"))
                .or_else(|| first("environment_ids")),
            environment_args: table("env_args").cloned().unwrap_or_default(),
            model: first_text(evaluation, &["model_name", "inference_model"])
                .or_else(|| text(metadata, "model")),
            sampling: said(table("sampling_args")),
            num_examples: either("num_examples"),
            rollouts_per_example: either("rollouts_per_example"),
            date: first_text(evaluation, &["created_at", "started_at"]),
            total_samples: count(evaluation, "total_samples"),
            ..Self::default()
        }
        .with_limits()
    }

    /// Most tokens of one answer.
    pub fn max_tokens(&self) -> Option<u64> {
        count(&self.sampling, "max_tokens").or_else(|| count(&self.sampling, "max_completion_tokens"))
    }

    pub fn split(&self) -> Option<&str> {
        self.environment_args.get("split")?.as_str()
    }

    /// The seed with which the tasks were shuffled.
    pub fn seed(&self) -> Option<&Value> {
        self.environment_args.get("seed").filter(|seed| !seed.is_null())
    }

    /// Adds the limits that the environment was loaded with.
    fn with_limits(mut self) -> Self {
        let arguments = &self.environment_args;
        self.max_turns = self.max_turns.or_else(|| count(arguments, "max_turns"));
        self.max_total_tokens = self.max_total_tokens.or_else(|| count(arguments, "max_total_tokens"));
        self.harness = self.harness.or_else(|| text(arguments, "harness"));
        self
    }
}

/// The members that are not null.
fn said(object: Option<&Object>) -> Object {
    let members = object.into_iter().flatten().filter(|(_, value)| !value.is_null());
    members.map(|(key, value)| (key.clone(), value.clone())).collect()
}
