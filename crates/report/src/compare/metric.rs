//! The table of a comparison: reward, and how far agents got in their work.

use serde::Serialize;

use super::{Both, Sample, adjust, chance, difference_of, pairs};
use crate::stats::{Bounds, Interval};

/// One side of a row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Side {
    /// The mean, or the share.
    pub value: Option<f64>,
    /// The count behind a share.
    pub count: Option<usize>,
    /// Trials behind it.
    pub of: usize,
}

impl Side {
    /// The mean of a value over some trials.
    #[expect(clippy::cast_precision_loss, reason = "counts of trials are far below 2^52")]
    pub(super) fn mean(samples: &[&Sample], value: impl Fn(&Sample) -> Option<f64>) -> Self {
        let values: Vec<f64> = samples.iter().filter_map(|sample| value(sample)).collect();
        let of = values.len();
        Self { value: (of > 0).then(|| values.iter().sum::<f64>() / of as f64), count: None, of }
    }
}

/// A row of the table.
#[derive(Clone, Debug, Serialize)]
pub struct Metric {
    pub name: &'static str,
    pub base: Side,
    pub other: Side,
    /// The second minus the first.
    pub difference: Option<f64>,
    pub interval: Option<Interval>,
    pub p_value: Option<f64>,
    /// Adjusted for several rows (Holm).
    pub adjusted_p_value: Option<f64>,
}

type Value = fn(&Sample) -> Option<f64>;

/// What is measured, whether it is a share, the bounds of its values, and how it is computed.
const ROWS: [(&str, bool, Bounds, Value); 6] = [
    ("reward_mean", false, Bounds::REWARD, Sample::counted),
    ("nonzero_rollouts", true, Bounds::REWARD, |sample| Some(f64::from(sample.counted()? > 0.0))),
    ("final_environment_response", true, Bounds::REWARD, |sample| {
        sample.is_worked().then(|| f64::from(sample.facts.final_environment_response))
    }),
    ("empty_response_errors", true, Bounds::REWARD, |sample| {
        sample.is_worked().then(|| f64::from(sample.facts.empty_error))
    }),
    ("mean_tool_calls", false, Bounds::NONE, |sample| {
        sample.is_worked().then(|| count(sample.facts.tool_calls))
    }),
    ("mean_submit_calls", false, Bounds::NONE, |sample| {
        sample.is_worked().then(|| count(sample.facts.submit_calls))
    }),
];

#[expect(clippy::cast_precision_loss, reason = "calls of one trial are far below 2^52")]
fn count(calls: u64) -> f64 {
    calls as f64
}

pub(super) fn table(both: &Both<'_>) -> Vec<Metric> {
    let mut rows: Vec<Metric> = ROWS
        .into_iter()
        .map(|(name, is_share, bounds, value)| {
            let side = |samples: &[&Sample]| {
                let ones = samples.iter().filter_map(|sample| value(sample)).filter(|one| *one > 0.0).count();
                Side { count: is_share.then_some(ones), ..Side::mean(samples, value) }
            };
            let by_task = pairs(both, value);
            let estimate = difference_of(&by_task, bounds);
            Metric {
                name,
                base: side(&both.0),
                other: side(&both.1),
                difference: estimate.as_ref().map(|estimate| estimate.mean),
                interval: estimate.as_ref().and_then(|estimate| estimate.interval),
                p_value: chance(&by_task).map(|test| test.p_value),
                adjusted_p_value: None,
            }
        })
        .collect();
    adjust(rows.iter_mut().map(|row| (row.p_value, &mut row.adjusted_p_value)));
    rows
}
