//! What the judge says of a submission.

use std::time::Duration;

use aec_base::digest::Digest;
use aec_sandbox::{Held, Level};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of a trial. Only `Scored` has a reward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The verifier ran and gave a reward.
    Scored,
    /// What the agent left cannot be judged.
    AgentFault,
    /// This machine failed.
    InfraFault,
    /// The verifier failed.
    VerifierFault,
    /// Somebody stopped it.
    Cancelled,
    /// It was not judged.
    Unverified,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 6] = [
        Self::Scored,
        Self::AgentFault,
        Self::InfraFault,
        Self::VerifierFault,
        Self::Cancelled,
        Self::Unverified,
    ];

    /// Whether the trial is done: its agent had its chance, and nothing but the agent decided how it ended.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Scored | Self::AgentFault | Self::Unverified)
    }

    /// Whether the trial needs no other attempt unless somebody asks for one: all but what was cancelled.
    pub fn is_settled(self) -> bool {
        self != Self::Cancelled
    }

    /// Whether a trial is part of a mean: it was scored, or its agent left nothing to score, which counts as 0.
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
    /// By the task's own verifier in a clean room.
    Room,
    /// By whoever ran the trial; not repeated here.
    Elsewhere,
}

/// The kind of fault of whoever took more memory than a room has.
pub const OUT_OF_MEMORY: &str = "out_of_memory";

/// A verdict with its evidence.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// What became of it.
    pub outcome: Outcome,
    /// The reward, from 0 to 1, when it was scored.
    pub reward: Option<f64>,
    /// Why there is none.
    pub fault: Option<String>,
    /// The kind of fault, where whatever keeps rooms told it apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault_kind: Option<&'static str>,
    /// Whether another attempt may go better, after a fault.
    #[serde(skip)]
    pub may_pass: bool,
    /// What the verifier says about the parts of the answer.
    pub details: Option<serde_json::Value>,
    /// How the verdict was reached.
    pub judged: Judged,
    pub submission: Digest,
    /// Digest of the verifier's files.
    pub verifier: Digest,
    /// How well the verifier was kept apart; absent when the native twin judged.
    pub level: Option<Level>,
    /// Which limits held; absent when the native twin judged.
    pub held: Option<Held>,
    /// Exit code of the verifier.
    pub exit_code: Option<i32>,
    /// What the verifier printed, head and tail.
    pub stdout: String,
    /// What the verifier complained of, head and tail.
    pub stderr: String,
    /// How long it took.
    #[serde(serialize_with = "seconds")]
    pub duration: Duration,
}

fn seconds<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}
