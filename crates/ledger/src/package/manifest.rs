//! What a package holds: `package.json`, its first member, and the names of all others.
//!
//! A manifest is never believed. `tally` makes it from the records, chains and files themselves, when a package is
//! written and again when one is read.

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

/// What a package holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of this format.
    pub schema_version: u32,
    pub experiment_id: Name,
    /// The version of the program that wrote the package.
    pub tool_version: String,
    /// Root of the Merkle tree over trials and files of runs.
    pub root: Digest,
    /// Digests of the plans under which trials ran.
    pub plans: Vec<Digest>,
    /// The chains of the runs.
    pub chains: Vec<ChainHead>,
    /// How many of everything.
    pub counts: Counts,
    /// The attempts, sorted by the names of their files.
    pub attempts: Vec<Attempt>,
    /// Attempts that are part of the root and not of the package, sorted likewise.
    pub withheld: Vec<Withheld>,
    /// Files of the runs, sorted by name.
    pub run: Vec<File>,
    /// Contents, sorted.
    pub contents: Vec<Content>,
    /// Annotations, sorted by name.
    pub annotations: Vec<File>,
}

/// How many of everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    pub attempts: u64,
    /// The same by outcome; outcomes that did not occur are not listed.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// Attempts that are kept back.
    pub withheld: u64,
    /// Attempts in the package that no chain names.
    pub unchained: u64,
    pub contents: u64,
    /// Bytes of these contents.
    pub content_bytes: u64,
}

/// An attempt in a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    pub trial_id: Name,
    pub attempt: u32,
    /// What became of it.
    pub outcome: Outcome,
    /// Digest of the record's file.
    pub record: Digest,
    /// Length of the record's file.
    pub size: u64,
    /// Its leaf of the Merkle tree, which binds the record and its contents.
    pub leaf: Digest,
}

/// An attempt that is kept back.
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
    /// How many links it has.
    pub links: u64,
    /// Its last link; absent when it has none.
    pub head: Option<Digest>,
}

/// A file that is named by its path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Its name, without the directory that all of its kind share.
    pub name: String,
    /// Digest of its content.
    pub digest: Digest,
    /// Its length.
    pub size: u64,
}

/// A file that is named by its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    pub digest: Digest,
    /// Its length.
    pub size: u64,
}

impl Attempt {
    /// The name that the attempt's files have.
    pub fn stem(&self) -> String {
        stem(&self.trial_id, self.attempt)
    }
}

impl Withheld {
    /// The name that the attempt's files have.
    pub fn stem(&self) -> String {
        stem(&self.trial_id, self.attempt)
    }
}

impl Manifest {
    /// The manifest as it is written: indented JSON with a line break at the end.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// The leaves of the Merkle tree: those of attempts in the order of their files' names, then those of the files of
    /// the runs in the order of theirs.
    pub(super) fn leaves(&self) -> BTreeMap<(u8, String), Digest> {
        let attempts = self.attempts.iter().map(|attempt| ((0, attempt.stem()), attempt.leaf));
        let withheld = self.withheld.iter().map(|withheld| ((0, withheld.stem()), withheld.leaf));
        let run = self.run.iter().map(|file| ((1, file.name.clone()), run_leaf(file)));
        attempts.chain(withheld).chain(run).collect()
    }

    /// What shows that an attempt is part of the root: its leaf, and the proof for [`merkle::check`]. Nothing when
    /// there is no such attempt.
    pub fn proof(&self, trial: &Name, attempt: u32) -> Option<(Digest, Proof)> {
        let leaves = self.leaves();
        let wanted = (0, stem(trial, attempt));
        let index = leaves.keys().position(|key| *key == wanted)?;
        let leaf = leaves.get(&wanted).copied()?;
        Some((leaf, merkle::proof(&leaves.into_values().collect::<Vec<_>>(), index)?))
    }
}

/// What a file of a run is, by its name below `_run`.
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
    /// Nothing for files that are no part of a package.
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
    // Names of files of runs need no escapes.
    merkle::leaf(format!("{{\"run\":\"{}\",\"file\":\"{}\"}}", file.name, file.digest).as_bytes())
}

/// The name of a record's member.
pub(super) fn record_member(stem: &str) -> String {
    format!("records/{stem}.json")
}

/// The name of a member that is a file of the runs.
pub(super) fn run_member(name: &str) -> String {
    format!("run/{name}")
}

/// The name of a content's member.
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
