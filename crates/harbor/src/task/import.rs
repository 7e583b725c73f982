//! Imports tasks of Harbor as our own.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use aec_base::digest::Digest;
use aec_base::document::toml_table;
use aec_base::file::{Links, read_text};
use aec_base::problem::Problem;
use aec_base::staging::{Staging, sync_all};
use aec_base::text::printable;
use aec_task::dataset::tree::{self, Memory};
use aec_task::id::TaskId;
use aec_task::task::{TASK_FILE, Task};

use super::export::Note;
use super::{NOTE, OWN, WORKSPACE, translate};
use crate::FAMILY;

/// Settings of a task are short.
const FILE_LIMIT: u64 = 1024 * 1024;
const DOCKERFILE: &str = "environment/Dockerfile";
/// Files of a task that are imported; all others are reported.
const TAKEN: [&str; 5] = ["instruction.md", "environment/", "tests/", "solution/", "tools/"];

#[derive(Debug)]
pub struct ImportedTask {
    pub id: TaskId,
    pub path: PathBuf,
    /// Whether it is one of our own tasks that was exported before, restored unchanged.
    pub restored: bool,
    /// What was not imported.
    pub problems: Vec<Problem>,
}

/// The tasks in a directory: itself, or its direct subdirectories, as in Harbor.
pub fn find(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let is_task = |path: &Path| path.join(TASK_FILE).symlink_metadata().is_ok_and(|found| found.is_file());
    if is_task(directory) {
        return Ok(vec![directory.to_path_buf()]);
    }
    let mut found = Vec::new();
    for entry in fs_err::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && is_task(&entry.path()) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

#[derive(Debug)]
pub struct Destination<'a> {
    /// The root of tasks.
    pub tasks: &'a Path,
    /// The id of the task, if the user chose it.
    pub id: Option<&'a TaskId>,
    /// The first part of the ids of tasks that do not name their own.
    pub below: &'a str,
}

/// Imports one task, completely or not at all.
pub fn import(directory: &Path, to: &Destination<'_>) -> Result<ImportedTask, Vec<Problem>> {
    let files = read(directory)?;
    let (made, suggested, restored, mut problems) = match restore(&files) {
        Some((made, id)) => (made, Some(id), true, Vec::new()),
        None => {
            let (made, id, problems) = translated(directory, files)?;
            (made, id, false, problems)
        }
    };
    if problems.iter().any(|problem| problem.severity == aec_base::problem::Severity::Error) {
        return Err(problems);
    }
    let id = match (to.id, suggested.as_deref().and_then(|id| TaskId::parse(id).ok())) {
        (Some(id), _) => id.clone(),
        (None, Some(id)) => id,
        (None, None) => id_of(directory, to.below)?,
    };
    let place = to.tasks.join(id.relative_path());
    let failed = |error: &io::Error| {
        let problem =
            Problem::error(format!("the task `{id}` cannot be written: {error}")).id(FAMILY.number(44));
        vec![
            match error.kind() {
                io::ErrorKind::AlreadyExists => {
                    problem.fix("choose another id with --id, or remove the existing task")
                }
                _ => problem.fix("check the directory of tasks"),
            }
            .in_file(&place),
        ]
    };
    if place.symlink_metadata().is_ok() {
        return Err(failed(&io::ErrorKind::AlreadyExists.into()));
    }
    let staging = Staging::begin(to.tasks).map_err(|error| failed(&error))?;
    let draft = staging.path().join("task");
    write(&made, &draft).map_err(|error| failed(&error))?;
    problems.extend(Task::load(id.clone(), &draft).err().unwrap_or_default());
    if problems.iter().any(|problem| problem.severity == aec_base::problem::Severity::Error) {
        return Err(problems);
    }
    let publish = || {
        if let Some(parent) = place.parent() {
            fs_err::create_dir_all(parent)?;
        }
        sync_all(&draft)?;
        staging.publish(&draft, &place)
    };
    publish().map_err(|error| failed(&error))?;
    Ok(ImportedTask { id, path: place, restored, problems })
}

type Files = BTreeMap<String, (Vec<u8>, bool)>;

fn read(directory: &Path) -> Result<Files, Vec<Problem>> {
    let mut files = Files::new();
    for file in tree::files(directory)? {
        let (hashed, bytes) = tree::read_content(&file).map_err(|problem| vec![problem])?;
        files.insert(file.path, (bytes, hashed.executable));
    }
    Ok(files)
}

