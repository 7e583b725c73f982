//! What the rows of a run say together.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// Mean and spread of one number over rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Statistic {
    /// Rows that have the number.
    pub count: u64,
    /// Mean over rows.
    pub mean: f64,
    /// Standard deviation over rows with `ddof` 0, as numpy's `std` gives it.
    pub deviation: f64,
    /// Standard error of the mean, clustered by example: the deviation (`ddof` 1) of the examples' means, by the root
    /// of the number of examples. None with one example.
    pub standard_error: Option<f64>,
}

/// Shortest, mean and longest time in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// Shortest.
    pub min: f64,
    pub mean: f64,
    /// Longest.
    pub max: f64,
}

/// How long the parts of rollouts took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimingSummary {
    /// From the beginning of the generation to the end of the scoring.
    pub total: Range,
    /// Making the state ready.
    pub setup: Range,
    /// All turns.
    pub generation: Range,
    /// Waiting for the model.
    pub model: Range,
    /// Waiting for the environment.
    pub env: Range,
    /// Computing the reward.
    pub scoring: Range,
    /// The rest.
    pub overhead: Range,
}

/// Mean numbers of tokens per rollout, as verifiers writes them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read by the model.
    pub input_tokens: f64,
    /// Tokens written by the model.
    pub output_tokens: f64,
    /// Tokens of the conversation at its end that the model did not write.
    #[serde(default)]
    pub final_input_tokens: Option<f64>,
    /// Tokens of the conversation at its end that the model wrote.
    #[serde(default)]
    pub final_output_tokens: Option<f64>,
}

/// Tokens of all rollouts that told any.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UsageSummary {
    /// Per rollout.
    pub mean: Usage,
    /// Of all rollouts.
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

/// What the rows of a run say together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Rollouts that have a row.
    pub rows: u64,
    /// Examples that have a row.
    pub examples: u64,
    /// The reward; none without a row.
    pub reward: Option<Statistic>,
    pub metrics: IndexMap<String, Statistic>,
    /// Rows whose reward is missing, NaN, infinite or absurdly large. They are not in the statistics of the reward.
    pub unscored: u64,
    /// Rows with an error.
    pub errored: u64,
    /// Errors by their chain of classes.
    pub errors: BTreeMap<String, u64>,
    /// Reasons why rollouts ended.
    pub stop_conditions: BTreeMap<String, u64>,
    /// Rows of which a limit cut the model short.
    pub truncated: u64,
    /// Tokens; none when no row tells any.
    pub usage: Option<UsageSummary>,
    /// Durations; none when no row tells any.
    pub timing: Option<TimingSummary>,
    /// Probability that one of k rollouts is correct, over examples all of whose rollouts are there.
    pub pass_at_k: IndexMap<String, f64>,
    /// Probability that all of k rollouts are correct.
    pub pass_all_k: IndexMap<String, f64>,
    /// From which reward on a rollout is correct.
    pub pass_threshold: f64,
    /// Whether all rows have the same tools, and any.
    pub has_same_tools: bool,
}

impl Summary {
    /// The share of rows with an error.
    pub fn error_share(&self) -> f64 {
        match self.rows {
            0 => 0.0,
            rows => {
                crate::results::moments::as_number(self.errored) / crate::results::moments::as_number(rows)
            }
        }
    }
}
