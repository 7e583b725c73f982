//! The record of one trial: self-contained JSON, written once. See `docs/ledger.md`.
//!
//! Everything that depends on the clock is under `timestamp` and `timing`. Apart from that, two runs of the same
//! trial from the same recording are equal, byte for byte.

use std::collections::BTreeMap;

use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_base::timestamp::Timestamp;
use aec_judge::settle::order::{AnswerOrder, Source};
use aec_judge::settle::outcome::{AgentStatus, Fault};
use aec_judge::submission::{Refused, SubmittedFile};
use aec_judge::verdict::{Judged, Outcome};
use aec_sandbox::{Held, Level, Limits};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Records of later versions are refused.
pub const SCHEMA_VERSION: u32 = 1;

/// One attempt at one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialRecord {
    /// Version of this format.
    pub schema_version: u32,
    /// The trial: a UUID made from the experiment and the trial's key.
    pub trial_id: Name,
    /// The experiment that it belongs to.
    pub experiment_id: Name,
    /// The dataset that its task was taken from, as `NAME@VERSION`.
    pub dataset_id: Option<String>,
    /// When it began.
    pub timestamp: Timestamp,
    /// Which try at the trial this is, from 1.
    pub attempt: u32,
    /// Which repetition of its task and agent, from 1.
    pub repetition: u32,
    /// Digest of task revision, agent and repetition: the same in every experiment.
    pub key: Digest,
    /// Digest of the plan under which it ran.
    pub plan: Digest,
    /// What became of it.
    pub outcome: Outcome,
    /// What went wrong, if something did.
    pub fault: Option<Fault>,
    /// The task.
    pub task: TaskFacts,
    /// The agent.
    pub agent: AgentFacts,
    /// Where it ran.
    pub environment: EnvironmentFacts,
    /// What the agent was given.
    pub inputs: Inputs,
    /// What the agent left.
    pub outputs: Outputs,
    /// What the judge says; absent when it was not asked.
    pub evaluation: Option<Evaluation>,
    /// What its model calls took.
    pub cost: Cost,
    /// How a generated task came to be.
    pub adaptation: Option<Adaptation>,
    /// Files of this trial that do not depend on the clock, by their path in the trial's directory of `jobs`.
    pub artefacts: Vec<Artefact>,
    /// Whether everything that a complete record says is there.
    pub completeness: Completeness,
    /// Everything that depends on the clock.
    pub timing: Timing,
}

impl TrialRecord {
    /// The reward; only a scored trial has one.
    pub fn reward(&self) -> Option<f64> {
        self.evaluation.as_ref().and_then(|evaluation| evaluation.reward)
    }

    /// Every file of the trial, those that depend on the clock included.
    pub fn all_artefacts(&self) -> impl Iterator<Item = &Artefact> {
        self.artefacts.iter().chain(&self.timing.artefacts)
    }

    /// Every content that the record refers to: its files, those of its submission, and states of its workspace.
    pub fn contents(&self) -> impl Iterator<Item = Digest> {
        let submitted = self
            .outputs
            .submission
            .iter()
            .flat_map(|submission| submission.files.values())
            .map(|file| file.digest);
        let snapshots = self.outputs.snapshots.iter().copied();
        self.all_artefacts().map(|artefact| artefact.digest).chain(submitted).chain(snapshots)
    }

    /// The record as it is written: indented JSON with a line break at the end.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }
}

/// The task of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskFacts {
    /// Its id.
    pub task_id: String,
    /// Digest of its files.
    pub task_revision: Digest,
    /// Discipline.
    pub domain: String,
    /// How hard it is, if it says.
    pub difficulty: Option<String>,
    /// Who may see it, if it says.
    pub visibility: Option<String>,
    /// Tasks of one family have one value: a template's name, or the id of a task without one.
    pub family: String,
}

/// The agent of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentFacts {
    /// Its name in the experiment.
    pub name: Name,
    /// The harness.
    pub adapter: String,
    /// The version of the harness: that of this program.
    pub adapter_revision: Option<String>,
    /// The model as the experiment names it.
    pub model: Option<String>,
    /// The model as the provider names it, if it did.
    pub resolved_model: Option<String>,
    /// Parameters, with defaults filled in.
    pub configuration: IndexMap<String, Value>,
    /// Digest of harness, model, parameters and prompt.
    pub digest: Digest,
}

/// Where a trial ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnvironmentFacts {
    /// Image, or `local`.
    pub runtime_image: String,
    /// The backend.
    pub compute_backend: String,
    /// How well the agent was kept apart; absent when nothing of it ran on this machine.
    pub sandbox: Option<Level>,
    /// Which limits held; absent likewise.
    pub held: Option<Held>,
    /// What the agent might take; absent when it worked elsewhere.
    pub limits: Option<Limits>,
    /// Seconds that the agent might take; absent likewise.
    pub timeout_sec: Option<u64>,
    /// Whether the agent could reach a network.
    pub network: bool,
    /// Versions of what took part.
    pub tool_versions: BTreeMap<String, String>,
}

/// What the agent was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Inputs {
    /// The prompt.
    pub instruction: String,
    /// Standing instructions.
    pub system_prompt: Option<String>,
    /// Files in its workspace.
    pub input_files: Vec<InputFile>,
}

/// A file that the agent was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InputFile {
    /// Path below `/workspace`.
    pub path: String,
    /// Digest of its content.
    pub hash: Digest,
    /// Path below the task's directory.
    pub source: Option<String>,
}

