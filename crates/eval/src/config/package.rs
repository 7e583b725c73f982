//! Defaults that a package gives for its own evaluation: `[tool.verifiers.eval]` in its `pyproject.toml`.

use std::path::Path;

use aec_base::document::{Document, Syntax};
use aec_base::file::{Links, ReadError, read_text};
use aec_base::problem::{Problem, Severity};
use serde::Deserialize;

use crate::config::options::EvalOptions;
use crate::config::{FAMILY, number};

/// Longest `pyproject.toml` that is read.
const LONGEST_FILE: u64 = 4 * 1024 * 1024;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Pyproject {
    tool: Tool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tool {
    verifiers: Verifiers,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Verifiers {
    eval: Defaults,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Defaults {
    num_examples: Option<i64>,
    rollouts_per_example: Option<u32>,
}

/// The package's own `num_examples` and `rollouts_per_example`; empty without a file or without the table in it. A file
/// that cannot be used is only a warning, because the evaluation can do without it.
pub fn package_defaults(directory: &Path) -> Result<EvalOptions, Problem> {
    let path = directory.join("pyproject.toml");
    let warning = |problem: Problem| Problem {
        severity: Severity::Warning,
        ..problem.id(FAMILY.number(number::PACKAGE_DEFAULTS)).why("the package's defaults are not used")
    };
    let text = match read_text(&path, LONGEST_FILE, Links::Follow) {
        Ok(text) => text,
        Err(ReadError::Missing) => return Ok(EvalOptions::default()),
        Err(error) => {
            let problem = Problem::error(format!("cannot read pyproject.toml: {error}")).fix(error.fix());
            return Err(warning(problem.in_file(&path)));
        }
    };
    let first = |problems: Vec<Problem>| problems.into_iter().next().map(warning);
    let document = match Document::parse(&path, text, Syntax::Toml, FAMILY) {
        Ok(document) => document,
        Err(problems) => return first(problems).map_or_else(|| Ok(EvalOptions::default()), Err),
    };
    let decoded = document.decode::<Pyproject>();
    if let Some(problem) = first(decoded.problems) {
        return Err(problem);
    }
    let Defaults { num_examples, rollouts_per_example } =
        decoded.value.unwrap_or_default().tool.verifiers.eval;
    if rollouts_per_example == Some(0) {
        let problem = Problem::error("`tool.verifiers.eval.rollouts_per_example` must be at least 1");
        let place = document.place("tool.verifiers.eval.rollouts_per_example");
        return Err(warning(problem.fix("raise it, or remove the key").at(place)));
    }
    Ok(EvalOptions { num_examples, rollouts_per_example, ..EvalOptions::default() })
}
