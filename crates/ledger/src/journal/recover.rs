//! Completes what killed sessions had recorded. What would be done is computed first, so that a dry run can show it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use aec_base::content::ContentStore;
use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_base::problem::{Problem, Severity};
use aec_base::staging::{Staging, sync_all};

use super::frames::{Damaged, Frame, frames};
use super::{Entry, publish, remove_live, write_link};
use crate::FAMILY;
use crate::chain::{Chain, Link, files_named};
use crate::jobs::{LIVE, materialise_through};
use crate::layout::{ExperimentDirectory, Ledger, stem};
use crate::record::TrialRecord;

/// What was recovered from abandoned journals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    pub journals: usize,
    /// Records that had no file yet.
    pub records: Vec<(Name, u32)>,
    /// Entries that could not be recovered.
    pub lost: Vec<Lost>,
}

/// An entry of a journal that is damaged and whose record is nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    pub journal: PathBuf,
    /// Where it begins in the journal.
    pub at: usize,
    pub bytes: usize,
    /// The attempt, as far as the entry or the chain names it.
    pub attempt: Option<(Name, u32)>,
}

impl Lost {
    pub fn problem(&self) -> Problem {
        let Self { at, bytes, .. } = self;
        let what = match &self.attempt {
            Some((trial, attempt)) => format!("the record of attempt {attempt} of `{trial}` is lost"),
            None => "an entry of a journal is lost, and it does not say of which trial".to_owned(),
        };
        Problem::error(what)
            .id(FAMILY.number(13))
            .why(format!("its {bytes} bytes from {at} on do not check, and its record is nowhere else"))
            .fix("restore the journal or the record from a copy, or run the trial again")
            .in_file(&self.journal)
    }
}

/// A journal of a session that has ended, read and not yet carried out. The journal stays locked.
#[derive(Debug)]
pub(crate) struct Abandoned {
    pub(crate) path: PathBuf,
    /// The chain of its session, which is completed with it.
    pub(crate) chain: PathBuf,
    session: String,
    file: File,
    entries: Vec<Entry>,
    /// Links of entries whose records are lost.
    links: Vec<Link>,
    /// Contents of damaged entries.
    contents: Vec<(Digest, Vec<u8>)>,
    /// Records that are not in their places.
    pub(crate) records: Vec<(Name, u32)>,
    pub(crate) lost: Vec<Lost>,
    /// Bytes of an entry at the end that was never complete.
    torn: usize,
    is_damaged: bool,
}

/// The journals of an experiment whose sessions have ended, with what is to be done about them. Nothing is changed.
pub(crate) fn abandoned(ledger: &Ledger, experiment: &Name) -> io::Result<Vec<Abandoned>> {
    let directory = ledger.experiment(experiment);
    let mut found = Vec::new();
    for path in files_named(&directory.run(), "journal-", ".log")? {
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if file.try_lock().is_err() || !is_still(&file, &path) {
            continue;
        }
        found.push(Abandoned::read(path, file, &directory)?);
    }
    Ok(found)
}

/// Completes what killed sessions had recorded: contents, files of `jobs`, links and records. Leaves journals of
/// running sessions alone. It may be repeated or killed without harm.
pub fn recover(ledger: &Ledger, experiment: &Name, jobs: &Path) -> io::Result<Recovered> {
    let mut recovered = Recovered::default();
    for journal in abandoned(ledger, experiment)? {
        recovered.journals += 1;
        recovered.records.extend(journal.records.iter().cloned());
        for lost in &journal.lost {
            tracing::warn!("{}", lost.problem());
        }
        recovered.lost.extend(journal.lost.iter().cloned());
        journal.restore(ledger, experiment, jobs)?;
    }
    Ok(recovered)
}

/// Journals that were put aside because entries of them are lost.
pub(crate) fn damaged_journals(directory: &ExperimentDirectory) -> io::Result<Vec<PathBuf>> {
    files_named(&directory.run(), "damaged-", ".log")
}

/// Whether a path still leads to this file: another process may have recovered the same journal meanwhile.
fn is_still(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), path.symlink_metadata()) {
        (Ok(open), Ok(there)) => open.ino() == there.ino() && open.dev() == there.dev(),
        _ => false,
    }
}

