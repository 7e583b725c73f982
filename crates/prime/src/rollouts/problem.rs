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
    /// The row is not JSON.
    #[error("not valid JSON: {0}")]
    Malformed(String),
    /// The last row ends in the middle.
    #[error("the last row is torn: the file ends in the middle of it, as after a crash")]
    Torn,
    /// The row is longer than a row may be.
    #[error("the row is longer than {limit} bytes")]
    TooLong {
        /// How long a row may be.
        limit: usize,
    },
    /// The row is nested deeper than a row may be.
    #[error("nested deeper than {limit} levels")]
    TooDeep {
        /// How deep a row may be.
        limit: usize,
    },
    /// The row has more values than a row may have.
    #[error("more than {limit} values in one row")]
    TooManyValues {
        /// How many values a row may have.
        limit: usize,
    },
    /// The row is not text.
    #[error("not UTF-8 text")]
    NotText,
    /// The row is JSON and not a rollout.
    #[error(
        "{found} where a rollout was expected: an object with `prompt` and `completion`, with `nodes`, or with \
         `traces`, or a page of them with `samples`"
    )]
    NotARollout {
        /// What is there.
        found: String,
    },
    /// The rest of the file cannot be read.
    #[error("cannot read on: {0}")]
    Unreadable(#[from] io::Error),
}

/// Something in a row that was read otherwise than it was written, or passed over.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum Note {
    /// `NaN`, `Infinity` or `-Infinity` where JSON has no such number.
    #[error("{count} × NaN or Infinity, read as absent")]
    NotANumber {
        /// How many.
        count: usize,
    },
    /// Half of a surrogate pair, which no text can hold.
    #[error("{count} × half a surrogate pair, read as U+FFFD")]
    HalfSurrogate {
        /// How many.
        count: usize,
    },
    /// A key that stands twice in one object.
    #[error("key `{key}` stands twice in one object; the last one counts")]
    DuplicateKey { key: String },
    /// A part of the row that is not of a shape that is known.
    #[error("`{key}` is {found} and was passed over")]
    PassedOver {
        /// Which part.
        key: String,
        /// What is there.
        found: String,
    },
}
