//! Files of several evaluations: global options, `[[eval]]` tables, and `[[ablation]]` tables that expand to every
//! combination of their sweep. All problems of a file are reported at once.

use std::path::{Path, PathBuf};

use aec_base::document::{CONFIG_FILE_LIMIT, Decoded, Document, Part, Shared, Syntax, unreadable};
use aec_base::file::{Links, read_text};
use aec_base::problem::{Place, Problem};
use serde_json::{Value, json};

use crate::config::options::EvalOptions;
use crate::config::sweep::{Dimensions, combination, combinations};
use crate::config::{Environment, FAMILY, check, number};

/// Most evaluations that a file may ask for.
pub const MOST_EVALUATIONS: usize = 10_000;

/// Most bytes of arguments, headers and sampling parameters of all evaluations of a file together. Without this limit,
/// a sweep that repeats a large table could fill the memory.
const MOST_BYTES: usize = 256 * 1024 * 1024;

/// Further problems are not listed: with this many, the author probably passed the wrong file.
const MOST_PROBLEMS: usize = 50;

/// Keys that name the environment.
const NAMES: [&str; 3] = ["env_id", "id", "taskset"];

#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvalFile {
    /// The evaluations, each with the file's global options below its own: those of `[[eval]]` in the order of the
    /// file, then those of `[[ablation]]`.
    pub evaluations: Vec<EvalOptions>,
}

pub fn read_eval_file(path: &Path) -> Result<EvalFile, Vec<Problem>> {
    let text = read_text(path, CONFIG_FILE_LIMIT, Links::Follow)
        .map_err(|error| vec![unreadable(path, &error, FAMILY)])?;
    parse_eval_file(path, &text)
}

/// Reads the text of a file of evaluations. `path` names the file in problems, and `endpoints_path` is relative to it.
pub fn parse_eval_file(path: &Path, text: &str) -> Result<EvalFile, Vec<Problem>> {
    let document = Document::parse(path, text.to_owned(), Syntax::Toml, FAMILY)?;
    let mut reader = Reader { path, problems: Vec::new() };
    let plans = reader.plans(&document.whole().discreet());
    let evaluations = if reader.problems.is_empty() { reader.expand(plans) } else { Vec::new() };
    if reader.problems.is_empty() { Ok(EvalFile { evaluations }) } else { Err(reader.told()) }
}

/// One `[[eval]]` or `[[ablation]]` over the global options, before its sweep is expanded.
struct Plan {
    layer: EvalOptions,
    dimensions: Dimensions,
    place: Place,
}

impl Plan {
    fn options(&self, index: usize) -> Result<EvalOptions, Problem> {
        let chosen = combination(&self.dimensions, index);
        finished(chosen.into_iter().fold(self.layer.clone(), |layer, change| change.apply(layer)))
    }
}

