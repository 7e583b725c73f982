//! One pass over `results.jsonl`, no matter which program wrote it.

use std::collections::HashMap;
use std::io::{self, BufReader};
use std::path::Path;

use aec_base::file::{Links, open_regular};
use aec_base::jsonl::{Line, Reader};
use aec_base::problem::Problem;

use crate::results::FAMILY;
use crate::results::aggregate::Aggregate;
use crate::results::facts::{MALFORMED, RowFacts};
use crate::results::present::Present;
use crate::results::problems::{self, at_line};

/// Longest line that is read. A rollout with a thousand images fits.
const LONGEST_LINE: usize = 512 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// A whole line.
    Whole,
    Unended,
    /// Part of a row.
    Torn {
        offset: u64,
    },
}

#[derive(Debug)]
pub struct Scanned {
    pub present: Present,
    /// Aggregates over the last attempt of each rollout.
    pub aggregate: Aggregate,
    /// Rows, including those that later attempts replaced.
    pub rows: u64,
    pub tail: Tail,
    /// Bytes up to the end of the last whole row.
    pub length: u64,
}

/// Reads all rows of a file into aggregates; `each` receives each row with its line.
pub fn scan(
    path: &Path,
    aggregate: Aggregate,
    mut each: impl FnMut(&RowFacts, &[u8]),
) -> Result<Scanned, Problem> {
    let (file, _) = open_regular(path, u64::MAX, Links::Follow).map_err(|error| {
        problems::error(23, format!("the results cannot be read: {error}")).in_file(path).fix(error.fix())
    })?;
    let refused = |error: io::Error| problems::refused(23, "read the results", path, &error);
    let mut lines = Reader::new(BufReader::with_capacity(256 * 1024, file));
    let mut rows =
        Rows { present: Present::default(), aggregate, unnumbered: Vec::new(), again: Vec::new(), count: 0 };
    let (mut tail, mut length) = (Tail::Whole, 0);
    while let Some(line) = lines.next_line(LONGEST_LINE).map_err(refused)? {
        let Line { bytes, number, offset, .. } = line;
        if line.is_too_long() {
            let what = format!("the line is longer than {LONGEST_LINE} bytes");
            return Err(at_line(problems::error(MALFORMED, what), path, number)
                .fix("this is far more than a rollout needs: check what wrote it"));
        }
        length = line.end();
        if bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match RowFacts::parse(bytes) {
            Ok(facts) => {
                each(&facts, bytes);
                rows.take(facts, number).map_err(|problem| at_line(problem, path, number))?;
                if !line.is_whole {
                    tail = Tail::Unended;
                }
            }
            Err(problem) if is_torn(&problem, bytes) && lines.is_at_end().map_err(refused)? => {
                (tail, length) = (Tail::Torn { offset }, offset);
                break;
            }
            Err(problem) => return Err(at_line(problem, path, number)),
        }
    }
    rows.finish(path, tail, length)
}

/// Whether a line that is not JSON may be the beginning of a row, or zero bytes that a crash left.
fn is_torn(problem: &Problem, line: &[u8]) -> bool {
    problem.id == Some(FAMILY.number(MALFORMED)) && matches!(line.trim_ascii_start().first(), Some(b'{' | 0))
}

struct Rows {
    present: Present,
    aggregate: Aggregate,
    /// Rows without a rollout number, with their lines. They get the free numbers once all rows are known.
    unnumbered: Vec<Unnumbered>,
    /// Later attempts, with their lines. The rows that they replace may have no number yet.
    again: Vec<(RowFacts, u64)>,
    count: u64,
}

struct Unnumbered {
    line: u64,
    example_id: i64,
    /// Kept for a row with an error. A row without one cannot be replaced, so it is counted at once and forgotten.
    errored: Option<Box<RowFacts>>,
}

impl Rows {
    fn take(&mut self, facts: RowFacts, line: u64) -> Result<(), Problem> {
        self.count += 1;
        match facts.rollout_number {
            _ if facts.attempt > 1 && facts.rollout_number.is_some() => self.again.push((facts, line)),
            Some(number) => {
                self.present.take(&facts, number)?;
                self.aggregate.add(&facts);
            }
            None => {
                let example_id = facts.example_id;
                let errored = if facts.error.is_some() {
                    Some(Box::new(facts))
                } else {
                    self.aggregate.add(&facts);
                    None
                };
                self.unnumbered.push(Unnumbered { line, example_id, errored });
            }
        }
        Ok(())
    }

    fn finish(mut self, path: &Path, tail: Tail, length: u64) -> Result<Scanned, Problem> {
        let mut next = HashMap::<i64, u32>::new();
        for Unnumbered { line, example_id, errored } in self.unnumbered {
            let from = next.entry(example_id).or_default();
            let number = self.present.free_from(example_id, *from);
            *from = number.saturating_add(1);
            let mut facts =
                errored.map_or_else(|| RowFacts { example_id, ..RowFacts::default() }, |facts| *facts);
            facts.rollout_number = Some(number);
            facts.attempt = 1;
            self.present.take(&facts, number).map_err(|problem| at_line(problem, path, line))?;
            if facts.error.is_some() {
                self.aggregate.add(&facts);
            }
        }
        for (facts, line) in self.again {
            self.present
                .take(&facts, facts.rollout_number.unwrap_or_default())
                .map_err(|problem| at_line(problem, path, line))?;
            self.aggregate.add(&facts);
        }
        Ok(Scanned { present: self.present, aggregate: self.aggregate, rows: self.count, tail, length })
    }
}
