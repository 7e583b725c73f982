//! Checks whether the tasks of a dataset are unchanged.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use aec_base::digest::Digest;
use aec_base::parallel;
use aec_base::problem::Problem;
use serde::Serialize;

use super::finding;
use super::freeze::HASHED_TASKS;
use super::manifest::{Manifest, ManifestTask};
use super::tree::{self, Memory};
use crate::file::Difficulty;
use crate::id::TaskId;
use crate::task::{TASK_FILE, Task};

/// The result of comparing a dataset with the tasks of a project.
#[derive(Debug, Serialize)]
pub struct Verification {
    /// How many tasks the dataset has.
    pub total: usize,
    /// How many of them are unchanged.
    pub verified: usize,
    /// Tasks whose files differ from the dataset's.
    pub drifted: Vec<Drifted>,
    /// Tasks that do not exist.
    pub missing: Vec<Missing>,
    /// Tasks whose description in the manifest differs from their own files.
    pub relabelled: Vec<Relabelled>,
    /// Tasks that cannot be hashed, for example because they contain a link.
    pub unreadable: Vec<Missing>,
    /// Tasks beside those of the dataset that do not belong to it. This is not an error.
    pub extra: Vec<String>,
    /// Whether every task is unchanged.
    pub is_clean: bool,
    /// The findings as problems with fixes.
    #[serde(skip)]
    pub problems: Vec<Problem>,
}

/// A task whose files differ from the dataset's.
#[derive(Debug, Serialize)]
pub struct Drifted {
    pub task_id: TaskId,
    /// Its directory.
    pub task_path: String,
    /// Hash in the dataset.
    pub expected: Digest,
    /// Hash of the current files.
    pub found: Digest,
}

/// A task that does not exist or cannot be read.
#[derive(Debug, Serialize)]
pub struct Missing {
    pub task_id: TaskId,
    /// Its directory.
    pub task_path: String,
}

/// A task whose description in the manifest differs from its own file.
#[derive(Debug, Serialize)]
pub struct Relabelled {
    pub task_id: TaskId,
    /// What differs: `domain`, `difficulty` or `tags`.
    pub fields: Vec<&'static str>,
}

/// The state of one task.
enum State {
    Same,
    Drifted(Digest),
    Missing,
    Relabelled(Vec<&'static str>),
    Unreadable(Vec<Problem>),
}

/// Compares a dataset with the tasks of a project.
pub fn verify(project_root: &Path, manifest: &Manifest) -> Verification {
    let memory = Memory::default();
    let states = parallel::map(&manifest.tasks, HASHED_TASKS, |entry| {
        let id = entry.id()?;
        let state = state_of(project_root, entry, &id, &memory);
        Some((id, state))
    });
    let mut verification = Verification {
        total: manifest.tasks.len(),
        verified: 0,
        drifted: Vec::new(),
        missing: Vec::new(),
        relabelled: Vec::new(),
        unreadable: Vec::new(),
        extra: extra(project_root, manifest),
        is_clean: false,
        problems: Vec::new(),
    };
    for (entry, (task_id, state)) in
        manifest.tasks.iter().zip(states).filter_map(|(entry, found)| Some((entry, found?)))
    {
        verification.add(project_root, entry, task_id, state);
    }
    verification.is_clean = verification.verified == verification.total;
    verification
}

impl Verification {
    fn add(&mut self, project_root: &Path, entry: &ManifestTask, task_id: TaskId, state: State) {
        let task_path = entry.task_path.clone();
        let place = project_root.join(&task_path);
        let problem = match state {
            State::Same => {
                self.verified += 1;
                return;
            }
            State::Unreadable(problems) => {
                self.problems.extend(problems.into_iter().map(|problem| problem.about(task_id.as_str())));
                self.unreadable.push(Missing { task_id, task_path });
                return;
            }
            State::Drifted(found) => {
                let problem =
                    finding(20, format!("the task `{task_id}` has changed since the dataset was made"))
                        .why(format!(
                            "its files give {}, the dataset has {}",
                            short(&found),
                            short(&entry.content_hash)
                        ))
                        .fix("restore the task, or create a new version of the dataset");
                self.drifted.push(Drifted {
                    task_id: task_id.clone(),
                    task_path,
                    expected: entry.content_hash,
                    found,
                });
                problem
            }
            State::Missing => {
                self.missing.push(Missing { task_id: task_id.clone(), task_path });
                finding(21, format!("the task `{task_id}` is not here"))
                    .fix("restore the task, or import the dataset from an archive")
            }
            State::Relabelled(fields) => {
                let what =
                    format!("the manifest and the task `{task_id}` differ in {}", fields.join(" and "));
                self.relabelled.push(Relabelled { task_id: task_id.clone(), fields });
                finding(22, what)
                    .why("the manifest was changed after it was made")
                    .fix("restore the manifest, or create a new version of the dataset")
            }
        };
        self.problems.push(problem.about(task_id.as_str()).in_file(place));
    }
}

/// The beginning of a hash, enough for people to compare.
fn short(digest: &Digest) -> String {
    digest.hex().chars().take(12).collect()
}

fn state_of(project_root: &Path, entry: &ManifestTask, id: &TaskId, memory: &Memory) -> State {
    let directory = project_root.join(&entry.task_path);
    if !is_own_directory(&directory, id) {
        return State::Missing;
    }
    match tree::hash(&directory, memory) {
        Err(problems) => State::Unreadable(problems),
        Ok(found) if found != entry.content_hash => State::Drifted(found),
        Ok(_) => match Task::load(id.clone(), &directory) {
            Ok(loaded) => match differences(entry, &loaded.task) {
                fields if fields.is_empty() => State::Same,
                fields => State::Relabelled(fields),
            },
            Err(problems) => State::Unreadable(problems),
        },
    }
}

/// Whether a task's directory and its parents up to the tasks root are real directories and not links.
pub(super) fn is_own_directory(directory: &Path, id: &TaskId) -> bool {
    directory
        .ancestors()
        .take(id.segments().count())
        .all(|above| above.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()))
}

