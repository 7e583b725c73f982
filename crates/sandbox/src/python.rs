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
    /// Where it is installed.
    pub prefix: PathBuf,
    /// Its standard library and the shared objects outside the system's directories that it needs. Packages that are
    /// installed for it are not part of it.
    #[serde(skip)]
    pub library: Vec<PathBuf>,
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
    const QUESTION: &str = include_str!("../../../python/environment/interpreter.py");
    let output = Command::new(candidate)
        .args(["-I", "-S", "-c", QUESTION])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    understand(&String::from_utf8(output.stdout).ok()?)
}

/// Reads what an interpreter told about itself.
fn understand(answer: &str) -> Option<Python> {
    let told = |wanted: &str| {
        let lines = answer.lines().filter_map(|line| line.split_once(' '));
        lines.filter(|(word, _)| *word == wanted).map(|(_, value)| value.to_owned()).collect::<Vec<_>>()
    };
    let one = |wanted: &str| told(wanted).into_iter().next();
    let version = one("version")?;
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    let recent_enough = (numbers.next()?, numbers.next()?) >= OLDEST;
    let library = told("library").into_iter().chain(told("object")).map(PathBuf::from).collect();
    Some(Python {
        path: one("program")?.into(),
        prefix: one("prefix")?.into(),
        library,
        version,
        recent_enough,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_is_what_it_tells_of_itself() {
        let answer = "program /opt/a b/bin/python3.12\nprefix /opt/a b\nversion 3.12.1\n\
                      library /opt/a b/lib/python3.12\nobject /opt/a b/lib/libz.so.1\n";
        let python = understand(answer).unwrap();
        assert_eq!((python.path, python.prefix), ("/opt/a b/bin/python3.12".into(), "/opt/a b".into()));
        assert_eq!((python.version.as_str(), python.recent_enough), ("3.12.1", true));
        let library = ["/opt/a b/lib/python3.12", "/opt/a b/lib/libz.so.1"].map(PathBuf::from);
        assert_eq!(python.library, library);
        assert!(!understand(&answer.replace("3.12.1", "3.8.2")).unwrap().recent_enough);
        assert!(understand("program /usr/bin/python3\n").is_none());
    }
}
