//! `[ablation.sweep]`: lists of values, of which every combination becomes an evaluation.

use std::collections::HashSet;

use aec_base::document::Shared;
use aec_base::problem::Problem;
use serde_json::{Map, Value as Json};

use super::MOST_EVALUATIONS;
use super::keys::{EXCLUSIVE, Scope};
use super::layer::{Layer, merged_sampling};
use super::reader::{Item, Reader};
use super::tree::{Entry, Node, Value};
use crate::config::environment::shown;
use crate::config::{FAMILY, number};

/// One value of a sweep, as what it changes.
#[derive(Debug)]
pub(super) enum Change {
    /// Some option.
    Layer(Box<Layer>),
    /// Sampling parameters, which merge with those that are fixed.
    Sampling(Map<String, Json>),
    /// One argument of the environment.
    Argument(String, Json),
}

impl Change {
    pub(super) fn apply(&self, mut layer: Layer) -> Layer {
        match self {
            Self::Layer(change) => change.as_ref().clone().over(layer),
            Self::Sampling(sampling) => {
                let fixed = layer.options.sampling_args.take().unwrap_or_default();
                layer.options.sampling_args = Some(merged_sampling(sampling.clone(), fixed));
                layer
            }
            Self::Argument(name, value) => {
                layer.options.env_args.get_or_insert_default().insert(name.clone(), value.clone());
                layer
            }
        }
    }
}

/// Every list of a sweep; the last varies fastest.
pub(super) type Dimensions = Vec<Vec<Change>>;

/// Number of combinations, as far as it can be counted.
pub(super) fn combinations(dimensions: &Dimensions) -> usize {
    dimensions.iter().fold(1, |count, dimension| count.saturating_mul(dimension.len()))
}

/// The combination of this index.
pub(super) fn combination(dimensions: &Dimensions, mut index: usize) -> Vec<&Change> {
    let mut chosen: Vec<&Change> = Vec::with_capacity(dimensions.len());
    for dimension in dimensions.iter().rev() {
        chosen.extend(dimension.get(index % dimension.len().max(1)));
        index /= dimension.len().max(1);
    }
    chosen.reverse();
    chosen
}

/// The name under which a key and its alias are one.
fn canonical(key: &str) -> &str {
    match key {
        "id" => "env_id",
        "args" => "env_args",
        key => key,
    }
}

fn is_arguments(entry: &Entry) -> bool {
    canonical(&entry.key) == "env_args"
}

