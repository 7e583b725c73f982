//! What the commands on saved evaluations share: where they are, and which one is meant.

use std::path::{Path, PathBuf};

use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_base::text::printable;
use aec_eval::FAMILY;
use aec_eval::results::RESULTS_FILE;
use aec_eval::results::directory::{FoundRun, list};

use crate::context::Context;
use crate::failure::Failure;

/// The directories of environments: the one beside whoever asks, then the project's.
pub(super) fn places(context: &Context, project: &Project) -> Result<Vec<PathBuf>, Failure> {
    let own = project.settings.path(Setting::Prime).join("environments");
    Ok(vec![context.directory()?.join("environments"), own])
}

/// All saved evaluations below the usual directories, newest first.
pub(super) fn all(context: &Context, project: &Project) -> Result<(Vec<FoundRun>, Vec<Problem>), Failure> {
    let mut bases = vec![context.directory()?.join("outputs"), project.root.join("outputs")];
    for place in places(context, project)? {
        let Ok(entries) = std::fs::read_dir(&place) else { continue };
        bases.extend(entries.filter_map(Result::ok).map(|entry| entry.path().join("outputs")));
    }
    bases.retain(|base| base.is_dir());
    bases.sort();
    bases.dedup();
    Ok(list(&bases))
}

/// The saved evaluation that is meant: a directory, or an id or its beginning.
pub(super) fn find(context: &Context, project: &Project, named: &str) -> Result<PathBuf, Failure> {
    let path = context.absolute(Path::new(named))?;
    if path.is_dir() {
        return Ok(path);
    }
    if path.file_name().is_some_and(|name| name == RESULTS_FILE) && path.is_file() {
        return Ok(path.parent().unwrap_or(&path).to_path_buf());
    }
    let (runs, _) = all(context, project)?;
    let mut fitting: Vec<&FoundRun> = runs.iter().filter(|run| run.id.starts_with(named)).collect();
    if fitting.len() > 1 {
        fitting.retain(|run| run.id == named);
    }
    match fitting.as_slice() {
        [one] => Ok(one.path.clone()),
        several => {
            let what =
                if several.is_empty() { "there is no saved evaluation" } else { "several evaluations fit" };
            let problem = Problem::error(format!("{what} `{}`", printable(named))).id(FAMILY.number(102));
            Err(problem.fix("see `aec-bench eval list`, or name the directory").into())
        }
    }
}
