//! Classifies failures for code that runs many trials: who caused them, whether another attempt may succeed, and when
//! continuing is pointless. Runs of plans, steps, Harbor's jobs and evaluations use it.

use aec_judge::settle::outcome::{Boundary, Fault, PANIC, UNPROVEN};
use aec_judge::verdict::Outcome;
use aec_model::failure::{Failure, FailureKind};
use aec_model::meter::AccountKind;

use crate::event::StopReason;

/// What it means for an attempt that a model gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// It is the agent's result with this model: what the agent left counts, and another attempt is no better.
    Agents,
    /// This attempt has no result, but the same request can succeed later.
    Passing,
    /// Neither this attempt nor another one has a result.
    Lasting,
    /// No call of this model can succeed until the user fixes something.
    Fatal,
}

/// What it means for an attempt that a model gave no answer.
pub fn meaning(failure: &Failure) -> Meaning {
    match failure.kind {
        FailureKind::Overlong | FailureKind::ContentFilter | FailureKind::Empty => Meaning::Agents,
        FailureKind::Truncated if !failure.retryable => Meaning::Agents,
        FailureKind::Budget if failure.account == Some(AccountKind::Trial) => Meaning::Agents,
        FailureKind::Auth | FailureKind::Budget | FailureKind::Replay => Meaning::Fatal,
        _ if failure.retryable => Meaning::Passing,
        _ => Meaning::Lasting,
    }
}

/// Whether an attempt ended in a fault that its agent did not cause.
pub(crate) fn is_infra(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::InfraFault | Outcome::VerifierFault)
}

/// The fault of an attempt that was running when its session was killed.
pub(super) fn interrupted() -> Fault {
    Fault {
        boundary: Boundary::Internal,
        kind: Some("interrupted".to_owned()),
        message: "the program was killed while the agent worked".to_owned(),
        retryable: true,
    }
}

/// The fault of an attempt that panicked.
pub(super) fn panicked() -> Fault {
    Fault {
        boundary: Boundary::Internal,
        kind: Some(PANIC.to_owned()),
        message: "the trial ended in a bug of this program".to_owned(),
        retryable: false,
    }
}

/// Consecutive faults that agents did not cause.
#[derive(Debug)]
pub(super) struct FaultsInARow {
    count: usize,
    most: usize,
}

impl FaultsInARow {
    pub(super) fn new(most: usize) -> Self {
        Self { count: 0, most: most.max(1) }
    }

    /// Whether the end of an attempt shows that continuing is pointless.
    pub(super) fn after(&mut self, outcome: Outcome, fault: Option<&Fault>) -> Option<StopReason> {
        // These count against agents, but every agent may have them: a verifier that never works, a bug.
        let everyones =
            |fault: &Fault| fault.kind.as_deref().is_some_and(|kind| [UNPROVEN, PANIC].contains(&kind));
        let adds = is_infra(outcome) || fault.is_some_and(everyones);
        self.count = if adds { self.count + 1 } else { 0 };
        let fault = fault?;
        if fault.boundary == Boundary::Cancelled && fault.kind.as_deref() == Some(FailureKind::Budget.name())
        {
            return Some(StopReason::Budget(fault.message.clone()));
        }
        (self.count >= self.most).then(|| {
            StopReason::Faults(format!("{} faults in a row, the last: {}", self.count, fault.message))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(boundary: Boundary, kind: &str, retryable: bool) -> Fault {
        Fault { boundary, kind: Some(kind.to_owned()), message: "why".to_owned(), retryable }
    }

    #[test]
    fn whether_a_failure_passes_is_asked_only_where_it_may() {
        use FailureKind::{Auth, Budget, Cancelled, ContentFilter, Empty, Overlong, Rate, Replay, Request};
        for (kind, lasting, passing) in [
            (Overlong, Meaning::Agents, Meaning::Agents),
            (ContentFilter, Meaning::Agents, Meaning::Agents),
            (Empty, Meaning::Agents, Meaning::Agents),
            (FailureKind::Truncated, Meaning::Agents, Meaning::Passing),
            (Auth, Meaning::Fatal, Meaning::Fatal),
            (Budget, Meaning::Fatal, Meaning::Fatal),
            (Replay, Meaning::Fatal, Meaning::Fatal),
            (Rate, Meaning::Lasting, Meaning::Passing),
            (Request, Meaning::Lasting, Meaning::Passing),
            (Cancelled, Meaning::Lasting, Meaning::Passing),
        ] {
            assert_eq!(meaning(&Failure::lasting(kind, "x")), lasting, "{kind:?}");
            assert_eq!(meaning(&Failure::passing(kind, "x")), passing, "{kind:?}");
        }
    }

    #[test]
    fn faults_stop_a_run_when_no_agent_comes_through_between_them() {
        let mut faults = FaultsInARow::new(2);
        let down = fault(Boundary::Provider, "server", true);
        assert_eq!(faults.after(Outcome::InfraFault, Some(&down)), None);
        assert_eq!(faults.after(Outcome::AgentFault, Some(&down)), None, "its own fault says nothing");
        assert_eq!(faults.after(Outcome::VerifierFault, Some(&down)), None);
        let stop = faults.after(Outcome::InfraFault, Some(&down));
        assert_eq!(stop, Some(StopReason::Faults("2 faults in a row, the last: why".to_owned())));
    }

    #[test]
    fn a_budget_stops_a_run_at_once_unless_it_was_the_trials_own() {
        let mut faults = FaultsInARow::new(9);
        let own = fault(Boundary::Provider, "budget", false);
        assert_eq!(faults.after(Outcome::Scored, Some(&own)), None);
        let of_the_run = fault(Boundary::Cancelled, "budget", true);
        let stop = faults.after(Outcome::Cancelled, Some(&of_the_run));
        assert_eq!(stop, Some(StopReason::Budget("why".to_owned())));
    }
}
