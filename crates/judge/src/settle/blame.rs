//! Which faults an agent could have caused. Such a fault is never free: what the agent left is judged, or the attempt
//! counts as 0, and no other attempt replaces it. The table in `docs/judge.md` says the same in words; a test compares.

use std::io;

use aec_sandbox::SandboxError;
use rustix::io::Errno;

use super::outcome::{Boundary, Fault, PANIC, REFUSED, UNPROVEN};
use crate::verdict::Outcome;

/// Failures of a provider of rooms that commands in a room cannot cause: its service, its disk and its images are
/// outside. A container that ends, or a service beside it that fails, may have been brought down from inside.
const OUTSIDE: [&str; 3] = ["engine_lost", "disk_full", "image_build"];

/// Failures of models that depend on what the agent asked or on how much it asked.
const OF_REQUESTS: [&str; 6] = ["overlong", "content_filter", "empty", "truncated", "budget", REFUSED];

/// Whether the agent could have caused a fault.
pub fn agent_could_cause(fault: &Fault) -> bool {
    let kind = fault.kind.as_deref();
    match fault.boundary {
        Boundary::Harness => true,
        // Budgets of runs and failures that pass are the provider's or the user's.
        Boundary::Provider => !fault.retryable && kind.is_some_and(|kind| OF_REQUESTS.contains(&kind)),
        // A golden answer shows that a verifier works; where there is none, the agent could have made it fail.
        Boundary::Verifier => kind == Some(UNPROVEN),
        // What an agent leaves can set off a bug of this program.
        Boundary::Internal => kind == Some(PANIC),
        Boundary::Sandbox | Boundary::Task | Boundary::Cancelled => false,
    }
}

/// Whether another attempt may replace one that ended like this. It may not if the agent could have caused the end.
pub fn may_be_replaced(outcome: Outcome, fault: Option<&Fault>) -> bool {
    matches!(outcome, Outcome::InfraFault | Outcome::VerifierFault)
        && fault.is_some_and(|fault| fault.retryable && !agent_could_cause(fault))
}

/// Whether commands in a room could have made this program's work with the room fail. They cannot use up what this
/// program itself has.
pub(super) fn commands_could_cause(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<SandboxError>());
    if let Some(inner) = inner {
        return commands_could_end(inner);
    }
    let ours = [Errno::MFILE, Errno::NFILE];
    !ours.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Whether commands in a room could have caused a failure of the room.
pub(crate) fn commands_could_end(error: &SandboxError) -> bool {
    match error {
        SandboxError::Refused { .. } | SandboxError::Gone | SandboxError::KeeperLost { .. } => true,
        // Nothing ran in such a room.
        SandboxError::WeakerLimits { .. } => false,
        SandboxError::Elsewhere { kind, .. } => !OUTSIDE.contains(kind),
        SandboxError::Io(error) => commands_could_cause(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settle::freeze::Unfrozen;
    use crate::settle::outcome::{BROKE_VERIFIER, Ending, ROOM_LOST, RoomFault, Settled};

    const PAGE: &str = include_str!("../../../../docs/judge.md");

    /// Every kind of fault, with whether an agent could have caused it.
    fn kinds() -> Vec<(Fault, bool)> {
        let fault = |boundary, kind: &str, retryable| Fault {
            retryable,
            ..Fault::lasting(boundary, Some(kind).filter(|kind| !kind.is_empty()), "x")
        };
        let mut kinds = Vec::new();
        for kind in OF_REQUESTS {
            kinds.push((fault(Boundary::Provider, kind, false), true));
            kinds.push((fault(Boundary::Provider, kind, true), false));
        }
        for kind in ["auth", "rate", "server", "network", "protocol", "request", "replay"] {
            kinds.push((fault(Boundary::Provider, kind, false), false));
            kinds.push((fault(Boundary::Provider, kind, true), false));
        }
        for kind in ["", "timeout", "agent_error", "crashed", "out_of_memory", ROOM_LOST, BROKE_VERIFIER] {
            kinds.push((fault(Boundary::Harness, kind, false), true));
        }
        for kind in ["", "engine_lost", "disk_full", "image_build", "engine_refused"] {
            kinds.push((fault(Boundary::Sandbox, kind, true), false));
        }
        kinds.push((fault(Boundary::Task, "", false), false));
        kinds.push((fault(Boundary::Verifier, "exit_code", true), false));
        kinds.push((fault(Boundary::Verifier, UNPROVEN, false), true));
        kinds.push((fault(Boundary::Internal, PANIC, false), true));
        kinds.push((fault(Boundary::Internal, "interrupted", true), false));
        kinds.push((fault(Boundary::Cancelled, "budget", true), false));
        kinds
    }

    #[test]
    fn what_an_agent_could_cause_is_never_tried_again() {
        for (fault, agents) in kinds() {
            assert_eq!(agent_could_cause(&fault), agents, "{fault:?}");
            for outcome in [Outcome::InfraFault, Outcome::VerifierFault] {
                let free = Fault { retryable: true, ..fault.clone() };
                let agents = agent_could_cause(&free);
                assert_eq!(may_be_replaced(outcome, Some(&free)), !agents, "{fault:?}");
            }
            for outcome in [Outcome::Scored, Outcome::AgentFault, Outcome::Unverified] {
                assert!(!may_be_replaced(outcome, Some(&fault)), "{fault:?}");
            }
        }
    }

    /// The page has a row for each boundary and for each kind that is an exception.
    #[test]
    fn the_table_of_the_page_has_every_kind() {
        let table = PAGE.split("## Who can cause which fault").nth(1).unwrap();
        let table = table.split("\n## ").next().unwrap();
        for (fault, _) in kinds() {
            let boundary = format!("`{}`", fault.boundary.name());
            assert!(table.contains(&boundary), "{boundary} is not in the table");
            if let Some(kind) = fault.kind.as_deref().filter(|kind| !["timeout"].contains(kind)) {
                assert!(table.contains(&format!("`{kind}`")), "{kind} is not in the table");
            }
        }
    }

    /// A room that was lost while an agent worked in it gave the agent a second attempt.
    #[test]
    fn a_room_that_commands_could_have_ended_is_the_agents() {
        let elsewhere = |kind| SandboxError::Elsewhere { kind, may_pass: true, message: "x".to_owned() };
        let refused =
            SandboxError::Refused { step: "start a command".to_owned(), error: "EAGAIN".to_owned() };
        let full = SandboxError::Io(Errno::NOSPC.into());
        for (error, agents) in [
            (SandboxError::Gone, true),
            (refused, true),
            (full, true),
            (SandboxError::Io(Errno::MFILE.into()), false),
            (elsewhere("container_lost"), true),
            (elsewhere("service_failed"), true),
            (elsewhere("engine_lost"), false),
            (elsewhere("disk_full"), false),
            (elsewhere("image_build"), false),
        ] {
            let fault = RoomFault::from(error);
            let settled = Settled::unfrozen(&Unfrozen::Machine(fault.clone()));
            let expected = if agents { Outcome::AgentFault } else { Outcome::InfraFault };
            assert_eq!((settled.outcome, fault.commands_could), (expected, agents), "{fault:?}");
            assert_eq!(may_be_replaced(settled.outcome, settled.fault.as_ref()), !agents, "{fault:?}");
        }
        let Ending::Judgeable(Some(fault)) = Ending::limit("timeout") else { panic!("it is judged") };
        assert!(agent_could_cause(&fault));
    }
}
