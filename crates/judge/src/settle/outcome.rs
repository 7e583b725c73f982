//! What became of a trial: one table from how the agent's work ended, what could be frozen and what the judge said.

use aec_sandbox::SandboxError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::freeze::Unfrozen;
use crate::verdict::{OUT_OF_MEMORY, Outcome, Verdict};

/// The kind of fault of an agent that failed by itself, say a program that crashed.
pub const AGENT_ERROR: &str = "agent_error";

/// What went wrong, on whose side, and whether another attempt may go better.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fault {
    /// On whose side.
    pub boundary: Boundary,
    /// The kind, where the boundary has kinds: a model failure or a limit that was reached.
    pub kind: Option<String>,
    /// In one line.
    pub message: String,
    /// Whether another attempt may go better.
    pub retryable: bool,
}

impl Fault {
    /// A fault that another attempt does not heal.
    pub fn lasting(boundary: Boundary, kind: Option<&str>, message: impl Into<String>) -> Self {
        Self { boundary, kind: kind.map(str::to_owned), message: message.into(), retryable: false }
    }

    /// A fault that another attempt may not meet.
    pub fn passing(boundary: Boundary, kind: Option<&str>, message: impl Into<String>) -> Self {
        Self { retryable: true, ..Self::lasting(boundary, kind, message) }
    }
}

/// On whose side a fault lies. Every fault has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Boundary {
    /// The provider of a model.
    Provider,
    /// The agent: its harness, its limits or what it left.
    Harness,
    /// The room in which it worked.
    Sandbox,
    /// The task's own files.
    Task,
    /// The verifier.
    Verifier,
    /// Somebody stopped it.
    Cancelled,
    /// This program or this machine.
    Internal,
}

impl Boundary {
    /// The name as written in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Harness => "harness",
            Self::Sandbox => "sandbox",
            Self::Task => "task",
            Self::Verifier => "verifier",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
        }
    }
}

/// How an agent's work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    /// It was done.
    Completed,
    /// A limit ended it; what it left until then counts.
    Partial,
    /// It failed.
    Failed,
    /// It left nothing.
    Empty,
}

/// Why a room failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomFault {
    /// The kind, where whatever keeps rooms tells kinds apart.
    pub kind: Option<&'static str>,
    /// What happened.
    pub message: String,
    /// Whether another attempt may go better.
    pub may_pass: bool,
}

impl From<String> for RoomFault {
    fn from(message: String) -> Self {
        Self { kind: None, message, may_pass: true }
    }
}

impl From<SandboxError> for RoomFault {
    fn from(error: SandboxError) -> Self {
        match error {
            SandboxError::Elsewhere { kind, may_pass, message } => {
                Self { kind: Some(kind), message, may_pass }
            }
            other => other.to_string().into(),
        }
    }
}

impl From<RoomFault> for Fault {
    fn from(RoomFault { kind, message, may_pass }: RoomFault) -> Self {
        Self { retryable: may_pass, ..Self::lasting(Boundary::Sandbox, kind, message) }
    }
}

/// How an agent's work ended, whoever carried it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The agent had its chance: what it left counts, whatever ended its work.
    Judgeable(Option<Fault>),
    /// It had none.
    Lost(Outcome, Fault),
}

impl Ending {
    /// A limit ended the work.
    pub fn limit(name: &str) -> Self {
        let message = format!("a limit ended the agent's work: {name}");
        Self::Judgeable(Some(Fault::lasting(Boundary::Harness, Some(name), message)))
    }

    /// The agent itself failed.
    pub fn agent_error(reason: impl Into<String>) -> Self {
        Self::Judgeable(Some(Fault::lasting(Boundary::Harness, Some(AGENT_ERROR), reason)))
    }
}

/// What became of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// In one word.
    pub outcome: Outcome,
    /// What went wrong, if something did.
    pub fault: Option<Fault>,
    /// How the agent's work ended.
    pub status: AgentStatus,
}

impl Settled {
    /// The agent did not have its chance.
    pub fn lost(outcome: Outcome, fault: Fault) -> Self {
        let status = if outcome == Outcome::Cancelled { AgentStatus::Partial } else { AgentStatus::Failed };
        Self { outcome, fault: Some(fault), status }
    }

    /// Somebody stopped the run.
    pub fn stopped() -> Self {
        Self::lost(Outcome::Cancelled, Fault::passing(Boundary::Cancelled, None, "the run was stopped"))
    }

    /// What the agent left could not be frozen.
    pub fn unfrozen(error: &Unfrozen) -> Self {
        match error {
            Unfrozen::Unfit(reason) => {
                let fault = Fault::lasting(Boundary::Harness, None, reason.clone());
                Self::lost(Outcome::AgentFault, fault)
            }
            Unfrozen::Machine(fault) => Self::lost(Outcome::InfraFault, fault.clone().into()),
        }
    }

    /// What the agent left was frozen; `own` is what ended its work. Without a verdict nobody asked for one.
    pub fn judged(own: Option<Fault>, has_answer: bool, verdict: Option<&Verdict>) -> Self {
        let kind = own.as_ref().map(|fault| fault.kind.as_deref());
        let status = match kind {
            Some(Some(AGENT_ERROR)) => AgentStatus::Failed,
            // Commands that were killed for their memory did not end the work.
            None | Some(Some(OUT_OF_MEMORY)) if has_answer => AgentStatus::Completed,
            None | Some(Some(OUT_OF_MEMORY)) => AgentStatus::Empty,
            Some(_) => AgentStatus::Partial,
        };
        let Some(verdict) = verdict else { return Self { outcome: Outcome::Unverified, fault: own, status } };
        let reason = verdict.fault.clone().unwrap_or_default();
        let fault = match verdict.outcome {
            Outcome::VerifierFault => {
                let what = format!("the verifier failed: {reason}");
                Some(Fault::passing(Boundary::Verifier, verdict.fault_kind, what))
            }
            Outcome::InfraFault => {
                let fault = Fault::lasting(Boundary::Sandbox, verdict.fault_kind, reason);
                Some(Fault { retryable: verdict.may_pass, ..fault })
            }
            _ => own,
        };
        Self { outcome: verdict.outcome, fault, status }
    }
}
