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
    /// How the attempt ended.
    pub outcome: Outcome,
    /// The fault, if there was one.
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
    /// The judge's verdict; absent when the judge was not called.
    pub evaluation: Option<Evaluation>,
    /// The cost of its model calls.
    pub cost: Cost,
    /// The origin of a generated task.
    pub adaptation: Option<Adaptation>,
    /// Files of this trial that do not depend on the clock, by their path in the trial's directory of `jobs`.
    pub artefacts: Vec<Artefact>,
    /// Whether the record has everything that a complete one has.
    pub completeness: Completeness,
    /// Everything that depends on the clock.
    pub timing: Timing,
}

impl TrialRecord {
    /// The reward; only a scored trial has one.
    pub fn reward(&self) -> Option<f64> {
        self.evaluation.as_ref().and_then(|evaluation| evaluation.reward)
    }

    /// Why the reward is none that a judge gives, if so: a scored trial has one from 0 to 1, and no other trial has one.
    pub fn reward_fault(&self) -> Option<String> {
        match (self.outcome, self.reward()) {
            (Outcome::Scored, None) => Some("is scored and has no reward".to_owned()),
            (Outcome::Scored, Some(reward)) if !(0.0..=1.0).contains(&reward) => {
                Some(format!("has the reward {reward}"))
            }
            (Outcome::Scored, Some(_)) | (_, None) => None,
            (outcome, Some(reward)) => Some(format!("is {} and has the reward {reward}", outcome.name())),
        }
    }

    /// How the reward was reached; `trusted` if it counts only because the user said so. Absent without a verdict.
    pub fn judged(&self) -> Option<&'static str> {
        self.evaluation.as_ref().map(|evaluation| match evaluation.judged {
            _ if evaluation.trusted => "trusted",
            Judged::Native => "native",
            Judged::Room => "room",
            Judged::Elsewhere => "elsewhere",
        })
    }

    /// Every file of the trial, including those that depend on the clock.
    pub fn all_artefacts(&self) -> impl Iterator<Item = &Artefact> {
        self.artefacts.iter().chain(&self.timing.artefacts)
    }

    /// Every content that the record refers to: its files, those of its submission, and snapshots of its workspace.
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

    /// The record without the values of any form that come from an agent or a verifier.
    pub(crate) fn without_foreign_values(&self) -> Self {
        const LEFT_OUT: &str = "left out, because the record would be larger or deeper than a ledger reads";
        let mut reduced = self.clone();
        reduced.outputs.agent_result = IndexMap::from([("left_out".to_owned(), LEFT_OUT.into())]);
        let evaluation = reduced.evaluation.as_mut();
        if let Some(breakdown) = evaluation.and_then(|evaluation| evaluation.breakdown.as_mut()) {
            *breakdown = serde_json::json!({ "left_out": LEFT_OUT });
        }
        reduced
    }

    /// The text of the record's file: indented JSON with a final line break.
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
    /// How hard it is, if the task says so.
    pub difficulty: Option<String>,
    /// Who may see it, if the task says so.
    pub visibility: Option<String>,
    /// Common to all tasks of one family: the template's name, or the id of a task without a template.
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
    /// The model as the provider names it, if it does.
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
    /// How well the agent was isolated; absent when it did not run on this machine.
    pub sandbox: Option<Level>,
    /// Which limits were enforced; absent likewise.
    pub held: Option<Held>,
    /// The agent's limits; absent when it ran elsewhere.
    pub limits: Option<Limits>,
    /// The agent's time limit in seconds; absent likewise.
    pub timeout_sec: Option<u64>,
    /// Whether the agent could reach a network.
    pub network: bool,
    /// Versions of the programs involved.
    pub tool_versions: BTreeMap<String, String>,
}

/// What the agent was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Inputs {
    /// The prompt.
    pub instruction: String,
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// Files in its workspace.
    pub input_files: Vec<InputFile>,
}

/// A file given to the agent.
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
    /// The harness's report on its work, such as `turns_used` and `max_turns`.
    pub agent_result: IndexMap<String, Value>,
    /// The files that were frozen for the judge.
    pub submission: Option<SubmissionFacts>,
    /// Digests of the snapshots of the workspace taken on the way: lists of files, and the files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<Digest>,
}

/// How an agent's work ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentOutput {
    /// The status at the end.
    pub status: AgentStatus,
    /// The path at which the task expects its answer.
    pub output_path: String,
    /// `markdown` or `jsonl`.
    pub output_format: String,
    /// The error message, if any.
    pub error_message: Option<String>,
}

