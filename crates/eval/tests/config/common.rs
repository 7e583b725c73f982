//! Reading files of evaluations in tests.

use std::path::Path;

use aec_base::problem::Problem;
use aec_eval::config::{EvalOptions, parse_eval_file};

pub(crate) fn read(text: &str) -> Vec<EvalOptions> {
    match parse_eval_file(Path::new("evals.toml"), text) {
        Ok(file) => file.evaluations,
        Err(problems) => panic!("{}", shown(&problems)),
    }
}

pub(crate) fn problems(text: &str) -> Vec<Problem> {
    match parse_eval_file(Path::new("evals.toml"), text) {
        Ok(file) => panic!("no problem is told, and there are {} evaluations", file.evaluations.len()),
        Err(problems) => problems,
    }
}

/// Problems in readable form, without the reason.
pub(crate) fn shown(problems: &[Problem]) -> String {
    let line = |problem: &Problem| {
        format!(
            "{} {problem}\n  fix: {}\n",
            problem.id.as_deref().unwrap_or("-"),
            problem.fix.as_deref().unwrap_or("-")
        )
    };
    problems.iter().map(line).collect()
}