impl Reader<'_> {
    /// The sweep of an ablation whose other keys are `fixed`.
    pub(super) fn sweep(&mut self, ablation: &Node, sweep: Option<&Entry>, fixed: &[&Entry]) -> Dimensions {
        let mut dimensions = Dimensions::new();
        let Some(sweep) = sweep else {
            self.empty_sweep(ablation.offset, "this `[[ablation]]` has no `[ablation.sweep]`");
            return dimensions;
        };
        let Value::Table(entries) = &sweep.node.value else {
            self.wrong_type::<()>(Item { name: "sweep", node: &sweep.node }, "a table of lists");
            return dimensions;
        };
        let lists = |entry: &Entry| match &entry.node.value {
            Value::Table(arguments) if is_arguments(entry) => arguments.len(),
            _ => 1,
        };
        if entries.iter().map(lists).sum::<usize>() == 0 {
            self.empty_sweep(sweep.offset, "this `[ablation.sweep]` has no lists");
            return dimensions;
        }
        self.sweep_conflicts(entries, fixed);
        for entry in entries.iter().filter(|entry| !is_arguments(entry)) {
            if self.is_known(entry, Scope::Sweep) {
                dimensions.extend(self.dimension(entry));
            }
        }
        let mut swept: HashSet<&str> = HashSet::new();
        // `env_args` come before `args`, whichever stands first.
        for key in ["env_args", "args"] {
            for entry in entries.iter().filter(|entry| entry.key == key) {
                let Value::Table(arguments) = &entry.node.value else {
                    let name = format!("sweep.{key}");
                    self.wrong_type::<()>(Item { name: &name, node: &entry.node }, "a table of lists");
                    continue;
                };
                for argument in arguments {
                    if !swept.insert(&argument.key) || is_fixed_argument(fixed, &argument.key) {
                        self.swept_twice(argument, &format!("the argument `{}`", shown(&argument.key)));
                    }
                    dimensions.extend(self.argument_dimension(key, argument));
                }
            }
        }
        dimensions
    }

    /// Notes keys that are both fixed and swept, or that exclude each other.
    fn sweep_conflicts(&mut self, entries: &[Entry], fixed: &[&Entry]) {
        for entry in entries.iter().filter(|entry| !is_arguments(entry)) {
            let key = canonical(&entry.key);
            if fixed.iter().any(|other| canonical(&other.key) == key) {
                self.swept_twice(entry, &format!("`{}`", shown(&entry.key)));
                continue;
            }
            let excluded = |one: &str| {
                EXCLUSIVE.iter().find_map(|(a, b)| match one {
                    one if one == *a => Some(*b),
                    one if one == *b => Some(*a),
                    _ => None,
                })
            };
            let Some(other) = excluded(&entry.key) else { continue };
            let is_swept = |before: &Entry| before.key == other && before.offset < entry.offset;
            // Swept `sampling` is laid over fixed `sampling_args`.
            let is_fixed = |fixed: &&Entry| fixed.key == other && entry.key != "sampling";
            let is_swept = entries.iter().any(is_swept);
            if is_swept || fixed.iter().any(is_fixed) {
                let table = if is_swept { "sweep." } else { "" };
                let what = format!("`{table}{other}` and `sweep.{}` exclude each other", entry.key);
                self.error(entry.offset, Shared::Conflict, what, "keep one of them");
            }
        }
    }

    fn swept_twice(&mut self, entry: &Entry, subject: &str) {
        let what = format!("{subject} is given twice: a key is either fixed or swept, and swept once");
        self.error(entry.offset, Shared::Conflict, what, "keep one of them");
    }

    fn empty_sweep(&mut self, offset: usize, what: &str) {
        let problem = Problem::error(what).id(FAMILY.number(number::EMPTY_SWEEP));
        self.push(offset, problem.fix("add a list of values, such as temperature = [0.0, 1.0]"));
    }

    /// The values of a swept option.
    fn dimension(&mut self, entry: &Entry) -> Option<Vec<Change>> {
        let name = format!("sweep.{}", entry.key);
        let values = self.values(&name, entry)?;
        let mut changes = Vec::with_capacity(values.len());
        for (index, node) in values.iter().enumerate() {
            let mut layer = Layer::default();
            self.set(&mut layer, &entry.key, Item { name: &format!("{name}[{index}]"), node });
            changes.push(match (entry.key.as_str(), layer.options.sampling_args.take()) {
                ("sampling", Some(sampling)) => Change::Sampling(sampling),
                (_, sampling) => {
                    layer.options.sampling_args = sampling;
                    Change::Layer(Box::new(layer))
                }
            });
        }
        Some(changes)
    }

    /// The values of a swept argument.
    fn argument_dimension(&mut self, table: &str, entry: &Entry) -> Option<Vec<Change>> {
        let name = format!("sweep.{table}.{}", entry.key);
        let values = self.values(&name, entry)?;
        let mut changes = Vec::with_capacity(values.len());
        for (index, node) in values.iter().enumerate() {
            let value = self.json(Item { name: &format!("{name}[{index}]"), node })?;
            changes.push(Change::Argument(entry.key.clone(), value));
        }
        Some(changes)
    }

    /// The values of a list: at least one, none twice, and not too many.
    fn values<'n>(&mut self, name: &str, entry: &'n Entry) -> Option<&'n [Node]> {
        let Value::List(values) = &entry.node.value else {
            return self.wrong_type(Item { name, node: &entry.node }, "a list of values");
        };
        if values.is_empty() {
            self.empty_sweep(entry.node.offset, &format!("`{}` has no values", shown(name)));
            return None;
        }
        if values.len() > MOST_EVALUATIONS {
            self.too_many(entry.node.offset, values.len());
            return None;
        }
        let mut seen = HashSet::new();
        for node in values {
            // The tree prints the same for the same value, apart from its places.
            if !seen.insert(plain(node)) {
                let what = format!("`{}` has the same value twice", shown(name));
                self.error(node.offset, Shared::Conflict, what, "keep one of them");
                return None;
            }
        }
        Some(values)
    }

    pub(super) fn too_many(&mut self, offset: usize, count: usize) {
        let what = format!("{count} evaluations are more than the {MOST_EVALUATIONS} a file may ask for");
        let problem = Problem::error(what).id(FAMILY.number(number::TOO_MANY));
        self.push(offset, problem.fix("sweep fewer values, or split the file"));
    }
}

fn is_fixed_argument(fixed: &[&Entry], argument: &str) -> bool {
    fixed.iter().filter(|entry| is_arguments(entry)).any(|entry| match &entry.node.value {
        Value::Table(arguments) => arguments.iter().any(|fixed| fixed.key == argument),
        _ => false,
    })
}

/// A value as text without its place.
fn plain(node: &Node) -> String {
    match &node.value {
        Value::Bool(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Float(value) => format!("{value:?}"),
        Value::Text(value) => format!("{value:?}"),
        Value::List(nodes) => format!("[{}]", nodes.iter().map(plain).collect::<Vec<_>>().join(",")),
        Value::Table(entries) => {
            let mut pairs: Vec<String> =
                entries.iter().map(|entry| format!("{:?}:{}", entry.key, plain(&entry.node))).collect();
            pairs.sort();
            format!("{{{}}}", pairs.join(","))
        }
    }
}