/// What the agent left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outputs {
    /// How the agent's work ended.
    pub agent_output: Option<AgentOutput>,
    /// Where the answer came from.
    pub output_source: Option<Source>,
    /// Which of several answers counted.
    #[serde(default = "AnswerOrder::unnamed", skip_serializing_if = "AnswerOrder::is_unnamed")]
    pub answer_order: AnswerOrder,
    /// The answer in the trial's directory of `jobs`.
    pub raw_output_path: Option<String>,
    /// The conversation in the trial's directory of `jobs`.
    pub conversation_path: Option<String>,
    /// The events in the trial's directory of `jobs`.
    pub trajectory_path: Option<String>,
    /// Digest of the events without their times.
    pub trajectory_content: Option<Digest>,
    /// What the harness says of its work, such as `turns_used` and `max_turns`.
    pub agent_result: IndexMap<String, Value>,
    /// Everything that was frozen for the judge.
    pub submission: Option<SubmissionFacts>,
    /// Contents of the states of the workspace that were kept on the way: lists of files, and the files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<Digest>,
}

/// How an agent's work ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentOutput {
    /// How.
    pub status: AgentStatus,
    /// Where the task wants its answer.
    pub output_path: String,
    /// `markdown` or `jsonl`.
    pub output_format: String,
    /// What went wrong.
    pub error_message: Option<String>,
}

/// Everything that was frozen for the judge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubmissionFacts {
    /// Digest of paths, contents and modes.
    pub digest: Digest,
    /// The files, by path below the workspace.
    pub files: BTreeMap<String, SubmittedFile>,
    /// What was not taken.
    pub refused: Vec<Refused>,
}

/// What the judge says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evaluation {
    /// From 0 to 1; absent when it was not scored.
    pub reward: Option<f64>,
    /// Whether the answer and the verifier were in order.
    pub validity: Validity,
    /// What the verifier says about the parts of the answer.
    pub breakdown: Option<Value>,
    /// How the verdict was reached.
    pub judged: Judged,
    /// Digest of the verifier's files; absent when others judged and do not say.
    pub verifier: Option<Digest>,
    /// Digest of the submission that was judged; absent likewise.
    pub submission: Option<Digest>,
    /// How well the verifier was kept apart; absent when the native twin judged.
    pub sandbox: Option<Level>,
    /// Which limits held; absent likewise.
    pub held: Option<Held>,
    /// Exit code of the verifier.
    pub exit_code: Option<i32>,
    /// What the verifier printed, head and tail.
    pub stdout: String,
    /// What the verifier complained of, head and tail.
    pub stderr: String,
}

/// Whether the answer and the verifier were in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Validity {
    /// Whether there was an answer to read.
    pub output_parseable: bool,
    /// Whether the answer had the form that the task asks for, as far as the verifier says.
    pub schema_valid: bool,
    /// Whether the verifier came to an end and gave a reward.
    pub verifier_completed: bool,
    /// What was wrong.
    pub errors: Vec<String>,
}

/// What model calls took. A number that some provider did not tell is absent, not a part of the sum.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Cost {
    /// Calls that were or may have been billed.
    pub model_calls: u64,
    /// Calls that cost nothing: never sent, or refused with an error status.
    pub unbilled_calls: u64,
    /// Calls of models without a price.
    pub unpriced_calls: u64,
    /// Calls under way when the program was killed: nobody knows what they took.
    pub unsettled_calls: u64,
    /// Input tokens, those of caches included.
    pub tokens_in: Option<u64>,
    /// Output tokens, thoughts included.
    pub tokens_out: Option<u64>,
    /// Input read from the provider's cache.
    pub cache_read_tokens: Option<u64>,
    /// Input written to the provider's cache.
    pub cache_write_tokens: Option<u64>,
    /// Thoughts, where the provider counts them apart.
    pub reasoning_tokens: Option<u64>,
    /// Tokens of calls whose end nobody saw, at their bounds.
    pub unconfirmed_tokens: u64,
    /// Dollars; absent when a model without a price took part.
    pub estimated_cost_usd: Option<f64>,
    /// How many of the dollars are bounds that no provider confirmed.
    pub unconfirmed_cost_usd: f64,
    /// Calls of an advisor model.
    pub advisor_calls: Option<u64>,
    /// Input tokens of the advisor.
    pub advisor_input_tokens: Option<u64>,
    /// Output tokens of the advisor.
    pub advisor_output_tokens: Option<u64>,
}

/// How a generated task came to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Adaptation {
    /// The template.
    pub family_id: String,
    /// The task that it was made from, if it was made from one.
    pub seed_task_id: Option<String>,
    /// What tells it from its siblings.
    pub variation_key: String,
    /// The same, part by part.
    pub variation: IndexMap<String, Value>,
}

/// A file of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Artefact {
    /// Path in the trial's directory of `jobs`.
    pub path: String,
    /// Digest of its content.
    pub digest: Digest,
    /// Its length.
    pub size: u64,
}

/// Whether everything that a complete record says is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Completeness {
    /// Nothing is missing.
    Complete,
    /// The attempt did not come to its end, or it was made elsewhere.
    Partial,
}

impl Completeness {
    /// The name as written in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Partial => "partial",
        }
    }
}

/// Everything that depends on the clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Timing {
    /// When it was done.
    pub completed_at: Option<Timestamp>,
    /// From start to end.
    pub total_seconds: f64,
    /// Opening and filling the room.
    pub setup_seconds: Option<f64>,
    /// The agent's work.
    pub agent_seconds: Option<f64>,
    /// The judge's work.
    pub verification_seconds: Option<f64>,
    /// Files with times in them, by their path in the trial's directory of `jobs`.
    pub artefacts: Vec<Artefact>,
}