fn differences(entry: &ManifestTask, task: &Task) -> Vec<&'static str> {
    let differs: [(&str, bool); 3] = [
        ("domain", entry.domain != task.domain),
        ("difficulty", entry.difficulty.map(Difficulty::name) != task.difficulty.map(Difficulty::name)),
        ("tags", entry.tags != task.tags),
    ];
    differs.into_iter().filter(|(_, differs)| *differs).map(|(field, _)| field).collect()
}

/// Tasks in the same directories that do not belong to the dataset.
fn extra(project_root: &Path, manifest: &Manifest) -> Vec<String> {
    let known: HashSet<&str> = manifest.tasks.iter().map(|entry| entry.task_path.as_str()).collect();
    let parents: BTreeSet<&str> =
        known.iter().filter_map(|path| path.rsplit_once('/')).map(|(parent, _)| parent).collect();
    let mut extra = Vec::new();
    for parent in parents {
        let Ok(entries) = std::fs::read_dir(project_root.join(parent)) else { continue };
        for entry in entries.filter_map(Result::ok) {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = format!("{parent}/{name}");
            let is_task = || entry.path().join(TASK_FILE).is_file();
            if !known.contains(path.as_str())
                && entry.file_type().is_ok_and(|kind| kind.is_dir())
                && is_task()
            {
                extra.push(path);
            }
        }
    }
    extra.sort();
    extra
}

/// Loads the tasks of a dataset from the project, in the order of the manifest.
pub fn load_tasks(project_root: &Path, manifest: &Manifest) -> Result<Vec<Task>, Vec<Problem>> {
    let loaded = parallel::map(&manifest.tasks, HASHED_TASKS, |entry| {
        let directory: PathBuf = project_root.join(&entry.task_path);
        match entry.id() {
            Some(id) if is_own_directory(&directory, &id) => {
                Task::load(id, &directory).map(|loaded| loaded.task)
            }
            _ => Err(vec![
                finding(21, format!("the task `{}` is not here", entry.task_id))
                    .about(&entry.task_id)
                    .fix("restore the task, or import the dataset from an archive")
                    .in_file(directory),
            ]),
        }
    });
    let (mut tasks, mut problems) = (Vec::with_capacity(loaded.len()), Vec::new());
    for result in loaded {
        match result {
            Ok(task) => tasks.push(task),
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() { Ok(tasks) } else { Err(problems) }
}
