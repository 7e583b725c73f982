//! Virtual environments with released versions of `verifiers`, made once below the target directory.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use aec_sandbox::python;

/// Where the scripts and what they need lie.
pub(crate) fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/prime/python")
}

/// Directory of all virtual environments.
pub(crate) fn venvs() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../venvs");
    std::fs::create_dir_all(&directory).unwrap();
    directory.canonicalize().unwrap()
}

/// The interpreter of this machine. Without one nothing here works.
pub(crate) fn interpreter() -> PathBuf {
    python::find(std::env::var_os("PATH").as_deref()).unwrap().path
}

/// An interpreter with a version of `verifiers`. Where the packages cannot be had the test is skipped and says so; that
/// is a failure where everything is to be checked.
pub(crate) fn with_verifiers(version: &str) -> Option<PathBuf> {
    match make(version) {
        Ok(python) => Some(python),
        Err(why) => {
            let everything = aec_test::full() || std::env::var_os("CI").is_some();
            assert!(!everything, "no Python with verifiers {version}: {why}");
            eprintln!("SKIPPED: no Python with verifiers {version}: {why}");
            None
        }
    }
}

fn make(version: &str) -> Result<PathBuf, String> {
    let requirements = scripts().join(format!("requirements-{version}.txt"));
    let wanted = std::fs::read_to_string(&requirements).unwrap();
    let venv = venvs().join(format!("verifiers-{version}"));
    let (program, complete) = (venv.join("bin/python"), venv.join("complete.txt"));
    // Tests run at the same time, also in several processes; the first one makes it.
    let lock = File::create(venvs().join(format!("verifiers-{version}.lock"))).unwrap();
    lock.lock().unwrap();
    if std::fs::read_to_string(&complete).is_ok_and(|made| made == wanted) {
        return Ok(program);
    }
    run(Command::new(interpreter()).args(["-m", "venv", "--clear"]).arg(&venv))?;
    run(Command::new(&program)
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "-r"])
        .arg(&requirements))?;
    std::fs::write(&complete, wanted).unwrap();
    Ok(program)
}

fn run(command: &mut Command) -> Result<(), String> {
    let done = command.output().map_err(|error| error.to_string())?;
    if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).into_owned()) }
}
