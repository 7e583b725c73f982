//! `generation-manifest.json`: what was made from what, with everything needed to make it again byte for byte.

use std::path::{Path, PathBuf};

use aec_base::digest::Digest;
use aec_base::document::{Document, Family, Shared, Syntax};
use aec_base::problem::Problem;
use aec_task::file::Visibility;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::params::{Givens, ToolMode};
use crate::template::{Origin, Template};

/// Ids of problems of manifests begin with `G`.
pub const FAMILY: Family = Family('G');

pub const MANIFEST_FILE: &str = "generation-manifest.json";
/// Directory beside the manifest for templates that are not built in.
pub(crate) const ARCHIVE: &str = ".generation/templates";
const SCHEMA_VERSION: u32 = 1;

/// `generation-manifest.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Manifest {
    /// Version of this format.
    pub schema_version: u32,
    /// Version of the program that made it.
    pub generator: String,
    /// The suite, if one was generated.
    pub suite: Option<SuiteSource>,
    /// Templates that were used, sorted.
    pub templates: Vec<TemplateSource>,
    /// The instances that were made.
    pub instances: Vec<InstanceSource>,
}

/// The source of a suite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SuiteSource {
    /// Name of the suite.
    pub name: String,
    /// Seed of every draw.
    pub seed: i64,
    /// `suite.toml` as it was read.
    pub config: serde_json::Value,
}

/// A template that was used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TemplateSource {
    /// `discipline/name`.
    pub template: String,
    /// Its version.
    pub version: String,
    /// Hash of all its files.
    #[schemars(with = "String")]
    pub content_hash: Option<Digest>,
    /// Whether it is built into the program; otherwise a copy is beside the manifest.
    pub library: bool,
}

/// An instance that was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct InstanceSource {
    /// Path of the task from the manifest's directory.
    pub task: String,
    /// `discipline/name`.
    pub template: String,
    /// Tier.
    pub difficulty: String,
    /// How much the prompt shows: `all_given`, `partial` or `scenario_only`.
    pub visibility_level: String,
    /// `with-tool` or `no-tool`.
    pub tool_mode: String,
    /// `public` or `holdout`.
    pub visibility: String,
    /// Seed of the draw.
    pub seed: i64,
    /// Index of the draw.
    pub index: u32,
    /// Number of the accepted draw.
    pub draw: u32,
    /// Hash of all its files.
    #[schemars(with = "String")]
    pub content_hash: Option<Digest>,
}

impl InstanceSource {
    pub(crate) fn mode(&self) -> Option<ToolMode> {
        ToolMode::parse(&self.tool_mode)
    }

    pub(crate) fn seen_by(&self) -> Option<Visibility> {
        Visibility::parse(&self.visibility)
    }
}

impl TemplateSource {
    pub(crate) fn of(template: &Template) -> Self {
        Self {
            template: template.path(),
            version: template.version.to_string(),
            content_hash: Some(template.digest),
            library: template.origin == Origin::Library,
        }
    }

    /// Its path below the manifest's directory.
    pub(crate) fn archive(&self) -> PathBuf {
        let hex = self.content_hash.map(|digest| digest.hex()).unwrap_or_default();
        Path::new(ARCHIVE).join(&hex[..16.min(hex.len())])
    }
}

impl Manifest {
    pub(crate) fn new(suite: Option<SuiteSource>) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            generator: format!("aec-bench {}", env!("CARGO_PKG_VERSION")),
            suite,
            templates: Vec::new(),
            instances: Vec::new(),
        }
    }

    pub fn read(path: &Path) -> Result<Self, Vec<Problem>> {
        // The manifest of ten thousand instances has some megabytes.
        const LIMIT: u64 = 256 * 1024 * 1024;
        let text = aec_base::file::read_text(path, LIMIT, aec_base::file::Links::Follow)
            .map_err(|error| vec![aec_base::document::unreadable(path, &error, FAMILY)])?;
        let document = Document::parse(path, text, Syntax::Json, FAMILY)?;
        let decoded = document.decode::<Self>();
        let mut problems = decoded.problems;
        match decoded.value {
            Some(manifest) if problems.is_empty() => {
                if manifest.schema_version != SCHEMA_VERSION {
                    let what = format!("a manifest of version {} is not known", manifest.schema_version);
                    problems.push(
                        document
                            .problem(Shared::BadValue, "schema_version", what)
                            .fix("use the version of aec-bench that made it"),
                    );
                    return Err(problems);
                }
                Ok(manifest)
            }
            _ => Err(problems),
        }
    }

    /// Adds the instances of another run; replaces tasks that already exist.
    pub(crate) fn merge(&mut self, other: Self) {
        for template in other.templates {
            if !self.templates.contains(&template) {
                self.templates.push(template);
            }
        }
        for instance in other.instances {
            match self.instances.iter_mut().find(|known| known.task == instance.task) {
                Some(known) => *known = instance,
                None => self.instances.push(instance),
            }
        }
        self.sort();
    }

    pub(crate) fn sort(&mut self) {
        self.templates.sort_by(|a, b| (&a.template, a.content_hash).cmp(&(&b.template, b.content_hash)));
        self.instances.sort_by(|a, b| a.task.cmp(&b.task));
    }

    pub(crate) fn to_json(&self) -> String {
        // Only strings, numbers and lists, which can always be written.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

/// The levels in the order of reports.
pub(crate) const LEVELS: [Givens; 3] = [Givens::AllGiven, Givens::Partial, Givens::ScenarioOnly];
