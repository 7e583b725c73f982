//! The outcome of a trial: one table that combines how the agent's work ended, what could be frozen and the verdict.

use aec_sandbox::SandboxError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::freeze::Unfrozen;
use crate::verdict::{OUT_OF_MEMORY, Outcome, Verdict};

/// The kind of fault of an agent that failed by itself, such as a program that crashed.
pub const AGENT_ERROR: &str = "agent_error";

/// What went wrong, on which side, and whether another attempt may succeed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fault {
    /// The responsible side.
    pub boundary: Boundary,
    /// The kind, if the boundary has kinds: a model failure, or the limit that was reached.
    pub kind: Option<String>,
    /// One line.
    pub message: String,
    /// Whether another attempt may succeed.
    pub retryable: bool,
}

impl Fault {
    /// A fault that would occur again in another attempt.
    pub fn lasting(boundary: Boundary, kind: Option<&str>, message: impl Into<String>) -> Self {
        Self { boundary, kind: kind.map(str::to_owned), message: message.into(), retryable: false }
    }

    /// A fault that may not occur again in another attempt.
    pub fn passing(boundary: Boundary, kind: Option<&str>, message: impl Into<String>) -> Self {
        Self { retryable: true, ..Self::lasting(boundary, kind, message) }
    }
}

/// The side that is responsible for a fault. Every fault has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Boundary {
    /// The provider of a model.
    Provider,
    /// The agent: its harness, its limits or its files.
    Harness,
    /// The sandbox in which it worked.
    Sandbox,
    /// The task's own files.
    Task,
    /// The verifier.
    Verifier,
    /// The user stopped it.
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
    /// It completed.
    Completed,
    /// A limit ended it; what the agent left until then counts.
    Partial,
    /// It failed.
    Failed,
    /// It left nothing.
    Empty,
}

/// Why a room failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomFault {
    /// The kind, if the provider of rooms reports one.
    pub kind: Option<&'static str>,
    pub message: String,
    /// Whether another attempt may succeed.
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

/// How an agent's work ended, for all ways of running an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The agent had its chance: what it left counts, whatever ended its work.
    Judgeable(Option<Fault>),
    /// The agent did not have its chance.
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

/// The result of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    pub outcome: Outcome,
    pub fault: Option<Fault>,
    pub status: AgentStatus,
}

impl Settled {
    /// The agent did not have its chance.
    pub fn lost(outcome: Outcome, fault: Fault) -> Self {
        let status = if outcome == Outcome::Cancelled { AgentStatus::Partial } else { AgentStatus::Failed };
        Self { outcome, fault: Some(fault), status }
    }

    /// The user stopped the run.
    pub fn stopped() -> Self {
        Self::lost(Outcome::Cancelled, Fault::passing(Boundary::Cancelled, None, "the run was stopped"))
    }

    /// The agent's files could not be frozen.
    pub fn unfrozen(error: &Unfrozen) -> Self {
        match error {
            Unfrozen::Unfit(reason) => {
                let fault = Fault::lasting(Boundary::Harness, None, reason.clone());
                Self::lost(Outcome::AgentFault, fault)
            }
            Unfrozen::Machine(fault) => Self::lost(Outcome::InfraFault, fault.clone().into()),
        }
    }

    /// The agent's files were frozen; `own` is what ended its work. `verdict` is absent if none was requested.
    pub fn judged(own: Option<Fault>, has_answer: bool, verdict: Option<&Verdict>) -> Self {
        let kind = own.as_ref().map(|fault| fault.kind.as_deref());
        let status = match kind {
            Some(Some(AGENT_ERROR)) => AgentStatus::Failed,
            // Commands that were killed because memory ran out did not end the work.
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
