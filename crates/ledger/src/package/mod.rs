//! Run packages: all records of an experiment, with their contents and chains, as one file that is the same bytes on
//! every machine and is believed only as far as it can be checked. The document is `docs/packages.md`.
//!
//! `manifest` says what a package holds, and `tally` makes it anew from the members whenever one is read; `export` writes,
//! `unpack` reads and believes nothing, `import` is what makes records appear.

pub mod export;
pub mod import;
pub mod manifest;
pub mod merkle;
pub mod signature;
mod survey;

pub use survey::kept_elsewhere;
mod tally;
mod unpack;

use std::io;

use aec_base::problem::Problem;

use crate::FAMILY;

/// The version of the format. A package of a later version is refused, not guessed at.
pub const SCHEMA_VERSION: u32 = 1;

/// A record of ours is far smaller.
pub(crate) const RECORD_LIMIT: u64 = 64 * 1024 * 1024;

/// At most this many problems of one kind are listed.
const MOST_PROBLEMS: usize = 20;

/// An error of the ledger's family.
fn finding(number: u32, what: impl Into<String>) -> Problem {
    Problem::error(what).id(FAMILY.number(number))
}

/// Why there is no package, or nothing came of one.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    #[error("the package cannot be made or used")]
    Problems(Vec<Problem>),
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<Problem> for PackageError {
    fn from(problem: Problem) -> Self {
        Self::Problems(vec![problem])
    }
}

/// The problems as an error, if there are any. Of very many, the first are told.
fn refuse(mut problems: Vec<Problem>) -> Result<(), PackageError> {
    if problems.is_empty() {
        return Ok(());
    }
    let more = problems.len().saturating_sub(MOST_PROBLEMS);
    if more > 0 {
        problems.truncate(MOST_PROBLEMS);
        problems.push(Problem::note(format!("there are {more} more problems like these")));
    }
    Err(PackageError::Problems(problems))
}
