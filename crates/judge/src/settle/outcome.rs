//! The outcome of a trial: one table that combines how the agent's work ended, what could be frozen and the verdict.

use std::io;

use aec_sandbox::SandboxError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::blame;
use super::freeze::Unfrozen;
use crate::verdict::{CausedBy, OUT_OF_MEMORY, Outcome, Verdict};

/// The kind of fault of an agent that failed by itself, such as a program that crashed.
pub const AGENT_ERROR: &str = "agent_error";
/// The kind of fault of an agent whose program ended with an error and left no answer.
pub const CRASHED: &str = "crashed";
/// The kind of fault of an agent whose provider answered at first and then refused the conversation that it made.
pub const REFUSED: &str = "refused";
/// The kind of fault of an agent whose room ended or could no longer be used while it worked.
pub const ROOM_LOST: &str = "room_lost";
/// The kind of fault of an agent whose submission made a sound verifier fail.
pub const BROKE_VERIFIER: &str = "broke_verifier";
/// The kind of fault of a verifier that failed although nothing shows that it ever works.
pub const UNPROVEN: &str = "unproven";
/// The kind of fault of a bug of this program.
pub const PANIC: &str = "panic";

/// Whether an attempt ended like this because the agent's program ended with an error and left no answer.
pub fn is_crash(outcome: Outcome, kind: Option<&str>) -> bool {
    outcome == Outcome::Scored && kind == Some(CRASHED)
}

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
    /// Whether commands in the room could have caused it, if there were any. See [`blame`].
    pub commands_could: bool,
}

impl RoomFault {
    /// The fault of an agent that worked in the room and could have caused this.
    pub fn of_agent(self) -> Fault {
        let message = format!("its room failed while it worked: {}", self.message);
        Fault::lasting(Boundary::Harness, Some(ROOM_LOST), message)
    }
}

/// A failure of this program or machine.
impl From<String> for RoomFault {
    fn from(message: String) -> Self {
        Self { kind: None, message, may_pass: true, commands_could: false }
    }
}

/// A failure of working with a room.
impl From<io::Error> for RoomFault {
    fn from(error: io::Error) -> Self {
        let commands_could = blame::commands_could_cause(&error);
        Self { commands_could, ..error.to_string().into() }
    }
}

impl From<SandboxError> for RoomFault {
    fn from(error: SandboxError) -> Self {
        let commands_could = blame::commands_could_end(&error);
        Self { kind: error.kind(), may_pass: error.may_pass(), message: error.to_string(), commands_could }
    }
}

impl From<RoomFault> for Fault {
    fn from(RoomFault { kind, message, may_pass, .. }: RoomFault) -> Self {
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

    /// The agent's program ended with an error and left no answer.
    pub fn crashed(reason: impl Into<String>) -> Self {
        Self::Judgeable(Some(Fault::lasting(Boundary::Harness, Some(CRASHED), reason)))
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
            // The agent worked in this room until a moment ago.
            Unfrozen::Machine(fault) if fault.commands_could => {
                Self::lost(Outcome::AgentFault, fault.clone().of_agent())
            }
            Unfrozen::Machine(fault) => Self::lost(Outcome::InfraFault, fault.clone().into()),
        }
    }

    /// The program that ran the agent ended in a bug.
    pub fn panicked(what: &str) -> Self {
        Self::lost(Outcome::AgentFault, Fault::lasting(Boundary::Internal, Some(PANIC), what))
    }

    /// The agent's files were frozen; `own` is what ended its work. `verdict` is absent if none was requested.
    pub fn judged(own: Option<Fault>, has_answer: bool, verdict: Option<&Verdict>) -> Self {
        let kind = own.as_ref().map(|fault| fault.kind.as_deref());
        let status = match kind {
            Some(Some(AGENT_ERROR | CRASHED)) => AgentStatus::Failed,
            // Commands that were killed because memory ran out did not end the work.
            None | Some(Some(OUT_OF_MEMORY)) if has_answer => AgentStatus::Completed,
            None | Some(Some(OUT_OF_MEMORY)) => AgentStatus::Empty,
            Some(_) => AgentStatus::Partial,
        };
        let Some(verdict) = verdict else { return Self { outcome: Outcome::Unverified, fault: own, status } };
        let reason = verdict.fault.clone().unwrap_or_default();
        let has_crashed = kind == Some(Some(CRASHED));
        let fault = match verdict.outcome {
            // A program that leaves nothing may break a verifier, too; that it crashed explains more.
            _ if has_crashed && verdict.caused_by == Some(CausedBy::Submission) => own,
            _ if verdict.caused_by == Some(CausedBy::Submission) => {
                let before = own.map(|own| format!("; before that, {}", own.message)).unwrap_or_default();
                let what = format!("the agent's files broke the verifier: {reason}{before}");
                Some(Fault::lasting(Boundary::Harness, Some(BROKE_VERIFIER), what))
            }
            Outcome::AgentFault => {
                let what = format!("the verifier failed, and nothing shows that it works: {reason}");
                Some(Fault::lasting(Boundary::Verifier, Some(UNPROVEN), what))
            }
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
