//! `[ablation.sweep]`: lists of values, of which every combination becomes an evaluation.

use std::collections::HashSet;

use aec_base::document::{Part, Shared};
use aec_base::json::Strict;
use aec_base::problem::{Place, Problem};
use aec_base::text;
use serde_json::Value;

use crate::config::environment::shown;
use crate::config::faults::EXCLUSIVE;
use crate::config::file::{MOST_EVALUATIONS, Reader};
use crate::config::options::{EvalOptions, Object};
use crate::config::{FAMILY, number};

/// One value of a sweep, as the change that it makes.
#[derive(Debug)]
pub(super) enum Change {
    Option(Box<EvalOptions>),
    /// Sampling parameters, which merge with the fixed ones.
    Sampling(Object),
    Argument(String, Value),
}

impl Change {
    pub(super) fn apply(&self, mut layer: EvalOptions) -> EvalOptions {
        match self {
            Self::Option(change) => return change.as_ref().clone().over(layer),
            Self::Sampling(sampling) => {
                let fixed = layer.sampling_args.take().unwrap_or_default();
                layer.sampling_args = Some(merged_sampling(sampling.clone(), fixed));
            }
            Self::Argument(name, value) => {
                layer.env_args.get_or_insert_default().insert(name.clone(), value.clone());
            }
        }
        layer
    }
}

/// Every list of a sweep; the last varies fastest.
pub(super) type Dimensions = Vec<Vec<Change>>;

/// Number of combinations; saturates instead of overflowing.
pub(super) fn combinations(dimensions: &Dimensions) -> usize {
    dimensions.iter().fold(1, |count, dimension| count.saturating_mul(dimension.len()))
}

pub(super) fn combination(dimensions: &Dimensions, mut index: usize) -> Vec<&Change> {
    let mut chosen: Vec<&Change> = Vec::with_capacity(dimensions.len());
    for dimension in dimensions.iter().rev() {
        chosen.extend(dimension.get(index % dimension.len().max(1)));
        index /= dimension.len().max(1);
    }
    chosen.reverse();
    chosen
}

/// A key and its alias have the same canonical name.
fn canonical(key: &str) -> &str {
    match key {
        "id" => "env_id",
        "args" => "env_args",
        key => key,
    }
}

fn is_arguments(key: &str) -> bool {
    canonical(key) == "env_args"
}

