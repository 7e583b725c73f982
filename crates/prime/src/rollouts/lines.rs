//! Lines of a file of any length, each at most so long, with their numbers.

use std::io::{self, BufRead};

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
    let mut is_too_long = false;
    let mut is_begun = false;
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if chunk.is_empty() {
            return Ok(is_begun.then_some(if is_too_long { Line::TooLong } else { Line::Whole(line) }));
        }
        is_begun = true;
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        if line.len() + part.len() > limit {
            is_too_long = true;
            line = Vec::new();
        } else if !is_too_long {
            line.extend_from_slice(part);
        }
        let used = end.map_or(chunk.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(Some(if is_too_long { Line::TooLong } else { Line::Whole(line) }));
        }
    }
}
