//! Imports a dataset from an archive into a project: first the tasks, each atomically, then the manifest.
//!
//! A killed process leaves no dataset, perhaps some of its tasks, and nothing half-written. Importing again completes
//! it.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use aec_base::parallel;
use aec_base::problem::Problem;
use aec_base::staging::{Staging, rename_new, sync_all};

use super::archive::{LIMITS, Limits};
use super::finding;
use super::freeze::{HASHED_TASKS, path_below};
use super::manifest::Manifest;
use super::reference::DatasetRef;
use super::store::{PublishError, Store};
use super::tree::{self, Memory};
pub use super::unpack::ImportError;
use super::unpack::{Sink, unpack};
use crate::id::TaskId;
use crate::task::TASK_FILE;

/// Where an import writes to.
#[derive(Debug)]
pub struct Destination<'a> {
    pub project_root: &'a Path,
    pub tasks_root: &'a Path,
    pub store: &'a Store,
}

impl Destination<'_> {
    /// The directory of a task.
    fn place_of(&self, id: &TaskId) -> PathBuf {
        self.tasks_root.join(id.relative_path())
    }

    /// The same directory as the manifest writes it.
    fn path_of(&self, id: &TaskId) -> Result<String, Problem> {
        path_below(self.project_root, &self.place_of(id)).ok_or_else(|| {
            finding(35, "the tasks root is outside the project")
                .why("a dataset names its tasks by their paths below the project root")
                .fix("set paths.tasks to a directory of the project")
                .in_file(self.tasks_root)
        })
    }

    /// The tasks that do not exist here. A task that exists with other content is a problem.
    fn absent(&self, manifest: &Manifest) -> Result<BTreeSet<TaskId>, ImportError> {
        let memory = Memory::default();
        let states = parallel::map(&manifest.tasks, HASHED_TASKS, |task| {
            let Some(id) = task.id() else { return Ok(None) };
            let place = self.place_of(&id);
            self.path_of(&id)?;
            match in_the_way(self.tasks_root, &id) {
                Some(problem) => Err(problem),
                None if place.symlink_metadata().is_err() => Ok(Some(id)),
                None => match tree::hash(&place, &memory) {
                    Ok(hash) if hash == task.content_hash => Ok(None),
                    _ => Err(different(&id, &place)),
                },
            }
        });
        let (mut absent, mut problems) = (BTreeSet::new(), Vec::new());
        for state in states {
            match state {
                Ok(id) => absent.extend(id),
                Err(problem) => problems.push(problem),
            }
        }
        // If the tasks root is outside the project, every task has the same problem.
        problems.dedup();
        if problems.is_empty() { Ok(absent) } else { Err(ImportError::Problems(problems)) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Check and import everything.
    Take,
    /// Only check everything.
    Try,
}

/// The result of an import, also of one that only checks.
#[derive(Debug)]
pub struct Imported {
    /// The dataset, with the paths of this project.
    pub manifest: Manifest,
    /// Tasks that did not exist here.
    pub added: Vec<TaskId>,
    /// Tasks that already existed with the same content.
    pub kept: Vec<TaskId>,
    /// Whether the dataset itself did not exist here.
    pub is_new: bool,
}

/// Imports an archive.
pub fn import(archive: &Path, to: &Destination<'_>, mode: Mode) -> Result<Imported, ImportError> {
    import_within(archive, to, mode, LIMITS)
}

fn import_within(
    archive: &Path,
    to: &Destination<'_>,
    mode: Mode,
    limits: Limits,
) -> Result<Imported, ImportError> {
    let mut intake = Intake { to, mode, added: BTreeSet::new(), staging: None };
    let mut manifest = unpack(archive, limits, &mut intake)?;
    let (mut added, mut kept) = (Vec::new(), Vec::new());
    for task in &mut manifest.tasks {
        let Some(id) = task.id() else { continue };
        task.task_path = to.path_of(&id)?;
        if intake.added.contains(&id) { added.push(id) } else { kept.push(id) }
    }
    let is_new = !to.store.has(&manifest.name, &manifest.version);
    if let Some(staging) = intake.staging {
        take(&staging, to, &added)?;
        if is_new {
            to.store.publish(&manifest).map_err(|error| match error {
                PublishError::Exists(problem) => (*problem).into(),
                PublishError::Io(error) => ImportError::Io(error),
            })?;
        }
    }
    Ok(Imported { manifest, added, kept, is_new })
}

/// Moves the tasks to their directories.
fn take(staging: &Staging, to: &Destination<'_>, added: &[TaskId]) -> Result<(), ImportError> {
    if added.is_empty() {
        return Ok(());
    }
    sync_all(staging.path())?;
    for id in added {
        let place = to.place_of(id);
        match rename_new(&staging.path().join(id.relative_path()), &place) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(different(id, &place).into());
            }
            other => other?,
        }
    }
    // The manifest must not be on disk before the tasks are.
    Ok(sync_all(to.tasks_root)?)
}

/// The problem of a task that exists here with other content.
fn different(id: &TaskId, place: &Path) -> Problem {
    finding(48, format!("the task `{id}` is here with other content"))
        .about(id.as_str())
        .why("an import changes no task")
        .fix("move the task away, or import into another project")
        .in_file(place)
}

