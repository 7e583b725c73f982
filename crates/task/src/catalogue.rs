//! All tasks below a root: finds them, loads them in parallel, and looks them up by what the user types.
//!
//! A directory with a `task.toml` is a task. Symbolic links are not followed, so no task comes from outside the root.
//! A broken task is reported, and the others still load.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use aec_base::label::Labels;
use aec_base::parallel;
use aec_base::problem::Problem;
use aec_base::text;

use crate::id::TaskId;
use crate::task::{FAMILY, INSTRUCTION_FILE, TASK_FILE, Task};

/// Tasks that a core takes at a time: reading one takes microseconds.
pub(crate) const SMALL_TASKS: usize = 32;

/// A deeper tree is not a catalogue.
const MAX_DEPTH: usize = 16;

#[derive(Clone, Debug)]
pub struct TaskDirectory {
    pub id: TaskId,
    pub path: PathBuf,
    /// Whether it has a prompt.
    pub has_instruction: bool,
}

/// Every task directory below a root, and the problems found on the way.
#[derive(Debug, Default)]
pub struct Discovery {
    /// Sorted by id.
    pub directories: Vec<TaskDirectory>,
    /// Unreadable directories, unusable names, links that were not followed.
    pub problems: Vec<Problem>,
}

/// Walks the tasks root. A root that does not exist has no tasks.
pub fn discover(root: &Path) -> Discovery {
    let mut discovery = Discovery::default();
    if root.symlink_metadata().is_ok() {
        walk(root, Path::new(""), 0, &mut discovery);
    }
    discovery.directories.sort_by(|a, b| a.id.cmp(&b.id));
    discovery
}

fn walk(root: &Path, relative: &Path, depth: usize, discovery: &mut Discovery) {
    let path = root.join(relative);
    let entries = match fs_err::read_dir(&path) {
        Ok(entries) => entries,
        Err(error) => {
            let what = format!("cannot look into this directory: {}", error.kind());
            discovery.problems.push(
                Problem::error(what)
                    .id(FAMILY.number(1))
                    .fix("check its permissions; its tasks are missing here")
                    .in_file(path),
            );
            return;
        }
    };
    let mut directories = Vec::new();
    let (mut is_task, mut has_instruction) = (false, false);
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let Ok(kind) = entry.file_type() else { continue };
        if name == TASK_FILE {
            is_task = true;
        } else if name == INSTRUCTION_FILE {
            has_instruction = !kind.is_dir();
        } else if kind.is_symlink() && entry.path().is_dir() {
            discovery.problems.push(
                Problem::warning("this link to a directory is not followed")
                    .id(FAMILY.number(60))
                    .why("tasks must be inside the tasks root, so that a hash of a task is a hash of its content")
                    .fix("move the tasks here, or set paths.tasks to the real directory")
                    .in_file(entry.path()),
            );
        } else if kind.is_dir() && !name.as_encoded_bytes().starts_with(b".") {
            directories.push(name);
        }
    }
    if is_task {
        add_task(path, relative, has_instruction, discovery);
        return;
    }
    if depth == MAX_DEPTH {
        if !directories.is_empty() {
            discovery.problems.push(
                Problem::warning(format!("directories more than {MAX_DEPTH} levels deep are not searched"))
                    .id(FAMILY.number(65))
                    .fix("move the tasks up")
                    .in_file(path),
            );
        }
        return;
    }
    for name in directories {
        walk(root, &relative.join(name), depth + 1, discovery);
    }
}

fn add_task(path: PathBuf, relative: &Path, has_instruction: bool, discovery: &mut Discovery) {
    match TaskId::from_relative_path(relative) {
        Ok(id) => discovery.directories.push(TaskDirectory { id, path, has_instruction }),
        Err(error) => discovery.problems.push(
            Problem::error(format!("this directory cannot be a task: {error}"))
                .id(FAMILY.number(63))
                .fix("name the directory with letters, digits, `.`, `_` and `-`")
                .in_file(path),
        ),
    }
}

/// The tasks of a root.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// Every task that could be loaded, sorted by id.
    pub tasks: Vec<Task>,
    /// The problems of the others.
    pub problems: Vec<Problem>,
}

