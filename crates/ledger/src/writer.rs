//! The one way into a ledger: attempts are committed in groups, each group with one wait for the disk.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use aec_base::content::ContentStore;
use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_base::staging::{Staging, sync_all, sync_parent};

use crate::chain::Link;
use crate::jobs::{LIVE, materialise_through, settle_live};
use crate::journal::{Entry, Journal, SMALL, publish, remove_live, write_link};
use crate::layout::{ExperimentDirectory, Ledger, stem};
use crate::read::RECORD_LIMIT;
use crate::record::TrialRecord;

/// How long the first attempt of a group waits for company.
const GATHER: Duration = Duration::from_millis(10);
/// Attempts of a group at most.
const GROUP: usize = 128;
/// Attempts that wait for the writer at most; whoever comes later waits to be let in.
const QUEUE: usize = 256;
/// Bytes of a group; one that is longer is settled at once.
const LONGEST_GROUP: usize = 16 * 1024 * 1024;
/// Bytes of contents that one entry of the journal carries; the others are made durable in their own files.
const CARRIED: u64 = 4 * 1024 * 1024;
/// A longer journal is emptied: everything that it holds is then on disk in its own files.
const LONGEST_JOURNAL: u64 = 64 * 1024 * 1024;

/// Where a session writes.
#[derive(Clone, Debug)]
pub struct WriterSetup {
    pub ledger: Ledger,
    /// The root of `jobs`.
    pub jobs: PathBuf,
    pub experiment: Name,
    /// The session, a name that no other has.
    pub session: String,
    /// Digest of the plan, with which the session's chain begins.
    pub plan: Digest,
}

/// Why an attempt was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    #[error("there is a record of attempt {attempt} of {trial} already")]
    Exists { trial: Name, attempt: u32 },
    #[error("the ledger cannot be written: {0}")]
    Storage(String),
}

/// Called when an attempt is durable and its files are in place, or when it is not recorded.
pub type Done = Box<dyn FnOnce(Result<Digest, CommitError>) + Send>;

/// Hears of each group when it is in place: the records with the digests and lengths of their files.
pub type GroupListener = Box<dyn FnMut(&[(TrialRecord, Digest, u64)]) + Send>;

/// Commits attempts on a thread of its own.
#[derive(Debug)]
pub struct Writer {
    sender: Option<SyncSender<(Box<TrialRecord>, Done)>>,
    thread: Option<JoinHandle<io::Result<Closed>>>,
}

/// What a session wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    pub records: u64,
    /// The last link of its chain; the plan's digest when there is none.
    pub head: Digest,
}

impl Writer {
    /// Begins a session. The experiment's directories are made.
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

    /// Hands an attempt over; waits only when too many are under way. Its contents must be in the ledger's store.
    pub fn commit(&self, record: TrialRecord, done: Done) {
        let Some(sender) = &self.sender else { return };
        if let Err(gone) = sender.send((Box::new(record), done)) {
            let (_, done) = gone.0;
            done(Err(CommitError::Storage("its writer has ended".to_owned())));
        }
    }

    /// Commits what is under way and ends the session.
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
        // What could not be finished is in the journal, and the next session finishes it.
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
    /// Attempts of the group at hand, which are not in their places yet.
    seen: HashSet<String>,
    /// Contents that the journal carries: records often share them.
    durable: HashSet<Digest>,
    /// Why nothing can be put in its place any more. What is in the journal stays there for the next session.
    broken: Option<String>,
}

/// An attempt on its way.
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
            // A session that recorded nothing leaves no chain.
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

    /// Makes a group durable and puts it in its place; `before` is the end of the chain without it.
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
                // It is durable all the same; the next session puts it in its place. Until then the order of the chain
                // forbids to go on.
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
        let bytes = record.to_json().map_err(|error| storage(&error))?.into_bytes();
        if bytes.len() as u64 > RECORD_LIMIT {
            return Err(storage(&"the record is longer than a ledger reads"));
        }
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
        // What the agent was given and left as it was is in the task; it is not the record that must save it.
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
        // Files of `jobs` are a view. What keeps them from being made must not keep the record from being there.
        let laid_out = settle_live(&self.contents, record, &self.jobs)
            .or_else(|_| materialise_through(&self.contents, record, &self.jobs, &self.staging));
        if let Err(error) = laid_out {
            tracing::warn!(%error, trial = %record.trial_id, "the files of an attempt could not be laid out");
        }
        publish(&self.experiment.record(&record.trial_id, record.attempt), bytes)?;
        remove_live(&self.jobs, &stem(&record.trial_id, record.attempt))
    }

    /// Makes everything durable in its own place and empties the journal.
    fn checkpoint(&mut self) -> io::Result<()> {
        debug_assert!(self.broken.is_none(), "what is not in its place is only in the journal");
        self.chain.sync_all()?;
        sync_all(self.ledger.root())?;
        self.durable.clear();
        self.journal.clear()
    }
}
