//! Harbor's own program: finds it, checks its version, and starts it with an environment.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use aec_base::env::Env;
use aec_base::problem::Problem;
use aec_base::text::printable;
use semver::Version;

use crate::FAMILY;

/// The oldest supported version.
pub const OLDEST: Version = Version::new(0, 24, 0);
const NAME: &str = "harbor";
const INSTALL: &str = "install it with `pip install harbor` (Python 3.12 or newer) and put it on PATH";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub path: PathBuf,
    pub version: Version,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    #[error("there is no `{NAME}` on PATH")]
    Absent,
    #[error("{0} does not say its version: {1}")]
    Unusable(String, String),
    #[error("{NAME} {0} is older than {OLDEST}")]
    TooOld(Version),
}

impl FindError {
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Absent => INSTALL,
            Self::Unusable(..) => "put the directory of Harbor's own `harbor` first on PATH",
            Self::TooOld(_) => "upgrade it with `pip install --upgrade harbor`",
        }
    }
}

impl From<FindError> for Problem {
    fn from(error: FindError) -> Self {
        let number = if matches!(error, FindError::TooOld(_)) { 21 } else { 20 };
        Self::error(error.to_string()).id(FAMILY.number(number)).fix(error.fix())
    }
}

impl Program {
    /// Searches for it on a search path and queries its version.
    pub fn find(search_path: Option<&OsStr>) -> Result<Self, FindError> {
        let path = search(search_path).ok_or(FindError::Absent)?;
        let shown = path.display().to_string();
        let unusable = |why: String| FindError::Unusable(shown.clone(), why);
        let mut command = std::process::Command::new(&path);
        command.arg("--version").env("HARBOR_TELEMETRY", "0").stdin(Stdio::null());
        let output = command.output().map_err(|error| unusable(error.to_string()))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let version =
            said.split_whitespace().find_map(|word| Version::parse(word.trim_start_matches('v')).ok());
        let Some(version) = version.filter(|_| output.status.success()) else {
            let first: String = said.lines().next().unwrap_or_default().chars().take(100).collect();
            return Err(unusable(format!("it answered `{}`", printable(&first))));
        };
        if version < OLDEST {
            return Err(FindError::TooOld(version));
        }
        Ok(Self { path, version })
    }

    /// The command that runs a job in its directory. Its output goes to one file, its progress to another.
    pub(crate) fn command(&self, job: &Start<'_>) -> io::Result<tokio::process::Command> {
        let log = fs_err::File::create(job.directory.join("harbor.log"))?;
        let clean = job.directory.join("cwd");
        fs_err::create_dir_all(&clean)?;
        let mut command = tokio::process::Command::new(&self.path);
        command.arg("run").arg("--config").arg(job.directory.join("job.json")).arg("--yes");
        command.arg("--plugin").arg(crate::runtime::PLUGIN);
        let mut progress = OsString::from("path=");
        progress.push(job.directory.join("progress.jsonl"));
        command.arg("--pk").arg(progress);
        // Harbor loads `.env.local` of its working directory.
        command.current_dir(clean);
        command.envs(job.env.iter());
        for (name, value) in job.variables {
            command.env(name, value);
        }
        let mut modules = job.directory.join("python").into_os_string();
        if let Some(more) = job.env.get("PYTHONPATH").filter(|more| !more.is_empty()) {
            modules.push(":");
            modules.push(more);
        }
        command.env("PYTHONPATH", modules);
        for (name, value) in [
            ("HARBOR_TELEMETRY", "0"),
            ("HARBOR_NO_PAGER", "1"),
            // Otherwise LiteLLM downloads a list of prices whenever a model is named.
            ("LITELLM_LOCAL_MODEL_COST_MAP", "True"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            ("NO_COLOR", "1"),
            ("TERM", "dumb"),
            ("COLUMNS", "160"),
        ] {
            command.env(name, value);
        }
        command.stdin(Stdio::null()).stdout(log.file().try_clone()?).stderr(log.into_parts().0);
        // This program receives the signals of the terminal and passes them on.
        command.process_group(0).kill_on_drop(true);
        Ok(command)
    }
}

pub(crate) struct Start<'a> {
    /// Our directory of the job.
    pub(crate) directory: &'a Path,
    pub(crate) env: &'a Env,
    pub(crate) variables: &'a [(String, String)],
}

fn search(search_path: Option<&OsStr>) -> Option<PathBuf> {
    std::env::split_paths(search_path?)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(NAME))
        .find(|path| {
            path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        })
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Environment {
    /// One of Harbor's own: `docker`, `modal`, `daytona` …
    Type(String),
    /// A user's own: `module:Class`, found through `PYTHONPATH`.
    Class(String),
}

impl Environment {
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let word = |text: &str| {
            !text.is_empty()
                && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        };
        match text.split_once(':') {
            None if word(text) => Ok(Self::Type(text.to_owned())),
            Some((module, class)) if word(module) && word(class) => Ok(Self::Class(text.to_owned())),
            _ => {
                let what = format!("`{}` is not an environment of Harbor", printable(text));
                let fix = "write a type such as docker, modal or daytona, or module:Class";
                Err(Problem::error(what).id(FAMILY.number(27)).fix(fix))
            }
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Type(name) | Self::Class(name) => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(script: &str) -> Result<Program, FindError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(NAME);
        fs_err::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs_err::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        Program::find(Some(directory.path().as_os_str()))
    }

    #[test]
    fn only_harbor_of_a_known_age_will_do() {
        assert_eq!(program("echo 0.24.0").unwrap().version, Version::new(0, 24, 0));
        assert_eq!(program("echo harbor 0.25.1").unwrap().version, Version::new(0, 25, 1));
        assert_eq!(program("echo 0.23.9").unwrap_err(), FindError::TooOld(Version::new(0, 23, 9)));
        assert!(matches!(program("echo registry"), Err(FindError::Unusable(..))));
        assert!(matches!(program("exit 1"), Err(FindError::Unusable(..))));
        assert_eq!(Program::find(Some(OsStr::new("/nowhere"))), Err(FindError::Absent));
        assert_eq!(Program::find(None), Err(FindError::Absent));
    }

    #[test]
    fn environments_are_types_or_classes() {
        assert_eq!(Environment::parse("docker").unwrap(), Environment::Type("docker".to_owned()));
        assert_eq!(Environment::parse("a.b:C").unwrap(), Environment::Class("a.b:C".to_owned()));
        for wrong in ["", ":", "a:", ":b", "a b", "a;b", "a:b:c"] {
            assert!(Environment::parse(wrong).is_err(), "{wrong}");
        }
    }
}