impl Catalogue {
    pub fn load(root: &Path) -> Self {
        let Discovery { directories, mut problems } = discover(root);
        let loaded = parallel::map(&directories, SMALL_TASKS, |directory| {
            if !directory.has_instruction {
                return Err(vec![missing_instruction(directory)]);
            }
            Task::load(directory.id.clone(), &directory.path).map(|loaded| loaded.task)
        });
        let mut tasks = Vec::with_capacity(loaded.len());
        for result in loaded {
            match result {
                Ok(task) => tasks.push(task),
                Err(found) => problems.extend(found),
            }
        }
        Self { tasks, problems }
    }

    /// The tasks that the user means: one task by its id in either form, all tasks below a directory id, or the only
    /// task whose id begins with the query.
    pub fn find(&self, query: &str) -> Result<Vec<&Task>, Problem> {
        find(&self.tasks, |task| &task.id, query)
    }
}

pub fn missing_instruction(directory: &TaskDirectory) -> Problem {
    Problem::error(format!("there is no {INSTRUCTION_FILE}"))
        .id(FAMILY.number(10))
        .about(directory.id.as_str())
        .why("the instruction is what the agent is asked to do")
        .fix(format!("write {INSTRUCTION_FILE} beside {TASK_FILE}"))
        .in_file(directory.path.join(INSTRUCTION_FILE))
}

/// [`Catalogue::find`] for any items with task ids.
pub fn find<'a, T>(items: &'a [T], id: impl Fn(&T) -> &TaskId, query: &str) -> Result<Vec<&'a T>, Problem> {
    if let Some(item) = items.iter().find(|item| id(item).is(query)) {
        return Ok(vec![item]);
    }
    let below: Vec<&T> = items.iter().filter(|item| id(item).is_below(query)).collect();
    if !below.is_empty() {
        return Ok(below);
    }
    let begins: Vec<&T> = if query.is_empty() {
        Vec::new()
    } else {
        items.iter().filter(|item| id(item).as_str().starts_with(query)).collect()
    };
    match begins.as_slice() {
        [one] => Ok(vec![one]),
        [] => {
            // Lists on a terminal show labels, so users may type labels too.
            let labels = Labels::of(items.iter().map(|item| id(item).as_str()));
            if let Some(item) = items.iter().find(|item| labels.get(id(item).as_str()) == query) {
                return Ok(vec![item]);
            }
            let mut names = BTreeSet::new();
            for item in items {
                names.insert(id(item).as_str());
                if let Some(last) = id(item).segments().last() {
                    names.insert(last);
                }
            }
            let query = text::printable(query);
            let problem = Problem::error(format!("there is no task `{query}`"));
            Err(match text::nearest(&query, names.iter().copied()) {
                Some(near) => {
                    let full = items.iter().map(|item| id(item).as_str()).find(|full| full.ends_with(near));
                    problem.fix(format!("did you mean `{}`?", full.unwrap_or(near)))
                }
                None => problem.fix("`aec-bench task list` shows the ids"),
            })
        }
        several => {
            let names: Vec<&str> = several.iter().take(5).map(|item| id(item).as_str()).collect();
            let more = if several.len() > 5 { ", …" } else { "" };
            Err(Problem::error(format!("`{query}` fits {}", text::count(several.len(), "task")))
                .why(format!("they are {}{more}", names.join(", ")))
                .fix("write more of the id"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookup_by_id_directory_and_prefix() {
        let ids: Vec<TaskId> = [
            "civil/manning/a",
            "electrical/voltage-drop/basic",
            "electrical/voltage-drop/hard",
            "g/s/pipe/hall-easy-7-000",
        ]
        .iter()
        .map(|text| TaskId::parse(text).unwrap())
        .collect();
        let names = |query: &str| {
            find(&ids, |id| id, query)
                .map(|found| found.iter().map(|id| id.as_str()).collect::<Vec<_>>())
                .map_err(|problem| problem.fix.unwrap_or_default())
        };
        assert_eq!(names("electrical.voltage-drop.basic").unwrap(), ["electrical/voltage-drop/basic"]);
        assert_eq!(names("electrical").unwrap().len(), 2);
        assert_eq!(names("electrical.voltage-drop").unwrap().len(), 2);
        assert_eq!(names("civil/man").unwrap(), ["civil/manning/a"]);
        assert_eq!(names("pipe/hall-easy").unwrap(), ["g/s/pipe/hall-easy-7-000"]);
        assert_eq!(names("electrical/volt").unwrap_err(), "write more of the id");
        assert_eq!(names("civil/maning/a").unwrap_err(), "did you mean `civil/manning/a`?");
        assert!(names("").is_err());
        assert!(names("../civil").is_err());
    }
}
