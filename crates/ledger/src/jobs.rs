//! The files of an attempt for people: `JOBS/EXPERIMENT/STEM/…`, made from the contents that its record names.
//!
//! They are only a view: the ledger keeps the contents, so a lost directory can be made again. Files are hard links
//! to the contents where possible: they take no space, and only root can write to them; `ledger verify` notices that.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use aec_base::archive::paths;
use aec_base::content::ContentStore;
use aec_base::digest;
use aec_base::file::{Links, open_regular};
use aec_base::problem::Problem;
use aec_base::staging::{Staging, rename_new};

use crate::FAMILY;
use crate::layout::stem;
use crate::record::{Artefact, TrialRecord};

/// The directory of running attempts, below the experiment's directory of `jobs`.
pub const LIVE: &str = "_live";

/// Writes every file of an attempt to `jobs/STEM`, where `jobs` is the experiment's directory, and returns the new
/// directory. It appears atomically; an existing one is left unchanged.
///
/// A path that leads outside and a content that is missing or has another length than recorded are errors; then no
/// directory appears.
pub fn materialise(contents: &ContentStore, record: &TrialRecord, jobs: &Path) -> io::Result<PathBuf> {
    materialise_through(contents, record, jobs, &Staging::begin(&jobs.join(LIVE))?)
}

/// Like [`materialise`], with a staging directory shared by many attempts.
pub(crate) fn materialise_through(
    contents: &ContentStore,
    record: &TrialRecord,
    jobs: &Path,
    staging: &Staging,
) -> io::Result<PathBuf> {
    let stem = stem(&record.trial_id, record.attempt);
    let place = jobs.join(&stem);
    if place.symlink_metadata().is_ok() {
        return Ok(place);
    }
    let made = staging.path().join(&stem);
    fs_err::create_dir(&made)?;
    lay_out(contents, record, &made, &place)
}

/// Like [`materialise`], for an attempt that just ran: turns its live directory into the final one.
pub(crate) fn settle_live(contents: &ContentStore, record: &TrialRecord, jobs: &Path) -> io::Result<PathBuf> {
    let stem = stem(&record.trial_id, record.attempt);
    let live = jobs.join(LIVE).join(&stem);
    for entry in fs_err::read_dir(&live)? {
        // The record's artefacts include what the attempt wrote while it ran.
        fs_err::remove_file(entry?.path())?;
    }
    lay_out(contents, record, &live, &jobs.join(&stem))
}

/// What differs in `jobs` from a record, as far as the files of the attempt are laid out there.
pub(crate) fn differences(contents: &ContentStore, record: &TrialRecord, jobs: &Path) -> Vec<Problem> {
    let place = jobs.join(stem(&record.trial_id, record.attempt));
    if place.symlink_metadata().is_err() {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for artefact in record.all_artefacts() {
        let file = place.join(&artefact.path);
        let what = match (file.symlink_metadata(), contents.path(artefact.digest).symlink_metadata()) {
            (Err(_), _) => "was removed",
            // A hard link to the content, which is checked itself.
            (Ok(found), Ok(content)) if (found.ino(), found.dev()) == (content.ino(), content.dev()) => {
                continue;
            }
            (Ok(_), _) => {
                let read = open_regular(&file, artefact.size, Links::Refuse)
                    .and_then(|(file, _)| Ok(digest::copy(file, artefact.size, |_| Ok(()))?));
                match read {
                    Ok((found, _)) if found == artefact.digest => continue,
                    _ => "is not what the record names",
                }
            }
        };
        let path = aec_base::text::printable(&artefact.path).into_owned();
        let problem = Problem::error(format!("`{path}` in `jobs` {what}")).id(FAMILY.number(45));
        let problem =
            problem.why("`jobs` shows the contents that the record names; the contents are in the ledger");
        let fix = "remove the directory of the attempt; `aec-bench ledger repair` lays it out again";
        problems.push(problem.fix(fix).in_file(file));
    }
    problems
}

fn lay_out(contents: &ContentStore, record: &TrialRecord, made: &Path, place: &Path) -> io::Result<PathBuf> {
    let mut parents = HashSet::new();
    for artefact in record.all_artefacts() {
        write(contents, artefact, made, &mut parents)?;
    }
    let place = place.to_path_buf();
    match rename_new(made, &place) {
        // Another process made the same directory.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(place),
        renamed => renamed.map(|()| place),
    }
}

fn write(
    contents: &ContentStore,
    artefact: &Artefact,
    directory: &Path,
    parents: &mut HashSet<PathBuf>,
) -> io::Result<()> {
    let invalid = |why: String| {
        let path = aec_base::text::printable(&artefact.path).into_owned();
        io::Error::new(io::ErrorKind::InvalidData, format!("the file `{path}` of a record: {why}"))
    };
    paths::check(&artefact.path).map_err(|error| invalid(error.to_string()))?;
    let content = contents.path(artefact.digest);
    let unusable = |kind, error: &dyn std::fmt::Display| {
        let why = format!("its content {} cannot be used: {error}", artefact.digest);
        io::Error::new(kind, invalid(why).to_string())
    };
    let found = content.symlink_metadata().map_err(|error| unusable(error.kind(), &error))?;
    if !found.is_file() {
        return Err(unusable(io::ErrorKind::InvalidData, &"it is not a regular file"));
    }
    if found.len() != artefact.size {
        return Err(invalid(format!("its content {} has another length", artefact.digest)));
    }
    let place = directory.join(&artefact.path);
    if let Some(parent) = place.parent()
        && !parents.contains(parent)
    {
        fs_err::create_dir_all(parent)?;
        parents.insert(parent.to_path_buf());
    }
    match std::fs::hard_link(&content, &place) {
        Ok(()) => Ok(()),
        // A record with two files of the same path contradicts itself.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(invalid("it is there twice".into()))
        }
        // Another file system, one without hard links, or the limit of links is reached.
        Err(_) => {
            let (from, _) = open_regular(&content, artefact.size, Links::Refuse)
                .map_err(|error| unusable(error.io_kind(), &error))?;
            copy(from, artefact, &place).map_err(|error| invalid(error.to_string()))
        }
    }
}

