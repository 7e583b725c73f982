//! Files of settings that tasks bring for a harness.

use std::path::Path;

use aec_base::document::CONFIG_FILE_LIMIT;
use aec_base::problem::{Problem, Severity};
use aec_sandbox::Tree;

/// The text of a file of the task, if it is there. Links are not followed.
pub(super) fn text(tree: &Tree, path: &str) -> Result<Option<String>, String> {
    match tree.read(Path::new(path), CONFIG_FILE_LIMIT) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| format!("{path} is not UTF-8")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{path} cannot be read: {error}")),
    }
}

/// What was read, if nothing is wrong with it; what is only to be noted goes to `notes`.
pub(super) fn checked<T>(
    (value, problems): (Option<T>, Vec<Problem>),
    notes: &mut Vec<String>,
) -> Result<T, String> {
    let text = |problem: &Problem| match &problem.fix {
        Some(fix) => format!("{problem}; {fix}"),
        None => problem.to_string(),
    };
    let texts = |problems: &[Problem]| problems.iter().map(text).collect::<Vec<_>>();
    let (errors, others): (Vec<Problem>, Vec<Problem>) =
        problems.into_iter().partition(|problem| problem.severity == Severity::Error);
    notes.extend(texts(&others));
    match value {
        Some(value) if errors.is_empty() => Ok(value),
        _ => Err(texts(&errors).join("\n")),
    }
}
