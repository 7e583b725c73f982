//! The head of an experiment: one digest of its chains and of the files of its runs, so that whoever keeps it elsewhere
//! sees every later change.
//!
//! What the head covers is also stored, in `_run/head.json`, at the end of each session and import. With it, a change
//! has a name; without a copy of the head elsewhere, someone who changes a file could change it too.
//!
//! | file of an experiment | covered by |
//! |---|---|
//! | records | the chains |
//! | contents: answers, conversations, trajectories, other evidence | digests in the records |
//! | chains, plans, `plan.json`, `terms.json`, sessions with records, notes on imports | the head |
//! | `jobs` | the records, as far as they are laid out; their number is in `head.json` |
//! | sessions without records, locks, journals, `stop`, `cluster`, `_live` in `jobs`, annotations, the index | nothing: no evidence |

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use aec_base::digest::{self, Digest, Hasher};
use aec_base::document::Shared;
use aec_base::file::{Links, ReadError, open_regular, read_text, write_atomic};
use aec_base::problem::Problem;
use serde::{Deserialize, Serialize};

use crate::FAMILY;
use crate::chain::{Chain, files_named};
use crate::journal;
use crate::layout::{ExperimentDirectory, parse_record_name};

const FILE: &str = "head.json";
const SCHEMA_VERSION: u32 = 1;
/// In bytes; the file of an experiment with a hundred thousand sessions is shorter.
const LIMIT: u64 = 64 * 1024 * 1024;

/// Files that a session may change while it goes on.
const CURRENT: [&str; 2] = ["plan.json", "terms.json"];

/// Everything that a head covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Covered {
    pub experiment_id: String,
    /// The chains, by the names of their files.
    pub chains: BTreeMap<String, ChainEnd>,
    /// The files of the runs, by their names below `_run`; a digest is absent for a file that cannot be read.
    pub files: BTreeMap<String, Option<Digest>>,
}

/// The end of one chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainEnd {
    pub links: usize,
    pub head: Digest,
}

/// `_run/head.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Sealed {
    schema_version: u32,
    head: Digest,
    /// Attempts whose files were in `jobs`.
    jobs: usize,
    #[serde(flatten)]
    covered: Covered,
}

impl Covered {
    /// What there is now; `None` for an experiment without links.
    pub fn read(directory: &ExperimentDirectory) -> Result<Option<Self>, ReadError> {
        let id = directory.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut covered = Self { experiment_id: id, ..Self::default() };
        let run = directory.run();
        for path in directory.chains()? {
            let chain = Chain::read(&path)?;
            let Some(head) = chain.head() else { continue };
            let name = name_of(&path);
            // The file of a running session still changes, and a session without records proves nothing.
            if !journal::is_living(&path) {
                covered.cover(&run, format!("session-{}.json", session_of(&name)));
            }
            covered.chains.insert(name, ChainEnd { links: chain.links.len(), head });
        }
        if covered.chains.is_empty() {
            return Ok(None);
        }
        for name in CURRENT {
            covered.cover(&run, name.to_owned());
        }
        for path in files_named(&run.join("plans"), "", ".json")? {
            covered.cover(&run, format!("plans/{}", name_of(&path)));
        }
        for path in files_named(&run, "import-", ".json")? {
            covered.cover(&run, name_of(&path));
        }
        Ok(Some(covered))
    }

    fn cover(&mut self, run: &Path, name: String) {
        let path = run.join(&name);
        if path.symlink_metadata().is_ok() {
            let read = open_regular(&path, u64::MAX, Links::Refuse)
                .and_then(|(file, _)| Ok(digest::copy(file, u64::MAX, |_| Ok(()))?));
            self.files.insert(name, read.ok().map(|(digest, _)| digest));
        }
    }

    /// The head.
    pub fn digest(&self) -> Digest {
        let mut hasher = Hasher::default();
        hasher.part(b"aec-bench head 2");
        hasher.part(self.experiment_id.as_bytes());
        for (name, end) in &self.chains {
            hasher.part(name.as_bytes());
            hasher.part(end.head.bytes());
        }
        hasher.part(b"files");
        for (name, digest) in &self.files {
            hasher.part(name.as_bytes());
            hasher.part(digest.as_ref().map_or(&[][..], |digest| digest.bytes()));
        }
        hasher.finish()
    }
}

impl ExperimentDirectory {
    /// The head of the experiment: one digest of its chains and the files of its runs.
    pub fn head(&self) -> Result<Option<Digest>, ReadError> {
        Ok(Covered::read(self)?.map(|covered| covered.digest()))
    }

    /// The head as earlier versions computed it: of the chains alone.
    pub fn chain_head(&self) -> Result<Option<Digest>, ReadError> {
        let covered = Covered::read(self)?;
        Ok(covered.map(|covered| {
            let mut hasher = Hasher::default();
            covered.chains.values().for_each(|end| hasher.part(end.head.bytes()));
            hasher.finish()
        }))
    }