/// Undoes an export, if the files that it wrote and the task are unchanged.
fn restore(files: &Files) -> Option<(Files, String)> {
    let note: Note = aec_base::json::from_slice(&files.get(NOTE)?.0).ok()?;
    let unchanged = note
        .written
        .iter()
        .all(|(path, digest)| files.get(path).is_some_and(|(bytes, _)| Digest::of(bytes) == *digest));
    if note.schema_version != 1 || !unchanged {
        return None;
    }
    let mut made: Files = files
        .iter()
        .filter(|(path, _)| !path.starts_with(&format!("{OWN}/")) && !note.written.contains_key(*path))
        .map(|(path, file)| (path.clone(), file.clone()))
        .collect();
    for path in &note.replaced {
        made.insert(path.clone(), files.get(&format!("{OWN}/original/{path}"))?.clone());
    }
    Some((made, note.task_id))
}

/// Files, the id that this program once gave the task, and what was not imported.
fn translated(
    directory: &Path,
    mut files: Files,
) -> Result<(Files, Option<String>, Vec<Problem>), Vec<Problem>> {
    let path = directory.join(TASK_FILE);
    let unreadable = |what: String| {
        let problem = Problem::error(format!("this is not a task of Harbor: {what}")).id(FAMILY.number(45));
        vec![problem.fix("name a directory with task.toml, instruction.md and tests/test.sh").in_file(&path)]
    };
    let text = read_text(&path, FILE_LIMIT, Links::Refuse).map_err(|error| unreadable(error.to_string()))?;
    let table = toml_table(&text).map_err(|error| unreadable(error.to_string()))?;
    let mut file = translate::translate(table);
    let mut problems = std::mem::take(&mut file.problems);
    let staged = format!("environment/{WORKSPACE}/");
    let mut made = Files::new();
    let (mut left_out, mut workdir) = (Vec::new(), file.workdir);
    if let Some((bytes, _)) = files.get(DOCKERFILE) {
        workdir = workdir.or_else(|| last_workdir(&String::from_utf8_lossy(bytes)));
    } else if let Some(image) = &file.image {
        files.insert(DOCKERFILE.to_owned(), (format!("FROM {image}\n").into_bytes(), false));
    }
    for (path, content) in files {
        let known =
            TAKEN.iter().any(|taken| path == *taken || taken.ends_with('/') && path.starts_with(taken));
        if known && !path.starts_with(&staged) {
            made.insert(path, content);
        } else if path != TASK_FILE && !path.starts_with(&staged) && !path.starts_with(&format!("{OWN}/")) {
            left_out.push(path);
        }
    }
    if !left_out.is_empty() {
        let shown: Vec<String> = left_out.iter().take(10).map(|path| printable(path).into_owned()).collect();
        let what = format!("{} of no meaning here", aec_base::text::count(left_out.len(), "file"));
        problems.push(Problem::note(what).id(FAMILY.number(43)).why(shown.join(", ")));
    }
    if workdir.as_deref().is_some_and(|workdir| workdir.trim_end_matches('/') != "/workspace") {
        let why = format!("agents there work in {}", printable(&workdir.unwrap_or_default()));
        let problem = Problem::warning("agents here work in /workspace").id(FAMILY.number(41)).why(why);
        problems.push(problem.fix("change paths in instruction.md, tests/ and solution/"));
    }
    for needed in ["instruction.md", "tests/test.sh"] {
        if !made.contains_key(needed) {
            problems.extend(unreadable(format!("there is no {needed}")));
        }
    }
    made.insert(TASK_FILE.to_owned(), (file.text.into_bytes(), false));
    Ok((made, file.task_id, problems))
}

fn last_workdir(dockerfile: &str) -> Option<String> {
    dockerfile.lines().rev().map(str::trim).find_map(|line| {
        let (word, rest) = line.split_once(char::is_whitespace)?;
        word.eq_ignore_ascii_case("WORKDIR").then(|| rest.trim().trim_matches('"').to_owned())
    })
}

fn id_of(directory: &Path, below: &str) -> Result<TaskId, Vec<Problem>> {
    let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let id = format!("{below}/{name}");
    TaskId::parse(&id).map_err(|error| {
        let problem =
            Problem::error(format!("`{}` is not an id: {error}", printable(&id))).id(FAMILY.number(44));
        vec![problem.fix("choose one with --id").in_file(directory)]
    })
}

fn write(files: &Files, directory: &Path) -> io::Result<()> {
    for (path, (bytes, executable)) in files {
        let place = directory.join(path);
        if let Some(parent) = place.parent() {
            fs_err::create_dir_all(parent)?;
        }
        let mode = if *executable { 0o755 } else { 0o644 };
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true).mode(mode).open(&place)?.write_all(bytes)?;
    }
    Ok(())
}

/// Whether a restored task is the same as when it was exported.
pub fn is_what_it_was(directory: &Path, imported: &Path) -> Option<bool> {
    let text = read_text(&directory.join(NOTE), FILE_LIMIT, Links::Refuse).ok()?;
    let note: Note = aec_base::json::from_str(&text).ok()?;
    Some(tree::hash(imported, &Memory::default()).is_ok_and(|revision| revision == note.revision))
}
