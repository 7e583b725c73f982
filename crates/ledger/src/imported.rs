//! What imports of packages left in an experiment: which trials are withheld, and which rewards count.
//!
//! Records of a package are never changed. A reward that was given elsewhere counts if the task that it was given for
//! is the task of this project, or if the user trusts it; else the record is read as `unverified`, by every reader.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, PoisonError};

use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::timestamp::Timestamp;
use aec_judge::verdict::Outcome;
use serde::{Deserialize, Serialize};

use crate::FAMILY;
use crate::chain::files_named;
use crate::layout::{ExperimentDirectory, Ledger, parse_record_name, stem};
use crate::package::manifest::Withheld;
use crate::read::read_bytes;
use crate::record::TrialRecord;

/// `_run/import-ROOT.json`: the origin of an experiment's records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportNote {
    pub schema_version: u32,
    pub root: Digest,
    /// The key that signed it; absent for an unsigned package.
    pub key: Option<String>,
    /// Digest of the package's file.
    pub package: Digest,
    pub imported_at: Timestamp,
    /// Attempts that the package withheld.
    pub withheld: Vec<Withheld>,
    /// Attempts with a reward that was not given for a task of this project, by the names of their files, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unmatched: BTreeMap<String, String>,
    /// Whether the user trusts these rewards.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trust_rewards: bool,
}

/// What the notes of an experiment say together.
#[derive(Clone, Debug, Default)]
pub struct Imports {
    /// Withheld attempts by the names of their files, whether they came later or not.
    withheld: BTreeMap<String, Withheld>,
    /// The latest withheld attempt of each trial.
    latest: BTreeMap<Name, u32>,
    unverified: BTreeMap<String, String>,
    trusted: BTreeSet<String>,
    notes: usize,
}

/// A trial whose result a package withheld.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct WithheldTrial {
    pub experiment_id: Name,
    pub trial_id: Name,
    /// The latest attempt that was withheld.
    pub attempt: u32,
}

impl Imports {
    pub fn read(directory: &ExperimentDirectory) -> Result<Self, Box<Problem>> {
        let unreadable = |error: &dyn fmt::Display| {
            Problem::error(format!("a note on an import cannot be read: {error}"))
                .id(FAMILY.number(47))
                .fix("see `aec-bench ledger verify`, and restore it or import the package again")
        };
        let mut imports = Self::default();
        let paths = files_named(&directory.run(), "import-", ".json").map_err(|error| unreadable(&error))?;
        for path in paths {
            let bytes =
                read_bytes(&path).map_err(|broken| unreadable(&broken.problem.what).in_file(&path))?;
            let note: ImportNote =
                aec_base::json::from_slice(&bytes).map_err(|error| unreadable(&error).in_file(&path))?;
            for withheld in note.withheld {
                let known = imports.latest.entry(withheld.trial_id.clone()).or_default();
                *known = withheld.attempt.max(*known);
                imports.withheld.insert(withheld.stem(), withheld);
            }
            imports.notes += 1;
            if note.trust_rewards {
                imports.trusted.extend(note.unmatched.into_keys());
            } else {
                imports.unverified.extend(note.unmatched);
            }
        }
        Ok(imports)
    }

    /// Withheld attempts by the names of their files, whether they came later or not.
    pub(crate) fn withheld(&self) -> &BTreeMap<String, Withheld> {
        &self.withheld
    }

    /// Whether a reward of a package counts only because of `--trust-rewards`, or not at all.
    pub(crate) fn is_unmatched(&self, stem: &str) -> bool {
        self.unverified.contains_key(stem) || self.trusted.contains(stem)
    }

    /// Trials whose latest attempt is withheld, given the attempts that are here.
    fn withheld_trials(&self, experiment: &Name, here: &[(Name, u32)]) -> Vec<WithheldTrial> {
        let mut latest: BTreeMap<&Name, u32> =
            self.latest.iter().map(|(trial, attempt)| (trial, *attempt)).collect();
        for (trial, attempt) in here {
            if latest.get(trial).is_some_and(|withheld| withheld <= attempt) {
                latest.remove(trial);
            }
        }
        let trial = |(trial, attempt): (&Name, u32)| WithheldTrial {
            experiment_id: experiment.clone(),
            trial_id: trial.clone(),
            attempt,
        };
        latest.into_iter().map(trial).collect()
    }

