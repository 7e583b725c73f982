//! `task.toml`: the file format of a task's settings.
//!
//! The spellings of the seeds are preferred; [`crate::task`] normalises a few spellings of older tools.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `task.toml`. Every key is optional; each key's description says what its absence means.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TaskFile {
    /// Version of this format: `"1.0"`, also when absent.
    pub version: Option<String>,
    /// What the task is.
    pub metadata: MetadataTable,
    /// Limits of the agent's phase.
    pub agent: AgentTable,
    /// Limits of the verifier.
    pub verifier: VerifierTable,
    /// The sandbox that the agent works in.
    pub environment: EnvironmentTable,
    /// Older spelling of `[[environment.tools]]`.
    pub tools: ToolsTable,
    /// How a generated task was made; written by the generator.
    pub generation: Option<GenerationTable>,
    /// Read by another tool; has no effect here.
    pub canonical_refs: Option<BTreeMap<String, String>>,
    /// Read by another tool; has no effect here.
    pub remediation: Option<RemediationTable>,
}

/// `[metadata]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MetadataTable {
    /// How hard the task is; absent: unknown, so no difficulty filter selects the task.
    pub difficulty: Option<Difficulty>,
    /// Who may see the task; absent: unknown, which is never treated as public.
    pub visibility: Option<Visibility>,
    /// Stage of the task's life; absent: active.
    pub lifecycle: Option<Lifecycle>,
    /// Free word for the kind of work, such as `reasoning`.
    pub category: Option<String>,
    /// Free words to find and select the task by.
    pub tags: Vec<String>,
    /// Engineering discipline, when the task's path does not begin with it.
    pub domain: Option<String>,
    /// Standard or code of practice the task follows.
    pub standard: Option<String>,
    /// Name of the template's tier, when it is not one of the three difficulties.
    pub generation_difficulty: Option<String>,
}

/// `[agent]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentTable {
    /// Seconds an agent may take (default 600).
    pub timeout_sec: Option<Seconds>,
    /// Files below /workspace that make up the submission; all of them when absent or empty.
    pub outputs: Vec<String>,
}

/// `[verifier]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VerifierTable {
    /// Seconds the verifier may take (default 300).
    pub timeout_sec: Option<Seconds>,
}

/// `[environment]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EnvironmentTable {
    /// Named image layers the task needs.
    pub extensions: Vec<String>,
    /// Seconds an image build may take (default 600).
    pub build_timeout_sec: Option<Seconds>,
    /// Processor cores (default 2).
    pub cpus: Option<Quantity>,
    /// Memory in MiB (default 4096).
    pub memory_mb: Option<Quantity>,
    /// Disk in MiB (default 10240).
    pub storage_mb: Option<Quantity>,
    /// Whether the agent may reach the internet (default false).
    pub allow_internet: Option<bool>,
    /// Another spelling of `allow_internet`.
    pub network_mode: Option<NetworkMode>,
    /// Programs offered to the agent.
    pub tools: Vec<ToolTable>,
}

/// `[[environment.tools]]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolTable {
    /// Name the agent calls it by.
    pub name: Option<String>,
    /// File below the task directory.
    pub source: Option<String>,
    /// What it does, for the agent.
    pub description: Option<String>,
    /// Whether its result is a picture.
    pub returns_image: bool,
}

/// `[tools]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolsTable {
    /// File names of Python programs in `tools/` or `environment/`.
    pub scripts: Vec<String>,
}

/// `[generation]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GenerationTable {
    /// The program that made it.
    pub origin: Option<String>,
    /// Template name.
    pub template: Option<String>,
    /// Template version.
    pub template_version: Option<String>,
    /// Seed of the draw.
    pub seed: Option<i64>,
    /// Index of the draw.
    pub index: Option<i64>,
    /// When the task was made.
    pub timestamp: Option<String>,
    /// Tier it was drawn from.
    pub difficulty: Option<String>,
    /// Which givens the prompt shows.
    pub visibility_level: Option<String>,
    /// Whether a calculator tool ships with it.
    pub tool_mode: Option<String>,
    /// Archetype it was drawn from.
    pub archetype: Option<String>,
    /// Site at which it takes place.
    pub site_context: Option<String>,
}

/// `[remediation]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RemediationTable {
    /// Read by another tool.
    pub enabled: Option<bool>,
    /// Read by another tool.
    pub max_iterations: Option<u32>,
    /// Read by another tool.
    pub target_reward: Option<f64>,
}

macro_rules! named {
    ($type:ident, $($variant:ident => $name:literal),+) => {
        impl $type {
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The name as written in files and flags.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            pub fn parse(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

/// How hard a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Difficulty {
    /// One step, everything given.
    Easy,
    /// Several steps or look-ups.
    Medium,
    /// Derived inputs, several checks.
    Hard,
}

named!(Difficulty, Easy => "easy", Medium => "medium", Hard => "hard");

/// Who may see a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    /// Everyone.
    Public,
    /// Kept back for final evaluation.
    Holdout,
}

named!(Visibility, Public => "public", Holdout => "holdout");

/// Stage of a task's life.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Lifecycle {
    /// Being written.
    Proposed,
    /// In use.
    #[default]
    Active,
    /// Still runs, to be replaced.
    Deprecated,
    /// Kept for the record only.
    Retired,
}

named!(Lifecycle, Proposed => "proposed", Active => "active", Deprecated => "deprecated", Retired => "retired");

/// Another tool's spelling of network access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NetworkMode {
    /// The internet is reachable.
    Public,
    /// No network.
    None,
}

/// A duration in seconds: more than zero, at most a week.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(extend("exclusiveMinimum" = 0, "maximum" = 604_800))]
pub struct Seconds(f64);

impl Seconds {
    const WEEK: f64 = 604_800.0;

    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Seconds {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        if value > 0.0 && value <= Self::WEEK {
            Ok(Self(value))
        } else {
            Err(format!("must be more than 0 and at most {} seconds, not {value}", Self::WEEK))
        }
    }
}

impl From<Seconds> for f64 {
    fn from(seconds: Seconds) -> Self {
        seconds.0
    }
}

/// A positive whole number of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "i64", into = "i64")]
#[schemars(extend("minimum" = 1))]
pub struct Quantity(u32);

impl Quantity {
    pub fn get(self) -> u32 {
        self.0
    }
}

impl TryFrom<i64> for Quantity {
    type Error = String;

    fn try_from(value: i64) -> Result<Self, String> {
        match u32::try_from(value) {
            Ok(number) if number > 0 => Ok(Self(number)),
            _ => Err(format!("must be a whole number from 1 to {}, not {value}", u32::MAX)),
        }
    }
}

impl From<Quantity> for i64 {
    fn from(quantity: Quantity) -> Self {
        quantity.0.into()
    }
}
