//! Analyses trials: how their answers were wrong, and what the agent did or failed to do. Rules derive everything here
//! from records; a model may only add to it.

use std::collections::BTreeMap;

use aec_base::content::ContentStore;
use aec_base::digest::Digest;
use aec_ledger::record::TrialRecord;
use aec_ledger::transcript;
use aec_report::behaviour::analyse;
use aec_report::behaviour::features::Features;
use aec_report::behaviour::kind::{Kind, Label};
use aec_report::behaviour::trace::{DeclaredTool, Trace};
use aec_report::html::Field;
use aec_report::selection::is_full;
use aec_report::shown;
use aec_report::stats::{Cluster, Confidence, Interval, clustered_mean_logit};
use aec_report::work::trace_of;
use aec_task::task::Task;

use crate::archive::Behaviour;
use crate::event::{Miss, Seen, Sign, WrongField};

/// Most fields of one answer that are kept.
const MOST_FIELDS: usize = 20;

/// A trial that was read: what is kept of it, and its trace for a closer look.
#[derive(Clone, Debug)]
pub struct Looked {
    pub seen: Seen,
    /// Absent without a trajectory.
    pub trace: Option<Trace>,
    /// The kinds of its turns, found by rules.
    pub labels: Vec<Label>,
}

pub fn look(record: &TrialRecord, task: &Task, contents: &ContentStore) -> Looked {
    let tools: Vec<DeclaredTool> = task
        .tools()
        .into_iter()
        .map(|tool| DeclaredTool { name: tool.name, path: Some(tool.source) })
        .collect();
    let trace = transcript::of_record(record, contents).map(|events| trace_of(record, events, tools));
    let (features, labels) = match &trace {
        Some(trace) => {
            let (features, labels) = analyse(trace);
            (Some(features), labels)
        }
        None => (None, Vec::new()),
    };
    let reward = record.outcome.is_counted().then(|| record.reward().unwrap_or(0.0));
    let solved = reward.is_some_and(is_full);
    let cost = &record.cost;
    let seen = Seen {
        trial: record.trial_id.clone(),
        outcome: record.outcome,
        reward,
        wrong: if solved { Vec::new() } else { wrong_fields(&shown::fields(record)) },
        signs: if solved { Vec::new() } else { signs(record, features.as_ref(), &labels) },
        turns: features.as_ref().map_or(0, |features| features.turns),
        calls: features.as_ref().map_or(0, |features| features.tool_calls),
        checks: labels.iter().filter(|label| label.kind == Kind::Verification).count(),
        tokens: cost.tokens(),
        cost_usd: cost.estimated_cost_usd,
    };
    Looked { seen, trace, labels }
}

fn wrong_fields(fields: &[Field]) -> Vec<WrongField> {
    fields
        .iter()
        .filter(|field| field.score.is_some_and(|score| !is_full(score)))
        .take(MOST_FIELDS)
        .map(|field| WrongField { name: field.name.clone(), how: miss(&field.expected, &field.got) })
        .collect()
}

/// How a value is wrong, without revealing the right one.
pub fn miss(expected: &str, got: &str) -> Miss {
    if got.trim().is_empty() || got.trim() == "null" {
        return Miss::Missing;
    }
    let (Ok(expected), Ok(got)) = (expected.trim().parse::<f64>(), got.trim().parse::<f64>()) else {
        return Miss::Different;
    };
    if !expected.is_finite() || !got.is_finite() || expected.abs() <= f64::MIN_POSITIVE {
        return Miss::Different;
    }
    let ratio = got / expected;
    let power = ratio.abs().log10();
    match ratio {
        _ if ratio < 0.0 && (ratio + 1.0).abs() < 0.05 => Miss::WrongSign,
        _ if power.abs() > 0.9 && (power - power.round()).abs() < 0.02 => Miss::OffByPowerOfTen,
        ratio if ratio < 0.0 => Miss::WrongSign,
        ratio if ratio > 1.5 => Miss::FarTooHigh,
        ratio if ratio > 1.05 => Miss::TooHigh,
        ratio if ratio < 0.5 => Miss::FarTooLow,
        ratio if ratio < 0.95 => Miss::TooLow,
        _ => Miss::Close,
    }
}

