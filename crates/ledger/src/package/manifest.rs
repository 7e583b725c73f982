//! What a package holds: `package.json`, its first member, and the names of all others.
//!
//! A manifest is never believed. `Tally` makes it from the records, chains and files themselves, when a package is
//! written and again when one is read.

use std::collections::BTreeMap;
use std::path::Path;

use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_judge::verdict::Outcome;
use serde::{Deserialize, Serialize};

use super::merkle::{self, Proof};
use super::{SCHEMA_VERSION, finding};
use crate::chain::Chain;
use crate::layout::stem;
use crate::record::{self, TrialRecord};

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
    /// The experiment.
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
    /// Attempts in the package.
    pub attempts: u64,
    /// The same by outcome; outcomes that did not occur are not listed.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// Attempts that are kept back.
    pub withheld: u64,
    /// Attempts in the package that no chain names.
    pub unchained: u64,
    /// Contents in the package.
    pub contents: u64,
    /// Bytes of these contents.
    pub content_bytes: u64,
}

/// An attempt in a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// The trial.
    pub trial_id: Name,
    /// The attempt.
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
    /// The trial.
    pub trial_id: Name,
    /// The attempt.
    pub attempt: u32,
    /// Its leaf of the Merkle tree.
    pub leaf: Digest,
}

/// The chain of one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainHead {
    /// The session.
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
    /// Digest of the content.
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
    fn leaves(&self) -> BTreeMap<(u8, String), Digest> {
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

/// Reads a record and checks that it is the one its place says.
pub(super) fn read_record(bytes: &[u8], experiment: &Name, file_stem: &str) -> Result<TrialRecord, String> {
    let record: TrialRecord =
        serde_json::from_slice(bytes).map_err(|error| format!("it is not a record: {error}"))?;
    if record.schema_version != record::SCHEMA_VERSION {
        return Err(format!(
            "its format has the version {}, and this program knows {}",
            record.schema_version,
            record::SCHEMA_VERSION
        ));
    }
    if record.experiment_id != *experiment {
        return Err(format!("it belongs to the experiment `{}`", record.experiment_id));
    }
    if record.attempt == 0 || stem(&record.trial_id, record.attempt) != file_stem {
        return Err(format!("it is attempt {} at the trial `{}`", record.attempt, record.trial_id));
    }
    Ok(record)
}

/// What is known of one record.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) attempt: Attempt,
    /// Contents with their lengths, sorted.
    pub(super) contents: BTreeMap<Digest, u64>,
}

impl Facts {
    /// From a record and its file.
    pub(super) fn of(record: &TrialRecord, file: Digest, size: u64) -> Result<Self, String> {
        #[derive(Serialize)]
        struct Leaf<'a> {
            trial: &'a str,
            record: Digest,
            contents: Vec<&'a Digest>,
        }
        let mut contents = BTreeMap::new();
        let submission = record.outputs.submission.iter().flat_map(|submission| submission.files.values());
        let sized = record.all_artefacts().map(|artefact| (artefact.digest, artefact.size));
        for (digest, size) in sized.chain(submission.map(|file| (file.digest, file.size))) {
            if contents.insert(digest, size).is_some_and(|before| before != size) {
                return Err(format!("it says two lengths of the content {digest}"));
            }
        }
        let stem = stem(&record.trial_id, record.attempt);
        let leaf = Leaf { trial: &stem, record: file, contents: contents.keys().collect() };
        let attempt = Attempt {
            trial_id: record.trial_id.clone(),
            attempt: record.attempt,
            outcome: record.outcome,
            record: file,
            size,
            leaf: merkle::leaf(&serde_json::to_vec(&leaf).map_err(|error| error.to_string())?),
        };
        Ok(Self { attempt, contents })
    }
}

fn run_leaf(file: &File) -> Digest {
    // Names of files of runs need no escapes.
    merkle::leaf(format!("{{\"run\":\"{}\",\"file\":\"{}\"}}", file.name, file.digest).as_bytes())
}

/// What makes a manifest: everything that was seen.
pub(super) struct Tally {
    experiment: Name,
    attempts: BTreeMap<String, Attempt>,
    withheld: BTreeMap<String, Withheld>,
    contents: BTreeMap<Digest, u64>,
    run: BTreeMap<String, File>,
    chains: Vec<ChainHead>,
    plans: Vec<Digest>,
    /// The record that chains say an attempt has.
    links: BTreeMap<String, Digest>,
    problems: Vec<Problem>,
}

impl Tally {
    pub(super) fn new(experiment: &Name) -> Self {
        Self {
            experiment: experiment.clone(),
            attempts: BTreeMap::new(),
            withheld: BTreeMap::new(),
            contents: BTreeMap::new(),
            run: BTreeMap::new(),
            chains: Vec::new(),
            plans: Vec::new(),
            links: BTreeMap::new(),
            problems: Vec::new(),
        }
    }

    /// A record in the package.
    pub(super) fn record(&mut self, facts: Facts) {
        let stem = facts.attempt.stem();
        for (digest, size) in facts.contents {
            if self.contents.insert(digest, size).is_some_and(|before| before != size) {
                let what = format!("records say two lengths of the content {digest}");
                self.problems.push(finding(87, what).about(stem.as_str()));
            }
        }
        self.attempts.insert(stem, facts.attempt);
    }

    /// A record that is kept back.
    pub(super) fn withhold(&mut self, withheld: Withheld) {
        self.withheld.insert(withheld.stem(), withheld);
    }

    /// A file of the runs.
    pub(super) fn run_file(&mut self, file: File) {
        if let Some(RunFile::Plan(digest)) = RunFile::of(&file.name) {
            self.plans.push(digest);
        }
        self.run.insert(file.name.clone(), file);
    }

