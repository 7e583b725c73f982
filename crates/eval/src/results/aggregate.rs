//! Aggregates over rows as they arrive; the order of the rows does not matter.
//!
//! Memory grows with the number of examples: a count and a sum for the reward and for each metric. Rows with an error
//! are kept too, because another attempt may replace them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use indexmap::IndexMap;

use crate::results::facts::{RowFacts, UsageFacts};
use crate::results::moments::{ExactSum, Moments};
use crate::results::passes;
use crate::results::summary::{Range, Statistic, Summary, TimingSummary, UsageSummary};
use crate::results::timing::Seconds;

/// A part of the timing, by name.
type Part = (&'static str, fn(&Seconds) -> f64);

const PARTS: [Part; 7] = [
    ("total", |seconds| seconds.total),
    ("setup", |seconds| seconds.setup),
    ("generation", |seconds| seconds.generation),
    ("model", |seconds| seconds.model),
    ("env", |seconds| seconds.env),
    ("scoring", |seconds| seconds.scoring),
    ("overhead", |seconds| seconds.overhead),
];

#[derive(Clone, Debug, Default)]
struct Tally {
    count: u32,
    sum: ExactSum,
}

impl Tally {
    fn change(&mut self, change: Change, number: f64) {
        match change {
            Change::Add => self.count += 1,
            Change::TakeBack => self.count = self.count.saturating_sub(1),
        }
        self.sum.add(change.signed(number));
    }

    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum.divided_by(self.count.into()))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Add,
    TakeBack,
}

impl Change {
    fn signed(self, number: f64) -> f64 {
        match self {
            Self::Add => number,
            Self::TakeBack => -number,
        }
    }

    fn moments(self, moments: &mut Moments, number: f64) {
        match self {
            Self::Add => moments.add(number),
            Self::TakeBack => moments.take_back(number),
        }
    }

    fn count<K: Ord>(self, counts: &mut BTreeMap<K, u64>, key: K) {
        match self {
            Self::Add => *counts.entry(key).or_default() += 1,
            Self::TakeBack => {
                if let Some(count) = counts.get_mut(&key) {
                    *count = count.saturating_sub(1);
                    if *count == 0 {
                        counts.remove(&key);
                    }
                }
            }
        }
    }

    fn number(self, count: &mut u64) {
        *count = match self {
            Self::Add => *count + 1,
            Self::TakeBack => count.saturating_sub(1),
        };
    }
}

#[derive(Clone, Debug, Default)]
struct Example {
    rows: u32,
    correct: u32,
    reward: Tally,
    /// Indexed by the number of the metric.
    metrics: Vec<Tally>,
}

#[derive(Clone, Debug, Default)]
struct Tokens {
    count: u64,
    sum: ExactSum,
}

/// Shortest and longest time of one part.
#[derive(Clone, Copy, Debug)]
struct Extremes {
    shortest: f64,
    longest: f64,
}

impl Extremes {
    const NONE: Self = Self { shortest: f64::INFINITY, longest: f64::NEG_INFINITY };

    fn with(self, number: f64) -> Self {
        Self { shortest: self.shortest.min(number), longest: self.longest.max(number) }
    }
}

#[derive(Clone, Debug)]
pub struct Aggregate {
    rollouts_per_example: u32,
    threshold: f64,
    rows: u64,
    truncated: u64,
    unscored: u64,
    reward: Moments,
    metrics: IndexMap<Arc<str>, Moments>,
    examples: HashMap<i64, Example>,
    errors: BTreeMap<String, u64>,
    stop_conditions: BTreeMap<Arc<str>, u64>,
    tools: BTreeMap<Arc<[Box<str>]>, u64>,
    usage: [Tokens; 4],
    seconds: [Moments; 7],
    /// Over rows without an error.
    extremes: [Extremes; 7],
    /// Rows with an error, by example and rollout.
    errored: HashMap<(i64, u32), RowFacts>,
}

impl Aggregate {
    /// A rollout is correct when its reward is at least the threshold.
    pub fn new(rollouts_per_example: u32, threshold: f64) -> Self {
        Self {
            rollouts_per_example,
            threshold,
            rows: 0,
            truncated: 0,
            unscored: 0,
            reward: Moments::default(),
            metrics: IndexMap::new(),
            examples: HashMap::new(),
            errors: BTreeMap::new(),
            stop_conditions: BTreeMap::new(),
            tools: BTreeMap::new(),
            usage: Default::default(),
            seconds: Default::default(),
            extremes: [Extremes::NONE; 7],
            errored: HashMap::new(),
        }
    }

    /// Adds a row. It replaces an earlier row of the same rollout that had an error.
    pub fn add(&mut self, facts: &RowFacts) {
        let key = facts.rollout_number.map(|number| (facts.example_id, number));
        let replaced = if facts.attempt > 1 { key.and_then(|key| self.errored.remove(&key)) } else { None };
        if let Some(replaced) = replaced {
            self.change(Change::TakeBack, &replaced);
        }
        self.change(Change::Add, facts);
        match (&facts.error, key) {
            (Some(_), Some(key)) => {
                self.errored.insert(key, facts.clone());
            }
            _ => {
                for (extremes, (_, part)) in self.extremes.iter_mut().zip(PARTS) {
                    if let Some(seconds) = &facts.seconds {
                        *extremes = extremes.with(part(seconds));
                    }
                }
            }
        }
    }

