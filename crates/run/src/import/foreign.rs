//! A trial made by another program, in the common form that every reader produces.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use aec_base::digest::Digest;
use aec_base::timestamp::Timestamp;
use aec_judge::settle::order::Source;
use aec_judge::settle::outcome::{AgentStatus, Ending};
use aec_ledger::record::{Artefact, Cost, TaskFacts, Timing};
use indexmap::IndexMap;
use serde_json::Value;

use super::known::KnownTasks;
use super::rollouts::RolloutKey;
use crate::elsewhere::ForeignJudging;
use crate::task::PreparedTask;

/// A trial that a reader found, before it is known whether it gets a record.
pub trait Foreign: Sync {
    /// What tells it from other trials. Every row of a source is asked for it, also those that are here already.
    fn identity(&self, tasks: &KnownTasks<'_>) -> Identity;

    /// Everything else. Only asked for what gets a record.
    fn trial(&self, tasks: &KnownTasks<'_>) -> ForeignTrial;

    /// Stores the files that show what happened, and lists them. Only called for trials that get a record.
    fn evidence(&self, bench: ForeignJudging<'_>) -> io::Result<Vec<Artefact>>;

    /// The evidence that distinguishes this trial from one of another run with the same name: its path and its text.
    /// Absent where runs have their own ids.
    fn original(&self) -> Option<(String, String)> {
        None
    }
}

/// What tells a trial from others.
pub struct Identity {
    /// The trial's id: the same for the same trial, however often it is imported.
    pub id: String,
    /// The rollout to which it belongs, if several rows can be one rollout.
    pub rollout: Option<RolloutKey>,
    pub task_id: String,
    pub agent: ForeignAgent,
}

/// A trial made by another program. Unknown values are absent.
pub struct ForeignTrial {
    pub task: TaskFacts,
    /// The task in this project, if it is the one that was judged there; else why it is not.
    pub here: Result<Arc<PreparedTask>, &'static str>,
    /// The dataset of the task.
    pub dataset: Option<String>,
    pub started: Option<Timestamp>,
    /// The prompt.
    pub instruction: String,
    pub ending: Ending,
    /// The same as a status.
    pub status: AgentStatus,
    pub error: Option<String>,
    /// The reward reported there.
    pub told: Told,
    /// Other measurements reported there, for the verdict's breakdown.
    pub measured: Option<Value>,
    /// Digest of the verifier's files there.
    pub verifier: Option<Digest>,
    /// The agent's results.
    pub left: Left,
    /// The origin of the answer, if known without the workspace.
    pub source: Option<Source>,
    /// The path at which the task expects its answer.
    pub output_path: String,
    pub runtime_image: String,
    /// Versions of the programs involved.
    pub tool_versions: BTreeMap<String, String>,
    /// What the other program reports about the agent's work.
    pub agent_result: IndexMap<String, Value>,
    /// The cost of its model calls.
    pub cost: Cost,
    pub timing: Timing,
}

/// The agent of a foreign trial.
pub struct ForeignAgent {
    pub name: String,
    pub revision: Option<String>,
    pub model: Option<String>,
    pub configuration: IndexMap<String, Value>,
}

/// The reward reported by the other program. A reward is a finite number; nothing else is converted to one.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    Reward(f64),
    /// The submission was refused before it was judged, whatever else was reported.
    Refused,
    /// The verifier failed, whatever else was reported.
    VerifierFailed(String),
    /// A reward is missing, for this reason.
    Missing(String),
    /// The trial was not judged.
    Unjudged,
}

impl Told {
    pub fn reward(&self) -> Option<f64> {
        match self {
            Self::Reward(reward) => Some(*reward),
            _ => None,
        }
    }
}

/// An agent's results, as far as they are available.
#[derive(Clone, Debug, PartialEq)]
pub enum Left {
    Workspace(PathBuf),
    /// Its words: an answer, and whether that is all that it did.
    Conversation {
        answer: Option<Answer>,
        /// Whether it called tools that can change files of its workspace.
        is_touched: bool,
        /// Whether the task is a prompt and one file to write; only relevant when files may have changed.
        is_one_file: bool,
    },
    /// Nothing that could be judged, for this reason.
    Unknown(&'static str),
}

/// An answer given as text, not as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its path below the workspace.
    pub path: String,
    pub text: String,
    /// Whether it was submitted, or is the model's final text.
    pub source: Source,
}

/// Stores a text of a trial by its content, without secrets, under a path in the trial's directory of `jobs`.
pub fn keep(path: String, text: String, bench: ForeignJudging<'_>) -> io::Result<Artefact> {
    let text = bench.redactor.scrub(text);
    let digest = bench.contents.put(text.as_bytes())?;
    Ok(Artefact { path, digest, size: text.len() as u64 })
}
