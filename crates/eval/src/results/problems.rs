//! Problems of a run's files, in one shape.

use std::path::Path;

use aec_base::problem::{Place, Problem};

use crate::results::FAMILY;

pub(crate) fn error(number: u32, what: impl Into<String>) -> Problem {
    Problem::error(what).id(FAMILY.number(number))
}

pub(crate) fn at_line(problem: Problem, file: &Path, line: u64) -> Problem {
    problem.at(Place { file: file.to_owned(), line: u32::try_from(line).unwrap_or(u32::MAX), column: 1 })
}

/// The operating system refused an operation on a path.
pub(crate) fn refused(number: u32, doing: &str, path: &Path, error: &std::io::Error) -> Problem {
    self::error(number, format!("cannot {doing}: {error}"))
        .in_file(path)
        .fix("check the path, its permissions and the free space")
}