fn copy(from: File, artefact: &Artefact, place: &Path) -> io::Result<()> {
    let mut file = fs_err::File::create_new(place)?;
    let (digest, _) = digest::copy(from, artefact.size, |piece| file.write_all(piece))?;
    if digest != artefact.digest {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "its content has changed"));
    }
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o444))?;
    // An existing directory is never made again, so its files must survive a crash.
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn files_appear_whole_and_once() {
        let root = tempfile::tempdir().unwrap();
        let contents = ContentStore::new(root.path().join("store"));
        let jobs = root.path().join("jobs/exp");
        let record =
            example::record_with(&contents, "t1", 2, &[("workspace/output.md", b"42"), ("log", b"")]);
        let place = materialise(&contents, &record, &jobs).unwrap();
        assert_eq!(place, jobs.join("t1.2"));
        assert_eq!(fs_err::read(place.join("workspace/output.md")).unwrap(), b"42");
        assert_eq!(fs_err::read(place.join("log")).unwrap(), b"");
        fs_err::remove_file(place.join("log")).unwrap();
        assert_eq!(materialise(&contents, &record, &jobs).unwrap(), place);
        assert!(!place.join("log").exists(), "what is there stays as it is");
        assert_eq!(fs_err::read_dir(jobs.join(LIVE)).unwrap().count(), 0);
    }

    #[test]
    fn a_copy_is_checked() {
        let root = tempfile::tempdir().unwrap();
        let contents = ContentStore::new(root.path().join("store"));
        let record = example::record_with(&contents, "t1", 1, &[("a", b"beam")]);
        let artefact = record.all_artefacts().next().unwrap();
        let from = || File::open(contents.path(artefact.digest)).unwrap();
        copy(from(), artefact, &root.path().join("a")).unwrap();
        assert_eq!(fs_err::read(root.path().join("a")).unwrap(), b"beam");
        let other = Artefact { digest: digest::Digest::of(b"beat"), ..artefact.clone() };
        assert!(copy(from(), &other, &root.path().join("b")).is_err());
    }

    #[test]
    fn nothing_appears_of_a_record_that_cannot_be_believed() {
        let root = tempfile::tempdir().unwrap();
        let contents = ContentStore::new(root.path().join("store"));
        let jobs = root.path().join("jobs");
        for path in ["../out", "/etc/passwd", "a/../b", "", "a\u{1b}[2J", "a\\b", "a//b"] {
            let record = example::record_with(&contents, "t1", 1, &[("fine", b"x"), (path, b"y")]);
            let error = materialise(&contents, &record, &jobs).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{path:?}");
            assert!(!jobs.join("t1").exists() && !error.to_string().contains('\u{1b}'));
        }
        for files in [[("a", b"x"), ("a", b"y")], [("a", b"x"), ("a/b", b"y")]] {
            let files = files.map(|(path, content)| (path, content.as_slice()));
            let record = example::record_with(&contents, "t1", 1, &files);
            assert!(materialise(&contents, &record, &jobs).is_err());
        }
        let record = example::record_with(&contents, "t1", 1, &[("a", b"beam")]);
        let content = contents.path(digest::Digest::of(b"beam"));
        fs_err::remove_file(&content).unwrap();
        assert_eq!(materialise(&contents, &record, &jobs).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs_err::write(&content, "bea").unwrap();
        assert_eq!(materialise(&contents, &record, &jobs).unwrap_err().kind(), io::ErrorKind::InvalidData);
        fs_err::remove_file(&content).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &content).unwrap();
        assert!(materialise(&contents, &record, &jobs).is_err());
        assert!(!jobs.join("t1").exists());
    }
}
