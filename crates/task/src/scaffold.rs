//! The files of a new project and of a new task.
//!
//! Existing files are overwritten only on request, and a `.env` never, because it may hold secrets. Every path is
//! checked before the first file is written.

use std::io;
use std::path::{Path, PathBuf};

use aec_base::file::write_atomic;
use aec_base::name;
use aec_base::problem::Problem;
use aec_base::project::PROJECT_FILE;
use serde::Serialize;

use crate::id::TaskId;
use crate::seed::Seed;
use crate::task::{DISCIPLINES, TASK_FILE};

/// The directories of a project, relative to its root.
const DIRECTORIES: [&str; 9] = [
    "tasks",
    "templates",
    "artefacts/ledger",
    "artefacts/feedback",
    "artefacts/datasets",
    "jobs",
    "prime-rl",
    "seeds",
    "workspaces",
];

/// The example task of a new project.
pub const EXAMPLE_TASK: &str = "electrical/voltage-drop";

/// The directory of the JSON Schemas of a project's files, for editors.
const SCHEMA_DIRECTORY: &str = ".aec-bench/schemas";

type Files = [(&'static str, &'static str)];

const EXAMPLE: &Files = &[
    ("task.toml", include_str!("../scaffold/example/task.toml")),
    ("instruction.md", include_str!("../scaffold/example/instruction.md")),
    ("environment/Dockerfile", include_str!("../scaffold/example/environment/Dockerfile")),
    ("environment/cables.csv", include_str!("../scaffold/example/environment/cables.csv")),
    ("tools/voltage_drop.py", include_str!("../scaffold/example/tools/voltage_drop.py")),
    ("tests/test.sh", include_str!("../scaffold/example/tests/test.sh")),
    ("tests/verify.py", include_str!("../scaffold/example/tests/verify.py")),
    ("tests/fixtures/golden_pass.json", include_str!("../scaffold/example/tests/fixtures/golden_pass.json")),
    ("tests/fixtures/golden_fail.json", include_str!("../scaffold/example/tests/fixtures/golden_fail.json")),
    ("solution/solve.sh", include_str!("../scaffold/example/solution/solve.sh")),
];

const SKELETON: &Files = &[
    ("task.toml", include_str!("../scaffold/skeleton/task.toml")),
    ("instruction.md", include_str!("../scaffold/skeleton/instruction.md")),
    ("environment/Dockerfile", include_str!("../scaffold/skeleton/environment/Dockerfile")),
    ("tests/test.sh", include_str!("../scaffold/skeleton/tests/test.sh")),
    ("tests/verify.py", include_str!("../scaffold/skeleton/tests/verify.py")),
    ("tests/fixtures/golden_pass.json", include_str!("../scaffold/skeleton/tests/fixtures/golden_pass.json")),
    ("tests/fixtures/golden_fail.json", include_str!("../scaffold/skeleton/tests/fixtures/golden_fail.json")),
    ("solution/solve.sh", include_str!("../scaffold/skeleton/solution/solve.sh")),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It did not exist.
    Created,
    /// It existed and was replaced, as requested.
    Replaced,
    /// It existed, and lines were appended to it.
    Extended,
    /// It existed and was not changed.
    Kept,
}

/// One path of a scaffold.
#[derive(Clone, Debug, Serialize)]
pub struct Written {
    pub action: Action,
    /// Relative to the project root; directories end with a slash.
    pub path: String,
}

/// Why nothing, or only a part, was written.
#[derive(Debug, thiserror::Error)]
pub enum ScaffoldError {
    #[error("{0}")]
    InTheWay(Box<Problem>),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Options of a new project.
#[derive(Debug)]
pub struct ProjectScaffold<'a> {
    /// Replace files that exist.
    pub force: bool,
    /// Write the example task.
    pub example: bool,
    /// JSON Schemas by file stem, for editors.
    pub schemas: &'a [(String, String)],
}

