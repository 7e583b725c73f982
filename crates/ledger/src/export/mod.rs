//! Exports records for other programs: complete as JSON lines, flat as CSV or Parquet. Records are read and written
//! in pieces, so memory does not grow with their number, and output files are written atomically.

mod columns;
mod csv;
mod jsonl;
mod parquet;

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use aec_base::parallel;
use aec_base::problem::Problem;
use aec_base::staging::partial_file;
use serde::Serialize;

pub use columns::{COLUMNS, Column, Kind};

use crate::expected::Absent;
use crate::layout::Ledger;
use crate::read::{RecordFile, Stored, read_bytes};

/// Bytes of records in memory at a time.
const PIECE: u64 = 16 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Whole records, one per line.
    Jsonl,
    /// One flat row per attempt, as text.
    Csv,
    /// One flat row per attempt, by column.
    Parquet,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Exported {
    pub records: usize,
    /// Trials that packages withheld; their rows have the outcome `withheld` and no reward.
    pub withheld: usize,
    /// Records that could not be read and are not exported.
    pub left_out: usize,
    /// Why those could not be read.
    #[serde(skip)]
    pub problems: Vec<Problem>,
}

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("{0} exists already")]
    Exists(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Converts records to bytes.
trait Sink {
    /// Adds a record, with the text of its file.
    fn take(&mut self, stored: &Stored, text: &[u8]) -> io::Result<()>;
    /// Adds a trial whose record a package withheld, so that no one takes the others for all.
    fn withheld(&mut self, absent: &Absent) -> io::Result<()>;
    /// Writes the rest.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

impl Format {
    pub const NAMES: [&'static str; 3] = ["jsonl", "csv", "parquet"];

    /// The format with this name, which is also its file extension.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "jsonl" => Some(Self::Jsonl),
            "csv" => Some(Self::Csv),
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }
}

/// What is exported.
#[derive(Clone, Copy, Debug)]
pub struct Chosen<'a> {
    /// Records with the lengths of their files.
    pub files: &'a [(RecordFile, u64)],
    /// Trials that packages withheld.
    pub withheld: &'a [Absent],
}

/// Writes records in the given order, then what is withheld.
pub fn export(
    ledger: &Ledger,
    chosen: Chosen<'_>,
    format: Format,
    to: impl Write + Send,
) -> io::Result<Exported> {
    let mut sink: Box<dyn Sink + '_> = match format {
        Format::Jsonl => Box::new(jsonl::Lines::new(to)),
        Format::Csv => Box::new(csv::Table::new(to)?),
        Format::Parquet => Box::new(parquet::File::new(to)?),
    };
    let mut exported = Exported::default();
    for piece in pieces(chosen.files) {
        let read = parallel::map(piece, 16, |(file, _)| {
            let path = file.path(ledger);
            let bytes = read_bytes(&path)?;
            Ok::<_, Box<crate::read::Broken>>((file.parse(ledger, &path, &bytes)?, bytes))
        });
        for read in read {
            match read {
                Ok((stored, bytes)) => {
                    sink.take(&stored, &bytes)?;
                    exported.records += 1;
                }
                Err(broken) => {
                    exported.left_out += 1;
                    exported.problems.push(broken.problem);
                }
            }
        }
    }
    for absent in chosen.withheld {
        sink.withheld(absent)?;
        exported.withheld += 1;
    }
    sink.finish()?;
    Ok(exported)
}

/// Writes records into a file, atomically. `existing` says whether to replace an existing file.
pub fn export_to(
    ledger: &Ledger,
    chosen: Chosen<'_>,
    format: Format,
    path: &Path,
    existing: Existing,
) -> Result<Exported, ExportError> {
    let taken = || ExportError::Exists(path.display().to_string());
    if existing == Existing::Keep && path.symlink_metadata().is_ok() {
        return Err(taken());
    }
    let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or_else(|| Path::new("."));
    fs_err::create_dir_all(parent)?;
    let mut temporary = partial_file(parent)?;
    let exported = export(ledger, chosen, format, io::BufWriter::new(temporary.as_file_mut()))?;
    temporary.as_file().set_permissions(Permissions::from_mode(0o644))?;
    temporary.as_file().sync_all()?;
    let published = match existing {
        Existing::Replace => temporary.persist(path),
        Existing::Keep => temporary.persist_noclobber(path),
    };
    match published {
        Ok(_) => {}
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => return Err(taken()),
        Err(error) => return Err(error.error.into()),
    }
    fs_err::File::open(parent)?.sync_all()?;
    Ok(exported)
}

/// What to do when the output exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Keep it, and export nothing.
    Keep,
    Replace,
}

/// Splits files into groups small enough to hold in memory.
fn pieces(files: &[(RecordFile, u64)]) -> impl Iterator<Item = &[(RecordFile, u64)]> {
    let mut rest = files;
    std::iter::from_fn(move || {
        let mut sum = 0_u64;
        let fits = |(_, size): &&(RecordFile, u64)| {
            sum = sum.saturating_add(*size);
            sum <= PIECE
        };
        let count = rest.iter().take_while(fits).count().max(1).min(rest.len());
        let (piece, after) = rest.split_at(count);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests;
