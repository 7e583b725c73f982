//! Lines of a file of any length, each at most so long.

use std::io::{self, BufRead, Read as _};

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Its bytes without the line break.
    Whole(Vec<u8>),
    /// It is longer than a line may be, and was passed over.
    TooLong,
}

/// Reads the next line; `None` at the end.
pub(crate) fn next_line(input: &mut impl BufRead, limit: usize) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    if input.by_ref().take(limit as u64 + 1).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > limit {
        input.skip_until(b'\n')?;
        return Ok(Some(Line::TooLong));
    }
    Ok(Some(Line::Whole(line)))
}
