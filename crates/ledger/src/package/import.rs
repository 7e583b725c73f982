//! Imports a package into a ledger, where nothing appears before the whole package is verified.
//!
//! Contents come first, then records and files of the runs. A new experiment appears in one step, complete. An
//! existing one receives records one by one, each atomically: if the process is killed, some are there, and another
//! import adds the rest. Nothing is ever overwritten.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use aec_base::digest::{self, Digest};
use aec_base::file::{Links, open_regular};
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::staging::{Staging, rename_new, sync_all, sync_parent};
use aec_base::timestamp::Timestamp;
use serde::Serialize;

use super::manifest::{Counts, Manifest};
use super::signature::PublicKey;
use super::survey::read_bytes;
use super::tally::read_record;
use super::unpack::{Places, Unpacked, unpack};
use super::{PackageError, RECORD_LIMIT, SCHEMA_VERSION, finding, refuse};
use crate::imported::{ImportNote, Imports};
use crate::index::Index;
use crate::jobs::materialise;
use crate::layout::{ExperimentDirectory, Ledger};

/// Where to import a package.
#[derive(Clone, Copy, Debug)]
pub struct Destination<'a> {
    pub ledger: &'a Ledger,
    /// The directory of all annotations.
    pub annotations: &'a Path,
    /// The directory of all `jobs`.
    pub jobs: &'a Path,
    /// Whether the files of attempts should be written there.
    pub lays_out: bool,
}

/// A reward in a record of a package.
#[derive(Clone, Debug)]
pub struct Claim {
    pub(super) stem: String,
    pub task_id: String,
    /// Digest of the task's files.
    pub task_revision: Digest,
    /// Whether the reward counted there only because the user there trusted it.
    pub was_trusted: bool,
}

/// Which rewards of a package count.
pub struct Rewards<'a> {
    /// Why a reward does not count, if it does not.
    pub objection: &'a dyn Fn(&Claim) -> Option<String>,
    /// Whether the user trusts all of them.
    pub trust: bool,
}

/// Conditions that a package must satisfy.
#[derive(Debug)]
pub struct Demands {
    /// Most bytes when unpacked.
    pub max_size: u64,
    /// The key that must have signed it.
    pub key: Option<PublicKey>,
    pub root: Option<Digest>,
}

/// Whether to write anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Verify and import everything, with this time of import.
    Take(Timestamp),
    /// Only verify.
    Try,
}

/// What an import did, or would do.
#[derive(Debug, Serialize)]
pub struct Imported {
    pub experiment_id: Name,
    pub root: Digest,
    /// Digest of the package's file.
    pub package: Digest,
    /// The key that signed it; absent for an unsigned package.
    pub key: Option<String>,
    pub counts: Counts,
    /// Records that were new.
    pub added: u64,
    /// Records that existed with the same content.
    pub duplicates: u64,
    /// Records whose rewards do not count, because they were not given for a task of this project.
    pub unverified: u64,
    /// Records whose rewards count only because the user trusts them.
    pub trusted: u64,
    /// Annotations that were new.
    pub annotations_added: u64,
    /// Annotations left out because other ones of the same attempt exist.
    pub annotations_kept: u64,
    /// Attempts whose files are in `jobs` now.
    pub jobs: u64,
    /// Attempts whose files could not be written.
    #[serde(skip)]
    pub problems: Vec<Problem>,
}

pub fn import(
    package: &Path,
    to: &Destination<'_>,
    demands: &Demands,
    rewards: &Rewards<'_>,
    mode: &Mode,
) -> Result<Imported, PackageError> {
    let staging = match mode {
        Mode::Take(_) => Some(Staging::begin(to.ledger.root())?),
        Mode::Try => None,
    };
    let places = staging.as_ref().map(|staging| Places(staging.path()));
    let unpacked = unpack(package, demands.max_size, places)?;
    demand(package, &unpacked, demands)?;
    let directory = to.ledger.experiment(&unpacked.manifest.experiment_id);
    let new = compare(&directory, &unpacked.manifest)?;
    let note = note(&directory, &unpacked, &new, rewards, mode)?;
    let manifest = &unpacked.manifest;
    let mut imported = Imported {
        experiment_id: manifest.experiment_id.clone(),
        root: manifest.root,
        package: unpacked.package,
        key: unpacked.key.map(|key| key.to_string()),
        counts: manifest.counts.clone(),
        added: new.len() as u64,
        duplicates: (manifest.attempts.len() - new.len()) as u64,
        unverified: if note.trust_rewards { 0 } else { note.unmatched.len() as u64 },
        trusted: if note.trust_rewards { note.unmatched.len() as u64 } else { 0 },
        annotations_added: 0,
        annotations_kept: 0,
        jobs: 0,
        problems: Vec::new(),
    };
    if let (Mode::Take(_), Some(places)) = (mode, places) {
        publish(places, to.ledger, &directory, manifest, &note)?;
        annotations(places, to.annotations, manifest, &mut imported)?;
        if to.lays_out {
            view(to.ledger, to.jobs, manifest, &mut imported);
        }
        directory.seal(to.jobs)?;
        // Rows of records that are here already may say something else now.
        if to.ledger.index_file().is_file()
            && let Ok(mut index) = Index::open(to.ledger)
            && let Err(error) = index.forget(manifest.experiment_id.as_str())
        {
            tracing::debug!(%error, "the index was not updated");
        }
    }
    Ok(imported)
}