/// A file that is being read, and the problems found so far.
pub(super) struct Reader<'a> {
    path: &'a Path,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    pub(super) fn push(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    pub(super) fn error(&mut self, place: Place, shared: Shared, what: String, fix: &str) {
        self.push(Problem::error(what).id(FAMILY.id(shared)).fix(fix).at(place));
    }

    /// All problems in the order of the file, at most [`MOST_PROBLEMS`].
    fn told(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| (problem.line, problem.column));
        if self.problems.len() >= MOST_PROBLEMS {
            self.problems.truncate(MOST_PROBLEMS);
            let more = Problem::error("more problems are not shown").id(FAMILY.number(number::MORE_PROBLEMS));
            self.problems.push(more.fix("correct those above first").in_file(self.path));
        }
        self.problems
    }

    /// The options of a table; empty if any of them is wrong.
    pub(super) fn layer(&mut self, table: &Part<'_>) -> EvalOptions {
        let decoded: Decoded<EvalOptions> = table.decode();
        self.problems.extend(decoded.problems);
        let mut options = decoded.value.unwrap_or_default();
        options.endpoints_path = options.endpoints_path.map(|path| beside(self.path, &path));
        options.normal().unwrap_or_else(|faults| {
            for fault in faults {
                let value = table.get(fault.key);
                let item = fault.item.zip(value.as_ref()).and_then(|(index, value)| value.nth(index));
                let place = item.or(value).map_or_else(|| table.place(), |part| part.place());
                self.push(fault.problem.at(place));
            }
            EvalOptions::default()
        })
    }

    fn plans(&mut self, file: &Part<'_>) -> Vec<Plan> {
        let global = file.clone().without(&["eval", "ablation"]).knowing(&["eval", "ablation"]);
        let defaults = self.layer(&global);
        if global.get("name").is_some() {
            let what = "`name` cannot be set for all evaluations at once".to_owned();
            let place = file.place_of_key("name");
            self.error(place, Shared::UnknownKey, what, "move it into the `[[eval]]` that it names");
        }
        let weight = weight(&defaults);
        let mut plans = Vec::new();
        let mut tables: usize = 0;
        for key in ["eval", "ablation"] {
            let Some(list) = file.get(key) else { continue };
            let Some(items) = list.items() else {
                self.push(list.wrong_type(&format!("a list of tables, `[[{key}]]` with two brackets")));
                tables += 1;
                continue;
            };
            tables += items.len();
            if items.len() > MOST_EVALUATIONS {
                self.too_many(file.place_of_key(key), items.len());
                continue;
            }
            if weight.saturating_mul(tables) > MOST_BYTES {
                self.too_heavy(file.place_of_key(key));
                continue;
            }
            for item in items {
                if item.entries().is_none() {
                    self.push(item.wrong_type("a table"));
                } else {
                    plans.push(self.plan(&item, (&defaults, &global), key == "ablation"));
                }
            }
        }
        if tables == 0 {
            let problem =
                Problem::error("the file asks for no evaluation").id(FAMILY.number(number::NO_EVALUATION));
            self.push(problem.fix("add an `[[eval]]` table with an `env_id`").at(file.place()));
        }
        plans
    }

    /// Reads one table. `defaults` are the global options and the table that sets them.
    fn plan(&mut self, table: &Part<'_>, defaults: (&EvalOptions, &Part<'_>), is_ablation: bool) -> Plan {
        let sweep = table.get("sweep");
        let mut own = table.clone().without(&["sweep"]);
        if is_ablation {
            own = own.knowing(&["sweep"]);
        } else if sweep.is_some() {
            let what = format!("`sweep` has no meaning in `{}`", table.name());
            let place = table.place_of_key("sweep");
            self.error(place, Shared::UnknownKey, what, "make the table an `[[ablation]]`");
        }
        let layer = self.layer(&own).over(defaults.0.clone());
        let dimensions = if is_ablation { self.sweep(table, sweep.as_ref(), &own) } else { Vec::new() };
        let plan = Plan { layer, dimensions, place: table.place() };
        // A key that names the environment but could not be read has already been reported.
        let names = |part: &Part<'_>| NAMES.iter().any(|key| part.get(key).is_some());
        let is_named = names(table) || names(defaults.1) || sweep.is_some_and(|sweep| names(&sweep));
        if let Err(problem) = plan.options(0)
            && !(is_named && problem.id == Some(FAMILY.id(Shared::MissingKey)))
        {
            self.push(problem.at(plan.place.clone()));
        }
        plan
    }

    pub(super) fn too_many(&mut self, place: Place, count: usize) {
        let what = format!("{count} evaluations are more than the {MOST_EVALUATIONS} a file may ask for");
        let problem = Problem::error(what).id(FAMILY.number(number::TOO_MANY));
        self.push(problem.fix("sweep fewer values, or split the file").at(place));
    }

    fn too_heavy(&mut self, place: Place) {
        let what = format!("the evaluations would hold more than {} MiB of arguments", MOST_BYTES >> 20);
        let problem = Problem::error(what).id(FAMILY.number(number::TOO_MANY));
        self.push(problem.fix("keep large arguments in files, or split the file").at(place));
    }

    /// The evaluations of all plans.
    fn expand(&mut self, plans: Vec<Plan>) -> Vec<EvalOptions> {
        let counts: Vec<usize> = plans.iter().map(|plan| combinations(&plan.dimensions)).collect();
        let total = counts.iter().fold(0, |total: usize, count| total.saturating_add(*count));
        if total > MOST_EVALUATIONS {
            let largest = plans.iter().zip(&counts).max_by_key(|(_, count)| **count);
            if let Some((plan, _)) = largest {
                self.too_many(plan.place.clone(), total);
            }
            return Vec::new();
        }
        let mut bytes: usize = 0;
        let mut evaluations = Vec::with_capacity(total);
        for (plan, count) in plans.into_iter().zip(counts) {
            bytes = bytes.saturating_add(weight(&plan.layer).saturating_mul(count));
            if bytes > MOST_BYTES {
                self.too_heavy(plan.place);
                break;
            }
            for index in 0..count {
                match plan.options(index) {
                    Ok(options) => evaluations.push(options),
                    Err(problem) => {
                        self.push(problem.at(plan.place));
                        break;
                    }
                }
            }
        }
        evaluations
    }
}

/// Roughly how many bytes the maps of options hold.
fn weight(options: &EvalOptions) -> usize {
    let maps = [
        &options.env_args,
        &options.extra_env_kwargs,
        &options.sampling_args,
        &options.taskset,
        &options.harness,
    ];
    let headers = options.headers.iter().chain(&options.headers_from_state).flatten();
    maps.into_iter().flatten().map(|map| json!(map).to_string().len()).sum::<usize>()
        + headers.map(|(name, value)| name.len() + value.len()).sum::<usize>()
}

/// Completes the options of an evaluation after all layers are merged: the tables `taskset` and `harness` go into the
/// argument `config`. Without an `env_id` the taskset's id names the environment.
fn finished(mut options: EvalOptions) -> Result<EvalOptions, Problem> {
    for (name, section) in [("taskset", options.taskset.take()), ("harness", options.harness.take())] {
        let Some(section) = section else { continue };
        let arguments = options.env_args.get_or_insert_default();
        let Value::Object(config) = arguments.entry("config").or_insert_with(|| json!({})) else {
            let what = "the argument `config` is not a table, so `taskset` and `harness` have no place in it";
            return Err(check::conflict(what.to_owned(), "remove one of them"));
        };
        if config.insert(name.to_owned(), section.into()).is_some() {
            let what = format!("`{name}` and the argument `config.{name}` say the same thing");
            return Err(check::conflict(what, &format!("keep `{name}`")));
        }
    }
    if options.env_id.is_none() {
        let taskset = options.env_args.as_ref().and_then(|map| map.get("config")?.get("taskset"));
        let id = taskset.and_then(|taskset| taskset.get("id").or_else(|| taskset.get("taskset_id")));
        let Some(id) = id.and_then(Value::as_str) else {
            let problem = Problem::error("`env_id` is missing").id(FAMILY.id(Shared::MissingKey));
            return Err(problem.fix("name the environment, such as env_id = \"my-env\""));
        };
        Environment::parse(id)?;
        options.env_id = Some(id.to_owned());
    }
    Ok(options)
}

/// A path relative to the file that contains it. The example in the documentation writes one relative to the working
/// directory, so an existing file there is accepted too.
fn beside(file: &Path, path: &Path) -> PathBuf {
    let joined = file.parent().unwrap_or_else(|| Path::new("")).join(path);
    if !joined.exists() && path.exists() { path.to_path_buf() } else { joined }
}
