//! The judge's verdict on a submission.

use std::time::Duration;

use aec_base::digest::Digest;
use aec_sandbox::{Held, Level};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The outcome of a trial. Only `Scored` has a reward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The verifier ran and gave a reward.
    Scored,
    /// The agent's submission cannot be judged.
    AgentFault,
    /// This machine failed.
    InfraFault,
    /// The verifier failed.
    VerifierFault,
    /// The user stopped it.
    Cancelled,
    /// It was not judged.
    Unverified,
}

impl Outcome {
    pub const ALL: [Self; 6] = [
        Self::Scored,
        Self::AgentFault,
        Self::InfraFault,
        Self::VerifierFault,
        Self::Cancelled,
        Self::Unverified,
    ];

    /// Whether the trial is done: its agent had its chance, and only the agent determined how it ended.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Scored | Self::AgentFault | Self::Unverified)
    }

    /// Whether the trial needs no other attempt unless the user asks for one: all but cancelled ones.
    pub fn is_settled(self) -> bool {
        self != Self::Cancelled
    }

    /// Whether a trial counts in a mean: it was scored, or its agent left nothing to score, which counts as 0.
    pub fn is_counted(self) -> bool {
        matches!(self, Self::Scored | Self::AgentFault)
    }

    /// The name as written in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scored => "scored",
            Self::AgentFault => "agent_fault",
            Self::InfraFault => "infra_fault",
            Self::VerifierFault => "verifier_fault",
            Self::Cancelled => "cancelled",
            Self::Unverified => "unverified",
        }
    }
}

/// How the verdict was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Judged {
    /// By the native twin of the standard verifier.
    Native,
    /// By the task's own verifier in a clean sandbox.
    Room,
    /// By the program that ran the trial; not repeated here.
    Elsewhere,
}

/// The kind of fault of an agent or verifier that used more memory than its room has.
pub const OUT_OF_MEMORY: &str = "out_of_memory";

/// Who made a verifier fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CausedBy {
    /// The submission: in the same conditions the verifier gives the task's reference a reward.
    Submission,
    /// The task: its verifier fails on its own golden answer, or on any submission.
    Task,
    /// Nothing shows that the verifier ever works: the task has no golden answer, and the verifier also fails on
    /// what an agent leaves that does nothing.
    Unknown,
}

/// A verdict with its evidence.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    pub outcome: Outcome,
    /// From 0 to 1, if it was scored.
    pub reward: Option<f64>,
    /// Why there is no reward, or how the verifier failed on a submission that therefore earns 0.
    pub fault: Option<String>,
    /// The kind of fault, of the verifier or as the provider of rooms reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault_kind: Option<&'static str>,
    /// Who made the verifier fail, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caused_by: Option<CausedBy>,
    /// Whether another attempt may succeed after a fault.
    #[serde(skip)]
    pub may_pass: bool,
    /// The verifier's remarks on the parts of the answer.
    pub details: Option<serde_json::Value>,
    pub judged: Judged,
    /// The revision of the standard scorer, if that judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scorer: Option<u32>,
    pub submission: Digest,
    /// Digest of the verifier's files.
    pub verifier: Digest,
    /// How strongly the verifier was isolated; absent if the native twin judged.
    pub level: Option<Level>,
    /// How limits were enforced; absent if the native twin judged.
    pub held: Option<Held>,
    /// Exit code of the verifier.
    pub exit_code: Option<i32>,
    /// The verifier's standard output, head and tail.
    pub stdout: String,
    /// The verifier's standard error, head and tail.
    pub stderr: String,
    #[serde(serialize_with = "seconds")]
    pub duration: Duration,
}

fn seconds<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}
