//! `manifest.json`, which defines a dataset. This program writes it; other programs read it.

use std::path::Path;

use aec_base::digest::Digest;
use aec_base::document::{Document, Shared, Syntax, unreadable};
use aec_base::file::{Links, read_text};
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::text::printable;
use aec_base::timestamp::Timestamp;
use indexmap::IndexMap;
use schemars::JsonSchema;
use semver::Version;
use serde::{Deserialize, Serialize};

use super::hash::dataset_hash;
use super::{FAMILY, finding, paths};
use crate::file::Difficulty;
use crate::id::TaskId;

/// The file of a dataset.
pub const MANIFEST_FILE: &str = "manifest.json";

/// Larger manifests are not read; a hundred thousand tasks need far less.
pub const MANIFEST_LIMIT: u64 = 64 * 1024 * 1024;

/// The version of this format.
pub const SCHEMA_VERSION: u32 = 1;

/// The key under which tasks of unknown difficulty are counted.
const UNKNOWN: &str = "unknown";

/// `manifest.json`. Unknown keys are ignored: they may come from a newer program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// Version of this format; 1 when absent.
    #[serde(default = "first_schema_version")]
    pub schema_version: u32,
    /// Name of the dataset.
    pub name: Name,
    /// Semantic version; never changed once written.
    #[schemars(with = "String")]
    pub version: Version,
    /// Hash of the ids and hashes of all tasks.
    pub content_hash: Digest,
    /// When it was made.
    pub created_at: Timestamp,
    /// Description for people.
    pub description: Description,
    /// The tasks, sorted by id.
    pub tasks: Vec<ManifestTask>,
    /// How the dataset was made.
    pub source: Source,
}

fn first_schema_version() -> u32 {
    1
}

/// Description of a dataset for people.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Description {
    /// One line.
    pub summary: String,
    /// What it is used for.
    pub purpose: Option<String>,
    /// Standards that its tasks follow, sorted.
    pub standards: Vec<String>,
    /// Disciplines of its tasks, sorted.
    pub domains: Vec<String>,
    /// How many tasks there are of each difficulty.
    pub difficulty_distribution: IndexMap<String, usize>,
    /// How many tasks there are.
    pub task_count: usize,
}

/// One task of a dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManifestTask {
    /// Its id with dots; slashes are accepted.
    pub task_id: String,
    /// Its directory, relative to the project root.
    pub task_path: String,
    /// Hash of its files.
    pub content_hash: Digest,
    /// Its discipline.
    #[serde(default)]
    pub domain: String,
    /// How hard it is; absent when unknown.
    #[serde(default)]
    pub difficulty: Option<Difficulty>,
    /// Its tags.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// How a dataset was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Source {
    /// How its tasks were chosen.
    pub method: SourceMethod,
    /// The suite that its tasks were generated from.
    pub suite_config: Option<serde_json::Map<String, serde_json::Value>>,
    /// Seed of the suite, or of the split.
    pub seed: Option<i64>,
}

/// How the tasks of a dataset were chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceMethod {
    /// Selected by a person.
    #[default]
    Manual,
    /// From a generated suite.
    SuiteConfig,
    /// From another program's dataset.
    Import,
    /// One side of a split of another dataset.
    Split,
}

impl Source {
    pub fn manual() -> Self {
        Self { suite_config: Some(serde_json::Map::new()), ..Self::default() }
    }
}

impl ManifestTask {
    /// The id with dots.
    pub fn dotted_id(&self) -> String {
        self.task_id.replace('/', ".")
    }

    /// The id with slashes: the end of the path that equals the id except for dots.
    pub fn id(&self) -> Option<TaskId> {
        let dotted = self.dotted_id();
        let ends = self.task_path.match_indices('/').map(|(at, _)| at + 1);
        std::iter::once(0)
            .chain(ends)
            .map(|at| &self.task_path[at..])
            .find(|end| end.len() == dotted.len() && end.replace('/', ".") == dotted)
            .and_then(|end| TaskId::parse(end).ok())
            .filter(|id| !self.task_id.contains('/') || id.as_str() == self.task_id)
    }
}

impl Manifest {
    pub fn read(path: &Path) -> Result<Self, Vec<Problem>> {
        Self::parse(path, read_manifest_text(path)?)
    }

    /// Checks a manifest that was read from `path`.
    pub fn parse(path: &Path, text: String) -> Result<Self, Vec<Problem>> {
        let document = Document::parse(path, text, Syntax::Json, FAMILY)?;
        let decoded = document.decode::<Self>();
        let Some(manifest) = decoded.value.filter(|_| decoded.problems.is_empty()) else {
            return Err(decoded.problems);
        };
        let problems = manifest.check(&document);
        if problems.is_empty() { Ok(manifest) } else { Err(problems) }
    }

    pub fn to_json(&self) -> serde_json::Result<String> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// `NAME@VERSION`.
    pub fn reference(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }

    /// The content hash computed from its tasks.
    pub fn hash_of_tasks(&self) -> Digest {
        let ids: Vec<String> = self.tasks.iter().map(ManifestTask::dotted_id).collect();
        dataset_hash(ids.iter().map(String::as_str).zip(self.tasks.iter().map(|task| &task.content_hash)))
    }

