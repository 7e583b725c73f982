//! Taking a dataset from an archive into a project: tasks first, each whole, the manifest last.
//!
//! A process that is killed leaves no dataset, perhaps some of its tasks, and nothing half. Importing again
//! completes it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use aec_base::problem::Problem;
use aec_base::staging::{Staging, rename_new, sync_all};

use super::archive::{LIMITS, Limits};
use super::freeze::path_below;
use super::manifest::Manifest;
use super::reference::DatasetRef;
use super::store::{PublishError, Store};
pub use super::unpack::ImportError;
use super::unpack::{Sink, unpack};
use super::{finding, tree};
use crate::id::TaskId;
use crate::task::TASK_FILE;

/// Where an archive goes.
#[derive(Debug)]
pub struct Destination<'a> {
    /// The root of the project.
    pub project_root: &'a Path,
    /// Its tasks.
    pub tasks_root: &'a Path,
    /// Its datasets.
    pub store: &'a Store,
}

/// Whether anything is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Everything is checked and taken in.
    Take,
    /// Everything is checked.
    Try,
}

/// What an import did, or would do.
#[derive(Debug)]
pub struct Imported {
    /// The dataset, with paths as they are in this project.
    pub manifest: Manifest,
    /// Tasks that were not here.
    pub added: Vec<TaskId>,
    /// Tasks that were here already, the same.
    pub kept: Vec<TaskId>,
    /// Whether the dataset itself was not here.
    pub is_new: bool,
}

/// Takes an archive in.
pub fn import(archive: &Path, to: &Destination<'_>, mode: Mode) -> Result<Imported, ImportError> {
    import_within(archive, to, mode, LIMITS)
}

fn import_within(
    archive: &Path,
    to: &Destination<'_>,
    mode: Mode,
    limits: Limits,
) -> Result<Imported, ImportError> {
    let mut intake = Intake { to, mode, staging: None };
    let mut manifest = unpack(archive, limits, &mut intake)?;
    let (mut added, mut kept, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for task in &mut manifest.tasks {
        let Some(id) = task.id() else { continue };
        let place = to.tasks_root.join(id.relative_path());
        let Some(path) = path_below(to.project_root, &place) else {
            let problem = finding(35, "the tasks root lies outside the project");
            return Err(problem
                .fix("set paths.tasks to a directory of the project")
                .in_file(to.tasks_root)
                .into());
        };
        match in_the_way(to.tasks_root, &id) {
            Some(problem) => problems.push(problem),
            None if place.symlink_metadata().is_err() => added.push(id),
            None => match tree::hash(&place) {
                Ok(hash) if hash == task.content_hash => kept.push(id),
                _ => problems.push(different(&id, &place)),
            },
        }
        task.task_path = path;
    }
    if !problems.is_empty() {
        return Err(ImportError::Problems(problems));
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

/// Moves the tasks to their places.
fn take(staging: &Staging, to: &Destination<'_>, added: &[TaskId]) -> Result<(), ImportError> {
    if added.is_empty() {
        return Ok(());
    }
    sync_all(staging.path())?;
    for id in added {
        let place = to.tasks_root.join(id.relative_path());
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

/// The problem of a task that is here and not the archive's.
fn different(id: &TaskId, place: &Path) -> Problem {
    finding(48, format!("the task `{id}` is here with other content"))
        .about(id.as_str())
        .why("an import changes no task")
        .fix("move the task away, or import into another project")
        .in_file(place)
}

/// What keeps a task from lying at its place: a task, a file or a link above it.
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
            finding(48, format!("there is no room for the task `{id}`: what lies above it is {what}"))
                .about(id.as_str())
                .fix("move it away, or import into another project")
                .in_file(above),
        );
    }
    None
}

/// Writes what is unpacked into a hidden directory beside the tasks.
struct Intake<'a> {
    to: &'a Destination<'a>,
    mode: Mode,
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
        if self.mode == Mode::Take {
            self.staging = Some(Staging::begin(self.to.tasks_root)?);
        }
        Ok(())
    }

    fn create(&mut self, id: &TaskId, path: &str, executable: bool) -> io::Result<Option<File>> {
        let Some(staging) = &self.staging else { return Ok(None) };
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
