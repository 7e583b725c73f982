//! Reads rollouts from a path, one row at a time.
//!
//! A directory is one run of verifiers: `results.jsonl` with `metadata.json`, or `traces.jsonl` with
//! `configs/resolved/eval.json`. A file is one of the two without the rest, or samples of a hosted evaluation as its
//! API returns them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use aec_base::file::{Links, ReadError, open_regular};
use aec_sandbox::Tree;
use serde_json::Value;
use thiserror::Error;

use crate::rollouts::json;
use crate::rollouts::problem::{Problem, ProblemKind};
use crate::rollouts::recognise::PEEKED;
use crate::rollouts::rows::Rows;
use crate::rollouts::run::Run;

/// Largest metadata of a run.
const RUN_LIMIT: u64 = 16 * 1024 * 1024;

const RESULTS_FILE: &str = "results.jsonl";
const METADATA_FILE: &str = "metadata.json";
const TRACES_FILE: &str = "traces.jsonl";
const CONFIG_FILE: &str = "configs/resolved/eval.json";

const EXPECTED: &str =
    "a directory with `results.jsonl` or `traces.jsonl`, one of these files, or a JSON file of samples";

#[derive(Debug, Error)]
pub enum OpenError {
    #[error("cannot read rollouts: {0}; expected {EXPECTED}")]
    Unreadable(#[from] io::Error),
    #[error("{} holds no rollouts; expected {EXPECTED}", .0.display())]
    NotARun(PathBuf),
    #[error("{} holds both `results.jsonl` and `traces.jsonl`; name the file that you mean", .0.display())]
    TwoRuns(PathBuf),
    #[error("{} is neither a directory nor a file; expected {EXPECTED}", .0.display())]
    NotAFile(PathBuf),
    #[error("{} cannot be read: {}", .0.display(), .1)]
    Refused(PathBuf, ReadError),
}

pub struct Source {
    pub file: PathBuf,
    pub run: Option<Run>,
    /// The metadata of the run could not be read. The rollouts can be read nevertheless.
    pub run_problem: Option<Problem>,
    pub rows: Rows<BufReader<File>>,
}

/// Determines the format at a path, and begins to read it.
pub fn open(path: &Path) -> Result<Source, OpenError> {
    let metadata = fs_err::metadata(path)?;
    // The user may name a link. What another program put into a directory must not lead out of it.
    let (file, links) = if metadata.is_dir() {
        (run_file(path)?, Links::Refuse)
    } else if metadata.is_file() {
        (path.to_owned(), Links::Follow)
    } else {
        return Err(OpenError::NotAFile(path.to_owned()));
    };
    let (opened, _) =
        open_regular(&file, u64::MAX, links).map_err(|error| OpenError::Refused(file.clone(), error))?;
    let input = BufReader::with_capacity(PEEKED, opened);
    let directory = file.parent().unwrap_or_else(|| Path::new(""));
    let (about, read): (_, fn(&Value) -> Run) = match file.file_name().and_then(OsStr::to_str) {
        Some(RESULTS_FILE) => (METADATA_FILE, Run::from_metadata),
        Some(TRACES_FILE) => (CONFIG_FILE, Run::from_config),
        _ => {
            let rows = Rows::recognise(input, &file)?;
            return Ok(Source { file, run: None, run_problem: None, rows });
        }
    };
    let (run, run_problem) = match read_about(directory, about) {
        Ok(value) => (value.as_ref().map(read), None),
        Err(kind) => (None, Some(Problem::new(&directory.join(about), None, kind))),
    };
    let rows = Rows::lines(input, &file);
    Ok(Source { file, run, run_problem, rows })
}

/// The file of rollouts in the directory of a run.
fn run_file(directory: &Path) -> Result<PathBuf, OpenError> {
    let (results, traces) = (directory.join(RESULTS_FILE), directory.join(TRACES_FILE));
    let is_there = |path: &Path| path.symlink_metadata().is_ok_and(|found| !found.is_dir());
    match (is_there(&results), is_there(&traces)) {
        (true, false) => Ok(results),
        (false, true) => Ok(traces),
        (true, true) => Err(OpenError::TwoRuns(directory.to_owned())),
        (false, false) => Err(OpenError::NotARun(directory.to_owned())),
    }
}

/// The metadata of a run; absent if it has none. Neither the file nor a directory above it may be a link.
fn read_about(directory: &Path, name: &str) -> Result<Option<Value>, ProblemKind> {
    let tree = Tree::open(if directory.as_os_str().is_empty() { Path::new(".") } else { directory })?;
    match tree.read(Path::new(name), RUN_LIMIT) {
        Ok(bytes) => Ok(Some(json::parse(&bytes)?.value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            Err(ProblemKind::TooLong { limit: usize::try_from(RUN_LIMIT).unwrap_or(usize::MAX) })
        }
        Err(error) => Err(error.into()),
    }
}
