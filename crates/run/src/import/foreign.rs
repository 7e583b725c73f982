//! A trial that another program made, in the one form that every reader gives it.

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

/// What a reader found, before it is known whether it gets a record.
pub trait Foreign: Sync {
    /// What tells it from other trials. Every row of a source is asked for it, also those that are here already.
    fn identity(&self, tasks: &KnownTasks<'_>) -> Identity;

    /// Everything else. Only asked for what gets a record.
    fn trial(&self, tasks: &KnownTasks<'_>) -> ForeignTrial;

    /// Keeps the files that say what happened, and lists them. Only asked for what gets a record.
    fn evidence(&self, bench: ForeignJudging<'_>) -> io::Result<Vec<Artefact>>;

    /// The piece of evidence that tells this trial from one of another run of the same name: its path and its text.
    /// Absent where runs have ids of their own.
    fn original(&self) -> Option<(String, String)> {
        None
    }
}

/// What tells a trial from others.
pub struct Identity {
    /// The trial's id: the same for the same trial, however often it is imported.
    pub id: String,
    /// The rollout that it belongs to, where several rows can be one rollout.
    pub rollout: Option<RolloutKey>,
    pub task_id: String,
    pub agent: ForeignAgent,
}

/// A trial that another program made. What nobody said is absent.
pub struct ForeignTrial {
    pub task: TaskFacts,
    /// The task as it is here, if it is the one that was judged there; else why it is not.
    pub here: Result<Arc<PreparedTask>, &'static str>,
    /// The dataset that the task was taken from.
    pub dataset: Option<String>,
    /// When it began.
    pub started: Option<Timestamp>,
    /// What the agent was asked.
    pub instruction: String,
    /// How the agent's work ended.
    pub ending: Ending,
    /// The same in a word.
    pub status: AgentStatus,
    /// The kind of the error, if there was one.
    pub error: Option<String>,
    /// What was said there of its reward.
    pub told: Told,
    /// What else was measured there, for the verdict's breakdown.
    pub measured: Option<Value>,
    /// Digest of the verifier's files there.
    pub verifier: Option<Digest>,
    /// What the agent left.
    pub left: Left,
    /// Where the answer came from, when that is known without its workspace.
    pub source: Option<Source>,
    /// Where the task wants its answer.
    pub output_path: String,
    /// What it ran in.
    pub runtime_image: String,
    /// Versions of what took part.
    pub tool_versions: BTreeMap<String, String>,
    /// What is told of its work.
    pub agent_result: IndexMap<String, Value>,
    /// What its model calls took.
    pub cost: Cost,
    /// Its times.
    pub timing: Timing,
}

/// The agent of a trial that another program made.
pub struct ForeignAgent {
    /// What it is called.
    pub name: String,
    /// Its version.
    pub revision: Option<String>,
    pub model: Option<String>,
    /// How it was set.
    pub configuration: IndexMap<String, Value>,
}

/// What was said of a reward where the trial was made. A reward is a finite number; nothing else is made into one.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    Reward(f64),
    /// What the agent left was refused before anybody judged it, whatever else was said.
    Refused,
    /// The verifier failed, whatever else was said.
    VerifierFailed(String),
    /// There should be one and there is none, for this reason.
    Missing(String),
    /// Nobody judged.
    Unjudged,
}

impl Told {
    /// The reward, if there is one.
    pub fn reward(&self) -> Option<f64> {
        match self {
            Self::Reward(reward) => Some(*reward),
            _ => None,
        }
    }
}

/// What an agent left, as far as it came along.
#[derive(Clone, Debug, PartialEq)]
pub enum Left {
    Workspace(PathBuf),
    /// Its words: an answer, and whether that is all that it did.
    Conversation {
        answer: Option<Answer>,
        /// Whether it called tools that can change files of its workspace.
        is_touched: bool,
        /// Whether the task is a prompt and one file to write; only asked when files may be changed.
        is_one_file: bool,
    },
    /// Nothing that could be judged, for this reason.
    Unknown(&'static str),
}

/// An answer that was said, not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Where it goes below the workspace.
    pub path: String,
    pub text: String,
    /// Whether it was handed in, or is what the model said at the end.
    pub source: Source,
}

/// Keeps a text of a trial by its content, without secrets, under a path in the trial's directory of `jobs`.
pub fn keep(path: String, text: String, bench: ForeignJudging<'_>) -> io::Result<Artefact> {
    let text = bench.redactor.scrub(text);
    let digest = bench.contents.put(text.as_bytes())?;
    Ok(Artefact { path, digest, size: text.len() as u64 })
}
