//! The list of a package's contents: `package.json`, its first member, and the names of all other members.
//!
//! A manifest is never trusted. `tally` derives it from the records, chains and files, when a package is written and
//! again when one is read.

use std::collections::BTreeMap;

use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_judge::verdict::Outcome;
use serde::{Deserialize, Serialize};

use super::merkle::{self, Proof};
use crate::layout::stem;

/// The first member.
pub const MANIFEST_FILE: &str = "package.json";
/// The last member of a signed package.
pub const SIGNATURE_FILE: &str = "signature.json";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub schema_version: u32,
    pub experiment_id: Name,
    pub tool_version: String,
    /// Root of the Merkle tree over trials and files of runs.
    pub root: Digest,
    /// Digests of the plans under which trials ran.
    pub plans: Vec<Digest>,
    pub chains: Vec<ChainHead>,
    pub counts: Counts,
    /// The attempts, sorted by the names of their files.
    pub attempts: Vec<Attempt>,
    /// Attempts that are part of the root but not of the package, sorted likewise.
    pub withheld: Vec<Withheld>,
    pub run: Vec<File>,
    /// Contents, sorted.
    pub contents: Vec<Content>,
    /// Annotations, sorted by name.
    pub annotations: Vec<File>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    pub attempts: u64,
    /// By outcome; outcomes that did not occur are absent.
    pub outcomes: BTreeMap<Outcome, u64>,
    pub withheld: u64,
    /// Attempts in the package that no chain lists.
    pub unchained: u64,
    pub contents: u64,
    pub content_bytes: u64,
}

/// An attempt in a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    pub trial_id: Name,
    pub attempt: u32,
    pub outcome: Outcome,
    /// Digest of the record's file.
    pub record: Digest,
    pub size: u64,
    /// Its leaf of the Merkle tree, which covers the record and its contents.
    pub leaf: Digest,
}

/// An attempt that the package withholds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Withheld {
    pub trial_id: Name,
    pub attempt: u32,
    /// Its leaf of the Merkle tree.
    pub leaf: Digest,
}

/// The chain of one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainHead {
    pub session: Name,
    pub links: u64,
    /// The last link; absent for an empty chain.
    pub head: Option<Digest>,
}

/// A file identified by its path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Its name, without the directory that all files of its kind share.
    pub name: String,
    pub digest: Digest,
    pub size: u64,
}

/// A file identified by its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    pub digest: Digest,
    pub size: u64,
}

impl Attempt {
    /// The base name of the attempt's files.
    pub fn stem(&self) -> String {
        stem(&self.trial_id, self.attempt)
    }
}

impl Withheld {
    /// The base name of the attempt's files.
    pub fn stem(&self) -> String {
        stem(&self.trial_id, self.attempt)
    }
}

impl Manifest {
    /// The text of `package.json`: indented JSON with a final line break.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// The leaves of the Merkle tree: attempts sorted by file name, then files of the runs sorted by name.
    pub(super) fn leaves(&self) -> BTreeMap<(u8, String), Digest> {
        let attempts = self.attempts.iter().map(|attempt| ((0, attempt.stem()), attempt.leaf));
        let withheld = self.withheld.iter().map(|withheld| ((0, withheld.stem()), withheld.leaf));
        let run = self.run.iter().map(|file| ((1, file.name.clone()), run_leaf(file)));
        attempts.chain(withheld).chain(run).collect()
    }

    /// Evidence that an attempt is part of the root: its leaf, and the proof for [`merkle::check`]. `None` when there
    /// is no such attempt.
    pub fn proof(&self, trial: &Name, attempt: u32) -> Option<(Digest, Proof)> {
        let leaves = self.leaves();
        let wanted = (0, stem(trial, attempt));
        let index = leaves.keys().position(|key| *key == wanted)?;
        let leaf = leaves.get(&wanted).copied()?;
        Some((leaf, merkle::proof(&leaves.into_values().collect::<Vec<_>>(), index)?))
    }
}

/// The kind of a run's file, from its name below `_run`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RunFile {
    /// `plans/<64 digits>.json`
    Plan(Digest),
    /// `chain-SESSION.jsonl`
    Chain(Name),
    /// `session-SESSION.json`
    Session,
}

impl RunFile {
    /// `None` for files that are not part of a package.
    pub(super) fn of(name: &str) -> Option<Self> {
        let between = |prefix: &str, suffix: &str| name.strip_prefix(prefix)?.strip_suffix(suffix);
        if let Some(hex) = between("plans/", ".json") {
            return Digest::try_from(format!("sha256:{hex}")).ok().map(Self::Plan);
        }
        if let Some(session) = between("chain-", ".jsonl") {
            return Name::parse(session).ok().map(Self::Chain);
        }
        between("session-", ".json").and_then(|session| Name::parse(session).ok()).map(|_| Self::Session)
    }
}

fn run_leaf(file: &File) -> Digest {
    // Names of run files need no escapes.
    merkle::leaf(format!("{{\"run\":\"{}\",\"file\":\"{}\"}}", file.name, file.digest).as_bytes())
}

pub(super) fn record_member(stem: &str) -> String {
    format!("records/{stem}.json")
}

pub(super) fn run_member(name: &str) -> String {
    format!("run/{name}")
}

pub(super) fn content_member(digest: Digest) -> String {
    format!("contents/{}", digest.hex())
}

pub(super) fn annotation_member(name: &str) -> String {
    format!("annotations/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_runs_are_told_by_their_names() {
        let plan = Digest::of(b"plan");
        assert_eq!(RunFile::of(&format!("plans/{}.json", plan.hex())), Some(RunFile::Plan(plan)));
        assert_eq!(RunFile::of("chain-s.1.jsonl"), Some(RunFile::Chain(Name::parse("s.1").unwrap())));
        assert_eq!(RunFile::of("session-s.json"), Some(RunFile::Session));
        for other in
            ["lock", "journal-s.bin", "import-00.json", "plans/x.json", "chain-.jsonl", "session-../x.json"]
        {
            assert_eq!(RunFile::of(other), None, "{other}");
        }
    }
}
