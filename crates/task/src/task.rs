//! A task as the rest of the program sees it: `task.toml` with defaults applied and spellings normalised.

use std::path::{Component, Path, PathBuf};

use aec_base::document::{Document, Family, Syntax};
use aec_base::file::{Links, ReadError, read_text};
use aec_base::problem::Problem;
use serde::Serialize;

use crate::file::{Difficulty, GenerationTable, Lifecycle, NetworkMode, Seconds, TaskFile, Visibility};
use crate::id::TaskId;

/// Ids of problems of tasks begin with `T`.
pub const FAMILY: Family = Family('T');

pub const TASK_FILE: &str = "task.toml";
pub const INSTRUCTION_FILE: &str = "instruction.md";

/// A prompt is text to be read; larger material belongs in files.
pub const INSTRUCTION_LIMIT: u64 = 1024 * 1024;

/// The engineering disciplines; the first segment of an id is usually one of them.
pub const DISCIPLINES: [&str; 8] =
    ["civil", "electrical", "ground", "maritime", "mechanical", "structural", "architectural", "plumbing"];

/// Where an agent writes its answer if the prompt names no path.
const DEFAULT_OUTPUT: &str = "/workspace/output.jsonl";

#[derive(Clone, Debug, Serialize)]
pub struct Task {
    /// Path below the tasks root.
    #[serde(rename = "task_id")]
    pub id: TaskId,
    pub path: PathBuf,
    pub domain: String,
    pub category: Option<String>,
    /// Absent if unknown.
    pub difficulty: Option<Difficulty>,
    /// The template's name for the tier, if it is not one of the three difficulties.
    pub generation_difficulty: Option<String>,
    /// Absent if unknown, which is not treated as public.
    pub visibility: Option<Visibility>,
    /// Stage of its life.
    pub lifecycle: Lifecycle,
    pub tags: Vec<String>,
    pub standard: Option<String>,
    pub agent: AgentLimits,
    pub verifier: VerifierLimits,
    /// The sandbox that the agent works in.
    pub environment: Environment,
    /// How a generated task was made.
    pub generation: Option<GenerationTable>,
}

#[derive(Clone, Debug, Serialize)]
pub struct AgentLimits {
    /// Seconds an agent may take.
    pub timeout_sec: f64,
    /// Files below /workspace that make up the submission; empty for all of them.
    pub outputs: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct VerifierLimits {
    /// Seconds the verifier may take.
    pub timeout_sec: f64,
}

/// The sandbox that the agent works in.
#[derive(Clone, Debug, Serialize)]
pub struct Environment {
    /// Named image layers.
    pub extensions: Vec<String>,
    /// Seconds an image build may take.
    pub build_timeout_sec: f64,
    /// Processor cores.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory_mb: u32,
    /// Disk in MiB.
    pub storage_mb: u32,
    /// Whether the agent may reach the internet.
    pub allow_internet: bool,
    /// Programs offered to the agent, as declared.
    pub tools: Vec<Tool>,
}

/// A program offered to the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tool {
    /// Name the agent calls it by.
    pub name: String,
    /// File below the task directory.
    pub source: String,
    pub description: String,
    /// Whether it returns a picture.
    pub returns_image: bool,
}

impl Tool {
    /// The path of its file below `/workspace`.
    pub fn place(&self) -> &str {
        let inside = self.source.strip_prefix("environment/").unwrap_or(&self.source);
        inside.strip_prefix("workspace/").unwrap_or(inside)
    }
}

/// A task with its file, for callers that report further problems.
pub struct LoadedTask {
    pub task: Task,
    /// The file as written.
    pub file: TaskFile,
    /// The file with positions.
    pub document: Document,
}

impl Task {
    /// Reads the task in `path`.
    pub fn load(id: TaskId, path: &Path) -> Result<LoadedTask, Vec<Problem>> {
        let about = |problems: Vec<Problem>| -> Vec<Problem> {
            problems.into_iter().map(|problem| problem.about(id.as_str())).collect()
        };
        let document =
            Document::read_with(&path.join(TASK_FILE), Syntax::Toml, FAMILY, Links::Refuse).map_err(about)?;
        let decoded = document.decode::<TaskFile>();
        let mut problems = decoded.problems;
        let Some(file) = decoded.value else { return Err(about(problems)) };
        problems.extend(check_file(&file, &document));
        if !problems.is_empty() {
            return Err(about(problems));
        }
        let task = Self::from_file(id, path, &file);
        Ok(LoadedTask { task, file, document })
    }

