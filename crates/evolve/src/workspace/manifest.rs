//! `manifest.yaml`: the name of a workspace, its harness, and which parts of it may be changed.

use std::path::Path;

use aec_base::document::{Document, Shared, Syntax};
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_run::experiment::Harness;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::FAMILY;

pub const MANIFEST_FILE: &str = "manifest.yaml";
pub const MANIFEST_VERSION: u32 = 1;
/// Skills that a workspace may have by default.
pub const DEFAULT_SKILL_BUDGET: usize = 10;

/// `manifest.yaml`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ManifestFile {
    /// Version of this format.
    pub schema_version: Option<u32>,
    /// The version as older workspaces write it.
    pub version: Option<String>,
    /// Name of the workspace.
    pub name: Option<Name>,
    /// The harness that the prompt is for.
    pub agent_harness: Option<Harness>,
    /// Another spelling of `agent_harness`.
    pub agent_adapter: Option<Harness>,
    /// What may be changed (default: prompts and skills).
    pub evolvable_layers: Option<Vec<Layer>>,
    /// Most skills (default 10).
    pub skill_budget: Option<usize>,
}

/// A part of a workspace that may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// `prompts/system.md`.
    Prompts,
    /// `skills/NAME/SKILL.md`.
    Skills,
}

impl Layer {
    pub fn name(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::Skills => "skills",
        }
    }
}

/// A manifest, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    pub name: Name,
    pub harness: Harness,
    pub layers: Vec<Layer>,
    pub skill_budget: usize,
}

impl Manifest {
    /// Reads a manifest from its text; every problem is reported.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Vec<Problem>> {
        let document = Document::parse(path, text.to_owned(), Syntax::Yaml, FAMILY)?;
        let decoded = document.decode::<ManifestFile>();
        let mut problems = decoded.problems;
        let file = decoded.value.unwrap_or_default();
        if !problems.is_empty() {
            return Err(problems);
        }
        // Workspaces of the first version have `version: 0.1.0` and mean the same.
        let version = file.schema_version.unwrap_or(MANIFEST_VERSION);
        if version != MANIFEST_VERSION {
            let what =
                format!("the workspace has version {version}, this program reads version {MANIFEST_VERSION}");
            problems.push(
                document
                    .problem(Shared::BadValue, "schema_version", what)
                    .fix("use the program that made it"),
            );
        }
        if file.schema_version.is_some() && file.version.is_some() {
            let what = "`schema_version` and `version` say the same thing";
            problems.push(document.problem(Shared::Conflict, "version", what).fix("keep `schema_version`"));
        }
        if file.agent_harness.is_some() && file.agent_adapter.is_some() {
            let what = "`agent_harness` and `agent_adapter` say the same thing";
            problems
                .push(document.problem(Shared::Conflict, "agent_adapter", what).fix("keep `agent_harness`"));
        }
        let mut layers = file.evolvable_layers.unwrap_or_else(|| vec![Layer::Prompts, Layer::Skills]);
        layers.sort_unstable();
        layers.dedup();
        if layers.is_empty() {
            let what = "nothing of this workspace may be changed";
            let problem = document.problem(Shared::BadValue, "evolvable_layers", what);
            problems.push(problem.fix("name `prompts`, `skills` or both"));
        }
        let missing = |key: &str| {
            document
                .problem(Shared::MissingKey, key, format!("`{key}` is missing"))
                .fix("add it; `aec-bench evolve init` writes a manifest to compare with")
        };
        let harness = file.agent_harness.or(file.agent_adapter);
        problems.extend(file.name.is_none().then(|| missing("name")));
        problems.extend(harness.is_none().then(|| missing("agent_harness")));
        match (file.name, harness) {
            (Some(name), Some(harness)) if problems.is_empty() => Ok(Self {
                name,
                harness,
                layers,
                skill_budget: file.skill_budget.unwrap_or(DEFAULT_SKILL_BUDGET),
            }),
            _ => Err(problems),
        }
    }

    pub fn new_text(name: &Name, harness: Harness) -> String {
        format!(
            "schema_version: {MANIFEST_VERSION}\nname: {name}\nagent_harness: {}\nevolvable_layers: [prompts, skills]\nskill_budget: {DEFAULT_SKILL_BUDGET}\n",
            harness.name()
        )
    }

    pub fn allows(&self, layer: Layer) -> bool {
        self.layers.contains(&layer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Manifest, Vec<Problem>> {
        Manifest::parse(Path::new("manifest.yaml"), text)
    }

    #[test]
    fn what_init_writes_can_be_read() {
        let name = Name::parse("voltage-drop-evo").unwrap();
        let manifest = parse(&Manifest::new_text(&name, Harness::Rlm)).unwrap();
        assert_eq!((manifest.name, manifest.harness, manifest.skill_budget), (name, Harness::Rlm, 10));
        assert!(manifest.layers == [Layer::Prompts, Layer::Skills]);
        let old = parse("version: 0.1.0\nname: a\nagent_adapter: tool_loop\n").unwrap();
        assert_eq!(old.harness, Harness::ToolLoop);
    }

    #[test]
    fn mistakes_are_named() {
        let ids = |text: &str| -> Vec<String> {
            parse(text).unwrap_err().into_iter().filter_map(|problem| problem.id).collect()
        };
        assert_eq!(ids(""), ["X006", "X006"]);
        assert_eq!(ids("name: a\nagent_harness: rlm\nevolvable_layers: [memory]\n"), ["X005"]);
        assert_eq!(ids("name: a\nagent_harness: rlm\nevolvable_layers: []\n"), ["X005"]);
        assert_eq!(ids("name: a\nagent_harness: rlm\nagent_adapter: rlm\n"), ["X007"]);
        assert_eq!(ids("name: a\nagent_harness: rlm\nskills: 3\n"), ["X003"]);
        assert_eq!(ids("schema_version: 2\nname: a\nagent_harness: rlm\n"), ["X005"]);
        assert_eq!(ids("name: ../a\nagent_harness: rlm\n"), ["X005"]);
    }
}
