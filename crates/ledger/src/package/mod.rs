//! Run packages: all records of an experiment, with their contents and chains, as one file that has the same bytes on
//! every machine and is trusted only as far as it can be checked. See `docs/packages.md`.
//!
//! `manifest` lists what a package holds, and `tally` derives it from the members whenever one is read; `export`
//! writes, `unpack` reads and trusts nothing, `import` adds records to a ledger.

pub mod export;
pub mod import;
pub mod manifest;
pub mod merkle;
pub mod signature;
mod survey;

mod tally;
mod unpack;

use std::io;

use aec_base::problem::Problem;

use crate::FAMILY;

/// Packages of later versions are refused.
pub const SCHEMA_VERSION: u32 = 1;

/// Bytes; our records are far smaller.
pub(crate) const RECORD_LIMIT: u64 = 64 * 1024 * 1024;

const MOST_PROBLEMS: usize = 20;

fn finding(number: u32, what: impl Into<String>) -> Problem {
    Problem::error(what).id(FAMILY.number(number))
}

/// Why an export or import failed.
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

/// Returns the problems as an error, if there are any, limited to the first ones.
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
