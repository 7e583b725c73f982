//! Exports one of our tasks as a directory that Harbor accepts. Values for which Harbor has other defaults are written
//! explicitly, and files that Harbor would not copy are included.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use aec_base::digest::Digest;
use aec_base::problem::Problem;
use aec_container::image::Extension;
use aec_task::dataset::tree::{self, Memory, TreeFile};
use aec_task::task::{INSTRUCTION_FILE, TASK_FILE, Task, Tool};
use serde::{Deserialize, Serialize};
use serde_json::json;
use toml::{Table, Value};

use super::{NOTE, OWN, WORKSPACE};
use crate::FAMILY;
use crate::checksum::{self, Checksums};

/// The version of Harbor's task format.
const SCHEMA_VERSION: &str = "1.4";
/// The image of a task that names none.
const DEFAULT_DOCKERFILE: &str = "FROM python:3.12-slim\n";
const DOCKERFILE: &str = "environment/Dockerfile";
const IGNORED: &str = "environment/.dockerignore";
const VERIFIER: &str = "tests/test.sh";
const SOLUTION: &str = "solution/solve.sh";

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Purpose {
    /// For another user: includes everything needed to translate the task back.
    #[default]
    Share,
    /// For a job of this program: contains only what the job needs.
    Run(Box<RunChanges>),
}

/// Changes that a plan's conditions make to a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunChanges {
    /// Whether an agent of the job runs the reference solution.
    pub solution: bool,
    /// Seconds that agents may take, in place of the task's limit.
    pub timeout_sec: Option<f64>,
    /// In MiB, in place of the task's limit.
    pub memory_mb: Option<u32>,
    /// The prompt, in place of the task's.
    pub instruction: Option<String>,
    /// Tools to offer, in place of the task's.
    pub tools: Option<Vec<Tool>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Written {
    bytes: Vec<u8>,
    executable: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Translated {
    files: BTreeMap<String, Written>,
}

/// Records what was translated, and the digests of the files that this program wrote.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) schema_version: u32,
    pub(super) task_id: String,
    /// Digest of the task's own files.
    pub(super) revision: Digest,
    /// Digests of files that are not the task's own.
    pub(super) written: BTreeMap<String, Digest>,
    /// Files of the task that were replaced; they are beside this note.
    pub(super) replaced: Vec<String>,
}

pub fn translate(task: &Task, purpose: &Purpose) -> Result<Translated, Vec<Problem>> {
    let own = read(&task.path)?;
    let changes = match purpose {
        Purpose::Share => &RunChanges { solution: true, ..RunChanges::default() },
        Purpose::Run(changes) => changes.as_ref(),
    };
    let sharing = *purpose == Purpose::Share;
    let mut translated = Translated::default();
    for (path, file) in &own {
        if sharing || is_needed(path, changes) {
            translated.files.insert(path.clone(), file.clone());
        }
    }
    if !translated.files.contains_key(VERIFIER) {
        if !translated.files.contains_key("tests/verify.py") {
            return Err(vec![without_verifier(task)]);
        }
        let script = "#!/bin/bash\nexec python3 -I /tests/verify.py\n";
        translated.put(VERIFIER, script, true);
    }
    if changes.solution && !own.contains_key(SOLUTION) && own.contains_key("solution/solve.py") {
        translated.put(SOLUTION, "#!/bin/bash\nexec python3 /solution/solve.py\n", true);
    }
    for entry in [VERIFIER, SOLUTION] {
        if let Some(file) = translated.files.get_mut(entry) {
            file.executable = true;
        }
    }
    if let Some(instruction) = &changes.instruction {
        translated.put(INSTRUCTION_FILE, instruction, false);
    }
    translated.put(TASK_FILE, &task_file(task, changes), false);
    translated.stage_workspace(task, own.get(DOCKERFILE), own.get(IGNORED))?;
    if sharing {
        translated.keep_originals(task, &own)?;
    } else {
        let tools = changes.tools.clone().unwrap_or_else(|| task.tools());
        translated.put(&format!("{OWN}/tools.json"), &tools_json(&tools), false);
    }
    Ok(translated)
}

