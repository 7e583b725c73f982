//! Files of several evaluations: global options, `[[eval]]` tables, and `[[ablation]]` tables that expand to every
//! combination of their sweep. All problems of a file are told at once.

mod keys;
mod layer;
mod reader;
mod sweep;
mod tree;

use std::path::Path;

use aec_base::document::{CONFIG_FILE_LIMIT, Shared, unreadable};
use aec_base::file::{Links, read_text};
use aec_base::problem::Problem;

use self::keys::Scope;
use self::layer::Layer;
use self::reader::{Item, Reader};
use self::sweep::{Dimensions, combination, combinations};
use self::tree::{Entry, Node, Value};
use crate::config::options::EvalOptions;
use crate::config::{FAMILY, number};

/// Most evaluations that a file may ask for.
pub const MOST_EVALUATIONS: usize = 10_000;

/// Most bytes of arguments, headers and sampling parameters that all evaluations of a file may hold together. A small
/// file whose large table is repeated by a sweep would otherwise fill the memory.
const MOST_BYTES: usize = 256 * 1024 * 1024;

/// A file of evaluations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvalFile {
    /// The evaluations, each with the file's global options below its own: those of `[[eval]]` in the order of the
    /// file, then those of `[[ablation]]`.
    pub evaluations: Vec<EvalOptions>,
}

/// Reads a file of evaluations.
pub fn read_eval_file(path: &Path) -> Result<EvalFile, Vec<Problem>> {
    let text = read_text(path, CONFIG_FILE_LIMIT, Links::Follow)
        .map_err(|error| vec![unreadable(path, &error, FAMILY)])?;
    parse_eval_file(path, &text)
}

/// Reads the text of a file of evaluations; `path` is where it came from, and what `endpoints_path` is relative to.
pub fn parse_eval_file(path: &Path, text: &str) -> Result<EvalFile, Vec<Problem>> {
    let mut reader = Reader::new(path, text);
    let plans = tree::parse(&mut reader).map(|entries| plans(&mut reader, &entries)).unwrap_or_default();
    let evaluations = if reader.has_problems() { Vec::new() } else { expand(&mut reader, plans) };
    if reader.has_problems() {
        return Err(reader.into_problems());
    }
    Ok(EvalFile { evaluations })
}

/// One `[[eval]]` or `[[ablation]]` over the global options, before its sweep is expanded.
struct Plan {
    layer: Layer,
    dimensions: Dimensions,
    offset: usize,
}

impl Plan {
    fn layer(&self, index: usize) -> Layer {
        let chosen = combination(&self.dimensions, index);
        chosen.into_iter().fold(self.layer.clone(), |layer, change| change.apply(layer))
    }
}

fn plans(reader: &mut Reader<'_>, entries: &[Entry]) -> Vec<Plan> {
    let is_list = |entry: &&Entry| matches!(entry.key.as_str(), "eval" | "ablation");
    let (lists, global): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(is_list);
    let defaults = reader.layer(&global, Scope::Global);
    let weight = defaults.weight();
    let mut plans = Vec::new();
    let mut tables: usize = 0;
    for (key, scope) in [("eval", Scope::Eval), ("ablation", Scope::Ablation)] {
        let Some(entry) = lists.iter().find(|entry| entry.key == key) else { continue };
        let Value::List(nodes) = &entry.node.value else {
            let expected = format!("a list of tables, `[[{key}]]` with two brackets");
            reader.wrong_type::<()>(Item { name: key, node: &entry.node }, &expected);
            tables += 1;
            continue;
        };
        tables += nodes.len();
        if nodes.len() > MOST_EVALUATIONS {
            reader.too_many(entry.offset, nodes.len());
            continue;
        }
        if weight.saturating_mul(tables) > MOST_BYTES {
            reader.too_heavy(entry.offset);
            continue;
        }
        for (index, node) in nodes.iter().enumerate() {
            let Value::Table(own) = &node.value else {
                reader.wrong_type::<()>(Item { name: &format!("{key}[{index}]"), node }, "a table");
                continue;
            };
            plans.push(plan(reader, node, own, (&defaults, &global), scope));
        }
    }
    if tables == 0 {
        let problem =
            Problem::error("the file asks for no evaluation").id(FAMILY.number(number::NO_EVALUATION));
        reader.push(0, problem.fix("add an `[[eval]]` table with an `env_id`"));
    }
    plans
}

/// Reads one table. `defaults` are the global options and the keys that said them.
fn plan(
    reader: &mut Reader<'_>,
    node: &Node,
    entries: &[Entry],
    defaults: (&Layer, &[&Entry]),
    scope: Scope,
) -> Plan {
    let is_sweep = |entry: &&Entry| scope == Scope::Ablation && entry.key == "sweep";
    let (sweep, own): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(is_sweep);
    let layer = reader.layer(&own, scope).over(defaults.0.clone());
    let mut dimensions = Dimensions::new();
    if scope == Scope::Ablation {
        dimensions = reader.sweep(node, sweep.first().copied(), &own);
    }
    let plan = Plan { layer, dimensions, offset: node.offset };
    let swept = sweep.iter().filter_map(|entry| match &entry.node.value {
        Value::Table(entries) => Some(entries),
        _ => None,
    });
    // Where a key that names the environment was said but could not be read, that has been told already.
    let names = |entry: &Entry| matches!(entry.key.as_str(), "env_id" | "id" | "taskset");
    let is_named = own.iter().chain(defaults.1).any(|entry| names(entry)) || swept.flatten().any(names);
    if let Err(problem) = plan.layer(0).finished()
        && !(is_named && problem.id == Some(FAMILY.id(Shared::MissingKey)))
    {
        reader.push(plan.offset, problem);
    }
    plan
}

impl Reader<'_> {
    fn too_heavy(&mut self, offset: usize) {
        let what = format!("the evaluations would hold more than {} MiB of arguments", MOST_BYTES >> 20);
        let problem = Problem::error(what).id(FAMILY.number(number::TOO_MANY));
        self.push(offset, problem.fix("keep large arguments in files, or split the file"));
    }
}

/// The evaluations of all plans.
fn expand(reader: &mut Reader<'_>, plans: Vec<Plan>) -> Vec<EvalOptions> {
    let counts: Vec<usize> = plans.iter().map(|plan| combinations(&plan.dimensions)).collect();
    let total = counts.iter().fold(0, |total: usize, count| total.saturating_add(*count));
    if total > MOST_EVALUATIONS {
        let largest = plans.iter().zip(&counts).max_by_key(|(_, count)| **count);
        reader.too_many(largest.map_or(0, |(plan, _)| plan.offset), total);
        return Vec::new();
    }
    let mut bytes: usize = 0;
    let mut evaluations = Vec::with_capacity(total);
    for (plan, count) in plans.into_iter().zip(counts) {
        bytes = bytes.saturating_add(plan.layer.weight().saturating_mul(count));
        if bytes > MOST_BYTES {
            reader.too_heavy(plan.offset);
            break;
        }
        for index in 0..count {
            match plan.layer(index).finished() {
                Ok(options) => evaluations.push(options),
                Err(problem) => {
                    reader.push(plan.offset, problem);
                    break;
                }
            }
        }
    }
    evaluations
}
