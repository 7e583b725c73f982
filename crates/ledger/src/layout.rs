//! Paths in a ledger and in `jobs`.
//!
//! ```text
//! LEDGER/EXPERIMENT/TRIAL.json          the first attempt at a trial
//! LEDGER/EXPERIMENT/TRIAL.2.json        the second
//! LEDGER/EXPERIMENT/_run/               plans, sessions, journals and chains of the experiment's runs
//! LEDGER/_artefacts/sha256/ab/<digest>  contents
//! LEDGER/_index.sqlite                  a cache over the records
//! JOBS/EXPERIMENT/TRIAL/workspace/      files of an attempt, for people to look at
//! JOBS/EXPERIMENT/_live/TRIAL/          the same while the attempt runs
//! ```
//!
//! Names that begin with `_` or `.` are not records.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use aec_base::content::ContentStore;
use aec_base::name::Name;

use crate::imported::ImportCache;

#[derive(Clone, Debug)]
pub struct Ledger {
    root: PathBuf,
    imports: ImportCache,
}

#[derive(Clone, Debug)]
pub struct ExperimentDirectory {
    path: PathBuf,
}

impl Ledger {
    /// The ledger in a directory, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), imports: ImportCache::default() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn import_cache(&self) -> &ImportCache {
        &self.imports
    }

    pub fn experiment(&self, id: &Name) -> ExperimentDirectory {
        ExperimentDirectory { path: self.root.join(id.as_str()) }
    }

    pub fn contents(&self) -> ContentStore {
        ContentStore::new(self.root.join("_artefacts"))
    }

    pub fn index_file(&self) -> PathBuf {
        self.root.join("_index.sqlite")
    }

    /// The experiments that have a directory, sorted.
    pub fn experiments(&self) -> std::io::Result<Vec<Name>> {
        let entries = match fs_err::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_str().and_then(|name| Name::parse(name).ok());
            if let Some(name) = name.filter(|_| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
                found.push(name);
            }
        }
        found.sort();
        Ok(found)
    }
}

impl ExperimentDirectory {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory for files of the experiment's runs that belong to no trial.
    pub fn run(&self) -> PathBuf {
        self.path.join("_run")
    }

    pub fn record(&self, trial: &Name, attempt: u32) -> PathBuf {
        self.path.join(format!("{}.json", stem(trial, attempt)))
    }
}

/// The base name of an attempt's files: the trial's id, with the number of the attempt from the second on. The trial's
/// label in place of its id gives the label of the attempt.
pub fn stem(trial: &(impl Display + ?Sized), attempt: u32) -> String {
    if attempt <= 1 { trial.to_string() } else { format!("{trial}.{attempt}") }
}

/// The trial and attempt that the name of a record file denotes.
pub fn parse_record_name(file_name: &str) -> Option<(Name, u32)> {
    let stem = file_name.strip_suffix(".json")?;
    if let Some((trial, number)) = stem.rsplit_once('.')
        && let Ok(attempt @ 2..) = number.parse::<u32>()
        && attempt.to_string() == number
    {
        return Some((Name::parse(trial).ok()?, attempt));
    }
    Some((Name::parse(stem).ok()?, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_records_are_read_as_they_are_written() {
        let trial = Name::parse("0f1e-a").unwrap();
        for attempt in [1, 2, 3, 10, 4_000_000_000] {
            let name = format!("{}.json", stem(&trial, attempt));
            assert_eq!(parse_record_name(&name), Some((trial.clone(), attempt)), "{name}");
        }
        for other in ["_run", "a.txt", ".json", "_x.json", "a.json.tmp"] {
            assert_eq!(parse_record_name(other), None, "{other}");
        }
        // This program never writes such a number: it is part of the trial's id.
        assert_eq!(parse_record_name("a.1.json"), Some((Name::parse("a.1").unwrap(), 1)));
        assert_eq!(parse_record_name("a.02.json"), Some((Name::parse("a.02").unwrap(), 1)));
    }
}
