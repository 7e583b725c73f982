//! `tasks.json` of an environment package: its tasks, and the contents of their files.

use aec_base::digest::Digest;
use aec_judge::settle::order::AnswerOrder;
use serde::{Deserialize, Serialize};

use crate::interaction::{HarnessMode, Interaction};

pub const SCHEMA_VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PackageManifest {
    pub schema_version: u32,
    /// The environment's id, which is the package's module.
    pub name: String,
    pub version: String,
    /// The version of the program that wrote it.
    pub tool_version: String,
    /// How the environment is loaded unless its caller chooses otherwise.
    pub harness: HarnessMode,
    /// The dataset that the tasks come from.
    pub dataset: Option<String>,
    /// Which of several answers counts. In packages without this key, the answer that was submitted first.
    #[serde(default = "present_order")]
    pub answer_order: AnswerOrder,
    /// How the sides were drawn.
    pub split: SplitRule,
    /// Sorted by id.
    pub tasks: Vec<PackagedTask>,
}

fn present_order() -> AnswerOrder {
    AnswerOrder::SubmittedFirst
}

/// How tasks were assigned to the sides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitRule {
    /// The seed of `aec-bench dataset split`.
    pub seed: i64,
    pub train_share: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PackagedSide {
    Train,
    Eval,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PackagedTask {
    pub task_id: String,
    pub task_revision: Digest,
    /// Tasks of one family have the same value.
    pub family: String,
    /// The side it is on, whatever is selected.
    pub side: PackagedSide,
    pub discipline: String,
    pub difficulty: Option<String>,
    /// `public`, or it would not be in a package.
    pub visibility: String,
    pub tags: Vec<String>,
    /// The least interaction that it needs.
    pub lane: Interaction,
    /// Why it needs that.
    pub lane_reason: String,
    pub instruction: String,
    /// The file of the answer, below `/workspace`.
    pub output_path: String,
    /// Files that make up the submission; absent for all.
    pub outputs: Option<Vec<String>>,
    pub prompts: Prompts,
    pub limits: TaskLimits,
    pub tools: Vec<PackagedTool>,
    /// The files that the agent finds in `/workspace`.
    pub workspace: Vec<PackagedFile>,
    pub verifier: PackagedVerifier,
}

/// System prompts by interaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Prompts {
    pub single_turn: String,
    pub stateful: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskLimits {
    pub max_turns: u32,
    /// Over all turns.
    pub max_total_tokens: Option<u64>,
    pub command_timeout_sec: f64,
    pub verifier_timeout_sec: f64,
    pub agent_timeout_sec: f64,
    pub cpus: u32,
    /// In MiB.
    pub memory_mb: u32,
    /// In MiB.
    pub storage_mb: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PackagedTool {
    pub name: String,
    /// Its file below `/workspace`.
    pub path: String,
    pub description: String,
    /// Whether its output names images.
    #[serde(default)]
    pub returns_image: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackagedFile {
    pub path: String,
    /// The digest as 64 digits: the name of its file below `files/`.
    pub sha256: String,
    pub executable: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackagedVerifier {
    /// Digest of its files, as in verdicts.
    pub digest: Digest,
    /// Whether it is the standard verifier, run in the standard way: then it needs no separate room.
    pub standard: bool,
    pub entry: Vec<String>,
    /// Its files, below `/tests`.
    pub files: Vec<PackagedFile>,
}
