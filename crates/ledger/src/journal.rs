//! An append-only log for each session, which makes a record durable before its files are.
//!
//! An entry holds a record, its link in the chain and its small contents; larger ones are on disk before the entry
//! is. Once an entry is on disk, the attempt is recorded: its files are made from the entry, now or after a crash. A
//! running session holds a lock on its journal.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use aec_base::content::ContentStore;
use aec_base::digest::Digest;
use aec_base::jsonl;
use aec_base::name::Name;
use aec_base::problem::Severity;
use aec_base::staging::{Staging, sync_all, sync_parent};

use crate::chain::{Chain, Link, files_named};
use crate::jobs::{LIVE, materialise_through};
use crate::layout::{ExperimentDirectory, Ledger, stem};
use crate::record::TrialRecord;

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
        let link = serde_json::from_slice(take(&mut payload)?).ok()?;
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

/// Reads entries up to the first incomplete one; returns the length of the complete ones.
fn read_entries(file: &mut File, mut each: impl FnMut(Entry) -> io::Result<()>) -> io::Result<u64> {
    let mut reader = io::BufReader::new(file);
    let mut header = [0; HEADER.len()];
    if reader.read_exact(&mut header).is_err() || header != HEADER {
        return Ok(0);
    }
    let mut whole = HEADER.len() as u64;
    loop {
        let mut frame = [0; 40];
        if reader.read_exact(&mut frame).is_err() {
            return Ok(whole);
        }
        let (length, digest) = frame.split_at(8);
        let length = u64::from_le_bytes(length.try_into().unwrap_or_default());
        if length > LARGEST_ENTRY {
            return Ok(whole);
        }
        let mut payload = Vec::new();
        reader.by_ref().take(length).read_to_end(&mut payload)?;
        if payload.len() as u64 != length || Digest::of(&payload).bytes() != digest {
            return Ok(whole);
        }
        match Entry::decode(&payload) {
            Some(entry) => each(entry)?,
            None => return Ok(whole),
        }
        whole += frame.len() as u64 + length;
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

/// What was recovered from abandoned journals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    pub journals: usize,
    /// Records that had no file yet.
    pub records: Vec<(Name, u32)>,
}

/// Completes what killed sessions had recorded: contents, files of `jobs`, links and records. Leaves journals of
/// running sessions alone. It may be repeated or killed without harm.
pub fn recover(ledger: &Ledger, experiment: &Name, jobs: &Path) -> io::Result<Recovered> {
    let directory = ledger.experiment(experiment);
    let mut recovered = Recovered::default();
    for path in files_named(&directory.run(), "journal-", ".log")? {
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if file.try_lock().is_err() || !is_still(&file, &path) {
            continue;
        }
        recovered.journals += 1;
        let session = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let session = session.trim_start_matches("journal-").trim_end_matches(".log");
        let mut restored = Restored::open(ledger, &directory, session, jobs.join(experiment.as_str()))?;
        let whole = read_entries(&mut file, |entry| restored.add(&entry, &mut recovered.records))?;
        sync_all(ledger.root())?;
        if file.metadata()?.len() > whole {
            // The end is torn by a crash, or damaged. The file is kept for inspection.
            fs_err::rename(&path, directory.run().join(format!("torn-{session}.log")))?;
        } else {
            fs_err::remove_file(&path)?;
        }
    }
    Ok(recovered)
}

/// Whether a path still leads to this file: another process may have recovered the same journal meanwhile.
fn is_still(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), path.symlink_metadata()) {
        (Ok(open), Ok(there)) => open.ino() == there.ino() && open.dev() == there.dev(),
        _ => false,
    }
}

/// The files of a session that exist already.
struct Restored<'a> {
    directory: &'a ExperimentDirectory,
    contents: ContentStore,
    jobs: PathBuf,
    staging: Option<Staging>,
    chain: File,
    links: u64,
}

impl<'a> Restored<'a> {
    fn open(
        ledger: &Ledger,
        directory: &'a ExperimentDirectory,
        session: &str,
        jobs: PathBuf,
    ) -> io::Result<Self> {
        let path = directory.chain(session);
        let mut chain = File::options().read(true).append(true).create(true).open(&path)?;
        let known = Chain::read(&path).map_err(|error| io::Error::new(error.io_kind(), error.to_string()))?;
        // A torn last line is rewritten from its entry. Any other damage is evidence and stays.
        if known.problems.iter().any(|problem| problem.severity == Severity::Error) {
            let what = format!("{} was changed: run `aec-bench ledger verify`", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        chain.set_len(known.sound_bytes)?;
        chain.seek(SeekFrom::End(0))?;
        let links = known.links.len() as u64;
        Ok(Self { directory, contents: ledger.contents(), jobs, staging: None, chain, links })
    }

    fn add(&mut self, entry: &Entry, records: &mut Vec<(Name, u32)>) -> io::Result<()> {
        for (digest, bytes) in &entry.contents {
            self.contents.restore(*digest, bytes)?;
        }
        let record: TrialRecord = serde_json::from_slice(&entry.record)?;
        let stem = stem(&record.trial_id, record.attempt);
        // Its hard links may lead to contents that were not on disk yet.
        let place = self.jobs.join(&stem);
        if place.is_dir() {
            fs_err::remove_dir_all(&place)?;
        }
        let staging = match &mut self.staging {
            Some(staging) => staging,
            none => none.insert(Staging::begin(&self.jobs.join(LIVE))?),
        };
        if let Err(error) = materialise_through(&self.contents, &record, &self.jobs, staging) {
            tracing::warn!(%error, trial = %record.trial_id, "the files of an attempt could not be laid out");
        }
        remove_live(&self.jobs, &stem)?;
        if entry.link.sequence > self.links {
            write_link(&mut self.chain, &entry.link)?;
            self.links = entry.link.sequence;
        }
        let path = self.directory.record(&record.trial_id, record.attempt);
        if fs_err::read(&path).ok().as_deref() != Some(&entry.record) {
            publish(&path, &entry.record)?;
            records.push((record.trial_id, record.attempt));
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(sequence: u64, contents: Vec<Vec<u8>>) -> Entry {
        let trial = Name::parse("t").unwrap();
        let link = Link::after(Digest::of(b"p"), sequence, &trial, 1, Digest::of(b"r"));
        let contents = contents.into_iter().map(|bytes| (Digest::of(&bytes), bytes)).collect();
        Entry { record: b"{}".to_vec(), link, contents }
    }

    fn entries_of(bytes: &[u8]) -> Vec<Entry> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        let mut found = Vec::new();
        let whole = read_entries(&mut file, |entry| {
            found.push(entry);
            Ok(())
        })
        .unwrap();
        assert!(whole <= bytes.len() as u64);
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn a_journal_cut_or_damaged_anywhere_gives_its_whole_entries(
            contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..3),
            damage in any::<prop::sample::Index>(),
        ) {
            let entries = [entry(1, contents), entry(2, Vec::new())];
            let mut bytes = HEADER.to_vec();
            let mut ends = Vec::new();
            for entry in &entries {
                entry.encode(&mut bytes).unwrap();
                ends.push(bytes.len());
            }
            for cut in 0..=bytes.len() {
                let whole = ends.iter().filter(|end| **end <= cut).count();
                prop_assert_eq!(&entries_of(&bytes[..cut])[..], &entries[..whole]);
            }
            let at = damage.index(bytes.len());
            bytes[at] ^= 0x40;
            let found = entries_of(&bytes);
            prop_assert!(found.len() < entries.len());
            prop_assert_eq!(&found[..], &entries[..found.len()]);
        }
    }
}
