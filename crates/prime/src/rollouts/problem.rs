//! What could not be read, and what was read otherwise than it was written.

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
    /// What is wrong.
    pub kind: ProblemKind,
}

impl Problem {
    pub(crate) fn new(file: &Path, line: Option<u64>, kind: ProblemKind) -> Self {
        Self { file: file.to_owned(), line, kind }
    }
}

/// What is wrong.
#[derive(Debug, Error)]
pub enum ProblemKind {
    #[error("not valid JSON: {0}")]
    Malformed(String),
    #[error("the last row is torn: the file ends in the middle of it, as after a crash")]
    Torn,
    #[error("the row is longer than {limit} bytes")]
    TooLong {
        /// How long a row may be.
        limit: usize,
    },
    #[error("nested deeper than {limit} levels")]
    TooDeep {
        /// How deep a row may be.
        limit: usize,
    },
    #[error("more than {limit} values in one row")]
    TooManyValues {
        /// How many values a row may have.
        limit: usize,
    },
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

/// Something in a row that was read otherwise than it was written, or passed over.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum Note {
    #[error("{count} × NaN or Infinity, read as absent")]
    NotANumber {
        /// How many.
        count: usize,
    },
    #[error("{count} × half a surrogate pair, read as U+FFFD")]
    HalfSurrogate {
        /// How many.
        count: usize,
    },
    #[error("key `{key}` stands twice in one object; the last one counts")]
    DuplicateKey { key: String },
    #[error("`{key}` is {found} and was passed over")]
    PassedOver {
        /// Which part.
        key: String,
        found: String,
    },
}