impl Reader<'_> {
    /// The sweep of an ablation with the other keys `fixed`.
    pub(super) fn sweep(
        &mut self,
        ablation: &Part<'_>,
        sweep: Option<&Part<'_>>,
        fixed: &Part<'_>,
    ) -> Dimensions {
        let mut dimensions = Dimensions::new();
        let Some(sweep) = sweep else {
            self.empty_sweep(ablation.place(), "this `[[ablation]]` has no `[ablation.sweep]`");
            return dimensions;
        };
        let Some(entries) = sweep.entries() else {
            self.push(sweep.wrong_type("a table of lists"));
            return dimensions;
        };
        let lists = |(key, value): &(String, Part<'_>)| match value.entries() {
            Some(arguments) if is_arguments(key) => arguments.len(),
            _ => 1,
        };
        if entries.iter().map(lists).sum::<usize>() == 0 {
            self.empty_sweep(ablation.place_of_key("sweep"), "this `[ablation.sweep]` has no lists");
            return dimensions;
        }
        self.sweep_conflicts(sweep, &entries, fixed);
        for (key, list) in entries.iter().filter(|(key, _)| !is_arguments(key)) {
            if EvalOptions::KEYS.contains(&key.as_str()) {
                dimensions.extend(self.dimension(key, list));
            } else {
                let what = format!("unknown key `{}` in `[ablation.sweep]`", shown(key));
                let fix = text::near_or(key, EvalOptions::KEYS.iter().copied(), "remove the key");
                self.error(sweep.place_of_key(key), Shared::UnknownKey, what, &fix);
            }
        }
        let mut swept: HashSet<String> = HashSet::new();
        // `env_args` come before `args`, in whatever order the file has them.
        for table in ["env_args", "args"].iter().filter_map(|key| sweep.get(key)) {
            let Some(arguments) = table.entries() else {
                self.push(table.wrong_type("a table of lists"));
                continue;
            };
            for (argument, list) in arguments {
                if !swept.insert(argument.clone()) || is_fixed_argument(fixed, &argument) {
                    let place = table.place_of_key(&argument);
                    self.swept_twice(place, &format!("the argument `{}`", shown(&argument)));
                }
                let values = self.values(&list).into_iter().flatten();
                let changes: Vec<Change> =
                    values.map(|(_, value)| Change::Argument(argument.clone(), value)).collect();
                dimensions.extend((!changes.is_empty()).then_some(changes));
            }
        }
        dimensions
    }

    /// Records keys that are both fixed and swept, or that exclude each other.
    fn sweep_conflicts(&mut self, sweep: &Part<'_>, entries: &[(String, Part<'_>)], fixed: &Part<'_>) {
        let fixed_keys: Vec<String> = fixed.entries().into_iter().flatten().map(|(key, _)| key).collect();
        for (at, (key, _)) in entries.iter().enumerate().filter(|(_, (key, _))| !is_arguments(key)) {
            let place = sweep.place_of_key(key);
            if fixed_keys.iter().any(|other| canonical(other) == canonical(key)) {
                self.swept_twice(place, &format!("`{}`", shown(key)));
                continue;
            }
            let excluded = EXCLUSIVE.iter().find_map(|(a, b)| match key {
                key if key == a => Some(*b),
                key if key == b => Some(*a),
                _ => None,
            });
            let Some(other) = excluded else { continue };
            let is_swept = entries[..at].iter().any(|(before, _)| before == other);
            // Swept `sampling` is laid over fixed `sampling_args`.
            let is_fixed = key != "sampling" && fixed_keys.iter().any(|fixed| fixed == other);
            if is_swept || is_fixed {
                let table = if is_swept { "sweep." } else { "" };
                let what = format!("`{table}{other}` and `sweep.{key}` exclude each other");
                self.error(place, Shared::Conflict, what, "keep one of them");
            }
        }
    }

    fn swept_twice(&mut self, place: Place, subject: &str) {
        let what = format!("{subject} is given twice: a key is either fixed or swept, and swept once");
        self.error(place, Shared::Conflict, what, "keep one of them");
    }

    fn empty_sweep(&mut self, place: Place, what: &str) {
        let problem = Problem::error(what).id(FAMILY.number(number::EMPTY_SWEEP));
        self.push(problem.fix("add a list of values, such as temperature = [0.0, 1.0]").at(place));
    }

    fn dimension(&mut self, key: &str, list: &Part<'_>) -> Option<Vec<Change>> {
        let values = self.values(list)?;
        let change = |(value, _): (Part<'_>, Value)| {
            let mut layer = self.layer(&value.under(key));
            match layer.sampling_args.take() {
                Some(sampling) if key == "sampling" => Change::Sampling(sampling),
                sampling => Change::Option(Box::new(EvalOptions { sampling_args: sampling, ..layer })),
            }
        };
        Some(values.into_iter().map(change).collect())
    }

    /// The values of a list: at least one, none twice, and not too many.
    fn values<'p>(&mut self, list: &Part<'p>) -> Option<Vec<(Part<'p>, Value)>> {
        let Some(values) = list.items() else {
            self.push(list.wrong_type("a list of values"));
            return None;
        };
        if values.is_empty() {
            self.empty_sweep(list.place(), &format!("`{}` has no values", shown(list.name())));
            return None;
        }
        if values.len() > MOST_EVALUATIONS {
            self.too_many(list.place(), values.len());
            return None;
        }
        let mut seen = HashSet::new();
        let mut read = Vec::with_capacity(values.len());
        for part in values {
            let decoded = part.decode::<Strict>();
            let is_wrong = !decoded.problems.is_empty();
            decoded.problems.into_iter().for_each(|problem| self.push(problem));
            let Strict(value) = decoded.value.filter(|_| !is_wrong)?;
            if !seen.insert(value.to_string()) {
                let what = format!("`{}` has the same value twice", shown(list.name()));
                self.error(part.place(), Shared::Conflict, what, "keep one of them");
                return None;
            }
            read.push((part, value));
        }
        Some(read)
    }
}

fn is_fixed_argument(fixed: &Part<'_>, argument: &str) -> bool {
    ["env_args", "args"].iter().any(|key| fixed.get(key).is_some_and(|table| table.get(argument).is_some()))
}

/// Sampling parameters laid over others; `extra_body` and its template arguments merge instead of being replaced.
fn merged_sampling(upper: Object, mut lower: Object) -> Object {
    for (key, value) in upper {
        let merges = matches!(key.as_str(), "extra_body" | "chat_template_kwargs");
        match (lower.get_mut(&key), value) {
            (Some(Value::Object(below)), Value::Object(above)) if merges => {
                *below = merged_sampling(above, std::mem::take(below));
            }
            (_, value) => {
                lower.insert(key, value);
            }
        }
    }
    lower
}
