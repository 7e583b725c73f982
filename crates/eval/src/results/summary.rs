//! Aggregates over the rows of a run.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// Mean and spread of one number over rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Statistic {
    /// Rows that have the number.
    pub count: u64,
    pub mean: f64,
    /// Standard deviation over rows with `ddof` 0, like numpy's `std`.
    pub deviation: f64,
    /// Standard error of the mean, clustered by example: the deviation (`ddof` 1) of the examples' means, divided by
    /// the root of the number of examples. Absent with one example.
    pub standard_error: Option<f64>,
}

/// In seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Range {
    pub min: f64,
    pub mean: f64,
    pub max: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimingSummary {
    /// From the beginning of the generation to the end of the scoring.
    pub total: Range,
    /// Preparing the state.
    pub setup: Range,
    /// All turns.
    pub generation: Range,
    /// Waiting for the model.
    pub model: Range,
    /// Waiting for the environment.
    pub env: Range,
    /// Computing the reward.
    pub scoring: Range,
    pub overhead: Range,
}

/// Mean numbers of tokens per rollout, in the format of verifiers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    pub input_tokens: f64,
    pub output_tokens: f64,
    /// Tokens of the conversation at its end that the model did not write.
    #[serde(default)]
    pub final_input_tokens: Option<f64>,
    /// Tokens of the conversation at its end that the model wrote.
    #[serde(default)]
    pub final_output_tokens: Option<f64>,
}

/// Tokens of all rollouts that reported any.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UsageSummary {
    pub mean: Usage,
    pub total: Usage,
}

impl UsageSummary {
    /// From mean and total of the four kinds.
    pub(crate) fn new([input, output, final_input, final_output]: [Option<(f64, f64)>; 4]) -> Option<Self> {
        let (input, output) = (input?, output?);
        let usage = |of: fn((f64, f64)) -> f64| Usage {
            input_tokens: of(input),
            output_tokens: of(output),
            final_input_tokens: final_input.map(of),
            final_output_tokens: final_output.map(of),
        };
        Some(Self { mean: usage(|it| it.0), total: usage(|it| it.1) })
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Rollouts with a row.
    pub rows: u64,
    /// Examples with a row.
    pub examples: u64,
    /// Absent without a row.
    pub reward: Option<Statistic>,
    pub metrics: IndexMap<String, Statistic>,
    /// Rows with a missing, NaN, infinite or absurdly large reward. They are left out of the reward's statistics.
    pub unscored: u64,
    pub errored: u64,
    /// Errors by their chain of classes.
    pub errors: BTreeMap<String, u64>,
    pub stop_conditions: BTreeMap<String, u64>,
    /// Rows in which a limit cut the model off.
    pub truncated: u64,
    /// Absent if no row reports any.
    pub usage: Option<UsageSummary>,
    /// Absent if no row reports any.
    pub timing: Option<TimingSummary>,
    /// Probability that one of k rollouts is correct, over examples with all their rollouts.
    pub pass_at_k: IndexMap<String, f64>,
    /// Probability that all of k rollouts are correct.
    pub pass_all_k: IndexMap<String, f64>,
    /// The reward from which a rollout is correct.
    pub pass_threshold: f64,
    /// Whether all rows have the same tools, and at least one.
    pub has_same_tools: bool,
}

impl Summary {
    pub fn error_share(&self) -> f64 {
        match self.rows {
            0 => 0.0,
            rows => {
                crate::results::moments::as_number(self.errored) / crate::results::moments::as_number(rows)
            }
        }
    }
}
