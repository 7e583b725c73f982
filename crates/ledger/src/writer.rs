//! The only way to write into a ledger: attempts are committed in groups, each with one wait for the disk.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use aec_base::content::ContentStore;
use aec_base::digest::Digest;
use aec_base::json;
use aec_base::name::Name;
use aec_base::staging::{Staging, sync_all, sync_parent};

use crate::chain::Link;
use crate::jobs::{LIVE, materialise_through, settle_live};
use crate::journal::{Entry, Journal, SMALL, publish, remove_live, write_link};
use crate::layout::{ExperimentDirectory, Ledger, stem};
use crate::read::RECORD_LIMIT;
use crate::record::TrialRecord;

/// How long the first attempt of a group waits for others.
const GATHER: Duration = Duration::from_millis(10);
/// Most attempts of a group.
const GROUP: usize = 128;
/// Most attempts that wait for the writer; further callers block.
const QUEUE: usize = 256;
/// In bytes; a longer group is committed at once.
const LONGEST_GROUP: usize = 16 * 1024 * 1024;
/// Bytes of contents that one journal entry holds; further contents are made durable in their own files.
const CARRIED: u64 = 4 * 1024 * 1024;
/// In bytes; a longer journal is emptied after everything in it is on disk in its own files.
const LONGEST_JOURNAL: u64 = 64 * 1024 * 1024;

#[derive(Clone, Debug)]
pub struct WriterSetup {
    pub ledger: Ledger,
    pub jobs: PathBuf,
    pub experiment: Name,
    /// A name that no other session has.
    pub session: String,
    /// Digest of the plan, which begins the session's chain.
    pub plan: Digest,
}

#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    #[error("there is a record of attempt {attempt} of {trial} already")]
    Exists { trial: Name, attempt: u32 },
    #[error("the ledger cannot be written: {0}")]
    Storage(String),
}

/// Called when an attempt is durable and its files are in place, or when recording it failed.
pub type Done = Box<dyn FnOnce(Result<Digest, CommitError>) + Send>;

/// Called after each group with its records and the digests and lengths of their files.
pub type GroupListener = Box<dyn FnMut(&[(TrialRecord, Digest, u64)]) + Send>;

/// Commits attempts on its own thread.
#[derive(Debug)]
pub struct Writer {
    sender: Option<SyncSender<(Box<TrialRecord>, Done)>>,
    thread: Option<JoinHandle<io::Result<Closed>>>,
}

/// The result of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    pub records: u64,
    /// The last link of its chain; the plan's digest when there is none.
    pub head: Digest,
}

impl Writer {
    /// Begins a session and creates the experiment's directories.
    pub fn open(setup: WriterSetup, listener: Option<GroupListener>) -> io::Result<Self> {
        let experiment = setup.ledger.experiment(&setup.experiment);
        fs_err::create_dir_all(experiment.run())?;
        let jobs = setup.jobs.join(setup.experiment.as_str());
        let staging = Staging::begin(&jobs.join(LIVE))?;
        let journal = Journal::create(&experiment, &setup.session)?;
        let chain_path = experiment.chain(&setup.session);
        let chain = File::options().append(true).create_new(true).open(&chain_path)?;
        let (sender, receiver) = sync_channel(QUEUE);
        let writer = WriterThread {
            contents: setup.ledger.contents(),
            ledger: setup.ledger,
            experiment,
            jobs,
            staging,
            journal,
            chain,
            chain_path,
            head: setup.plan,
            sequence: 0,
            listener,
            seen: HashSet::new(),
            durable: HashSet::new(),
            broken: None,
        };
        let thread =
            std::thread::Builder::new().name("ledger".to_owned()).spawn(move || writer.work(&receiver))?;
        Ok(Self { sender: Some(sender), thread: Some(thread) })
    }

    /// Hands an attempt over; blocks only when too many are waiting. Its contents must be in the ledger's store.
    pub fn commit(&self, record: TrialRecord, done: Done) {
        let Some(sender) = &self.sender else { return };
        if let Err(gone) = sender.send((Box::new(record), done)) {
            let (_, done) = gone.0;
            done(Err(CommitError::Storage("its writer has ended".to_owned())));
        }
    }

    /// Commits the waiting attempts and ends the session.
    pub fn close(mut self) -> io::Result<Closed> {
        self.end().unwrap_or_else(|| Err(io::Error::other("the writer has ended already")))
    }

    fn end(&mut self) -> Option<io::Result<Closed>> {
        drop(self.sender.take());
        let ended = self.thread.take()?.join();
        Some(ended.unwrap_or_else(|_| Err(io::Error::other("the writer of the ledger failed"))))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Unfinished attempts are in the journal; the next session completes them.
        self.end();
    }
}