impl Translated {
    fn put(&mut self, path: &str, text: &str, executable: bool) {
        self.files.insert(path.to_owned(), Written { bytes: text.as_bytes().to_vec(), executable });
    }

    /// All files that the agent finds in `/workspace` become part of the image.
    fn stage_workspace(
        &mut self,
        task: &Task,
        dockerfile: Option<&Written>,
        ignored: Option<&Written>,
    ) -> Result<(), Vec<Problem>> {
        let unreadable = |error: &dyn std::fmt::Display| {
            let what = format!("the task `{}` cannot be read: {error}", task.id);
            vec![
                Problem::error(what)
                    .id(FAMILY.number(23))
                    .about(task.id.as_str())
                    .fix("see `aec-bench task validate`"),
            ]
        };
        let staged = task.workspace_files().map_err(|error| unreadable(&error))?;
        let text = match dockerfile {
            Some(file) => std::str::from_utf8(&file.bytes).map_err(|error| unreadable(&error))?,
            None => DEFAULT_DOCKERFILE,
        };
        let mut text = text.trim_end().to_owned();
        text.push('\n');
        let layers = task.environment.extensions.iter().filter_map(|name| Extension::parse(name));
        let layers: String = layers.map(Extension::layer).collect();
        if !layers.is_empty() {
            text.push_str(&format!("USER 0\n{layers}"));
        }
        if !staged.is_empty() {
            text.push_str(&format!("COPY {WORKSPACE}/ /workspace/\n"));
        }
        text.push_str("WORKDIR /workspace\n");
        self.put(DOCKERFILE, &text, false);
        if let Some(ignored) = ignored.filter(|_| !staged.is_empty()) {
            // The last matching rule decides.
            let mut rules = String::from_utf8_lossy(&ignored.bytes).trim_end().to_owned();
            rules.push_str(&format!("\n!{WORKSPACE}\n!{WORKSPACE}/**\n"));
            self.put(IGNORED, &rules, false);
        }
        for file in staged {
            let tree_file = TreeFile { path: file.place.clone(), place: file.source };
            let (hashed, bytes) = tree::read_content(&tree_file).map_err(|problem| vec![problem])?;
            let written = Written { bytes, executable: hashed.executable };
            self.files.insert(format!("environment/{WORKSPACE}/{}", file.place), written);
        }
        Ok(())
    }

    /// Keeps the replaced files, and a note that lets `task import` restore them.
    fn keep_originals(&mut self, task: &Task, own: &BTreeMap<String, Written>) -> Result<(), Vec<Problem>> {
        let revision = tree::hash(&task.path, &Memory::default())?;
        let mut note = Note {
            schema_version: 1,
            task_id: task.id.as_str().to_owned(),
            revision,
            written: BTreeMap::new(),
            replaced: Vec::new(),
        };
        for (path, file) in &self.files {
            if own.get(path) != Some(file) {
                note.written.insert(path.clone(), Digest::of(&file.bytes));
                if own.contains_key(path) {
                    note.replaced.push(path.clone());
                }
            }
        }
        for path in &note.replaced {
            if let Some(file) = own.get(path) {
                self.files.insert(format!("{OWN}/original/{path}"), file.clone());
            }
        }
        let mut text = serde_json::to_string_pretty(&note).unwrap_or_default();
        text.push('\n');
        self.put(NOTE, &text, false);
        Ok(())
    }

    pub fn checksums(&self) -> Checksums {
        checksum::of(&self.files.iter().map(|(path, file)| (path.clone(), Digest::of(&file.bytes))).collect())
    }

    /// Writes it into a directory that does not exist.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        fs_err::create_dir_all(directory)?;
        for (path, file) in &self.files {
            let place = directory.join(path);
            if let Some(parent) = place.parent() {
                fs_err::create_dir_all(parent)?;
            }
            let mode = if file.executable { 0o755 } else { 0o644 };
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create_new(true).mode(mode);
            options.open(&place)?.write_all(&file.bytes)?;
        }
        Ok(())
    }

    /// Its files, for tests and previews.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }
}

