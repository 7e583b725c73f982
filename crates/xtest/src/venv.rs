//! Virtual environments from pinned requirements, made once for all tests, in the target directory.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

const REQUIREMENTS: [(&str, &str); 10] = [
    ("modal-1.6.4", include_str!("../requirements/modal-1.6.4.txt")),
    ("verifiers-0.1.14", include_str!("../requirements/verifiers-0.1.14.txt")),
    ("verifiers-0.3.1", include_str!("../requirements/verifiers-0.3.1.txt")),
    ("verifiers-0.4.0", include_str!("../requirements/verifiers-0.4.0.txt")),
    ("kubernetes-validate-1.37.0", include_str!("../requirements/kubernetes-validate-1.37.0.txt")),
    ("prime-0.6.2", include_str!("../requirements/prime-0.6.2.txt")),
    ("prime-0.12.0", include_str!("../requirements/prime-0.12.0.txt")),
    ("prime-0.18.0", include_str!("../requirements/prime-0.18.0.txt")),
    ("harbor-0.24.0", include_str!("../requirements/harbor-0.24.0.txt")),
    ("harbor-0.25.0", include_str!("../requirements/harbor-0.25.0.txt")),
];

/// The interpreter of an environment with a version of `verifiers`. Its tests need the part `packages`.
pub fn with_verifiers(version: &str) -> PathBuf {
    install(&format!("verifiers-{version}")).join("bin/python")
}

/// The program directory of an environment with a version of Harbor. Its tests need `packages` and `python312`.
pub fn with_harbor(version: &str) -> PathBuf {
    let python = recent_interpreter()
        .unwrap_or_else(|| crate::cannot("find a Python 3.12 or newer", "python312", "none is on PATH"));
    install_by(&format!("harbor-{version}"), &python).join("bin")
}

/// A Python interpreter of version 3.12 or newer: on the search path, or among those of pyenv. `needs.rs` looks in the
/// same places.
fn recent_interpreter() -> Option<PathBuf> {
    let question = "import os, sys; print(os.path.realpath(getattr(sys, '_base_executable', sys.executable))); \
                    sys.exit(sys.version_info < (3, 12))";
    let names = ["python3", "python3.12", "python3.13", "python3.14"].into_iter().map(PathBuf::from);
    let kept = std::env::home_dir().map(|home| home.join(".pyenv/versions"));
    let mut versions: Vec<PathBuf> = kept
        .and_then(|kept| fs_err::read_dir(kept).ok())
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin/python3")))
        .collect();
    versions.sort();
    names.chain(versions).find_map(|python| {
        let answer = run(Command::new(python).args(["-I", "-S", "-c", question])).ok()?;
        Some(PathBuf::from(answer.trim()))
    })
}

/// The environment with this name, with all its requirements installed. Its tests need the part `packages`.
pub fn install(name: &str) -> PathBuf {
    install_by(name, &interpreter())
}

fn install_by(name: &str, python: &Path) -> PathBuf {
    try_install(name, python)
        .unwrap_or_else(|why| crate::cannot(&format!("install {name}"), "packages", &why))
}

fn try_install(name: &str, python: &Path) -> Result<PathBuf, String> {
    let wanted = REQUIREMENTS.iter().find(|(known, _)| *known == name).map(|(_, wanted)| *wanted);
    let wanted = wanted.ok_or_else(|| format!("there are no requirements for {name}"))?;
    let environment = directory().join(name);
    let complete = environment.join("complete.txt");
    // Tests run at the same time, also in several processes; the first one makes the environment.
    let lock = File::create(directory().join(format!("{name}.lock"))).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    if fs_err::read_to_string(&complete).is_ok_and(|made| made == wanted) {
        return Ok(environment);
    }
    make_by(&environment, python)?;
    let requirements = environment.join("requirements.txt");
    fs_err::write(&requirements, wanted).map_err(|error| error.to_string())?;
    run(Command::new(environment.join("bin/python"))
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "-r"])
        .arg(&requirements))?;
    fs_err::write(&complete, wanted).map_err(|error| error.to_string())?;
    Ok(environment)
}

pub fn make(environment: &Path) -> Result<(), String> {
    make_by(environment, &interpreter())
}

fn make_by(environment: &Path, python: &Path) -> Result<(), String> {
    run(Command::new(python).args(["-m", "venv", "--clear"]).arg(environment)).map(|_| ())
}

/// The real interpreter of this machine, behind wrappers such as pyenv's on the search path.
pub fn interpreter() -> PathBuf {
    let question =
        "import os, sys; print(os.path.realpath(getattr(sys, '_base_executable', sys.executable)))";
    let answer = run(Command::new("python3").args(["-I", "-S", "-c", question])).expect("a Python 3");
    PathBuf::from(answer.trim())
}

/// The directory of all environments: beside the directory of the build profile of the tests.
pub fn directory() -> PathBuf {
    let directory = crate::lock::target().join("venvs");
    fs_err::create_dir_all(&directory).expect("a directory of environments");
    directory.canonicalize().expect("a directory that exists")
}

/// The output of a program, or both its outputs if it fails.
pub fn run(command: &mut Command) -> Result<String, String> {
    let done = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&done.stdout), text(&done.stderr));
    if done.status.success() {
        Ok(out)
    } else {
        Err(format!("{}: {out}{err}", command.get_program().display()))
    }
}