    fn from_file(id: TaskId, path: &Path, file: &TaskFile) -> Self {
        let metadata = &file.metadata;
        let environment = &file.environment;
        let seconds = |value: Option<Seconds>, default: f64| value.map_or(default, Seconds::get);
        let network_mode = environment.network_mode.map(|mode| mode == NetworkMode::Public);
        Self {
            domain: domain(&id, metadata.domain.as_deref(), &metadata.tags),
            path: path.to_path_buf(),
            category: metadata.category.clone(),
            difficulty: metadata.difficulty,
            generation_difficulty: metadata.generation_difficulty.clone(),
            visibility: metadata.visibility,
            lifecycle: metadata.lifecycle.unwrap_or_default(),
            tags: metadata.tags.clone(),
            standard: metadata.standard.clone(),
            agent: AgentLimits {
                timeout_sec: seconds(file.agent.timeout_sec, 600.0),
                outputs: file.agent.outputs.clone(),
            },
            verifier: VerifierLimits { timeout_sec: seconds(file.verifier.timeout_sec, 300.0) },
            environment: Environment {
                extensions: environment.extensions.clone(),
                build_timeout_sec: seconds(environment.build_timeout_sec, 600.0),
                cpus: environment.cpus.map_or(2, crate::file::Quantity::get),
                memory_mb: environment.memory_mb.map_or(4096, crate::file::Quantity::get),
                storage_mb: environment.storage_mb.map_or(10240, crate::file::Quantity::get),
                // Only tasks that ask for the network get it.
                allow_internet: environment.allow_internet.or(network_mode).unwrap_or(false),
                tools: declared_tools(file, path),
            },
            generation: file.generation.clone(),
            id,
        }
    }

    pub fn instruction(&self) -> Result<String, ReadError> {
        read_text(&self.path.join(INSTRUCTION_FILE), INSTRUCTION_LIMIT, Links::Refuse)
    }

    /// The programs offered to the agent: those declared in `task.toml`, else every `tools/*.py`.
    pub fn tools(&self) -> Vec<Tool> {
        if !self.environment.tools.is_empty() {
            return self.environment.tools.clone();
        }
        let Ok(entries) = fs_err::read_dir(self.path.join("tools")) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.ends_with(".py"))
            .collect();
        names.sort();
        names.iter().map(|name| tool_from_script(name, format!("tools/{name}"))).collect()
    }

    /// The verifier's entry point below the task directory: `tests/test.sh`, or else `tests/verify.py`.
    pub fn verifier_entry(&self) -> Option<&'static str> {
        ["tests/test.sh", "tests/verify.py"].into_iter().find(|entry| self.path.join(entry).is_file())
    }
}

/// Checks of a task file that serde cannot make.
fn check_file(file: &TaskFile, document: &Document) -> Vec<Problem> {
    use aec_base::document::Shared;
    let mut problems = Vec::new();
    if let Some(version) = &file.version
        && !(version == "1" || version.starts_with("1."))
    {
        problems.push(
            document
                .problem(Shared::BadValue, "version", format!("`version` \"{version}\" is not known"))
                .why("this program reads task files of version 1")
                .fix("write version = \"1.0\", or use a newer aec-bench"),
        );
    }
    if file.environment.allow_internet.is_some() && file.environment.network_mode.is_some() {
        problems.push(
            document
                .problem(
                    Shared::Conflict,
                    "environment.network_mode",
                    "`environment.network_mode` and `environment.allow_internet` say the same thing",
                )
                .fix("keep `allow_internet`"),
        );
    }
    for (index, output) in file.agent.outputs.iter().enumerate() {
        let below = Path::new(output.strip_prefix("/workspace/").unwrap_or(output));
        let inside =
            !output.is_empty() && below.components().all(|part| matches!(part, Component::Normal(_)));
        if !inside {
            problems.push(
                Problem::error(format!("`agent.outputs[{index}]` is not a file below /workspace"))
                    .id(FAMILY.id(Shared::BadValue))
                    .fix("write a path such as report.md or /workspace/report.md")
                    .at(document.place_in_list("agent.outputs", index)),
            );
        }
    }
    for (index, tool) in file.environment.tools.iter().enumerate() {
        for (key, value) in [("name", &tool.name), ("source", &tool.source)] {
            if value.as_deref().is_none_or(str::is_empty) {
                problems.push(
                    Problem::error(format!("`environment.tools[{index}].{key}` is missing"))
                        .id(FAMILY.id(Shared::MissingKey))
                        .fix("add the key")
                        .at(document.place_in_list("environment.tools", index)),
                );
            }
        }
    }
    problems
}