    /// The chain of a session. `place` is where its problems are said to be.
    pub(super) fn chain(&mut self, session: &Name, place: &Path, text: &str) {
        let chain = Chain::parse(place, text);
        self.chains.push(ChainHead {
            session: session.clone(),
            links: chain.links.len() as u64,
            head: chain.head(),
        });
        self.problems.extend(chain.problems);
        for link in chain.links {
            let stem = stem(&link.trial_id, link.attempt);
            let other = self.links.insert(stem.clone(), link.record).is_some_and(|seen| seen != link.record);
            if other {
                let what = format!("chains name two records of `{stem}`");
                self.problems.push(finding(89, what).about(stem).in_file(place));
            }
        }
    }

    /// Attempts that chains name and nobody has seen.
    pub(super) fn missing(&self) -> Vec<String> {
        let known = |stem: &String| self.attempts.contains_key(stem) || self.withheld.contains_key(stem);
        self.links.keys().filter(|stem| !known(stem)).cloned().collect()
    }

    /// The manifest of everything seen, without annotations, or what contradicts itself: where that is, and
    /// what to do then.
    pub(super) fn finish(
        mut self,
        tool_version: &str,
        fix: &str,
        place: &Path,
    ) -> Result<Manifest, Vec<Problem>> {
        for stem in self.missing() {
            let what = format!("a chain names a record of `{stem}` that is not here");
            self.problems.push(finding(89, what).about(stem).fix(fix).in_file(place));
        }
        let mut counts = Counts {
            attempts: self.attempts.len() as u64,
            withheld: self.withheld.len() as u64,
            contents: self.contents.len() as u64,
            content_bytes: self.contents.values().fold(0, |sum, size| u64::saturating_add(sum, *size)),
            ..Counts::default()
        };
        for (stem, attempt) in &self.attempts {
            *counts.outcomes.entry(attempt.outcome).or_default() += 1;
            match self.links.get(stem) {
                None => counts.unchained += 1,
                Some(record) if *record == attempt.record => {}
                Some(_) => {
                    let what = format!("the record of `{stem}` is not the one that its chain names");
                    self.problems.push(finding(89, what).about(stem.as_str()).fix(fix).in_file(place));
                }
            }
        }
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        self.chains.sort_by(|a, b| a.session.cmp(&b.session));
        self.plans.sort();
        let mut manifest = Manifest {
            schema_version: SCHEMA_VERSION,
            experiment_id: self.experiment,
            tool_version: tool_version.to_owned(),
            root: Digest::of(b""),
            plans: self.plans,
            chains: self.chains,
            counts,
            attempts: self.attempts.into_values().collect(),
            withheld: self.withheld.into_values().collect(),
            run: self.run.into_values().collect(),
            contents: self.contents.into_iter().map(|(digest, size)| Content { digest, size }).collect(),
            annotations: Vec::new(),
        };
        manifest.root = merkle::root(&manifest.leaves().into_values().collect::<Vec<_>>());
        Ok(manifest)
    }
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

/// The name of a member with annotations.
pub(super) fn annotation_member(name: &str) -> String {
    format!("annotations/{name}")
}

#[cfg(test)]
mod tests {
    use aec_base::content::ContentStore;

    use super::*;
    use crate::sample;

    #[test]
    fn every_attempt_can_be_proved_whether_it_is_withheld_or_not() {
        let directory = tempfile::tempdir().unwrap();
        let contents = ContentStore::new(directory.path());
        let made = |withhold: &[&str]| {
            let mut tally = Tally::new(&Name::parse("exp").unwrap());
            for trial in ["a", "b", "c", "d", "e"] {
                let record = sample::record_with(&contents, trial, 1, &[("log", trial.as_bytes())]);
                let facts = Facts::of(&record, Digest::of(trial.as_bytes()), 1).unwrap();
                if withhold.contains(&trial) {
                    let Attempt { trial_id, attempt, leaf, .. } = facts.attempt;
                    tally.withhold(Withheld { trial_id, attempt, leaf });
                } else {
                    tally.record(facts);
                }
            }
            tally.run_file(File { name: "session-s.json".into(), digest: Digest::of(b"s"), size: 1 });
            tally.finish("0", "", Path::new("")).unwrap()
        };
        let (full, part) = (made(&[]), made(&["b", "e"]));
        assert_eq!(full.root, part.root);
        assert_eq!((part.counts.attempts, part.counts.contents, part.counts.withheld), (3, 3, 2));
        for trial in ["a", "b", "c", "d", "e"] {
            let (leaf, proof) = part.proof(&Name::parse(trial).unwrap(), 1).unwrap();
            assert!(merkle::check(leaf, &proof, full.root), "{trial}");
            assert!(!merkle::check(merkle::leaf(b"x"), &proof, full.root));
        }
        assert!(part.proof(&Name::parse("a").unwrap(), 2).is_none());
    }

    #[test]
    fn a_leaf_is_what_the_document_says() {
        let directory = tempfile::tempdir().unwrap();
        let contents = ContentStore::new(directory.path());
        let record = sample::record_with(&contents, "a", 2, &[("x", b"2"), ("y", b"1"), ("z", b"2")]);
        let facts = Facts::of(&record, Digest::of(b"file"), 4).unwrap();
        let mut digests = [Digest::of(b"1"), Digest::of(b"2")];
        digests.sort();
        let text = format!(
            "{{\"trial\":\"a.2\",\"record\":\"{}\",\"contents\":[\"{}\",\"{}\"]}}",
            Digest::of(b"file"),
            digests[0],
            digests[1]
        );
        assert_eq!(facts.attempt.leaf, merkle::leaf(text.as_bytes()));
    }

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