/// Why a task cannot be written to its directory: a task, a file or a link is above it.
fn in_the_way(tasks_root: &Path, id: &TaskId) -> Option<Problem> {
    let mut above = tasks_root.to_path_buf();
    let mut segments: Vec<&str> = id.segments().collect();
    segments.pop();
    for segment in segments {
        above.push(segment);
        let Ok(metadata) = above.symlink_metadata() else { return None };
        let what = if !metadata.is_dir() {
            "not a directory"
        } else if above.join(TASK_FILE).symlink_metadata().is_ok() {
            "a task itself"
        } else {
            continue;
        };
        return Some(
            finding(48, format!("the task `{id}` cannot be written: a parent of its directory is {what}"))
                .about(id.as_str())
                .fix("move it away, or import into another project")
                .in_file(above),
        );
    }
    None
}

/// Writes the unpacked files into a hidden directory beside the tasks.
struct Intake<'a> {
    to: &'a Destination<'a>,
    mode: Mode,
    /// The tasks that do not exist here; only these are written.
    added: BTreeSet<TaskId>,
    staging: Option<Staging>,
}

impl Sink for Intake<'_> {
    fn begin(&mut self, manifest: &Manifest) -> Result<(), ImportError> {
        let store = self.to.store;
        if store.has(&manifest.name, &manifest.version) {
            let reference =
                DatasetRef { name: manifest.name.clone(), version: Some(manifest.version.clone()) };
            let here = store.read(&reference).map_err(ImportError::Problems)?;
            if here.content_hash != manifest.content_hash {
                return Err(finding(49, format!("{reference} is here with other tasks"))
                    .why("a version is never changed once it is written")
                    .fix("import into another project, or have it exported under another version")
                    .in_file(store.place(&manifest.name, &manifest.version))
                    .into());
            }
        }
        self.added = self.to.absent(manifest)?;
        if self.mode == Mode::Take {
            self.staging = Some(Staging::begin(self.to.tasks_root)?);
        }
        Ok(())
    }

    fn create(&mut self, id: &TaskId, path: &str, executable: bool) -> io::Result<Option<File>> {
        let Some(staging) = self.staging.as_ref().filter(|_| self.added.contains(id)) else {
            return Ok(None);
        };
        let place: PathBuf = staging.path().join(id.relative_path()).join(path);
        let mode = if executable { 0o755 } else { 0o644 };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(mode);
        match options.open(&place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(parent) = place.parent() {
                    fs_err::create_dir_all(parent)?;
                }
                options.open(&place).map(Some)
            }
            other => other.map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;
    use crate::dataset::archive::export;
    use crate::dataset::freeze::{Draft, freeze};
    use crate::dataset::manifest::Source;

    /// A project with three tasks and an archive of them.
    fn exported() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            let task = root.path().join("tasks/civil").join(name);
            fs_err::create_dir_all(&task).unwrap();
            fs_err::write(task.join("task.toml"), "").unwrap();
            fs_err::write(task.join("instruction.md"), vec![b'x'; 10_000]).unwrap();
        }
        let catalogue = Catalogue::load(&root.path().join("tasks"));
        let tasks: Vec<_> = catalogue.tasks.iter().collect();
        let draft = Draft {
            name: aec_base::name::Name::parse("set").unwrap(),
            version: semver::Version::new(1, 0, 0),
            created_at: aec_base::timestamp::Timestamp::from_seconds(0),
            summary: None,
            purpose: None,
            source: Source::manual(),
        };
        let manifest = freeze(root.path(), &tasks, draft).unwrap();
        let archive = root.path().join("set.tar.zst");
        let packed = export(root.path(), &manifest, File::create(&archive).unwrap()).unwrap();
        assert_eq!((packed.tasks, packed.files, packed.bytes), (3, 6, 30_000));
        (root, archive)
    }

    /// The id of the first problem of an import with these limits.
    fn first_problem(archive: &Path, limits: Limits) -> Option<String> {
        let other = tempfile::tempdir().unwrap();
        let tasks_root = other.path().join("tasks");
        let store = Store::new(other.path().join("datasets"));
        let to = Destination { project_root: other.path(), tasks_root: &tasks_root, store: &store };
        match import_within(archive, &to, Mode::Take, limits) {
            Ok(imported) => {
                assert_eq!(imported.added.len(), 3);
                None
            }
            Err(ImportError::Problems(problems)) => {
                assert!(store.list().0.is_empty() && Catalogue::load(&tasks_root).tasks.is_empty());
                problems[0].id.clone()
            }
            Err(ImportError::Io(error)) => panic!("{error}"),
        }
    }

    #[test]
    fn every_limit_holds() {
        let (_root, archive) = exported();
        assert_eq!(first_problem(&archive, LIMITS), None);
        for limits in [
            Limits { total: 30_000, ..LIMITS },
            Limits { file: 9_999, ..LIMITS },
            Limits { manifest: 100, ..LIMITS },
            Limits { members: 5, ..LIMITS },
        ] {
            assert_eq!(first_problem(&archive, limits).as_deref(), Some("D041"), "{limits:?}");
        }
        assert_eq!(first_problem(&archive, Limits { file: 10_000, members: 6, ..LIMITS }), None);
    }
}
