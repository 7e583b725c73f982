//! Installing environments into an interpreter.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use aec_base::problem::Problem;

use crate::worker::FAMILY;
use crate::worker::program;

/// How long an installation may take.
const LIMIT: Duration = Duration::from_mins(30);
/// Lines of the installer's output that are shown.
const LAST_LINES: usize = 8;

/// Installs a directory in editable mode, or a requirement in the installer's syntax.
///
/// Uses `uv` if it is in one of the directories of `search`, and the interpreter's own `pip` otherwise.
pub async fn install(python: &Path, what: &str, search: &[PathBuf]) -> Result<(), Problem> {
    let (program, arguments) = plan(python, what, search);
    let mut command = Command::new(&program);
    command.args(&arguments);
    let failed = |why: String| {
        Problem::error(format!("cannot install {what} into {}", python.display()))
            .id(FAMILY.number(50))
            .why(why)
            .fix("correct the error shown above, or install it by hand and try again")
    };
    let said = program::run(command, String::new(), LIMIT)
        .await
        .map_err(|error| failed(format!("{} cannot be started: {error}", program.to_string_lossy())))?;
    if said.status.success() {
        return Ok(());
    }
    let lines: Vec<&str> =
        said.stderr.lines().chain(said.stdout.lines()).filter(|line| !line.is_empty()).collect();
    Err(failed(lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")))
}

fn plan(python: &Path, what: &str, search: &[PathBuf]) -> (OsString, Vec<OsString>) {
    let beside = python.parent().map(Path::to_owned);
    let uv = beside.iter().chain(search).map(|directory| directory.join("uv")).find(|path| path.is_file());
    let (program, mut arguments): (OsString, Vec<OsString>) = match uv {
        Some(uv) => (
            uv.into(),
            ["pip", "install", "--python"].map(OsString::from).into_iter().chain([python.into()]).collect(),
        ),
        None => (python.into(), ["-m", "pip", "install"].map(OsString::from).to_vec()),
    };
    if Path::new(what).is_dir() {
        arguments.push("-e".into());
    } else {
        // A requirement that starts with a dash would be read as an option.
        arguments.push("--".into());
    }
    arguments.push(what.into());
    (program, arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_stay_where_they_are_and_requirements_are_no_options() {
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().to_str().unwrap();
        let words = |what: &str, search: &[PathBuf]| {
            let (program, arguments) = plan(Path::new("/nowhere/python"), what, search);
            std::iter::once(program)
                .chain(arguments)
                .map(|word| word.into_string().unwrap())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(words(name, &[]), format!("/nowhere/python -m pip install -e {name}"));
        assert_eq!(words("--index=x", &[]), "/nowhere/python -m pip install -- --index=x");
        std::fs::write(directory.path().join("uv"), "").unwrap();
        assert_eq!(
            words("gsm8k==1", &[directory.path().to_owned()]),
            format!("{name}/uv pip install --python /nowhere/python -- gsm8k==1")
        );
    }

    #[tokio::test]
    async fn an_installer_that_is_not_there_is_told() {
        let problem = install(Path::new("/nowhere/python"), "gsm8k", &[]).await.unwrap_err();
        assert_eq!(problem.id.as_deref(), Some("R050"));
        assert!(problem.why.unwrap().contains("cannot be started"));
    }
}