    /// Stores what the head covers, and returns the head. `jobs` is the root of `jobs`.
    pub fn seal(&self, jobs: &Path) -> io::Result<Option<Digest>> {
        let covered =
            Covered::read(self).map_err(|error| io::Error::new(error.io_kind(), error.to_string()))?;
        let Some(covered) = covered else { return Ok(None) };
        let head = covered.digest();
        let jobs = self.laid_out(jobs)?;
        let sealed = Sealed { schema_version: SCHEMA_VERSION, head, jobs, covered };
        let mut text = serde_json::to_string_pretty(&sealed)?;
        text.push('\n');
        write_atomic(&self.run().join(FILE), text.as_bytes())?;
        Ok(Some(head))
    }

    /// The number of recorded attempts whose files are in `jobs`.
    pub(crate) fn laid_out(&self, jobs: &Path) -> io::Result<usize> {
        let entries = match fs_err::read_dir(jobs.join(self.path().file_name().unwrap_or_default())) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(error),
        };
        let mut count = 0;
        for entry in entries {
            let name = format!("{}.json", entry?.file_name().to_string_lossy());
            let record = parse_record_name(&name).map(|(trial, attempt)| self.record(&trial, attempt));
            count += usize::from(record.is_some_and(|record| record.symlink_metadata().is_ok()));
        }
        Ok(count)
    }
}

/// The session of a chain, from the name of its file.
fn session_of(chain: &str) -> &str {
    chain.trim_start_matches("chain-").trim_end_matches(".jsonl")
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What differs from the stored description of the head.
pub(crate) struct Differences {
    pub(crate) problems: Vec<Problem>,
    /// Attempts whose files were in `jobs`; 0 if nothing is stored.
    pub(crate) jobs: usize,
}

/// Compares what there is with what the last session stored. Sessions that were killed since have added links and
/// files, and may have changed the plan and the terms.
pub(crate) fn compare(directory: &ExperimentDirectory) -> io::Result<Differences> {
    let path = directory.run().join(FILE);
    let mut differences = Differences { problems: Vec::new(), jobs: 0 };
    let text = match read_text(&path, LIMIT, Links::Refuse) {
        Ok(text) => text,
        Err(ReadError::Missing) => return Ok(differences),
        Err(error) => {
            let problem = Problem::error(format!("what the head covers cannot be read: {error}"));
            differences
                .problems
                .push(problem.id(FAMILY.id(Shared::Unreadable)).fix(error.fix()).in_file(path));
            return Ok(differences);
        }
    };
    let sealed: Sealed = match aec_base::json::from_str(&text) {
        Ok(sealed) => sealed,
        Err(error) => {
            let problem = Problem::error(format!("what the head covers cannot be read: {error}"));
            differences.problems.push(
                problem.id(FAMILY.id(Shared::Syntax)).fix("compare with a copy of the ledger").in_file(path),
            );
            return Ok(differences);
        }
    };
    differences.jobs = sealed.jobs;
    // Chains that cannot be read are problems of their own.
    let now = Covered::read(directory).ok().flatten().unwrap_or_default();
    let run = directory.run();
    let mut tell = |number: u32, name: &str, what: &str, why: &str| {
        let problem =
            Problem::error(format!("`{name}` of the runs {what}")).id(FAMILY.number(number)).why(why);
        let problem = problem.fix("compare with a copy of the ledger").in_file(run.join(name));
        differences.problems.push(problem);
    };
    if sealed.covered.digest() != sealed.head {
        tell(43, FILE, "does not agree with itself", "it was changed by other means than this program");
    }
    for (name, end) in &sealed.covered.chains {
        let chain = run.join(name);
        if chain.symlink_metadata().is_err() {
            tell(42, name, "was removed", "the last session stored that it was here");
        } else if let Ok(chain) = Chain::read(&chain)
            && end.links.checked_sub(1).and_then(|last| chain.links.get(last)).map(|link| link.link)
                != Some(end.head)
        {
            tell(43, name, "was changed", "its links are not those that the last session stored");
        }
    }
    let last = sealed.covered.chains.keys().max().map(|name| session_of(name)).unwrap_or_default();
    let went_on = unended_since(directory, last)?;
    for (name, digest) in &sealed.covered.files {
        match now.files.get(name) {
            None if run.join(name).symlink_metadata().is_err() => {
                tell(42, name, "was removed", "the last session stored that it was here");
            }
            Some(found) if found != digest && !(went_on && CURRENT.contains(&name.as_str())) => {
                tell(43, name, "was changed", "it is not what it was at the end of the last session");
            }
            _ => {}
        }
    }
    for name in now.files.keys().filter(|name| name.starts_with("import-")) {
        if !sealed.covered.files.contains_key(name) {
            tell(43, name, "was added", "no import wrote it, or it was killed: import the package again");
        }
    }
    Ok(differences)
}

/// Whether a session that began after this one has not ended: it is running, or was killed.
fn unended_since(directory: &ExperimentDirectory, last: &str) -> io::Result<bool> {
    #[derive(Deserialize)]
    struct Session {
        ended_at: Option<String>,
    }
    for path in files_named(&directory.run(), "session-", ".json")? {
        let name = name_of(&path);
        if name.trim_start_matches("session-").trim_end_matches(".json") <= last {
            continue;
        }
        let read = read_text(&path, LIMIT, Links::Refuse).ok();
        let session = read.and_then(|text| aec_base::json::from_str::<Session>(&text).ok());
        if session.is_some_and(|session| session.ended_at.is_none()) {
            return Ok(true);
        }
    }
    Ok(false)
}