/// The first segment if it is a discipline, else the file's value, else the first tag that is a discipline.
fn domain(id: &TaskId, stated: Option<&str>, tags: &[String]) -> String {
    let first = id.segments().next().unwrap_or_default();
    if DISCIPLINES.contains(&first) {
        return first.to_owned();
    }
    stated
        .map(str::to_owned)
        .or_else(|| tags.iter().find(|tag| DISCIPLINES.contains(&tag.as_str())).cloned())
        .unwrap_or_else(|| first.to_owned())
}

fn declared_tools(file: &TaskFile, path: &Path) -> Vec<Tool> {
    let declared = &file.environment.tools;
    if !declared.is_empty() {
        return declared
            .iter()
            .map(|tool| {
                let name = tool.name.clone().unwrap_or_default();
                Tool {
                    description: tool.description.clone().unwrap_or_else(|| format!("Tool: {name}")),
                    source: tool.source.clone().unwrap_or_default(),
                    returns_image: tool.returns_image,
                    name,
                }
            })
            .collect();
    }
    file.tools
        .scripts
        .iter()
        .map(|script| {
            let in_tools = format!("tools/{script}");
            let in_environment = format!("environment/{script}");
            let source = if path.join(&in_environment).exists() { in_environment } else { in_tools };
            tool_from_script(script, source)
        })
        .collect()
}

fn tool_from_script(script: &str, source: String) -> Tool {
    let stem = script.rsplit('/').next().unwrap_or(script);
    let stem = stem.strip_suffix(".py").unwrap_or(stem);
    Tool {
        name: stem.replace('_', "-"),
        source,
        description: format!("Calculator tool: {}", stem.replace('_', " ")),
        returns_image: false,
    }
}

/// The primary output: the last `/workspace/…` path that the prompt names.
pub fn primary_output(instruction: &str) -> String {
    let path_character = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/' | '-');
    instruction
        .match_indices("/workspace/")
        .filter_map(|(at, prefix)| {
            let rest = &instruction[at + prefix.len()..];
            let length = rest.find(|c| !path_character(c)).unwrap_or(rest.len());
            let name = rest[..length].trim_end_matches(['.', ',', ':', ';', '/']);
            let safe = name.split('/').all(|part| !matches!(part, "" | "." | ".."));
            safe.then(|| format!("{prefix}{name}"))
        })
        .last()
        .unwrap_or_else(|| DEFAULT_OUTPUT.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_lie_where_they_are_staged() {
        for (source, staged) in [
            ("tools/a.py", "tools/a.py"),
            ("environment/a.py", "a.py"),
            ("environment/workspace/b/a.py", "b/a.py"),
            ("workspace/a.py", "a.py"),
        ] {
            let (name, description) = ("a".to_owned(), String::new());
            let tool = Tool { name, source: source.to_owned(), description, returns_image: false };
            assert_eq!(tool.place(), staged);
        }
    }

    #[test]
    fn the_last_workspace_path_is_the_output() {
        for (text, expected) in [
            ("Write `/workspace/output.md`.", "/workspace/output.md"),
            ("Read /workspace/in.csv, write /workspace/out/report.md.", "/workspace/out/report.md"),
            ("Work in /workspace/ only.", DEFAULT_OUTPUT),
            ("", DEFAULT_OUTPUT),
            ("Not /workspace/../etc/passwd", DEFAULT_OUTPUT),
            ("(/workspace/a.json)", "/workspace/a.json"),
        ] {
            assert_eq!(primary_output(text), expected, "{text}");
        }
    }

    #[test]
    fn the_discipline_comes_from_the_path_first() {
        let id = |text| TaskId::parse(text).unwrap();
        let tags = ["AS-NZS-3008".to_owned(), "ground".to_owned()];
        assert_eq!(domain(&id("electrical/x"), Some("civil"), &tags), "electrical");
        assert_eq!(domain(&id("generated/x"), Some("civil"), &tags), "civil");
        assert_eq!(domain(&id("generated/x"), None, &tags), "ground");
        assert_eq!(domain(&id("demo/x"), None, &[]), "demo");
    }
}