/// The files that were frozen for the judge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubmissionFacts {
    /// Digest of paths, contents and modes.
    pub digest: Digest,
    /// The files, by path below the workspace.
    pub files: BTreeMap<String, SubmittedFile>,
    /// Files that were not accepted.
    pub refused: Vec<Refused>,
}

/// The judge's verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evaluation {
    /// From 0 to 1; absent when the attempt was not scored.
    pub reward: Option<f64>,
    /// Whether the answer and the verifier were valid.
    pub validity: Validity,
    /// The verifier's scores for the parts of the answer.
    pub breakdown: Option<Value>,
    /// How the verdict was reached.
    pub judged: Judged,
    /// The revision of the standard scorer; absent when another verifier judged, and in records made before there were
    /// revisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scorer: Option<u32>,
    /// Whether the reward counts only because the user trusts the program that gave it (`--trust-rewards`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trusted: bool,
    /// Digest of the verifier's files; absent when another program judged and does not state it.
    pub verifier: Option<Digest>,
    /// Digest of the submission that was judged; absent likewise.
    pub submission: Option<Digest>,
    /// How well the verifier was isolated; absent when the native twin judged.
    pub sandbox: Option<Level>,
    /// Which limits were enforced; absent likewise.
    pub held: Option<Held>,
    /// Exit code of the verifier.
    pub exit_code: Option<i32>,
    /// Standard output of the verifier, head and tail.
    pub stdout: String,
    /// Standard error of the verifier, head and tail.
    pub stderr: String,
}

/// Whether the answer and the verifier were valid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Validity {
    /// Whether the answer could be read.
    pub output_parseable: bool,
    /// Whether the answer had the required form, according to the verifier.
    pub schema_valid: bool,
    /// Whether the verifier finished and gave a reward.
    pub verifier_completed: bool,
    /// What was invalid.
    pub errors: Vec<String>,
}

/// The cost of model calls. A number that some provider did not report is absent instead of partial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Cost {
    /// Calls that were or may have been billed.
    pub model_calls: u64,
    /// Calls that cost nothing: never sent, or refused with an error status.
    pub unbilled_calls: u64,
    /// Calls of models without a price.
    pub unpriced_calls: u64,
    /// Calls in flight when the program was killed; their cost is unknown.
    pub unsettled_calls: u64,
    /// Input tokens, including cached ones.
    pub tokens_in: Option<u64>,
    /// Output tokens, including thoughts.
    pub tokens_out: Option<u64>,
    /// Input read from the provider's cache.
    pub cache_read_tokens: Option<u64>,
    /// Input written to the provider's cache.
    pub cache_write_tokens: Option<u64>,
    /// Thoughts, if the provider counts them separately.
    pub reasoning_tokens: Option<u64>,
    /// Tokens of calls without a known end, at their upper bounds.
    pub unconfirmed_tokens: u64,
    /// Dollars; absent when a model without a price was called.
    pub estimated_cost_usd: Option<f64>,
    /// Part of the dollars that is an upper bound no provider confirmed.
    pub unconfirmed_cost_usd: f64,
    /// Calls of an advisor model.
    pub advisor_calls: Option<u64>,
    /// Input tokens of the advisor.
    pub advisor_input_tokens: Option<u64>,
    /// Output tokens of the advisor.
    pub advisor_output_tokens: Option<u64>,
}

impl Cost {
    /// All tokens that were counted or may have been taken. Numbers of other programs may be of any size.
    pub fn tokens(&self) -> u64 {
        let counted = self.tokens_in.unwrap_or(0).saturating_add(self.tokens_out.unwrap_or(0));
        counted.saturating_add(self.unconfirmed_tokens)
    }
}

/// The origin of a generated task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Adaptation {
    /// The template.
    pub family_id: String,
    /// The task that it was derived from, if any.
    pub seed_task_id: Option<String>,
    /// Distinguishes it from other tasks of its family.
    pub variation_key: String,
    /// The variation key as separate values.
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

/// Whether the record has everything that a complete one has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Completeness {
    /// Nothing is missing.
    Complete,
    /// The attempt did not finish, or was made by another program.
    Partial,
}

impl Completeness {
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
    /// When the attempt ended.
    pub completed_at: Option<Timestamp>,
    /// From start to end.
    pub total_seconds: f64,
    /// Creating and filling the sandbox.
    pub setup_seconds: Option<f64>,
    /// The agent's work.
    pub agent_seconds: Option<f64>,
    /// The judge's work.
    pub verification_seconds: Option<f64>,
    /// Files that contain times, by their path in the trial's directory of `jobs`.
    pub artefacts: Vec<Artefact>,
}