fn signs(record: &TrialRecord, features: Option<&Features>, labels: &[Label]) -> Vec<Sign> {
    let mut signs = Vec::new();
    let mut add = |sign: Sign, is_there: bool| signs.extend(is_there.then_some(sign));
    let nothing = record.outputs.output_source.is_none();
    let unreadable = record
        .evaluation
        .as_ref()
        .is_some_and(|evaluation| evaluation.reward.is_some() && !evaluation.validity.output_parseable);
    let limit = record.fault.as_ref().and_then(|fault| fault.kind.as_deref());
    add(Sign::NoAnswer, nothing);
    add(Sign::UnreadableAnswer, !nothing && unreadable);
    add(Sign::LimitReached, limit.is_some_and(|kind| kind.ends_with("_reached") || kind == "timeout"));
    if let Some(features) = features {
        let files = &features.inspected_files;
        let tools = &features.used_tools;
        add(Sign::UnreadInputs, features.turns > 0 && files.of > files.read);
        add(Sign::UnusedTools, features.turns > 0 && tools.of > 0 && tools.used == 0);
        add(Sign::ErrorsLeft, features.recovered.errors_left > 0);
        add(Sign::Loops, features.loops.repeated_calls >= 3);
        let acted = features.tool_calls > 0;
        let checked = labels.iter().any(|label| label.kind == Kind::Verification);
        add(Sign::NoCheck, acted && !checked && features.read_back.count == 0);
        add(Sign::NothingDone, features.turns > 0 && !acted && files.of + tools.of > 0);
    }
    signs.sort_unstable();
    signs.dedup();
    signs
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
pub fn behaviour(prompt_letters: usize, tally: &Tally) -> Behaviour {
    let share = |part: f64, whole: usize| if whole == 0 { 0.0 } else { part / whole as f64 };
    Behaviour {
        prompt_letters: prompt_letters as f64,
        tokens: share(tally.tokens as f64, tally.trials),
        calls: share(tally.calls as f64, tally.turns),
        checks: share(tally.checks as f64, tally.turns),
    }
}

/// Sums over the trials of a candidate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    pub trials: usize,
    /// Rewards that count.
    pub rewards: Vec<f64>,
    /// The same by task: trials of one task are alike, so the interval is computed over tasks.
    pub by_task: BTreeMap<Digest, Cluster>,
    pub turns: usize,
    pub calls: usize,
    /// Turns in which the agent checks its own work.
    pub checks: usize,
    pub tokens: u64,
    /// How often each part of the answers was wrong, and how.
    pub wrong: BTreeMap<WrongField, usize>,
    pub signs: BTreeMap<Sign, usize>,
    /// Trials without the full reward.
    pub failed: usize,
}

impl Tally {
    pub fn add(&mut self, seen: &Seen) {
        self.trials += 1;
        self.turns += seen.turns;
        self.calls += seen.calls;
        self.checks += seen.checks;
        self.tokens += seen.tokens;
        if let Some(reward) = seen.reward {
            self.rewards.push(reward);
            self.failed += usize::from(!is_full(reward));
        }
        for field in &seen.wrong {
            *self.wrong.entry(field.clone()).or_default() += 1;
        }
        for sign in &seen.signs {
            *self.signs.entry(*sign).or_default() += 1;
        }
    }

    pub fn add_of(&mut self, task: Digest, seen: &Seen) {
        self.add(seen);
        if let Some(reward) = seen.reward {
            self.by_task.entry(task).or_default().add(reward);
        }
    }

    /// The interval of the mean reward over tasks like these, as in reports on its trials.
    pub fn interval(&self) -> Option<Interval> {
        let clusters: Vec<Cluster> = self.by_task.values().copied().collect();
        clustered_mean_logit(&clusters, Confidence::default()).and_then(|estimate| estimate.interval)
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    pub fn mean(&self) -> Option<f64> {
        let count = self.rewards.len();
        (count > 0).then(|| self.rewards.iter().sum::<f64>() / count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_tell_the_kind_and_never_the_value() {
        for (expected, got, how) in [
            ("12.5", "", Miss::Missing),
            ("12.5", "null", Miss::Missing),
            ("12.5", "-12.5", Miss::WrongSign),
            ("12.5", "-3", Miss::WrongSign),
            ("12.5", "12500", Miss::OffByPowerOfTen),
            ("12.5", "0.125", Miss::OffByPowerOfTen),
            ("-12.5", "-125", Miss::OffByPowerOfTen),
            ("12.5", "25", Miss::FarTooHigh),
            ("12.5", "14", Miss::TooHigh),
            ("12.5", "3", Miss::FarTooLow),
            ("12.5", "11", Miss::TooLow),
            ("12.5", "12.6", Miss::Close),
            ("0", "3", Miss::Different),
            ("true", "false", Miss::Different),
            ("pass", "12", Miss::Different),
            ("NaN", "12", Miss::Different),
            ("12", "inf", Miss::Different),
        ] {
            assert_eq!(miss(expected, got), how, "{expected} {got}");
        }
    }
}
