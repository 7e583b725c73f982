//! Makes a manifest of tasks in their current state.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_base::parallel;
use aec_base::problem::Problem;
use aec_base::text;
use aec_base::timestamp::Timestamp;
use semver::Version;

use super::manifest::{Description, Manifest, ManifestTask, SCHEMA_VERSION, Source, difficulties, domains};
use super::{archive, finding, tree};
use crate::task::Task;

/// Tasks that a core takes at a time: hashing one takes about a tenth of a millisecond.
pub(super) const HASHED_TASKS: usize = 8;

/// The parts of a manifest besides the tasks.
#[derive(Clone, Debug)]
pub struct Draft {
    pub name: Name,
    pub version: Version,
    pub created_at: Timestamp,
    /// One line; if absent, made from the number of tasks.
    pub summary: Option<String>,
    pub purpose: Option<String>,
    pub source: Source,
}

/// Makes a manifest of these tasks. Every problem of every task is reported.
pub fn freeze(project_root: &Path, tasks: &[&Task], draft: Draft) -> Result<Manifest, Vec<Problem>> {
    let mut problems = ambiguous(tasks);
    let memory = tree::Memory::default();
    let frozen = parallel::map(tasks, HASHED_TASKS, |task| freeze_task(project_root, task, &memory));
    let mut entries = Vec::with_capacity(tasks.len());
    for result in frozen {
        match result {
            Ok(entry) => entries.push(entry),
            Err(found) => problems.extend(found),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let standards: BTreeSet<&String> = tasks.iter().filter_map(|task| task.standard.as_ref()).collect();
    Ok(assemble(draft, standards.into_iter().cloned().collect(), entries))
}

/// Makes a manifest of entries that have been checked.
pub(super) fn assemble(draft: Draft, standards: Vec<String>, mut tasks: Vec<ManifestTask>) -> Manifest {
    tasks.sort_by(|a, b| a.task_id.cmp(&b.task_id));
    let description = Description {
        summary: draft
            .summary
            .unwrap_or_else(|| format!("Dataset with {}", text::count(tasks.len(), "task"))),
        purpose: draft.purpose,
        standards,
        domains: domains(&tasks),
        difficulty_distribution: difficulties(&tasks),
        task_count: tasks.len(),
    };
    let mut manifest = Manifest {
        schema_version: SCHEMA_VERSION,
        name: draft.name,
        version: draft.version,
        content_hash: Digest::of(b""),
        created_at: draft.created_at,
        description,
        tasks,
        source: draft.source,
    };
    manifest.content_hash = manifest.hash_of_tasks();
    manifest
}

fn freeze_task(
    project_root: &Path,
    task: &Task,
    memory: &tree::Memory,
) -> Result<ManifestTask, Vec<Problem>> {
    let about = |problem: Problem| problem.about(task.id.as_str());
    let Some(task_path) = path_below(project_root, &task.path) else {
        let what = format!("the task `{}` is outside the project", task.id);
        return Err(vec![about(
            finding(35, what)
                .why("a dataset names its tasks by their paths below the project root")
                .fix("move the tasks into the project, or work in the project they are in")
                .in_file(&task.path),
        )]);
    };
    let files = tree::files(&task.path).map_err(|found| found.into_iter().map(about).collect::<Vec<_>>())?;
    let too_long = files.iter().find(|file| !archive::fits(&task.id, &file.path));
    if let Some(file) = too_long {
        let what = format!("the path of `{}` is too long for an archive", text::printable(&file.path));
        return Err(vec![about(finding(30, what).fix("shorten the names").in_file(&file.place))]);
    }
    let content_hash =
        tree::hash_files(&files, memory).map_err(|found| found.into_iter().map(about).collect::<Vec<_>>())?;
    Ok(ManifestTask {
        task_id: task.id.dotted(),
        task_path,
        content_hash,
        domain: task.domain.clone(),
        difficulty: task.difficulty,
        tags: task.tags.clone(),
    })
}

/// A path below a root, with slashes.
pub(super) fn path_below(root: &Path, path: &Path) -> Option<String> {
    let relative = path.strip_prefix(root).ok()?;
    let parts: Option<Vec<&str>> = relative
        .components()
        .filter(|part| !matches!(part, std::path::Component::CurDir))
        .map(|part| match part {
            std::path::Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    parts.map(|parts| parts.join("/")).filter(|path| super::paths::check(path).is_ok())
}

/// Tasks whose ids would be equal in a manifest.
fn ambiguous(tasks: &[&Task]) -> Vec<Problem> {
    let mut seen: HashMap<String, &Task> = HashMap::new();
    let mut problems = Vec::new();
    for task in tasks {
        if let Some(other) = seen.insert(task.id.dotted(), task) {
            let what = format!("`{}` and `{}` have the same id in a manifest", other.id, task.id);
            problems.push(
                finding(13, what)
                    .about(task.id.as_str())
                    .why(format!("manifests write ids with dots: {}", task.id.dotted()))
                    .fix("rename one of the directories, or leave one out")
                    .in_file(&task.path),
            );
        }
    }
    problems
}
