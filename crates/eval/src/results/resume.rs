//! Opens an existing run so that it can be continued.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use aec_base::jsonl::Appender;
use aec_base::problem::Problem;
use aec_model::message::Usage;

use crate::results::aggregate::Aggregate;
use crate::results::configuration::{differences, mismatch};
use crate::results::lock::RunLock;
use crate::results::metadata::{Description, Metadata, PASS_THRESHOLD};
use crate::results::present::Present;
use crate::results::problems;
use crate::results::scan::{Scanned, Tail, scan};
use crate::results::{FAMILY, METADATA_FILE, RESULTS_FILE};

/// Keeps what was cut off the results.
const TORN_FILE: &str = "results.torn";

/// A run that this process may continue.
#[derive(Debug)]
pub struct OpenRun {
    pub path: PathBuf,
    pub metadata: Metadata,
    pub present: Present,
    pub aggregate: Aggregate,
    pub rows: u64,
    /// Rows that a killed session wrote after its last metadata.
    pub untold: Vec<UntoldRow>,
    /// What was repaired.
    pub notes: Vec<Problem>,
    pub(crate) lock: RunLock,
}

/// A row that the metadata does not include.
#[derive(Clone, Copy, Debug)]
pub struct UntoldRow {
    pub rollout: (i64, u32),
    pub usage: Usage,
}

/// Opens a run: takes its lock, reads its rows and repairs a torn last line. A rollout is correct if its reward is at
/// least `threshold`, or the run's own threshold if that is absent.
pub fn open(path: &Path, threshold: Option<f64>) -> Result<OpenRun, Problem> {
    for (file, what) in [(RESULTS_FILE, "rows"), (METADATA_FILE, "configuration")] {
        let is_there = path.join(file).is_file();
        if !is_there {
            return Err(problems::error(
                24,
                format!("this is not a run: its {what} in `{file}` are missing"),
            )
            .in_file(path)
            .fix("name a directory with results.jsonl and metadata.json, as a saved run leaves it"));
        }
    }
    let lock = RunLock::take(path)?;
    let metadata = Metadata::read(&path.join(METADATA_FILE))?;
    let threshold = threshold.or(metadata.pass_threshold).unwrap_or(PASS_THRESHOLD);
    let results = path.join(RESULTS_FILE);
    let (told, mut row, mut untold) = (metadata.rows.unwrap_or(u64::MAX), 0, Vec::new());
    let aggregate = Aggregate::new(metadata.rollouts_of_example(), threshold);
    let scanned = scan(&results, aggregate, |facts, _| {
        row += 1;
        if let Some(usage) = facts.usage.filter(|_| row > told) {
            let (input, output) = (tokens(usage.input_tokens), tokens(usage.output_tokens));
            let rollout = (facts.example_id, facts.rollout_number.unwrap_or_default());
            untold.push(UntoldRow { rollout, usage: Usage { input, output, ..Usage::default() } });
        }
    })?;
    let refused = |error: io::Error| problems::refused(33, "repair the end of the results", &results, &error);
    let notes = repair(path, &results, &scanned).map_err(refused)?.into_iter().collect();
    let Scanned { present, aggregate, rows, .. } = scanned;
    Ok(OpenRun { path: path.to_owned(), metadata, present, aggregate, rows, untold, notes, lock })
}

impl OpenRun {
    /// A problem that names every difference between the run and its continuation.
    pub fn check(&self, now: &Description) -> Result<(), Problem> {
        mismatch(&differences(&self.metadata, now)).map_or(Ok(()), |problem| Err(problem.in_file(&self.path)))
    }

    /// A note that nothing is left to do, if all rollouts of these examples have a row.
    pub fn complete(
        &self,
        examples: impl IntoIterator<Item = i64>,
        rollouts_per_example: u32,
    ) -> Option<Problem> {
        if self.present.missing(examples, rollouts_per_example).next().is_some() {
            return None;
        }
        let mut note =
            Problem::note(format!("all rollouts of this run are there: {} rows", self.present.len()))
                .id(FAMILY.number(35))
                .in_file(&self.path);
        let errored = self.present.errored().len();
        if errored > 0 {
            note = note.why(format!("{errored} of them have an error; they are run again only on request"));
        }
        Some(note)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast ends at the bounds")]
fn tokens(number: f64) -> u64 {
    number as u64
}

/// Makes the results end with a whole line. What must be cut off is kept in a separate file.
fn repair(run: &Path, results: &Path, scanned: &Scanned) -> io::Result<Option<Problem>> {
    let offset = match scanned.tail {
        Tail::Whole => return Ok(None),
        Tail::Unended => {
            // Appends only the missing line break.
            Appender::open(results)?.append_durably(b"")?;
            return Ok(None);
        }
        Tail::Torn { offset } => offset,
    };
    let mut file = OpenOptions::new().read(true).write(true).open(results)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut torn = OpenOptions::new().append(true).create(true).open(run.join(TORN_FILE))?;
    let length = io::copy(&mut file, &mut torn)?;
    torn.write_all(b"\n")?;
    torn.sync_all()?;
    File::open(run)?.sync_all()?;
    file.set_len(offset)?;
    file.sync_all()?;
    Ok(Some(
        Problem::note(format!("the last line was cut short; its {length} bytes were moved to {TORN_FILE}"))
            .id(FAMILY.number(34))
            .in_file(results)
            .why("the process that wrote it was stopped in the middle")
            .fix("nothing: its rollout is run again"),
    ))
}
