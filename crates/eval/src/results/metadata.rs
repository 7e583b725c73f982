//! `metadata.json`: how a run was made, and the aggregates of its rows.
//!
//! The fields of verifiers 0.1.14 come first and in its order, then `reward` and `reward_std`, then ours.

use std::collections::BTreeMap;
use std::path::Path;

use aec_base::file::{Links, read_text, write_atomic};
use aec_base::json::repaired;
use aec_base::problem::{Place, Problem};
use aec_base::timestamp::Timestamp;
use indexmap::IndexMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::results::problems;
use crate::results::summary::{Summary, TimingSummary, Usage};
use crate::results::till::{SpentSoFar, Till};

/// The version of our own fields.
pub const SCHEMA_VERSION: u32 = 1;

/// Largest metadata that is read; tools and configurations are usually some kilobytes.
const LONGEST_FILE: u64 = 64 * 1024 * 1024;

/// The reward from which a rollout is correct, unless the environment sets another.
pub const PASS_THRESHOLD: f64 = 0.5;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VersionInfo {
    pub vf_version: Option<String>,
    pub vf_commit: Option<String>,
    pub env_version: Option<String>,
    pub env_commit: Option<String>,
}

/// The cost of the tokens, in US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    pub input_usd: f64,
    pub output_usd: f64,
    pub total_usd: f64,
}

/// The description of a run: everything known before its first row.
#[derive(Clone, Debug)]
pub struct Description {
    pub env_id: String,
    pub env_args: Map<String, Value>,
    pub model: String,
    /// The model's address; several addresses are joined by commas.
    pub base_url: String,
    pub num_examples: u64,
    pub rollouts_per_example: u32,
    pub sampling_args: Map<String, Value>,
    /// The reward from which a rollout is correct.
    pub pass_threshold: f64,
    pub version_info: VersionInfo,
    pub state_columns: Vec<String>,
    /// Tools, written if all rows have them.
    pub tools: Option<Value>,
    /// Replaces the environment's name.
    pub name: Option<String>,
    pub shuffle: bool,
    pub shuffle_seed: Option<i64>,
    pub till: Till,
    pub date: Timestamp,
    /// Everything that affects results. It is compared when the run is resumed, so it contains no secrets.
    pub configuration: Map<String, Value>,
}

impl Description {
    /// How many rows a complete run has.
    pub fn rollouts(&self) -> u64 {
        self.num_examples.saturating_mul(self.rollouts_per_example.into())
    }

    /// The metadata after some rows.
    pub fn metadata(&self, summary: &Summary, seconds: f64) -> Metadata {
        let of_metrics = |number: fn(&crate::results::summary::Statistic) -> f64| {
            summary.metrics.iter().map(|(name, statistic)| (name.clone(), number(statistic))).collect()
        };
        let reward = summary.reward;
        let mean = reward.map_or(0.0, |reward| reward.mean);
        Metadata {
            env_id: self.env_id.clone(),
            env_args: self.env_args.clone(),
            model: self.model.clone(),
            base_url: self.base_url.clone(),
            num_examples: i64::try_from(self.num_examples).unwrap_or(i64::MAX),
            rollouts_per_example: self.rollouts_per_example.into(),
            sampling_args: self.sampling_args.clone(),
            time: Some(seconds),
            avg_reward: Some(mean),
            avg_metrics: of_metrics(|statistic| statistic.mean),
            avg_error: Some(summary.error_share()),
            pass_at_k: summary.pass_at_k.clone(),
            pass_all_k: summary.pass_all_k.clone(),
            pass_threshold: Some(summary.pass_threshold),
            usage: summary.usage.map(|usage| usage.mean),
            version_info: self.version_info.clone(),
            state_columns: self.state_columns.clone(),
            tools: self.tools.clone().filter(|_| summary.has_same_tools),
            reward: Some(mean),
            reward_std: Some(reward.map_or(0.0, |reward| reward.deviation)),
            reward_se: reward.and_then(|reward| reward.standard_error),
            metrics_std: of_metrics(|statistic| statistic.deviation),
            name: self.name.clone(),
            shuffle: self.shuffle,
            shuffle_seed: self.shuffle_seed,
            cost: self.till.cost(),
            budget: self.till.spent(),
            stop_conditions: summary.stop_conditions.clone(),
            errors: summary.errors.clone(),
            timing: summary.timing,
            rollouts: Some(summary.rows),
            rows: None,
            complete: Some(summary.rows >= self.rollouts()),
            date: Some(self.date.as_str().to_owned()),
            configuration: Some(self.configuration.clone()),
            schema_version: Some(SCHEMA_VERSION),
            time_ms: None,
        }
    }
}

