//! The files that describe a run: what is improved, on which tasks, with which models, and within which budget.

mod evolution;
mod swarm;

use std::path::{Component, Path, PathBuf};

use aec_base::document::{Document, Shared};
use aec_base::env::Env;
use aec_base::problem::Problem;
use aec_base::secret::{ExpandError, expand_public};
use aec_task::file::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use evolution::{Evolution, EvolutionFile, Strategy, Voice};
pub use swarm::{Swarm, SwarmFile};

use crate::FAMILY;

/// Default for the most tasks of an acceptance test.
pub const DEFAULT_MAX_TASKS: u32 = 100;
/// Default error rate of a whole run.
pub const DEFAULT_ERROR_RATE: f64 = 0.05;
/// Default number of tasks in the holdout.
pub const DEFAULT_HOLDOUT: u32 = 20;
/// Default for the most tokens of the evolver's answer.
pub const DEFAULT_EVOLVER_TOKENS: u32 = 16_384;
/// Default temperature of the evolver.
pub const DEFAULT_EVOLVER_TEMPERATURE: f64 = 0.7;
/// Default number of concurrent trials.
pub const DEFAULT_CONCURRENCY: u32 = 4;

/// Tasks that are generated during the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GenerateTable {
    /// The template, as `NAME` or `DISCIPLINE/NAME`.
    pub template: Option<String>,
    /// Instances generated at a time (default 5).
    pub count: Option<Quantity>,
    /// Seed of all random choices (default 42).
    pub seed: Option<i64>,
    /// Tiers to take in turns; all of the template's if absent.
    pub difficulties: Vec<String>,
}

/// When a candidate is accepted.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AcceptanceTable {
    /// Share of acceptances that may be wrong, over the whole run (default 0.05).
    pub error_rate: Option<f64>,
    /// Tasks of one test at most (default 100).
    pub max_tasks: Option<Quantity>,
}

/// Tasks that are reserved for the end.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HoldoutTable {
    /// How many (default 20; of selected tasks, a fifth); 0 for none.
    pub tasks: Option<u32>,
}

/// When a candidate is accepted, checked.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Acceptance {
    /// Share of acceptances that may be wrong, over the whole run.
    pub error_rate: f64,
    pub max_tasks: u32,
    /// By how much a candidate must be better.
    pub improvement_threshold: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generate {
    pub template: String,
    pub count: u32,
    /// Seed of all random choices.
    pub seed: i64,
    /// Tiers to take in turns; all of the template's if empty.
    pub difficulties: Vec<String>,
}

impl GenerateTable {
    fn check(&self, document: &Document, key: &str, problems: &mut Vec<Problem>) -> Option<Generate> {
        let Some(template) = self.template.clone() else {
            let key = format!("{key}.template");
            let problem = document.problem(Shared::MissingKey, &key, format!("`{key}` is missing"));
            problems.push(problem.fix("name a template; `aec-bench generate list-templates` lists them"));
            return None;
        };
        Some(Generate {
            template,
            count: self.count.map_or(5, Quantity::get),
            seed: self.seed.unwrap_or(42),
            difficulties: self.difficulties.clone(),
        })
    }
}

impl AcceptanceTable {
    fn check(
        &self,
        threshold: Option<f64>,
        document: &Document,
        keys: (&str, &str),
        problems: &mut Vec<Problem>,
    ) -> Acceptance {
        let (acceptance, improvement) = keys;
        let error_rate = self.error_rate.unwrap_or(DEFAULT_ERROR_RATE);
        if !(error_rate > 0.0 && error_rate < 1.0) {
            let what = format!("`{acceptance}.error_rate` must lie between 0 and 1");
            let problem = document.problem(Shared::BadValue, &format!("{acceptance}.error_rate"), what);
            problems.push(problem.fix("write, say, 0.05"));
        }
        let threshold = threshold.unwrap_or(0.02);
        if !(0.0..1.0).contains(&threshold) {
            let what = format!("`{improvement}` must be at least 0 and less than 1");
            problems.push(
                document.problem(Shared::BadValue, improvement, what).fix("write a gain in reward, say 0.01"),
            );
        }
        Acceptance {
            error_rate,
            max_tasks: self.max_tasks.map_or(DEFAULT_MAX_TASKS, Quantity::get),
            improvement_threshold: threshold,
        }
    }
}

/// Reports an amount that is not positive and finite.
fn amount(value: Option<f64>, document: &Document, key: &str, problems: &mut Vec<Problem>) {
    if value.is_some_and(|value| !value.is_finite() || value <= 0.0) {
        let what = format!("`{key}` must be an amount of dollars above 0");
        problems.push(document.problem(Shared::BadValue, key, what).fix("write, say, 5.0"));
    }
}

/// Reports a number of tokens that is zero.
fn tokens(value: Option<u64>, document: &Document, key: &str, problems: &mut Vec<Problem>) {
    if value == Some(0) {
        let what = format!("`{key}` must be a number of tokens above 0");
        problems
            .push(document.problem(Shared::BadValue, key, what).fix("write, say, 1000000, or leave it out"));
    }
}

/// The model that a file names, with its reference resolved.
fn model(
    value: Option<&String>,
    document: &Document,
    key: &str,
    env: &Env,
    problems: &mut Vec<Problem>,
) -> Option<String> {
    match expand_public(value?, env) {
        Ok(model) => Some(model),
        Err(error) => {
            let fix = match &error {
                ExpandError::Unset(name) => format!("set {name} in the shell or in .env"),
                ExpandError::Secret(_) => "write the model's name, or a variable that holds it".to_owned(),
            };
            problems.push(document.problem(Shared::BadValue, key, format!("`{key}` {error}")).fix(fix));
            None
        }
    }
}

fn missing(document: &Document, key: &str, fix: &str) -> Problem {
    document.problem(Shared::MissingKey, key, format!("`{key}` is missing")).fix(fix)
}

/// A path in a file, relative to the project root.
fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path).components().filter(|part| *part != Component::CurDir).collect()
}

/// The workspace that a file names. A run versions it and writes to it, so it must belong to the project.
fn workspace(
    root: &Path,
    value: Option<&String>,
    document: &Document,
    key: &str,
    problems: &mut Vec<Problem>,
) -> Option<PathBuf> {
    let path = below(root, value?);
    if path.starts_with(root) && !path.components().any(|part| part == Component::ParentDir) {
        return Some(path);
    }
    let what = format!("`{key}` leads out of the project");
    let problem = document.problem(Shared::BadValue, key, what);
    problems.push(problem.why("paths are below the project root").fix("write, say, workspaces/mine"));
    None
}

fn own(document: &Document, number: u32, key: &str, what: impl Into<String>) -> Problem {
    let mut problem = document.problem(Shared::BadValue, key, what);
    problem.id = Some(FAMILY.number(number));
    problem
}
