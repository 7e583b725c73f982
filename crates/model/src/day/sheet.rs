//! One day's file and its sums. The sums come from the lines alone, including those of this process, so two processes
//! that have read the same lines agree.

use std::collections::BTreeMap;
use std::io;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use aec_base::jsonl;
use fs_err::os::unix::fs::OpenOptionsExt as _;

use super::BookError;
use super::line::{Line, SCHEMA_VERSION};
use super::lock::is_at;
use crate::meter::Amount;
use crate::money::MicroDollars;

/// Bytes to read at a time.
const PIECE: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Sheet {
    path: PathBuf,
    day: String,
    file: fs_err::File,
    sums: Sums,
}

/// The sums of the lines up to an offset.
#[derive(Debug, Default)]
pub(super) struct Sums {
    /// The start of the first unread line.
    offset: u64,
    pub(super) settled: Amount,
    /// Part of that money that no provider confirmed.
    pub(super) unconfirmed: MicroDollars,
    /// Reservations by run and id.
    pub(super) open: BTreeMap<String, BTreeMap<u64, Amount>>,
    pub(super) damaged: u64,
}

impl Sums {
    /// The sum of all reservations.
    pub(super) fn reserved(&self) -> Amount {
        self.open.values().flat_map(BTreeMap::values).copied().fold(Amount::default(), Amount::plus)
    }

    /// The sum of the reservations of matching runs.
    pub(super) fn reserved_by(&self, mut holds: impl FnMut(&str) -> bool) -> Amount {
        self.open
            .iter()
            .filter(|(run, _)| holds(run))
            .flat_map(|(_, open)| open.values())
            .copied()
            .fold(Amount::default(), Amount::plus)
    }

    fn apply(&mut self, line: Line) {
        match line {
            Line::Open { .. } => {}
            Line::Reserve { run, id, amount, .. } => {
                self.open.entry(run).or_default().insert(id, amount);
            }
            Line::Settle { run, id, amount, unconfirmed, .. } => {
                if let Some(open) = self.open.get_mut(&run) {
                    open.remove(&id);
                    if open.is_empty() {
                        self.open.remove(&run);
                    }
                }
                self.settled = self.settled.plus(amount);
                self.unconfirmed = self.unconfirmed.plus(unconfirmed);
            }
        }
    }
}

impl Sheet {
    pub(super) fn open(directory: &Path, day: &str) -> Result<Self, BookError> {
        let path = directory.join(format!("spend-{day}.jsonl"));
        let file = open_file(&path)?;
        Ok(Self { path, day: day.to_owned(), file, sums: Sums::default() })
    }

    pub(super) fn sums(&self) -> &Sums {
        &self.sums
    }

    /// Reads the lines appended since the last time. Needs no lock: an incomplete line is left for later.
    pub(super) fn catch_up(&mut self) -> Result<(), BookError> {
        if !is_at(&self.file, &self.path) {
            // The file was removed or replaced: its present contents count.
            if let Some(parent) = self.path.parent() {
                fs_err::create_dir_all(parent)?;
            }
            self.file = open_file(&self.path)?;
            self.sums = Sums::default();
        }
        let size = self.file.metadata()?.len();
        if size < self.sums.offset {
            self.sums = Sums::default();
        }
        // The beginning of a line that continues in the next piece.
        let mut begun = Vec::new();
        let mut at = self.sums.offset;
        while at < size {
            let mut piece = vec![0; usize::try_from(size - at).unwrap_or(PIECE).min(PIECE)];
            let count = self.file.file().read_at(&mut piece, at)?;
            if count == 0 {
                break;
            }
            at += count as u64;
            begun.extend_from_slice(&piece[..count]);
            let (lines, torn) = jsonl::split(&begun);
            for line in lines {
                self.take(line)?;
            }
            self.sums.offset += (begun.len() - torn.len()) as u64;
            begun = torn.to_vec();
        }
        Ok(())
    }

    fn take(&mut self, line: &[u8]) -> Result<(), BookError> {
        match aec_base::json::from_slice(line) {
            Ok(Line::Open { schema_version, .. }) if schema_version > SCHEMA_VERSION => {
                return Err(BookError::Newer { path: self.path.clone(), version: schema_version });
            }
            Ok(line) => self.sums.apply(line),
            Err(_) if line.iter().all(u8::is_ascii_whitespace) => {}
            Err(_) => {
                self.sums.damaged += 1;
                tracing::warn!(file = %self.path.display(), "skipped a line that cannot be read");
            }
        }
        Ok(())
    }

    /// Appends a line. The caller must hold the lock and have caught up.
    pub(super) fn append(&mut self, line: &Line) -> Result<(), BookError> {
        let size = self.file.metadata()?.len();
        let mut text = Vec::new();
        if size > self.sums.offset {
            // A killed writer left an incomplete line.
            text.push(b'\n');
        }
        if size == 0 {
            text.extend(jsonl::line(&Line::Open { schema_version: SCHEMA_VERSION, day: self.day.clone() })?);
        }
        text.extend(jsonl::line(line)?);
        // A single write, which a kill hardly ever interrupts.
        self.file.write_all(&text)?;
        self.catch_up()
    }
}

fn open_file(path: &Path) -> io::Result<fs_err::File> {
    fs_err::OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}