/// Whether the package has the key and root that the user expects.
fn demand(package: &Path, unpacked: &Unpacked, demands: &Demands) -> Result<(), PackageError> {
    const FIX: &str = "ask who gave it to you; nothing of it was used";
    let mut problems = Vec::new();
    if let Some(expected) = demands.key {
        let what = match unpacked.key {
            Some(key) if key == expected => None,
            Some(key) => Some(format!("the package is signed with another key: {key}")),
            None => Some("the package is not signed".to_owned()),
        };
        problems.extend(what.map(|what| finding(91, what).fix(FIX).in_file(package)));
    }
    if let Some(expected) = demands.root.filter(|root| *root != unpacked.manifest.root) {
        let what = format!("the package has another root: {}", unpacked.manifest.root);
        problems.push(finding(92, what).why(format!("{expected} is expected")).fix(FIX).in_file(package));
    }
    refuse(problems)
}

/// The note on this import. Of records that are here already, only those count as imported that an earlier import of
/// the package brought.
fn note(
    directory: &ExperimentDirectory,
    unpacked: &Unpacked,
    new: &BTreeSet<String>,
    rewards: &Rewards<'_>,
    mode: &Mode,
) -> Result<ImportNote, PackageError> {
    let manifest = &unpacked.manifest;
    let before = Imports::read(directory).map_err(|problem| *problem)?;
    let is_imported = |claim: &&Claim| new.contains(&claim.stem) || before.is_unmatched(&claim.stem);
    let objection = |claim: &Claim| Some((claim.stem.clone(), (rewards.objection)(claim)?));
    let unmatched = unpacked.claims.iter().filter(is_imported).filter_map(objection).collect();
    let place = directory.run().join(note_name(manifest));
    let earlier = read_bytes(&place, RECORD_LIMIT).ok();
    let earlier = earlier.and_then(|bytes| aec_base::json::from_slice::<ImportNote>(&bytes).ok());
    let imported_at = match mode {
        Mode::Take(now) => now.clone(),
        Mode::Try => Timestamp::now(),
    };
    let fresh = ImportNote {
        schema_version: SCHEMA_VERSION,
        root: manifest.root,
        key: unpacked.key.map(|key| key.to_string()),
        package: unpacked.package,
        imported_at,
        withheld: manifest.withheld.clone(),
        unmatched: BTreeMap::new(),
        trust_rewards: false,
    };
    Ok(ImportNote { unmatched, trust_rewards: rewards.trust, ..earlier.unwrap_or(fresh) })
}

fn note_name(manifest: &Manifest) -> String {
    format!("import-{}.json", &manifest.root.hex()[..8])
}

/// What exists at a path.
enum There {
    Nothing,
    Same,
    Other,
}

fn there(place: &Path, digest: Digest, size: u64) -> io::Result<There> {
    match place.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(There::Nothing),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(There::Other),
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    let same = open_regular(place, size, Links::Refuse)
        .is_ok_and(|(file, _)| digest::copy(file, size, |_| Ok(())).is_ok_and(|found| found.0 == digest));
    Ok(if same { There::Same } else { There::Other })
}

fn conflict(what: &str, place: &Path) -> Problem {
    finding(93, format!("{what} is here with other content"))
        .why("an import changes nothing that is here, and records carry the id of their experiment")
        .fix("import into another ledger, or move the experiment away")
        .in_file(place)
}

/// The new records, by the names of their files. An existing file that differs is a problem.
fn compare(directory: &ExperimentDirectory, manifest: &Manifest) -> Result<BTreeSet<String>, PackageError> {
    let (mut new, mut problems) = (BTreeSet::new(), Vec::new());
    if directory.path().symlink_metadata().is_ok_and(|there| !there.is_dir()) {
        return Err(conflict("the experiment", directory.path()).into());
    }
    for attempt in &manifest.attempts {
        let place = directory.record(&attempt.trial_id, attempt.attempt);
        match there(&place, attempt.record, attempt.size)? {
            There::Nothing => drop(new.insert(attempt.stem())),
            There::Same => {}
            There::Other => {
                let what = format!("the record of `{}`", attempt.stem());
                problems.push(conflict(&what, &place).about(attempt.stem()));
            }
        }
    }
    for file in &manifest.run {
        let place = directory.run().join(&file.name);
        if matches!(there(&place, file.digest, file.size)?, There::Other) {
            problems.push(conflict(&format!("`{}` of the runs", file.name), &place));
        }
    }
    refuse(problems)?;
    Ok(new)
}