    /// Why the reward of a record does not count, if it does not. `is_here` says whether an attempt came since.
    fn objection(&self, record: &TrialRecord, is_here: impl Fn(u32) -> bool) -> Option<String> {
        let stem = stem(&record.trial_id, record.attempt);
        if let Some(why) = self.unverified.get(&stem).filter(|_| !self.trusted.contains(&stem)) {
            return Some(why.clone());
        }
        let withheld = self.latest.get(&record.trial_id).filter(|latest| **latest > record.attempt);
        let is_withheld = withheld.is_some_and(|latest| !is_here(*latest));
        is_withheld.then(|| "a later attempt at the trial was withheld".to_owned())
    }
}

/// What imports left in the experiments of a ledger, read again when it changes.
#[derive(Clone, Default)]
pub(crate) struct ImportCache(Arc<Mutex<BTreeMap<Name, Seen>>>);

type Stamp = (i64, i64, u64);

struct Seen {
    stamp: Option<Stamp>,
    imports: Arc<Imports>,
}

impl fmt::Debug for ImportCache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ImportCache")
    }
}

impl Ledger {
    /// What imports left in an experiment.
    pub(crate) fn imports(&self, experiment: &Name) -> Result<Arc<Imports>, Box<Problem>> {
        let directory = self.experiment(experiment);
        let found = std::fs::symlink_metadata(directory.run()).ok();
        let stamp = found.map(|found| (found.mtime(), found.mtime_nsec(), found.ino()));
        let lock = || self.import_cache().0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = lock().get(experiment)
            && seen.stamp == stamp
        {
            return Ok(Arc::clone(&seen.imports));
        }
        let imports = Arc::new(Imports::read(&directory)?);
        lock().insert(experiment.clone(), Seen { stamp, imports: Arc::clone(&imports) });
        Ok(imports)
    }

    /// The trials of an experiment whose results packages withheld, and that did not come since.
    pub fn withheld(&self, experiment: &Name) -> Result<Vec<WithheldTrial>, Box<Problem>> {
        let imports = self.imports(experiment)?;
        if imports.withheld.is_empty() {
            return Ok(Vec::new());
        }
        let listing = self.list(experiment).map_err(|error: io::Error| {
            Box::new(Problem::error(error.to_string()).in_file(self.experiment(experiment).path()))
        })?;
        let here: Vec<(Name, u32)> =
            listing.files.into_iter().map(|file| (file.trial, file.attempt)).collect();
        Ok(imports.withheld_trials(experiment, &here))
    }

    /// Whether an experiment came as a package: it was not run here.
    pub fn is_package(&self, experiment: &Name) -> Result<bool, Box<Problem>> {
        let is_run = || self.experiment(experiment).run().join("plan.json").symlink_metadata().is_ok();
        Ok(self.imports(experiment)?.notes > 0 && !is_run())
    }

    /// Changes a record to what it says here: a reward that does not count is set aside, and one that counts because
    /// the user trusts it is marked. Returns whether anything changed.
    pub(crate) fn weigh(&self, record: &mut TrialRecord) -> Result<bool, Box<Problem>> {
        let imports = self.imports(&record.experiment_id)?;
        let stem = stem(&record.trial_id, record.attempt);
        let mut is_weighed = false;
        if imports.trusted.contains(&stem)
            && let Some(evaluation) = &mut record.evaluation
        {
            evaluation.trusted = true;
            is_weighed = true;
        }
        if record.outcome.is_counted()
            && let Some(why) = imports.objection(record, |attempt| {
                let place = self.experiment(&record.experiment_id).record(&record.trial_id, attempt);
                place.symlink_metadata().is_ok()
            })
        {
            set_aside(record, &why);
            is_weighed = true;
        }
        Ok(is_weighed)
    }
}

/// Makes a record `unverified`; the reward that it had is kept as that of its source.
fn set_aside(record: &mut TrialRecord, why: &str) {
    let mut put =
        |key: &str, value: serde_json::Value| drop(record.outputs.agent_result.insert(key.to_owned(), value));
    if let Some(reward) = record.evaluation.take().and_then(|evaluation| evaluation.reward) {
        put("source_reward", reward.into());
    }
    put("verification", "unverified".into());
    put("unverified_because", why.into());
    record.outcome = Outcome::Unverified;
}

/// Attempts that packages withheld, whether they came later or not: chains list them.
pub fn kept_elsewhere(directory: &ExperimentDirectory) -> Result<BTreeSet<(Name, u32)>, Box<Problem>> {
    let imports = Imports::read(directory)?;
    Ok(imports.withheld.keys().filter_map(|stem| parse_record_name(&format!("{stem}.json"))).collect())
}