/// The digests that Harbor would compute for a directory.
pub fn checksums_of(directory: &Path) -> Result<Checksums, Vec<Problem>> {
    let files = read(directory)?;
    Ok(checksum::of(&files.iter().map(|(path, file)| (path.clone(), Digest::of(&file.bytes))).collect()))
}

fn read(directory: &Path) -> Result<BTreeMap<String, Written>, Vec<Problem>> {
    let mut files = BTreeMap::new();
    for file in tree::files(directory)? {
        let (hashed, bytes) = tree::read_content(&file).map_err(|problem| vec![problem])?;
        files.insert(file.path, Written { bytes, executable: hashed.executable });
    }
    Ok(files)
}

/// Golden answers are never needed, reference solutions rarely. Harbor uploads neither while an agent works, but a file
/// that is left out certainly cannot be found.
fn is_needed(path: &str, changes: &RunChanges) -> bool {
    let golden = path.strip_prefix("tests/fixtures/").is_some_and(|name| name.starts_with("golden_"));
    let solution = path.starts_with("solution/") && !changes.solution;
    !golden && !solution
}

fn tools_json(tools: &[Tool]) -> String {
    let entries: Vec<_> = tools
        .iter()
        .map(|tool| {
            json!({
                "name": tool.name,
                "source": tool.place(),
                "description": tool.description,
                "returns_image": tool.returns_image,
            })
        })
        .collect();
    serde_json::to_string(&entries).unwrap_or_default()
}

/// `task.toml` in Harbor's format. A missing key means something else there than here, so every key is written.
fn task_file(task: &Task, changes: &RunChanges) -> String {
    let environment = &task.environment;
    let mut file = Table::new();
    let mut set = |key: &str, value: Value| drop(file.insert(key.to_owned(), value));
    set("schema_version", SCHEMA_VERSION.into());
    set("artifacts", Value::Array(vec!["/workspace".into()]));
    let mut metadata = Table::new();
    let texts = [
        ("difficulty", task.difficulty.map(|difficulty| difficulty.name().to_owned())),
        ("category", task.category.clone()),
        ("domain", Some(task.domain.clone())),
        ("standard", task.standard.clone()),
        ("visibility", task.visibility.map(|visibility| visibility.name().to_owned())),
        ("aec_bench_task", Some(task.id.as_str().to_owned())),
    ];
    for (key, value) in texts {
        if let Some(value) = value {
            metadata.insert(key.to_owned(), value.into());
        }
    }
    metadata.insert("tags".to_owned(), Value::Array(task.tags.iter().cloned().map(Value::from).collect()));
    set("metadata", Value::Table(metadata));
    let table = |pairs: Vec<(&str, Value)>| -> Value {
        Value::Table(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    };
    set("agent", table(vec![("timeout_sec", changes.timeout_sec.unwrap_or(task.agent.timeout_sec).into())]));
    set(
        "verifier",
        table(vec![("timeout_sec", task.verifier.timeout_sec.into()), ("environment_mode", "shared".into())]),
    );
    let network = if environment.allow_internet { "public" } else { "no-network" };
    set(
        "environment",
        table(vec![
            ("network_mode", network.into()),
            ("build_timeout_sec", environment.build_timeout_sec.into()),
            ("cpus", i64::from(environment.cpus).into()),
            ("memory_mb", i64::from(changes.memory_mb.unwrap_or(environment.memory_mb)).into()),
            ("storage_mb", i64::from(environment.storage_mb).into()),
            ("workdir", "/workspace".into()),
        ]),
    );
    toml::to_string(&file).unwrap_or_default()
}

fn without_verifier(task: &Task) -> Problem {
    Problem::error(format!("the task `{}` has no verifier", task.id))
        .id(FAMILY.number(23))
        .about(task.id.as_str())
        .why("Harbor takes no task without tests/test.sh")
        .fix("add tests/test.sh")
}
