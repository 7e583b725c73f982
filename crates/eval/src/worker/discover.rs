//! Finds out what an interpreter has of an environment, without importing anything heavy.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use aec_base::problem::Problem;
use serde::Deserialize;
use serde_json::json;

use crate::worker::FAMILY;
use crate::worker::error::WorkerError;
use crate::worker::files::ProgramFiles;
use crate::worker::program;

/// How long the interpreter may take.
const LIMIT: Duration = Duration::from_mins(1);

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Discovered {
    pub python: String,
    pub verifiers: Option<String>,
    /// The module name that an environment of this id must have.
    pub module: String,
    /// The module's file, if it can be imported.
    pub origin: Option<PathBuf>,
    /// Whether it is in the directory of environments rather than installed.
    pub local: bool,
    pub package_directory: Option<PathBuf>,
    /// The version of the installed package with that name.
    pub installed_version: Option<String>,
    /// Why the search for the module failed.
    pub problem: Option<String>,
}

/// Looks for an environment in an interpreter and in a directory of environments.
pub async fn discover(
    python: &Path,
    env_id: &str,
    env_dir_path: Option<&Path>,
) -> Result<Discovered, WorkerError> {
    let program = ProgramFiles::write()?;
    let mut command = Command::new(python);
    command.arg(program.path()).arg("discover");
    let request = json!({ "env_id": env_id, "env_dir_path": env_dir_path.map(Path::to_string_lossy) });
    let failed = |reason: String| WorkerError::Start { python: python.to_owned(), reason };
    let said =
        program::run(command, request.to_string(), LIMIT).await.map_err(|error| failed(error.to_string()))?;
    aec_base::json::from_str(said.stdout.lines().last().unwrap_or_default()).map_err(|_| {
        let told = said.stderr.trim().lines().last().unwrap_or("it said nothing").to_owned();
        failed(format!("it is not a usable Python ({}): {told}", said.status))
    })
}

impl Discovered {
    /// Why an environment of this id cannot be loaded, if it cannot.
    pub fn refusal(&self, env_id: &str, python: &Path) -> Option<Problem> {
        if self.verifiers.is_none() {
            let what = match self.origin {
                Some(_) => format!("`{env_id}` needs `verifiers`, which {} lacks", python.display()),
                None => format!(
                    "`{env_id}` is not an environment of this project, and {} has no `verifiers` to look further",
                    python.display()
                ),
            };
            return Some(
                Problem::error(what)
                    .id(FAMILY.number(41))
                    .why("an environment that was not exported here is Python code that runs with that package")
                    .fix("check the name; install the environment there, or name another interpreter with --python"),
            );
        }
        if self.origin.is_none() {
            let problem = Problem::error(format!("there is no environment `{env_id}`"))
                .id(FAMILY.number(42))
                .fix("install it, or name the directory that holds it with --env-dir-path");
            let why = self.problem.clone().unwrap_or_else(|| {
                format!(
                    "{} has no module `{}`, and no directory of environments has one",
                    python.display(),
                    self.module
                )
            });
            return Some(problem.why(why));
        }
        None
    }
}