struct WriterThread {
    ledger: Ledger,
    experiment: ExperimentDirectory,
    contents: ContentStore,
    jobs: PathBuf,
    staging: Staging,
    journal: Journal,
    chain: File,
    chain_path: PathBuf,
    head: Digest,
    sequence: u64,
    listener: Option<GroupListener>,
    /// Attempts of the current group, whose files are not in place yet.
    seen: HashSet<String>,
    /// Contents that the journal already holds: records often share them.
    durable: HashSet<Digest>,
    /// Why no more files can be written. The journal keeps its entries for the next session.
    broken: Option<String>,
}

/// A waiting attempt.
struct Case {
    record: Box<TrialRecord>,
    bytes: Vec<u8>,
    link: Link,
    done: Done,
}

impl WriterThread {
    fn work(mut self, receiver: &Receiver<(Box<TrialRecord>, Done)>) -> io::Result<Closed> {
        while let Ok(first) = receiver.recv() {
            let until = Instant::now() + GATHER;
            let mut group = vec![first];
            while group.len() < GROUP {
                match receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok(next) => group.push(next),
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
                }
            }
            self.commit(group);
        }
        if let Some(reason) = self.broken {
            return Err(io::Error::other(reason));
        }
        if self.sequence > 0 {
            self.checkpoint()?;
        } else {
            // A session without records leaves no chain.
            fs_err::remove_file(&self.chain_path)?;
        }
        self.journal.remove()?;
        Ok(Closed { records: self.sequence, head: self.head })
    }

    fn commit(&mut self, group: Vec<(Box<TrialRecord>, Done)>) {
        let mut before = (self.head, self.sequence);
        let mut buffer = Vec::new();
        let mut cases = Vec::new();
        for (record, done) in group {
            match self.prepare(&record, &mut buffer) {
                Ok((bytes, link)) => cases.push(Case { record, bytes, link, done }),
                Err(error) => done(Err(error)),
            }
            if buffer.len() > LONGEST_GROUP {
                self.settle(before, &buffer, std::mem::take(&mut cases));
                buffer.clear();
                before = (self.head, self.sequence);
            }
        }
        if !cases.is_empty() {
            self.settle(before, &buffer, cases);
        }
    }

    /// Makes a group durable and writes its files; `before` is the end of the chain before the group.
    fn settle(&mut self, before: (Digest, u64), buffer: &[u8], cases: Vec<Case>) {
        if let Err(error) = self.journal.append(buffer) {
            (self.head, self.sequence) = before;
            self.seen.clear();
            self.durable.clear();
            for case in cases {
                (case.done)(Err(CommitError::Storage(error.to_string())));
            }
            return;
        }
        self.seen.clear();
        let mut placed = Vec::with_capacity(cases.len());
        for Case { record, bytes, link, done } in cases {
            let digest = link.record;
            match self.place(&record, &bytes, &link) {
                Ok(()) => {
                    placed.push((*record, digest, bytes.len() as u64));
                    done(Ok(digest));
                }
                // The group is durable nevertheless; the next session writes its files. Until then the order of the
                // chain forbids further commits.
                Err(error) => {
                    self.broken.get_or_insert_with(|| error.to_string());
                    done(Err(CommitError::Storage(error.to_string())));
                }
            }
        }
        if let Some(listener) = &mut self.listener {
            listener(&placed);
        }
        if self.broken.is_none()
            && self.journal.length() > LONGEST_JOURNAL
            && let Err(error) = self.checkpoint()
        {
            tracing::warn!(%error, "the journal could not be emptied");
        }
    }

    /// Encodes an attempt into the group's buffer and makes its large contents durable.
    fn prepare(
        &mut self,
        record: &TrialRecord,
        buffer: &mut Vec<u8>,
    ) -> Result<(Vec<u8>, Link), CommitError> {
        let storage = |error: &dyn std::fmt::Display| CommitError::Storage(error.to_string());
        if let Some(reason) = &self.broken {
            return Err(storage(reason));
        }
        let name = stem(&record.trial_id, record.attempt);
        let exists = self.experiment.record(&record.trial_id, record.attempt).symlink_metadata().is_ok();
        if exists || self.seen.contains(&name) {
            return Err(CommitError::Exists { trial: record.trial_id.clone(), attempt: record.attempt });
        }
        let bytes = readable(record).map_err(|error| storage(&error))?;
        let contents = self.small_contents(record).map_err(|error| storage(&error))?;
        let digest = Digest::of(&bytes);
        let link = Link::after(self.head, self.sequence + 1, &record.trial_id, record.attempt, digest);
        let entry = Entry { record: bytes, link, contents };
        entry.encode(buffer).map_err(|error| storage(&error))?;
        self.head = entry.link.link;
        self.sequence += 1;
        self.durable.extend(entry.contents.iter().map(|(digest, _)| *digest));
        self.seen.insert(name);
        Ok((entry.record, entry.link))
    }

    fn small_contents(&self, record: &TrialRecord) -> io::Result<Vec<(Digest, Vec<u8>)>> {
        let inputs: HashSet<Digest> = record.inputs.input_files.iter().map(|file| file.hash).collect();
        let artefacts: HashSet<Digest> = record.all_artefacts().map(|artefact| artefact.digest).collect();
        let mut known = HashSet::new();
        let mut small = Vec::new();
        let mut carried = 0;
        // Input files that the agent left unchanged are stored with the task; the record need not save them.
        let own = |digest: &Digest| artefacts.contains(digest) || !inputs.contains(digest);
        for digest in record.contents().filter(own) {
            if self.durable.contains(&digest) || !known.insert(digest) {
                continue;
            }
            let path = self.contents.path(digest);
            let mut file = fs_err::File::open(&path)?;
            let size = file.metadata()?.len();
            if size > SMALL || carried + size > CARRIED {
                file.sync_data()?;
                sync_parent(&path)?;
                continue;
            }
            carried += size;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            small.push((digest, bytes));
        }
        Ok(small)
    }

    fn place(&mut self, record: &TrialRecord, bytes: &[u8], link: &Link) -> io::Result<()> {
        if let Some(reason) = &self.broken {
            return Err(io::Error::other(reason.clone()));
        }
        write_link(&mut self.chain, link)?;
        // Files of `jobs` are only a view, so failing to write them must not prevent the record.
        let laid_out = settle_live(&self.contents, record, &self.jobs)
            .or_else(|_| materialise_through(&self.contents, record, &self.jobs, &self.staging));
        if let Err(error) = laid_out {
            tracing::warn!(%error, trial = %record.trial_id, "the files of an attempt could not be laid out");
        }
        publish(&self.experiment.record(&record.trial_id, record.attempt), bytes)?;
        remove_live(&self.jobs, &stem(&record.trial_id, record.attempt))
    }

    /// Makes everything durable in its own file and empties the journal.
    fn checkpoint(&mut self) -> io::Result<()> {
        debug_assert!(self.broken.is_none(), "what is not in its place is only in the journal");
        self.chain.sync_all()?;
        sync_all(self.ledger.root())?;
        self.durable.clear();
        self.journal.clear()
    }
}

