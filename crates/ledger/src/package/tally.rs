//! Derives a manifest from records, chains and files, when a package is written and again when one is read.

use std::collections::BTreeMap;
use std::path::Path;

use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_base::problem::Problem;
use serde::Serialize;

use super::manifest::{Attempt, ChainHead, Content, Counts, File, Manifest, RunFile, Withheld};
use super::{SCHEMA_VERSION, finding, merkle};
use crate::chain::Chain;
use crate::layout::stem;
use crate::record::{self, TrialRecord};

/// Reads a record and checks that it belongs in its place.
pub(super) fn read_record(bytes: &[u8], experiment: &Name, file_stem: &str) -> Result<TrialRecord, String> {
    let record: TrialRecord =
        aec_base::json::from_slice(bytes).map_err(|error| format!("it is not a record: {error}"))?;
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
    if let Some(fault) = record.reward_fault() {
        return Err(format!("it {fault}"));
    }
    Ok(record)
}

/// What the manifest needs of one record.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) attempt: Attempt,
    /// Contents with their lengths, sorted.
    pub(super) contents: BTreeMap<Digest, u64>,
}

impl Facts {
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

/// Collects everything that makes a manifest.
pub(super) struct Tally {
    experiment: Name,
    attempts: BTreeMap<String, Attempt>,
    withheld: BTreeMap<String, Withheld>,
    contents: BTreeMap<Digest, u64>,
    run: BTreeMap<String, File>,
    chains: Vec<ChainHead>,
    plans: Vec<Digest>,
    /// The record of each attempt according to the chains.
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

    /// Adds a record of the package.
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

    /// Adds a withheld record.
    pub(super) fn withhold(&mut self, withheld: Withheld) {
        self.withheld.insert(withheld.stem(), withheld);
    }

    pub(super) fn run_file(&mut self, file: File) {
        if let Some(RunFile::Plan(digest)) = RunFile::of(&file.name) {
            self.plans.push(digest);
        }
        self.run.insert(file.name.clone(), file);
    }

    /// Adds the chain of a session. `place` is the place of its problems.
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

    /// Attempts that chains list but that were neither added nor withheld.
    pub(super) fn missing(&self) -> Vec<String> {
        let known = |stem: &String| self.attempts.contains_key(stem) || self.withheld.contains_key(stem);
        self.links.keys().filter(|stem| !known(stem)).cloned().collect()
    }

    /// The manifest of everything added, without annotations, or the contradictions found. `place` and `fix` are the
    /// place of those problems and what to do.
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

#[cfg(test)]
mod tests {
    use aec_base::content::ContentStore;

    use super::*;
    use crate::example;

    #[test]
    fn every_attempt_can_be_proved_whether_it_is_withheld_or_not() {
        let directory = tempfile::tempdir().unwrap();
        let contents = ContentStore::new(directory.path());
        let made = |withhold: &[&str]| {
            let mut tally = Tally::new(&Name::parse("exp").unwrap());
            for trial in ["a", "b", "c", "d", "e"] {
                let record = example::record_with(&contents, trial, 1, &[("log", trial.as_bytes())]);
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
        let record = example::record_with(&contents, "a", 2, &[("x", b"2"), ("y", b"1"), ("z", b"2")]);
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
}