    fn change(&mut self, change: Change, facts: &RowFacts) {
        change.number(&mut self.rows);
        if facts.is_truncated {
            change.number(&mut self.truncated);
        }
        let example = self.examples.entry(facts.example_id).or_default();
        example.rows = match change {
            Change::Add => example.rows + 1,
            Change::TakeBack => example.rows.saturating_sub(1),
        };
        // A row with an error counts as wrong, whatever its reward.
        if facts.error.is_none() && facts.reward.is_some_and(|reward| reward >= self.threshold) {
            example.correct = match change {
                Change::Add => example.correct + 1,
                Change::TakeBack => example.correct.saturating_sub(1),
            };
        }
        match facts.reward {
            Some(reward) => {
                change.moments(&mut self.reward, reward);
                example.reward.change(change, reward);
            }
            None => change.number(&mut self.unscored),
        }
        for (name, value) in &facts.metrics {
            let index = match self.metrics.get_index_of(name) {
                Some(index) => index,
                None => self.metrics.insert_full(name.clone(), Moments::default()).0,
            };
            change.moments(&mut self.metrics[index], *value);
            if example.metrics.len() <= index {
                example.metrics.resize_with(index + 1, Tally::default);
            }
            example.metrics[index].change(change, *value);
        }
        if let Some(error) = &facts.error {
            change.count(&mut self.errors, error.chain.clone());
        }
        if let Some(condition) = &facts.stop_condition {
            change.count(&mut self.stop_conditions, condition.clone());
        }
        change.count(&mut self.tools, Arc::clone(&facts.tools));
        if let Some(usage) = facts.usage {
            self.change_usage(change, usage);
        }
        if let Some(seconds) = &facts.seconds {
            for (moments, (_, part)) in self.seconds.iter_mut().zip(PARTS) {
                change.moments(moments, part(seconds));
            }
        }
    }

    fn change_usage(&mut self, change: Change, usage: UsageFacts) {
        let kinds = [
            Some(usage.input_tokens),
            Some(usage.output_tokens),
            usage.final_input_tokens,
            usage.final_output_tokens,
        ];
        for (tokens, number) in self.usage.iter_mut().zip(kinds) {
            if let Some(number) = number {
                change.number(&mut tokens.count);
                tokens.sum.add(change.signed(number));
            }
        }
    }

    /// Rows so far, each rollout once.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The mean reward of each example, by its id.
    pub fn rewards(&self) -> impl Iterator<Item = (i64, f64)> {
        self.examples.iter().filter_map(|(id, example)| Some((*id, example.reward.mean()?)))
    }

    pub fn metric_names(&self) -> impl Iterator<Item = &str> {
        self.metrics.keys().map(|name| &**name)
    }

    /// The mean of a metric of each example, by its id.
    pub fn metric(&self, name: &str) -> impl Iterator<Item = (i64, f64)> {
        let index = self.metrics.get_index_of(name);
        self.examples
            .iter()
            .filter_map(move |(id, example)| Some((*id, example.metrics.get(index?)?.mean()?)))
    }

    pub fn summary(&self) -> Summary {
        let mut examples = self.examples.values().collect::<Vec<_>>();
        examples.retain(|example| example.rows > 0);
        let correct = self.correct(&examples);
        let metrics = self.metrics.iter().enumerate().filter_map(|(index, (name, moments))| {
            let means = examples.iter().filter_map(|example| example.metrics.get(index)?.mean());
            Some((name.to_string(), statistic(moments, means)?))
        });
        let metrics = metrics.collect();
        let usage = |index: usize| {
            let tokens = &self.usage[index];
            (tokens.count > 0).then(|| (tokens.sum.divided_by(tokens.count), tokens.sum.value()))
        };
        Summary {
            rows: self.rows,
            examples: examples.len() as u64,
            reward: statistic(&self.reward, examples.iter().filter_map(|example| example.reward.mean())),
            metrics,
            unscored: self.unscored,
            errored: self.errors.values().sum(),
            errors: self.errors.clone(),
            stop_conditions: self
                .stop_conditions
                .iter()
                .map(|(name, count)| (name.to_string(), *count))
                .collect(),
            truncated: self.truncated,
            usage: UsageSummary::new([usage(0), usage(1), usage(2), usage(3)]),
            timing: self.timing(),
            pass_at_k: passes::means(self.rollouts_per_example, &correct, passes::pass_at),
            pass_all_k: passes::means(self.rollouts_per_example, &correct, passes::pass_all),
            pass_threshold: self.threshold,
            has_same_tools: self.tools.len() == 1 && self.tools.keys().all(|names| !names.is_empty()),
        }
    }

    /// How many complete examples have each number of correct rollouts.
    fn correct(&self, examples: &[&Example]) -> passes::Correct {
        let mut counts = BTreeMap::<u32, u64>::new();
        for example in examples.iter().filter(|example| example.rows == self.rollouts_per_example) {
            *counts.entry(example.correct).or_default() += 1;
        }
        counts.into_iter().collect()
    }

    fn timing(&self) -> Option<TimingSummary> {
        let range = |index: usize| {
            let (_, part) = PARTS[index];
            let errored = self.errored.values().filter_map(|facts| facts.seconds.as_ref());
            let extremes =
                errored.fold(self.extremes[index], |extremes, seconds| extremes.with(part(seconds)));
            let mean = self.seconds[index].mean()?;
            Some(Range { min: extremes.shortest, mean, max: extremes.longest })
        };
        Some(TimingSummary {
            total: range(0)?,
            setup: range(1)?,
            generation: range(2)?,
            model: range(3)?,
            env: range(4)?,
            scoring: range(5)?,
            overhead: range(6)?,
        })
    }
}

/// The standard error is that of the examples' means, because rollouts of one example are not independent.
fn statistic(moments: &Moments, means: impl Iterator<Item = f64>) -> Option<Statistic> {
    let mut of_examples = Moments::default();
    means.for_each(|mean| of_examples.add(mean));
    Some(Statistic {
        count: moments.count(),
        mean: moments.mean()?,
        deviation: moments.deviation()?,
        standard_error: of_examples.standard_error(),
    })
}