/// Writes a new project into `root`.
pub fn new_project(root: &Path, scaffold: &ProjectScaffold<'_>) -> Result<Vec<Written>, ScaffoldError> {
    if root.join(PROJECT_FILE).symlink_metadata().is_ok() && !scaffold.force {
        return Err(in_the_way(
            Problem::error("this is already a project")
                .fix("work in it, or pass --force to write its files anew")
                .in_file(root.join(PROJECT_FILE)),
        ));
    }
    let name = project_name(root);
    let fill = |text: &str| text.replace("@NAME@", &name);
    let mut files: Vec<(PathBuf, String)> =
        vec![("suite.toml".into(), fill(include_str!("../scaffold/project/suite.toml")))];
    for (noun, schema) in scaffold.schemas {
        files.push((Path::new(SCHEMA_DIRECTORY).join(format!("{noun}.json")), schema.clone()));
    }
    if scaffold.example {
        let directory = Path::new("tasks").join(EXAMPLE_TASK);
        let schema = schema_path_from(&directory);
        for (path, text) in EXAMPLE {
            files.push((directory.join(path), text.replace("@SCHEMA@", &schema)));
        }
    }
    // Last, because this file makes the directory a project: after a crash the user can simply repeat `init`.
    files.push((PROJECT_FILE.into(), fill(include_str!("../scaffold/project/aec-bench.toml"))));

    for directory in DIRECTORIES {
        check_directory(root, Path::new(directory))?;
    }
    for (path, _) in &files {
        check_directory(root, path.parent().unwrap_or_else(|| Path::new("")))?;
        check_file(root, path)?;
    }

    let mut written = Vec::new();
    for directory in DIRECTORIES {
        let path = root.join(directory);
        let action = if path.is_dir() { Action::Kept } else { Action::Created };
        fs_err::create_dir_all(&path)?;
        written.push(Written { action, path: format!("{directory}/") });
    }
    // Secrets: never replaced, and readable only by the owner.
    let dotenv = write_file(root, Path::new(".env"), include_str!("../scaffold/project/env"), false)?;
    if dotenv.action == Action::Created {
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs_err::set_permissions(root.join(".env"), private)?;
    }
    written.push(dotenv);
    written.push(extend_gitignore(root)?);
    for (path, text) in &files {
        written.push(write_file(root, path, text, scaffold.force)?);
    }
    Ok(written)
}

/// Writes the skeleton of a new task below the tasks root; a seed provides its text.
pub fn new_task(
    project_root: &Path,
    tasks_root: &Path,
    id: &TaskId,
    seed: Option<&Seed>,
) -> Result<Vec<Written>, ScaffoldError> {
    let directory = tasks_root.join(id.relative_path());
    if directory.symlink_metadata().is_ok() {
        return Err(in_the_way(
            Problem::error(format!("`{id}` exists already"))
                .fix("choose another id, or edit the task that is there")
                .in_file(&directory),
        ));
    }
    for above in directory.ancestors().skip(1).take_while(|above| above.starts_with(tasks_root)) {
        if above.join(TASK_FILE).exists() {
            return Err(in_the_way(
                Problem::error("a task cannot be inside another task")
                    .fix("choose an id beside it, not below it")
                    .in_file(above),
            ));
        }
        if above.is_symlink() || (above.exists() && !above.is_dir()) {
            return Err(in_the_way(
                Problem::error("this is not a directory")
                    .fix("choose another id, or move what is there")
                    .in_file(above),
            ));
        }
    }
    let domain = id.segments().next().filter(|first| DISCIPLINES.contains(first)).unwrap_or("engineering");
    let title = id.segments().last().unwrap_or_default().replace(['-', '_'], " ");
    let relative = directory.strip_prefix(project_root).unwrap_or(&directory);
    let schema = schema_path_from(relative);
    let fill = |text: &str| {
        let text = text.replace("@DOMAIN@", domain).replace("@TITLE@", &capitalised(&title));
        if relative.is_absolute() {
            // Outside a project there is no schema to refer to.
            text.replace("#:schema @SCHEMA@\n", "")
        } else {
            text.replace("@SCHEMA@", &schema)
        }
    };
    let mut written = Vec::new();
    for (path, text) in SKELETON {
        let text = match seed {
            Some(seed) if *path == "instruction.md" => instruction_from(seed),
            _ => fill(text),
        };
        written.push(write_file(&directory, Path::new(path), &text, false)?);
    }
    Ok(written)
}

