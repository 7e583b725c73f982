//! Evidence that no record was changed, removed, reordered or inserted: every session of a run writes one line for
//! each record, and each line holds the digest of the previous one.
//!
//! A chain proves nothing to someone who can rewrite all of it, so a run prints its head at the end and the user can
//! keep it elsewhere: `ledger verify --head`.

use std::path::{Path, PathBuf};

use aec_base::digest::{Digest, Hasher};
use aec_base::file::{Links, ReadError, read_text};
use aec_base::jsonl;
use aec_base::name::Name;
use aec_base::problem::Problem;
use serde::{Deserialize, Serialize};

use crate::FAMILY;
use crate::layout::ExperimentDirectory;

/// The length of a chain of a million records, in bytes.
pub(crate) const CHAIN_LIMIT: u64 = 512 * 1024 * 1024;

/// One line of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Counted from 1.
    pub sequence: u64,
    pub trial_id: Name,
    pub attempt: u32,
    /// Digest of the record's file.
    pub record: Digest,
    /// The previous link; for the first link the digest of the plan.
    pub previous: Digest,
    /// Digest of the other fields.
    pub link: Digest,
}

impl Link {
    /// The link that follows `previous`.
    pub fn after(previous: Digest, sequence: u64, trial_id: &Name, attempt: u32, record: Digest) -> Self {
        let link = seal(previous, sequence, trial_id, attempt, record);
        Self { sequence, trial_id: trial_id.clone(), attempt, record, previous, link }
    }

    /// Whether `link` is the digest of the other fields.
    pub fn is_sound(&self) -> bool {
        seal(self.previous, self.sequence, &self.trial_id, self.attempt, self.record) == self.link
    }
}

fn seal(previous: Digest, sequence: u64, trial_id: &Name, attempt: u32, record: Digest) -> Digest {
    let mut hasher = Hasher::default();
    hasher.part(previous.bytes());
    hasher.part(&sequence.to_le_bytes());
    hasher.part(trial_id.as_str().as_bytes());
    hasher.part(&attempt.to_le_bytes());
    hasher.part(record.bytes());
    hasher.finish()
}

/// The chain of one session.
#[derive(Clone, Debug)]
pub struct Chain {
    pub path: PathBuf,
    /// The links that can be read.
    pub links: Vec<Link>,
    /// Length of the file up to its last whole line, where a torn end begins.
    pub sound_bytes: u64,
    pub problems: Vec<Problem>,
}

impl Chain {
    /// Reads a chain. A torn last line, which a crash leaves, is a warning; everything else is an error.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        Ok(Self::parse(path, &read_text(path, CHAIN_LIMIT, Links::Refuse)?))
    }

    /// Parses a text that was read before; `path` is the place of its problems.
    pub fn parse(path: &Path, text: &str) -> Self {
        let mut chain =
            Self { path: path.to_path_buf(), links: Vec::new(), sound_bytes: 0, problems: Vec::new() };
        let (lines, torn) = jsonl::split(text.as_bytes());
        for (index, line) in lines.enumerate() {
            let Ok(link) = aec_base::json::from_slice::<Link>(line) else {
                let what = format!("line {} of a chain is not a link", index + 1);
                let problem = Problem::error(what).id(FAMILY.number(11));
                chain.problems.push(problem.fix("compare with a copy of the ledger").in_file(path));
                return chain;
            };
            chain.check(index, &link);
            chain.links.push(link);
            chain.sound_bytes += line.len() as u64 + 1;
        }
        if !torn.is_empty() {
            let problem = Problem::warning("the last line of a chain is torn").id(FAMILY.number(10));
            chain.problems.push(problem.fix("run `aec-bench ledger repair`").in_file(path));
        }
        chain
    }

    /// The last link; `None` for an empty chain.
    pub fn head(&self) -> Option<Digest> {
        self.links.last().map(|link| link.link)
    }

    fn check(&mut self, index: usize, link: &Link) {
        // Each link is compared with the previous one, so that one missing line is one problem.
        let follows = match self.links.last() {
            Some(last) => last.link == link.previous && last.sequence.checked_add(1) == Some(link.sequence),
            None => link.sequence == 1,
        };
        if !link.is_sound() || !follows {
            let what = format!("link {} of a chain does not follow from the one before it", index + 1);
            let problem = Problem::error(what)
                .id(FAMILY.number(12))
                .why("the records of this run were changed, removed or reordered")
                .fix("compare with a copy of the ledger");
            self.problems.push(problem.in_file(&self.path));
        }
    }
}

impl ExperimentDirectory {
    pub fn chain(&self, session: &str) -> PathBuf {
        self.run().join(format!("chain-{session}.jsonl"))
    }

    /// The chains of all sessions, sorted by name and therefore by start.
    pub fn chains(&self) -> std::io::Result<Vec<PathBuf>> {
        files_named(&self.run(), "chain-", ".jsonl")
    }
}

/// Files of a directory with a prefix and a suffix, sorted by name; none if the directory does not exist.
pub(crate) fn files_named(directory: &Path, prefix: &str, suffix: &str) -> std::io::Result<Vec<PathBuf>> {
    let entries = match fs_err::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix) && name.ends_with(suffix)) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain_of(directory: &Path, records: &[&[u8]]) -> PathBuf {
        let path = directory.join("chain-a.jsonl");
        let mut previous = Digest::of(b"plan");
        let mut text = String::new();
        for (index, record) in records.iter().enumerate() {
            let trial = Name::parse(&format!("t{index}")).unwrap();
            let link = Link::after(previous, index as u64 + 1, &trial, 1, Digest::of(record));
            previous = link.link;
            text.push_str(&format!("{}\n", serde_json::to_string(&link).unwrap()));
        }
        fs_err::write(&path, text).unwrap();
        path
    }

    #[test]
    fn every_change_of_a_chain_is_seen_but_a_torn_end_is_no_crime() {
        let directory = tempfile::tempdir().unwrap();
        let path = chain_of(directory.path(), &[b"a", b"b", b"c"]);
        let whole = fs_err::read_to_string(&path).unwrap();
        let chain = Chain::read(&path).unwrap();
        assert_eq!((chain.links.len(), chain.problems.len(), chain.sound_bytes), (3, 0, whole.len() as u64));
        let lines: Vec<&str> = whole.lines().collect();
        let ids = |text: String| {
            fs_err::write(&path, text).unwrap();
            Chain::read(&path).unwrap().problems.iter().map(|p| p.id.clone().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(ids(format!("{}\n{}\n{}\n", lines[0], lines[2], lines[1])), ["L012", "L012"]);
        assert_eq!(ids(format!("{}\n{}\n", lines[0], lines[2])), ["L012"]);
        assert_eq!(ids(whole.replace("\"t1\"", "\"t9\"")), ["L012"]);
        assert_eq!(ids(format!("{}\nnonsense\n{}\n", lines[0], lines[1])), ["L011"]);
        assert_eq!(ids(whole[..whole.len() - 5].to_owned()), ["L010"]);
        // Whole lines removed from the end leave a sound chain: only a head kept elsewhere reveals it.
        assert_eq!(ids(format!("{}\n", lines[0])), [""; 0]);
    }
}
