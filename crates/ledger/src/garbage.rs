//! Removes contents that no record refers to: leftovers of attempts that were never recorded.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use aec_base::digest::Digest;
use serde::Serialize;

use crate::layout::{Ledger, parse_record_name};
use crate::record::TrialRecord;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Swept {
    /// Contents that a record refers to.
    pub kept: usize,
    pub removed: usize,
    pub bytes: u64,
}

/// Removes contents that no record refers to. No process may write to the ledger meanwhile. An unreadable record
/// stops it, because the contents that the record needs are unknown.
pub fn sweep(ledger: &Ledger, dry_run: bool) -> io::Result<Swept> {
    let wanted = referred(ledger)?;
    let mut swept = Swept::default();
    for directory in directories(&ledger.contents().root().join("sha256"))? {
        for entry in fs_err::read_dir(&directory)? {
            let entry = entry?;
            let digest =
                entry.file_name().to_str().and_then(|hex| Digest::try_from(format!("sha256:{hex}")).ok());
            if digest.is_some_and(|digest| wanted.contains(&digest)) {
                swept.kept += 1;
                continue;
            }
            swept.removed += 1;
            swept.bytes += entry.metadata()?.len();
            if !dry_run {
                fs_err::remove_file(entry.path())?;
            }
        }
    }
    Ok(swept)
}

fn referred(ledger: &Ledger) -> io::Result<HashSet<Digest>> {
    let mut wanted = HashSet::new();
    for experiment in ledger.experiments()? {
        let directory = ledger.experiment(&experiment);
        for entry in fs_err::read_dir(directory.path())? {
            let entry = entry?;
            if entry.file_name().to_str().and_then(parse_record_name).is_none() {
                continue;
            }
            let unreadable = |error: serde_json::Error| {
                io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", entry.path().display()))
            };
            let record: TrialRecord =
                aec_base::json::from_slice(&fs_err::read(entry.path())?).map_err(unreadable)?;
            wanted.extend(record.contents());
        }
    }
    Ok(wanted)
}

fn directories(root: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    let entries = match fs_err::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    entries.map(|entry| Ok(entry?.path())).collect()
}