impl Abandoned {
    fn read(path: PathBuf, mut file: File, directory: &ExperimentDirectory) -> io::Result<Self> {
        let session = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let session = session.trim_start_matches("journal-").trim_end_matches(".log").to_owned();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let chain = directory.chain(&session);
        let mut journal = Self {
            chain: chain.clone(),
            session,
            file,
            entries: Vec::new(),
            links: Vec::new(),
            contents: Vec::new(),
            records: Vec::new(),
            lost: Vec::new(),
            torn: 0,
            is_damaged: false,
            path,
        };
        // A chain that cannot be read is a problem when the journal is carried out.
        let chained: Vec<Link> = Chain::read(&chain).map(|chain| chain.links).unwrap_or_default();
        let frames = frames(&bytes, &chained);
        let sequences = sequences(&frames);
        let links: Vec<Option<Link>> = frames.iter().map(|frame| frame.link().cloned()).collect();
        for (at, (frame, sequence)) in frames.into_iter().zip(sequences).enumerate() {
            match frame {
                Frame::Whole(entry) => journal.entries.push(entry),
                Frame::Damaged(damaged) => {
                    let link = |at: Option<usize>| links.get(at?)?.as_ref();
                    let between = (link(at.checked_sub(1)).or_else(|| chained.last()), link(Some(at + 1)));
                    let damaged = relinked(damaged, sequence, between);
                    journal.salvage(damaged, sequence, &chained, directory);
                }
                Frame::Torn { bytes } => journal.torn += bytes,
            }
        }
        for entry in &journal.entries {
            let record: TrialRecord = aec_base::json::from_slice(&entry.record)?;
            let place = directory.record(&record.trial_id, record.attempt);
            if fs_err::read(&place).ok().as_deref() != Some(&entry.record) {
                journal.records.push((record.trial_id, record.attempt));
            }
        }
        Ok(journal)
    }

    /// Keeps the parts of a damaged entry that check. Its record is lost unless it checks or is in its place.
    fn salvage(
        &mut self,
        damaged: Damaged,
        sequence: Option<u64>,
        chained: &[Link],
        directory: &ExperimentDirectory,
    ) {
        self.is_damaged = true;
        let Damaged { at, bytes, link, record, contents } = damaged;
        let found = record.as_ref().map(|record| Digest::of(record));
        let same = |link: &&Link| Some(link.record) == found || Some(link.sequence) == sequence;
        let link = link.or_else(|| chained.iter().find(same).cloned());
        let whole = record.zip(link.clone()).filter(|(_, link)| found == Some(link.record));
        if let Some((record, link)) = whole
            && aec_base::json::from_slice::<TrialRecord>(&record).is_ok()
        {
            // Contents that do not check may be in their places already; `ledger verify` says which are not.
            self.entries.push(Entry { record, link, contents });
            return;
        }
        let is_here = |link: &Link| {
            let read = fs_err::read(directory.record(&link.trial_id, link.attempt));
            read.is_ok_and(|bytes| Digest::of(&bytes) == link.record)
        };
        if !link.as_ref().is_some_and(is_here) {
            let attempt = link.as_ref().map(|link| (link.trial_id.clone(), link.attempt));
            self.lost.push(Lost { journal: self.path.clone(), at, bytes, attempt });
        }
        self.contents.extend(contents);
        self.links.extend(link);
    }

    /// Where the journal goes when it is not removed, and why: it is kept for inspection.
    pub(crate) fn kept(&self) -> Option<(PathBuf, String)> {
        let place = |front: &str| self.path.with_file_name(format!("{front}-{}.log", self.session));
        if !self.lost.is_empty() {
            return Some((place("damaged"), "entries of it are lost".to_owned()));
        }
        if self.is_damaged {
            return Some((place("torn"), "an entry of it does not check, and nothing is lost".to_owned()));
        }
        (self.torn > 0).then(|| (place("torn"), format!("its last {} bytes are no whole entry", self.torn)))
    }