    /// Checks that serde cannot make.
    fn check(&self, document: &Document) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.schema_version == 0 || self.schema_version > SCHEMA_VERSION {
            let what = format!("this manifest has version {} of its format", self.schema_version);
            problems.push(
                finding(16, what)
                    .why(format!("this program reads version {SCHEMA_VERSION}"))
                    .fix("use a newer aec-bench")
                    .at(document.place("schema_version")),
            );
        }
        if !self.version.build.is_empty() {
            let what = format!("`version` \"{}\" has build metadata", self.version);
            problems.push(
                document
                    .problem(Shared::BadValue, "version", what)
                    .fix("write MAJOR.MINOR.PATCH, or MAJOR.MINOR.PATCH-PRE"),
            );
        }
        if self.tasks.is_empty() {
            problems.push(
                finding(14, "the dataset has no tasks")
                    .fix("create the dataset anew with tasks")
                    .at(document.place("tasks")),
            );
        }
        self.check_tasks(document, &mut problems);
        if problems.is_empty() && self.hash_of_tasks() != self.content_hash {
            problems.push(
                finding(12, "the content hash does not match the listed tasks")
                    .why("the manifest was changed after it was made")
                    .fix("restore the manifest, or create the dataset anew under another version")
                    .at(document.place("content_hash")),
            );
        }
        if problems.is_empty()
            && let Some(key) = self.contradiction()
        {
            problems.push(
                finding(12, format!("`description.{key}` does not match the listed tasks"))
                    .why("the manifest was changed after it was made")
                    .fix("restore the manifest, or create the dataset anew under another version")
                    .at(document.place(&format!("description.{key}"))),
            );
        }
        problems
    }

    fn check_tasks(&self, document: &Document, problems: &mut Vec<Problem>) {
        /// Most problems that are reported.
        const MOST: usize = 50;
        let mut seen = std::collections::HashSet::new();
        for (index, task) in self.tasks.iter().enumerate() {
            if problems.len() >= MOST {
                return;
            }
            let at = |problem: Problem| problem.at(document.place_in_list("tasks", index));
            let id = printable(&task.task_id);
            if !seen.insert(task.dotted_id()) {
                let what = format!("the task `{id}` is listed twice");
                problems.push(at(finding(13, what).fix("create the dataset anew")));
            }
            if let Err(error) = paths::check(&task.task_path) {
                let what = format!("`tasks[{index}].task_path` cannot be used: {error}");
                problems.push(at(finding(15, what).fix("write a path below the project root")));
            } else if task.id().is_none() {
                let what = format!("`tasks[{index}].task_path` does not end with the id `{id}`");
                problems.push(at(finding(15, what).fix("write a path such as tasks/DISCIPLINE/NAME")));
            }
        }
    }

    /// A key of the description that contradicts the list of tasks, if there is one.
    fn contradiction(&self) -> Option<&'static str> {
        let Description { task_count, difficulty_distribution, domains, .. } = &self.description;
        let counted = difficulties(&self.tasks);
        if *task_count != self.tasks.len() {
            return Some("task_count");
        }
        // Other programs may leave out a difficulty that no task has.
        let agrees = counted.iter().all(|(key, count)| difficulty_distribution.get(key) == Some(count))
            && difficulty_distribution.iter().all(|(key, count)| *count == 0 || counted.contains_key(key));
        if !agrees {
            return Some("difficulty_distribution");
        }
        (*domains != self::domains(&self.tasks)).then_some("domains")
    }
}

pub(super) fn read_manifest_text(path: &Path) -> Result<String, Vec<Problem>> {
    read_text(path, MANIFEST_LIMIT, Links::Refuse).map_err(|error| vec![unreadable(path, &error, FAMILY)])
}

pub(super) fn difficulties(tasks: &[ManifestTask]) -> IndexMap<String, usize> {
    let mut counts: IndexMap<String, usize> =
        Difficulty::NAMES.iter().chain([&UNKNOWN]).map(|name| ((*name).to_owned(), 0)).collect();
    for task in tasks {
        if let Some(count) = counts.get_mut(task.difficulty.map_or(UNKNOWN, Difficulty::name)) {
            *count += 1;
        }
    }
    counts.retain(|_, count| *count > 0);
    counts
}

pub(super) fn domains(tasks: &[ManifestTask]) -> Vec<String> {
    let domains: std::collections::BTreeSet<&String> = tasks.iter().map(|task| &task.domain).collect();
    domains.into_iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str, path: &str) -> ManifestTask {
        ManifestTask {
            task_id: id.to_owned(),
            task_path: path.to_owned(),
            content_hash: Digest::of(b""),
            domain: String::new(),
            difficulty: None,
            tags: Vec::new(),
        }
    }

    #[test]
    fn the_id_with_slashes_is_found_in_the_path() {
        let id = |id, path| task(id, path).id().map(|id| id.to_string());
        let found = Some("electrical/voltage-drop/basic".to_owned());
        assert_eq!(id("electrical.voltage-drop.basic", "tasks/electrical/voltage-drop/basic"), found);
        assert_eq!(id("electrical/voltage-drop/basic", "a/b c/electrical/voltage-drop/basic"), found);
        assert_eq!(id("electrical.voltage-drop.basic", "electrical/voltage-drop/basic"), found);
        assert_eq!(id("civil.v1.2", "tasks/civil/v1.2"), Some("civil/v1.2".to_owned()));
        assert_eq!(id("civil/v1/2", "tasks/civil/v1.2"), None, "slashes are exact");
        assert_eq!(id("civil.x", "tasks/civil/y"), None);
        assert_eq!(id("civil.x", "tasks/xcivil/x"), None);
        assert_eq!(id("", "tasks/civil/x"), None);
        assert_eq!(id("..", "tasks/../"), None);
    }
}
