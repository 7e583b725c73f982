//! An append-only log for each session, which makes a record durable before its files are.
//!
//! An entry holds a record, its link in the chain and its small contents; larger ones are on disk before the entry
//! is. Once an entry is on disk, the attempt is recorded: its files are made from the entry, now or after a crash. A
//! running session holds a lock on its journal.

mod frames;
mod recover;

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use aec_base::digest::Digest;
use aec_base::jsonl;
use aec_base::staging::sync_parent;

use crate::chain::Link;
use crate::jobs::LIVE;
use crate::layout::ExperimentDirectory;

pub(crate) use recover::{Abandoned, abandoned, damaged_journals};
pub use recover::{Lost, Recovered, recover};

const HEADER: &[u8] = b"aec-bench journal 1\n";

/// Bytes; larger contents are written to disk separately.
pub(crate) const SMALL: u64 = 64 * 1024;

/// Bytes; a longer entry is invalid.
const LARGEST_ENTRY: u64 = 256 * 1024 * 1024;

/// A recorded attempt in a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The bytes of the record's file.
    pub(crate) record: Vec<u8>,
    pub(crate) link: Link,
    pub(crate) contents: Vec<(Digest, Vec<u8>)>,
}

impl Entry {
    /// Writes length and digest, then the parts, each with its length.
    pub(crate) fn encode(&self, buffer: &mut Vec<u8>) -> io::Result<()> {
        let mut payload = Vec::with_capacity(self.record.len() + 1024);
        put(&mut payload, &self.record);
        put(&mut payload, &serde_json::to_vec(&self.link)?);
        for (digest, bytes) in &self.contents {
            payload.extend_from_slice(digest.bytes());
            put(&mut payload, bytes);
        }
        buffer.extend_from_slice(&(payload.len() as u64).to_le_bytes());
        buffer.extend_from_slice(Digest::of(&payload).bytes());
        buffer.extend_from_slice(&payload);
        Ok(())
    }

    fn decode(mut payload: &[u8]) -> Option<Self> {
        let record = take(&mut payload)?.to_vec();
        let link = aec_base::json::from_slice(take(&mut payload)?).ok()?;
        let mut contents = Vec::new();
        while !payload.is_empty() {
            let (digest, rest) = payload.split_at_checked(32)?;
            payload = rest;
            let bytes = take(&mut payload)?;
            let digest = Digest::from_bytes(digest.try_into().ok()?);
            contents.push((digest, bytes.to_vec()));
        }
        Some(Self { record, link, contents })
    }
}

fn put(payload: &mut Vec<u8>, part: &[u8]) {
    payload.extend_from_slice(&(part.len() as u64).to_le_bytes());
    payload.extend_from_slice(part);
}

fn take<'a>(payload: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = payload.split_at_checked(8)?;
    let length = usize::try_from(u64::from_le_bytes(length.try_into().ok()?)).ok()?;
    let (part, rest) = rest.split_at_checked(length)?;
    *payload = rest;
    Some(part)
}

impl ExperimentDirectory {
    /// The journal of a session; it exists while records of the session may not have their files yet.
    fn journal(&self, session: &str) -> PathBuf {
        self.run().join(format!("journal-{session}.log"))
    }

    /// Whether the session that wrote a chain has a journal.
    pub fn has_journal(&self, chain: &Path) -> bool {
        let name = chain.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let session = name.strip_prefix("chain-").and_then(|name| name.strip_suffix(".jsonl"));
        session.is_some_and(|session| self.journal(session).symlink_metadata().is_ok())
    }
}

#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Journal {
    /// Creates the journal of a session and locks it.
    pub(crate) fn create(experiment: &ExperimentDirectory, session: &str) -> io::Result<Self> {
        let path = experiment.journal(session);
        // It gets its name after it is locked, so that no process takes it for an abandoned journal.
        let unnamed = experiment.run().join(format!(".tmp-journal-{session}"));
        let mut file = File::options().read(true).write(true).create_new(true).open(&unnamed)?;
        file.lock()?;
        file.write_all(HEADER)?;
        file.sync_data()?;
        fs_err::rename(&unnamed, &path)?;
        sync_parent(&path)?;
        Ok(Self { path, file, length: HEADER.len() as u64 })
    }

    /// Appends entries and waits until they are on disk. After a failure the journal is unchanged.
    pub(crate) fn append(&mut self, entries: &[u8]) -> io::Result<()> {
        let appended = self.file.write_all(entries).and_then(|()| self.file.sync_data());
        match appended {
            Ok(()) => {
                self.length += entries.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.file.set_len(self.length)?;
                self.file.seek(SeekFrom::Start(self.length))?;
                Err(error)
            }
        }
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Removes all entries. The caller must have stored everything in them elsewhere on disk.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.length = HEADER.len() as u64;
        self.file.set_len(self.length)?;
        self.file.seek(SeekFrom::Start(self.length))?;
        Ok(())
    }

    /// Removes the journal, which must be empty.
    pub(crate) fn remove(self) -> io::Result<()> {
        fs_err::remove_file(&self.path)
    }
}

/// Whether the session of a chain is running, so that its chain must not be changed.
pub(crate) fn is_living(chain: &Path) -> bool {
    let name = chain.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let session = name.trim_start_matches("chain-").trim_end_matches(".jsonl");
    match File::open(chain.with_file_name(format!("journal-{session}.log"))) {
        Ok(journal) => journal.try_lock().is_err(),
        Err(_) => false,
    }
}

/// Appends a line to a chain.
pub(crate) fn write_link(chain: &mut File, link: &Link) -> io::Result<()> {
    chain.write_all(&jsonl::line(link)?)
}

/// Writes a record's file, atomically.
pub(crate) fn publish(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let temporary = path.with_file_name(format!(".tmp-{name}"));
    fs_err::write(&temporary, bytes)?;
    fs_err::rename(&temporary, path)
}

/// Removes the live directory of an attempt, whose record holds everything.
pub(crate) fn remove_live(jobs: &Path, stem: &str) -> io::Result<()> {
    match std::fs::remove_dir_all(jobs.join(LIVE).join(stem)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
