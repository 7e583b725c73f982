//! Rows that could not be read, and notes on what was read differently from how it was written.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A row that was lost, or a file that ended too early.
#[derive(Debug, Error)]
#[error("{}{}: {kind}", .file.display(), .line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct Problem {
    pub file: PathBuf,
    /// The line on which the row begins, from 1.
    pub line: Option<u64>,
    pub kind: ProblemKind,
}

impl Problem {
    pub(crate) fn new(file: &Path, line: Option<u64>, kind: ProblemKind) -> Self {
        Self { file: file.to_owned(), line, kind }
    }
}

#[derive(Debug, Error)]
pub enum ProblemKind {
    #[error("not valid JSON: {0}")]
    Malformed(String),
    #[error("the last row is torn: the file ends in the middle of it, as after a crash")]
    Torn,
    #[error("the row is longer than {limit} bytes")]
    TooLong { limit: usize },
    #[error("nested deeper than {limit} levels")]
    TooDeep { limit: usize },
    #[error("more than {limit} values in one row")]
    TooManyValues { limit: usize },
    #[error("not UTF-8 text")]
    NotText,
    #[error(
        "{found} where a rollout was expected: an object with `prompt` and `completion`, with `nodes`, or with \
         `traces`, or a page of them with `samples`"
    )]
    NotARollout { found: String },
    #[error("cannot read on: {0}")]
    Unreadable(#[from] io::Error),
}

/// Something in a row that was skipped or read differently from how it was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum Note {
    #[error("{count} × NaN or Infinity, read as absent")]
    NotANumber { count: usize },
    #[error("{count} × half a surrogate pair, read as U+FFFD")]
    HalfSurrogate { count: usize },
    #[error("key `{key}` occurs twice in one object; the last one counts")]
    DuplicateKey { key: String },
    #[error("`{key}` is {found} and was passed over")]
    PassedOver { key: String, found: String },
}