/// Moves everything to its final place.
fn publish(
    places: Places<'_>,
    ledger: &Ledger,
    directory: &ExperimentDirectory,
    manifest: &Manifest,
    note: &ImportNote,
) -> Result<(), PackageError> {
    let store = ledger.contents();
    for content in &manifest.contents {
        store.adopt(&places.content(content.digest), content.digest, content.size)?;
    }
    let note_name = note_name(manifest);
    let mut text = serde_json::to_string_pretty(note).map_err(io::Error::other)?;
    text.push('\n');
    let note_file = places.run(&note_name);
    if let Some(parent) = note_file.parent() {
        fs_err::create_dir_all(parent)?;
    }
    fs_err::write(&note_file, text)?;
    // No record may be on disk before its contents are.
    sync_all(places.0)?;
    if !manifest.contents.is_empty() && device(store.root())? != device(places.0)? {
        sync_all(store.root())?;
    }
    match rename_new(&places.experiment(), directory.path()) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // The note comes first: no record may be here whose reward counts although it must not.
            fs_err::create_dir_all(directory.run())?;
            fs_err::rename(&note_file, directory.run().join(note_name))?;
            merge(places, directory, manifest)?;
            sync_all(directory.path())?;
        }
        renamed => renamed?,
    }
    Ok(sync_parent(directory.path())?)
}

fn device(path: &Path) -> io::Result<u64> {
    Ok(std::os::unix::fs::MetadataExt::dev(&fs_err::metadata(path)?))
}

/// Moves records and files of the runs into an existing experiment.
fn merge(
    places: Places<'_>,
    directory: &ExperimentDirectory,
    manifest: &Manifest,
) -> Result<(), PackageError> {
    let records = manifest.attempts.iter().map(|attempt| {
        let place = directory.record(&attempt.trial_id, attempt.attempt);
        (places.record(&attempt.stem()), place, attempt.record, attempt.size)
    });
    let run = manifest
        .run
        .iter()
        .map(|file| (places.run(&file.name), directory.run().join(&file.name), file.digest, file.size));
    for (made, place, digest, size) in records.chain(run) {
        match rename_new(&made, &place) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Another process may have written there since the check.
                if !matches!(there(&place, digest, size)?, There::Same) {
                    return Err(conflict("this", &place).into());
                }
            }
            renamed => renamed?,
        }
    }
    Ok(())
}

/// Adds annotations where none exist.
fn annotations(
    places: Places<'_>,
    root: &Path,
    manifest: &Manifest,
    imported: &mut Imported,
) -> Result<(), PackageError> {
    let directory = root.join(manifest.experiment_id.as_str());
    for file in &manifest.annotations {
        let place = directory.join(&file.name);
        match there(&place, file.digest, file.size)? {
            There::Same => continue,
            There::Other => {
                imported.annotations_kept += 1;
                continue;
            }
            There::Nothing => {}
        }
        fs_err::create_dir_all(&directory)?;
        let mut copy = tempfile::Builder::new()
            .prefix(".aec-bench-")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .tempfile_in(&directory)?;
        io::copy(&mut fs_err::File::open(places.annotation(&file.name))?, &mut copy)?;
        copy.as_file().sync_all()?;
        match copy.persist_noclobber(&place) {
            Ok(_) => imported.annotations_added += 1,
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                imported.annotations_kept += 1;
            }
            Err(error) => return Err(error.error.into()),
        }
    }
    Ok(())
}

/// Writes the files of all attempts. A failure is a problem of that record only.
fn view(ledger: &Ledger, jobs: &Path, manifest: &Manifest, imported: &mut Imported) {
    let jobs: PathBuf = jobs.join(manifest.experiment_id.as_str());
    let (directory, contents) = (ledger.experiment(&manifest.experiment_id), ledger.contents());
    for attempt in &manifest.attempts {
        let path = directory.record(&attempt.trial_id, attempt.attempt);
        let record = read_bytes(&path, RECORD_LIMIT)
            .map_err(|error| error.to_string())
            .and_then(|bytes| read_record(&bytes, &manifest.experiment_id, &attempt.stem()));
        let made = match &record {
            Ok(record) => materialise(&contents, record, &jobs).map_err(|error| error.to_string()),
            Err(why) => Err(why.clone()),
        };
        match made {
            Ok(_) => imported.jobs += 1,
            Err(why) => {
                let what = format!("the files of `{}` cannot be made: {why}", attempt.stem());
                let fix = "read them from the contents that the record names";
                imported.problems.push(finding(104, what).about(attempt.stem()).fix(fix).in_file(path));
            }
        }
    }
}
