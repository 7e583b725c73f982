//! Datasets as one file: `manifest.json` and the tasks in a tar archive, compressed with Zstandard. The same dataset
//! always gives the same bytes.

use std::io::{self, Write};
use std::path::Path;

use aec_base::archive::Writer;
use aec_base::parallel;
use aec_base::problem::Problem;
use serde::Serialize;

use super::hash::{HashedFile, task_hash};
use super::manifest::{MANIFEST_FILE, Manifest, ManifestTask};
use super::verify::is_own_directory;
use super::{finding, tree};
use crate::id::TaskId;

/// The directory of tasks in an archive, whatever the project calls its tasks root.
pub const TASKS: &str = "tasks";

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most bytes of the whole archive, unpacked.
    pub total: u64,
    /// Most bytes of one file.
    pub file: u64,
    /// Most bytes of the manifest.
    pub manifest: u64,
    pub members: usize,
}

/// The limits that this program uses.
pub const LIMITS: Limits = Limits {
    total: 8 * 1024 * 1024 * 1024,
    file: tree::FILE_LIMIT,
    manifest: super::manifest::MANIFEST_LIMIT,
    members: 2_000_000,
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Packed {
    pub tasks: usize,
    /// Files of tasks.
    pub files: usize,
    /// Bytes of these files.
    pub bytes: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("the tasks are not those of the dataset")]
    Problems(Vec<Problem>),
    #[error("{0}")]
    Io(#[from] io::Error),
}

fn member(id: &TaskId, path: &str) -> String {
    format!("{TASKS}/{id}/{path}")
}

/// Whether a file's name fits into an archive.
pub(super) fn fits(id: &TaskId, path: &str) -> bool {
    aec_base::archive::fits(&member(id, path))
}

/// The manifest for an archive: its paths do not reveal the project's tasks root.
fn portable(manifest: &Manifest) -> Option<Manifest> {
    let mut portable = manifest.clone();
    for task in &mut portable.tasks {
        let id = task.id()?;
        task.task_id = id.dotted();
        task.task_path = format!("{TASKS}/{id}");
    }
    portable.tasks.sort_by(|a, b| a.task_id.cmp(&b.task_id));
    Some(portable)
}

/// A task's files as they were when its hash was computed.
struct ReadTask {
    id: TaskId,
    files: Vec<(HashedFile, Vec<u8>)>,
}

/// Writes a dataset and its tasks. The packed bytes are the hashed ones, so a task that has changed is detected.
pub fn export(project_root: &Path, manifest: &Manifest, to: impl Write) -> Result<Packed, ExportError> {
    const AT_ONCE: usize = 64;
    let not_an_id =
        || ExportError::Problems(vec![finding(15, "a task has no id").fix("create the dataset anew")]);
    let portable = portable(manifest).ok_or_else(not_an_id)?;
    let mut writer = Writer::new(to)?;
    let text = portable.to_json().map_err(io::Error::other)?;
    writer.append(MANIFEST_FILE, false, text.len() as u64, text.as_bytes())?;

    let mut entries: Vec<(TaskId, &ManifestTask)> =
        manifest.tasks.iter().filter_map(|entry| Some((entry.id()?, entry))).collect();
    // Members are sorted by their full names, in which a slash follows the id.
    entries.sort_by_cached_key(|(id, _)| format!("{id}/"));
    let mut packed = Packed::default();
    let mut problems = Vec::new();
    for some in entries.chunks(AT_ONCE) {
        for result in parallel::map(some, 4, |(id, entry)| read_task(project_root, id, entry)) {
            match result {
                Ok(task) if problems.is_empty() => pack(&mut writer, &task, &mut packed)?,
                Ok(_) => {}
                Err(found) => problems.extend(found),
            }
        }
        if packed.bytes > LIMITS.total {
            let gigabytes = LIMITS.total >> 30;
            problems.push(
                finding(41, format!("an archive holds at most {gigabytes} GiB, and the tasks have more"))
                    .fix("split the dataset"),
            );
            break;
        }
    }
    if !problems.is_empty() {
        return Err(ExportError::Problems(problems));
    }
    writer.finish()?;
    Ok(packed)
}

fn pack<W: Write>(writer: &mut Writer<W>, task: &ReadTask, packed: &mut Packed) -> io::Result<()> {
    packed.tasks += 1;
    for (file, content) in &task.files {
        packed.files += 1;
        packed.bytes += content.len() as u64;
        let name = member(&task.id, &file.path);
        writer.append(&name, file.executable, content.len() as u64, content.as_slice())?;
    }
    Ok(())
}

fn read_task(project_root: &Path, id: &TaskId, entry: &ManifestTask) -> Result<ReadTask, Vec<Problem>> {
    let directory = project_root.join(&entry.task_path);
    let about = |problem: Problem| problem.about(id.as_str());
    if !is_own_directory(&directory, id) {
        let problem = finding(21, format!("the task `{id}` is not here")).fix("restore the task");
        return Err(vec![about(problem.in_file(directory))]);
    }
    let mut files = Vec::new();
    let mut problems = Vec::new();
    for file in tree::files(&directory)? {
        match tree::read_content(&file) {
            Ok(read) => files.push(read),
            Err(problem) => problems.push(about(problem)),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut hashed: Vec<HashedFile> = files.iter().map(|(file, _)| file.clone()).collect();
    if task_hash(&mut hashed) != entry.content_hash {
        return Err(vec![about(
            finding(20, format!("the task `{id}` has changed since the dataset was made"))
                .fix("restore the task, or create a new version of the dataset")
                .in_file(directory),
        )]);
    }
    Ok(ReadTask { id: id.clone(), files })
}
