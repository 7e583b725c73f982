//! `tasks.json` of an environment package: what its tasks are, and which contents belong to them.

use aec_base::digest::Digest;
use aec_judge::settle::order::AnswerOrder;
use serde::{Deserialize, Serialize};

use crate::interaction::{HarnessMode, Interaction};

/// The format of the manifest.
pub const SCHEMA_VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PackageManifest {
    /// The format.
    pub schema_version: u32,
    /// The environment's id: the package's module.
    pub name: String,
    /// The package's version.
    pub version: String,
    /// The version of the program that wrote it.
    pub tool_version: String,
    /// How the environment is loaded unless its caller says otherwise.
    pub harness: HarnessMode,
    /// The dataset that the tasks come from.
    pub dataset: Option<String>,
    /// Which of several answers counts. Packages that do not say so take what was submitted first.
    #[serde(default = "present_order")]
    pub answer_order: AnswerOrder,
    /// How the sides came to be.
    pub split: SplitRule,
    /// The tasks, sorted by id.
    pub tasks: Vec<PackagedTask>,
}

fn present_order() -> AnswerOrder {
    AnswerOrder::SubmittedFirst
}

/// How tasks were dealt to the sides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitRule {
    /// The seed of `aec-bench dataset split`.
    pub seed: i64,
    /// The share of the train side.
    pub train_share: f64,
}

/// The side of a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PackagedSide {
    /// For training.
    Train,
    /// Held out.
    Eval,
}

/// A task of a package.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PackagedTask {
    pub task_id: String,
    /// Digest of its files.
    pub task_revision: Digest,
    /// Tasks of one family have one value.
    pub family: String,
    /// The side it is on, whatever is selected.
    pub side: PackagedSide,
    pub discipline: String,
    /// How hard it is, if it says.
    pub difficulty: Option<String>,
    /// Who may see it: `public`, or it would not be here.
    pub visibility: String,
    /// Free words.
    pub tags: Vec<String>,
    /// What it needs at least.
    pub lane: Interaction,
    /// Why.
    pub lane_reason: String,
    /// The prompt.
    pub instruction: String,
    /// The file that is the answer, below `/workspace`.
    pub output_path: String,
    /// Files that make up the submission; absent for all.
    pub outputs: Option<Vec<String>>,
    /// What the model is told about its surroundings.
    pub prompts: Prompts,
    /// Limits of agent and verifier.
    pub limits: TaskLimits,
    /// Programs offered to the agent.
    pub tools: Vec<PackagedTool>,
    /// What the agent finds in `/workspace`.
    pub workspace: Vec<PackagedFile>,
    /// What judges the answer.
    pub verifier: PackagedVerifier,
}

/// System prompts by lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Prompts {
    /// For one answer.
    pub single_turn: String,
    /// For work in a workspace.
    pub stateful: String,
}

/// Limits of agent and verifier.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskLimits {
    /// Turns of the agent.
    pub max_turns: u32,
    /// Tokens over all turns.
    pub max_total_tokens: Option<u64>,
    /// Seconds of one command.
    pub command_timeout_sec: f64,
    /// Seconds of the verifier.
    pub verifier_timeout_sec: f64,
    /// Seconds of the agent's work.
    pub agent_timeout_sec: f64,
    /// Processor cores.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory_mb: u32,
    /// Disk in MiB.
    pub storage_mb: u32,
}

/// A program offered to the agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PackagedTool {
    /// The name under which it is offered.
    pub name: String,
    /// Its file below `/workspace`.
    pub path: String,
    pub description: String,
    /// Whether it names pictures.
    #[serde(default)]
    pub returns_image: bool,
}

/// A file by its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackagedFile {
    /// Where it belongs.
    pub path: String,
    /// The content, as 64 digits: the name of its file below `files/`.
    pub sha256: String,
    /// Whether it may be run.
    pub executable: bool,
}

/// What judges the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackagedVerifier {
    /// Digest of its files, as verdicts have it.
    pub digest: Digest,
    /// Whether it is the standard verifier, run the standard way: it needs no room of its own.
    pub standard: bool,
    /// The command that runs it.
    pub entry: Vec<String>,
    /// Its files, below `/tests`.
    pub files: Vec<PackagedFile>,
}