/// The content of `metadata.json`. Fields that a file of verifiers lacks are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metadata {
    #[serde(deserialize_with = "or_empty")]
    pub env_id: String,
    #[serde(deserialize_with = "or_empty")]
    pub env_args: Map<String, Value>,
    #[serde(deserialize_with = "or_empty")]
    pub model: String,
    #[serde(deserialize_with = "or_empty")]
    pub base_url: String,
    /// −1 means all in files of verifiers.
    #[serde(deserialize_with = "or_empty")]
    pub num_examples: i64,
    #[serde(deserialize_with = "or_empty")]
    pub rollouts_per_example: i64,
    #[serde(deserialize_with = "or_empty")]
    pub sampling_args: Map<String, Value>,
    /// Seconds that the run took.
    pub time: Option<f64>,
    /// Mean reward; 0 without a row.
    pub avg_reward: Option<f64>,
    /// Mean metrics.
    #[serde(deserialize_with = "numbers")]
    pub avg_metrics: IndexMap<String, f64>,
    /// Share of rows with an error.
    pub avg_error: Option<f64>,
    /// Probability that one of k rollouts is correct.
    #[serde(deserialize_with = "numbers")]
    pub pass_at_k: IndexMap<String, f64>,
    /// Probability that all of k rollouts are correct.
    #[serde(deserialize_with = "numbers")]
    pub pass_all_k: IndexMap<String, f64>,
    /// The reward from which a rollout is correct.
    pub pass_threshold: Option<f64>,
    /// Mean numbers of tokens.
    #[serde(deserialize_with = "if_known")]
    pub usage: Option<Usage>,
    #[serde(deserialize_with = "or_empty")]
    pub version_info: VersionInfo,
    #[serde(deserialize_with = "or_empty")]
    pub state_columns: Vec<String>,
    /// Tools that all rows have.
    pub tools: Option<Value>,
    pub reward: Option<f64>,
    /// Standard deviation of the reward over rows, with `ddof` 0.
    pub reward_std: Option<f64>,
    /// Standard error of the mean reward, clustered by example.
    pub reward_se: Option<f64>,
    /// Standard deviations of the metrics, with `ddof` 0.
    #[serde(deserialize_with = "numbers")]
    pub metrics_std: IndexMap<String, f64>,
    /// Replaces the environment's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(deserialize_with = "or_empty")]
    pub shuffle: bool,
    pub shuffle_seed: Option<i64>,
    /// The cost of the tokens, over all sessions.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "if_known")]
    pub cost: Option<Cost>,
    /// What all sessions spent and may spend; absent in files of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "if_known")]
    pub budget: Option<SpentSoFar>,
    /// Reasons why rollouts ended.
    #[serde(deserialize_with = "or_empty")]
    pub stop_conditions: BTreeMap<String, u64>,
    /// Errors by their chain of classes.
    #[serde(deserialize_with = "or_empty")]
    pub errors: BTreeMap<String, u64>,
    /// Durations of rollouts.
    #[serde(deserialize_with = "if_known")]
    pub timing: Option<TimingSummary>,
    /// Rollouts with a row.
    pub rollouts: Option<u64>,
    /// Rows in the file when this was written. None of the numbers here include the cost of later rows.
    pub rows: Option<u64>,
    /// Whether all rollouts have a row.
    pub complete: Option<bool>,
    pub date: Option<String>,
    /// Everything that affects results.
    pub configuration: Option<Map<String, Value>>,
    /// The version of our own fields; absent in files of verifiers.
    pub schema_version: Option<u32>,
    /// The duration in milliseconds, in files before 0.1.14.
    #[serde(skip_serializing)]
    time_ms: Option<f64>,
}

/// Null is treated like a missing key.
fn or_empty<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A value of a known shape, else none: it can be recomputed from the rows, so it is no reason to refuse a file.
fn if_known<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    Value::deserialize(deserializer).map(|value| T::deserialize(value).ok())
}

/// Numbers by name, without those that are null.
fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IndexMap<String, f64>, D::Error> {
    let numbers: IndexMap<String, Option<f64>> = or_empty(deserializer)?;
    Ok(numbers.into_iter().filter_map(|(name, number)| Some((name, number?))).collect())
}

impl Metadata {
    pub fn read(path: &Path) -> Result<Self, Problem> {
        let text = read_text(path, LONGEST_FILE, Links::Follow).map_err(|error| {
            problems::error(25, format!("the metadata cannot be read: {error}"))
                .in_file(path)
                .fix(error.fix())
        })?;
        let json = repaired(&text).text;
        let wrong = |reason: &str, line: usize, column: usize| {
            let place = Place {
                file: path.to_owned(),
                line: u32::try_from(line).unwrap_or(u32::MAX),
                column: u32::try_from(column).unwrap_or(u32::MAX),
            };
            problems::error(26, format!("this is not the metadata of an evaluation: {reason}"))
                .at(place)
                .fix("restore the file, or start a new run")
        };
        // Serde would also accept a list of values in the order of the fields.
        if json.trim_start().starts_with('[') {
            return Err(wrong("a list instead of an object", 1, 1));
        }
        let mut metadata: Self = aec_base::json::from_str(&json)
            .map_err(|error| wrong(&error.to_string(), error.line(), error.column()))?;
        metadata.time = metadata.time.or_else(|| Some(metadata.time_ms? / 1000.0));
        metadata.reward = metadata.reward.or(metadata.avg_reward);
        Ok(metadata)
    }

    /// Replaces a file atomically, so that no reader sees half of it.
    pub fn write(&self, path: &Path) -> Result<(), Problem> {
        let mut bytes = serde_json::to_vec_pretty(self).map_err(|error| {
            problems::error(27, format!("the metadata cannot be written: {error}")).in_file(path)
        })?;
        bytes.push(b'\n');
        write_atomic(path, &bytes).map_err(|error| problems::refused(27, "write the metadata", path, &error))
    }

    /// When the run began, in milliseconds since 1970, if the file tells.
    pub fn milliseconds(&self) -> Option<i64> {
        let date = Timestamp::try_from(self.date.clone()?).ok()?;
        Some(date.to_milliseconds())
    }

    /// How often each example is played; 1 if the file does not tell.
    pub fn rollouts_of_example(&self) -> u32 {
        u32::try_from(self.rollouts_per_example).unwrap_or_default().max(1)
    }
}