/// The text of a record as a ledger can read it again. What an agent or its verifier wrote may be too large or too deep
/// for that; it is left out then, because a record that nobody can read would take the trial out of every mean.
fn readable(record: &TrialRecord) -> io::Result<Vec<u8>> {
    let text = |record: &TrialRecord| {
        let bytes = record.to_json()?.into_bytes();
        let is_short = bytes.len() as u64 <= RECORD_LIMIT;
        let is_flat = json::check(&bytes, json::Limits::USUAL).is_ok();
        io::Result::Ok((is_short && is_flat).then_some(bytes))
    };
    if let Some(bytes) = text(record)? {
        return Ok(bytes);
    }
    text(&record.without_foreign_values())?
        .ok_or_else(|| io::Error::other("the record is longer or deeper than a ledger reads"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::example;

    /// An agent could end its run with a record that was too long, or have one that no command could read.
    #[test]
    fn what_makes_a_record_unreadable_is_left_out_of_it() {
        let deep = (0..125).fold(json!(1), |inner, _| json!([inner]));
        let wide = Value::Array(vec![json!([0]); 300_000]);
        let long = (0..110).fold(Value::Array(vec![json!(0); 345_000]), |inner, _| json!([inner]));
        for foreign in [deep, wide, long] {
            let mut record = example::record("x", "t", 1);
            let whole = readable(&record).unwrap();
            assert_eq!(whole, record.to_json().unwrap().into_bytes());
            record.outputs.agent_result.insert("mine".to_owned(), foreign.clone());
            if let Some(evaluation) = &mut record.evaluation {
                evaluation.breakdown = Some(foreign);
            }
            let read: TrialRecord = json::from_slice(&readable(&record).unwrap()).unwrap();
            assert_eq!((read.outcome, read.reward()), (record.outcome, record.reward()));
            assert!(read.outputs.agent_result.contains_key("left_out"), "{:?}", read.outputs.agent_result);
        }
    }
}