/// The first version of the instruction, made from a seed's note.
fn instruction_from(seed: &Seed) -> String {
    let mut text = format!("# {}\n\n{}\n", seed.title.trim(), seed.description.trim());
    if !seed.standards.is_empty() {
        text.push_str(&format!("\nFollow {}.\n", seed.standards.join(", ")));
    }
    if !seed.inputs.is_empty() {
        text.push_str("\nGiven, with values to be filled in:\n\n");
        for input in &seed.inputs {
            text.push_str(&format!("- {input}\n"));
        }
    }
    text.push_str(
        "\nWrite your answer to `/workspace/output.json`, a JSON object with these keys:\n\n\
         | key | unit | meaning |\n|---|---|---|\n| `result` | kN | the quantity asked for |\n",
    );
    for output in &seed.outputs {
        let key: String =
            output.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        text.push_str(&format!("| `{}` | | {output} |\n", key.trim_matches('_')));
    }
    text
}

fn in_the_way(problem: Problem) -> ScaffoldError {
    ScaffoldError::InTheWay(Box::new(problem))
}

/// Derives a project's name from its directory; characters that names cannot have are replaced.
fn project_name(root: &Path) -> String {
    let directory = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    let directory = directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let safe: String = directory
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '-' })
        .take(name::MAX_NAME)
        .collect();
    let safe = safe.trim_matches(['-', '_']).to_owned();
    if safe.is_empty() { "my-bench".to_owned() } else { safe }
}

fn schema_path_from(directory: &Path) -> String {
    format!("{}{SCHEMA_DIRECTORY}/task.json", "../".repeat(directory.components().count()))
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

/// Every existing component must be a real directory, so that nothing is written through a link.
fn check_directory(root: &Path, relative: &Path) -> Result<(), ScaffoldError> {
    let mut path = root.to_path_buf();
    for component in relative.components() {
        path.push(component);
        if path.symlink_metadata().is_ok_and(|metadata| !metadata.is_dir()) {
            return Err(in_the_way(
                Problem::error("something that is not a directory is in the way")
                    .fix("move it away; nothing was written")
                    .in_file(path),
            ));
        }
    }
    Ok(())
}

fn check_file(root: &Path, relative: &Path) -> Result<(), ScaffoldError> {
    let path = root.join(relative);
    if path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(in_the_way(
            Problem::error("a directory is where a file belongs")
                .fix("move it away; nothing was written")
                .in_file(path),
        ));
    }
    Ok(())
}

fn write_file(root: &Path, relative: &Path, text: &str, force: bool) -> Result<Written, ScaffoldError> {
    let path = root.join(relative);
    let exists = path.symlink_metadata().is_ok();
    let action = match (exists, force) {
        (true, false) => Action::Kept,
        (true, true) => Action::Replaced,
        (false, _) => Action::Created,
    };
    if action != Action::Kept {
        write_atomic(&path, text.as_bytes())?;
        if relative.extension().is_some_and(|extension| extension == "sh") {
            fs_err::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        }
    }
    Ok(Written { action, path: relative.display().to_string() })
}

/// A repository usually has a `.gitignore`: adds the missing lines and removes none.
fn extend_gitignore(root: &Path) -> Result<Written, ScaffoldError> {
    const LINES: &str = include_str!("../scaffold/project/gitignore");
    let path = root.join(".gitignore");
    if path.symlink_metadata().is_err() {
        return write_file(root, Path::new(".gitignore"), LINES, false);
    }
    let existing = fs_err::read_to_string(&path)?;
    let known: Vec<&str> = existing.lines().map(str::trim).collect();
    let missing: Vec<&str> =
        LINES.lines().filter(|line| !line.starts_with('#') && !known.contains(line)).collect();
    let action = if missing.is_empty() { Action::Kept } else { Action::Extended };
    if action == Action::Extended {
        let end = if existing.is_empty() || existing.ends_with('\n') { "" } else { "\n" };
        let text = format!("{existing}{end}# aec-bench\n{}\n", missing.join("\n"));
        write_atomic(&path, text.as_bytes())?;
    }
    Ok(Written { action, path: ".gitignore".to_owned() })
}