    /// The problem of a chain that was changed, so that the journal cannot be carried out.
    pub(crate) fn obstacle(&self) -> Option<Problem> {
        let problem = |what: String| {
            Problem::error(what)
                .id(FAMILY.number(12))
                .why("its journal belongs to a chain that was changed, so it is left as it is")
                .fix("compare with a copy of the ledger, see `aec-bench ledger verify`")
                .in_file(&self.chain)
        };
        match Chain::read(&self.chain) {
            Ok(chain) if chain.problems.iter().any(|problem| problem.severity == Severity::Error) => Some(
                problem(format!("{} is not restored", aec_base::text::count(self.records.len(), "record"))),
            ),
            Err(error) if error.io_kind() != io::ErrorKind::NotFound => {
                Some(problem(format!("a chain cannot be read: {error}")))
            }
            _ => None,
        }
    }

    /// Puts everything into its place, then removes the journal or puts it aside.
    pub(crate) fn restore(self, ledger: &Ledger, experiment: &Name, jobs: &Path) -> io::Result<()> {
        let directory = ledger.experiment(experiment);
        let mut restored = Restored::open(ledger, &directory, &self.chain, jobs.join(experiment.as_str()))?;
        for (digest, bytes) in &self.contents {
            restored.contents.restore(*digest, bytes)?;
        }
        let mut steps: Vec<(&Link, Option<&Entry>)> = self.links.iter().map(|link| (link, None)).collect();
        steps.extend(self.entries.iter().map(|entry| (&entry.link, Some(entry))));
        steps.sort_by_key(|(link, _)| link.sequence);
        for (link, entry) in steps {
            match entry {
                Some(entry) => restored.add(entry)?,
                None => restored.link(link)?,
            }
        }
        sync_all(ledger.root())?;
        match self.kept() {
            Some((place, _)) => fs_err::rename(&self.path, place)?,
            None => fs_err::remove_file(&self.path)?,
        }
        drop(self.file);
        Ok(())
    }
}

/// The link of a damaged entry from its record, if its neighbours prove it.
fn relinked(
    damaged: Damaged,
    sequence: Option<u64>,
    (before, after): (Option<&Link>, Option<&Link>),
) -> Damaged {
    let made = || {
        let bytes = damaged.record.as_ref().filter(|_| damaged.link.is_none())?;
        let record: TrialRecord = aec_base::json::from_slice(bytes).ok()?;
        let sequence = sequence?;
        let previous = if sequence == 1 { record.plan } else { before?.link };
        let link = Link::after(previous, sequence, &record.trial_id, record.attempt, Digest::of(bytes));
        (after?.previous == link.link).then_some(link)
    };
    let made = made();
    Damaged { link: damaged.link.clone().or(made), ..damaged }
}

/// The sequence of each frame in the chain, as far as its neighbours tell.
fn sequences(frames: &[Frame]) -> Vec<Option<u64>> {
    let own = |frame: &Frame| frame.link().map(|link| link.sequence);
    let known: HashMap<usize, u64> =
        frames.iter().enumerate().filter_map(|(at, frame)| Some((at, own(frame)?))).collect();
    (0..frames.len())
        .map(|at| {
            let before = at.checked_sub(1).and_then(|before| known.get(&before)?.checked_add(1));
            let after = || known.get(&(at + 1))?.checked_sub(1);
            known.get(&at).copied().or(before).or_else(after)
        })
        .collect()
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
        path: &Path,
        jobs: PathBuf,
    ) -> io::Result<Self> {
        let mut chain = File::options().read(true).append(true).create(true).open(path)?;
        let known = Chain::read(path).map_err(|error| io::Error::new(error.io_kind(), error.to_string()))?;
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

    fn link(&mut self, link: &Link) -> io::Result<()> {
        if link.sequence > self.links {
            write_link(&mut self.chain, link)?;
            self.links = link.sequence;
        }
        Ok(())
    }

    fn add(&mut self, entry: &Entry) -> io::Result<()> {
        for (digest, bytes) in &entry.contents {
            self.contents.restore(*digest, bytes)?;
        }
        let record: TrialRecord = aec_base::json::from_slice(&entry.record)?;
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
        self.link(&entry.link)?;
        let path = self.directory.record(&record.trial_id, record.attempt);
        if fs_err::read(&path).ok().as_deref() != Some(&entry.record) {
            publish(&path, &entry.record)?;
        }
        Ok(())
    }
}
