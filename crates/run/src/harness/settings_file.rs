//! Settings files of tasks for a harness.

use std::path::Path;

use aec_base::document::{CONFIG_FILE_LIMIT, Shared};
use aec_base::problem::{Problem, Severity};
use aec_sandbox::Tree;
use aec_task::long_documents::FAMILY;
use aec_task::long_documents::files::Texts;

/// The directory of a task; links are not followed.
pub(super) struct TaskDirectory<'a>(pub(super) &'a Tree);

impl Texts for TaskDirectory<'_> {
    fn text(&self, path: &str) -> Result<Option<String>, Problem> {
        let unreadable =
            |what: String| Problem::error(what).id(FAMILY.id(Shared::Unreadable)).in_file(Path::new(path));
        match self.0.read(Path::new(path), CONFIG_FILE_LIMIT) {
            Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| unreadable("not UTF-8".to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreadable(format!("cannot be read: {error}"))),
        }
    }
}

/// The value, if there is no error; notes and warnings go to `notes`.
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
