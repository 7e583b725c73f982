//! Finds the real Python interpreter.
//!
//! `python3` on the search path is often a shim that costs more than the program it starts, so the interpreter behind
//! it is resolved once.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// The oldest version that verifiers and engines can rely on.
pub const OLDEST: (u32, u32) = (3, 9);

/// An interpreter that works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Python {
    /// The interpreter itself, not a shim.
    pub path: PathBuf,
    /// The directory of its library; rooms show it if it is not part of the system.
    pub prefix: PathBuf,
    pub version: String,
    /// Whether it is at least [`OLDEST`].
    pub recent_enough: bool,
}

/// The first working interpreter on a search path. The search happens once per process.
pub fn find(search_path: Option<&OsStr>) -> Option<Python> {
    static FOUND: Mutex<BTreeMap<Option<OsString>, Option<Python>>> = Mutex::new(BTreeMap::new());
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    found.entry(search_path.map(OsStr::to_owned)).or_insert_with(|| look_for(search_path)).clone()
}

fn look_for(search_path: Option<&OsStr>) -> Option<Python> {
    let directories: Vec<PathBuf> =
        search_path.map(|path| std::env::split_paths(path).collect()).unwrap_or_default();
    let candidates =
        ["python3", "python"].into_iter().flat_map(|name| directories.iter().map(move |dir| dir.join(name)));
    candidates.filter(|candidate| candidate.is_file()).find_map(|candidate| ask(&candidate))
}

fn ask(candidate: &Path) -> Option<Python> {
    // The interpreter behind a virtual environment, whose library does not depend on the current user.
    const QUESTION: &str = "import os, sys; print(os.path.realpath(getattr(sys, '_base_executable', sys.executable))); \
        print(sys.base_prefix); print('.'.join(map(str, sys.version_info[:3])))";
    let output = Command::new(candidate)
        .args(["-I", "-S", "-c", QUESTION])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let answer = String::from_utf8(output.stdout).ok()?;
    let mut lines = answer.lines();
    let (path, prefix, version) = (lines.next()?, lines.next()?, lines.next()?);
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    let recent_enough = (numbers.next()?, numbers.next()?) >= OLDEST;
    Some(Python { path: path.into(), prefix: prefix.into(), version: version.to_owned(), recent_enough })
}
