//! Interprets Harbor's exceptions: who caused them, and whether the agent's work still counts.

use aec_judge::settle::outcome::{Boundary, Ending, Fault};
use aec_judge::verdict::Outcome;

use crate::result::{Exception, Trial};

/// The environment failed.
const SANDBOX: [&str; 9] = [
    "EnvironmentStartTimeoutError",
    "SandboxBuildFailedError",
    "AgentSetupTimeoutError",
    "HealthcheckError",
    "SandboxLikelyOutOfMemoryError",
    "MemoryLimitExceededError",
    "SSHAccessError",
    "DownloadVerifierDirError",
    "RuntimeRequestError",
];
/// The provider of the model failed, and may recover.
const PROVIDER_PASSING: [(&str, &str); 14] = [
    ("ApiError", "server"),
    ("ApiRateLimitError", "rate"),
    ("RateLimitError", "rate"),
    ("ApiUsageLimitError", "rate"),
    ("ApiInternalServerError", "server"),
    ("InternalServerError", "server"),
    ("ApiOverloadedError", "server"),
    ("ServiceUnavailableError", "server"),
    ("ApiResponseStalledError", "network"),
    ("UnknownApiError", "server"),
    ("NetworkConnectionError", "network"),
    ("APIConnectionError", "network"),
    ("APIError", "server"),
    ("Timeout", "network"),
];
/// The provider refused, and will refuse again.
const PROVIDER_LASTING: [(&str, &str); 9] = [
    ("BadRequestError", "request"),
    ("UnprocessableEntityError", "request"),
    ("UnsupportedParamsError", "request"),
    ("UnsupportedModelParametersError", "request"),
    ("AgentAuthenticationError", "auth"),
    ("AuthenticationError", "auth"),
    ("PermissionDeniedError", "auth"),
    ("ModelNotFoundError", "request"),
    ("NotFoundError", "request"),
];
/// The agent had its chance, and a limit of its model ended it.
const OVERLONG: [&str; 4] = [
    "ContextWindowExceededError",
    "ContextLengthExceededError",
    "OutputTokenExceededError",
    "OutputLengthExceededError",
];
/// Harbor's verifier failed. Our own judge decides.
const VERIFIER: [&str; 6] = [
    "VerifierTimeoutError",
    "RewardFileNotFoundError",
    "RewardFileEmptyError",
    "VerifierOutputParseError",
    "AddTestsDirError",
    "ValidationError",
];

/// How a trial ended. `is_ours` tells that its agent is Harbor's oracle or nop, or this program's; then an unknown
/// exception means that the environment failed.
pub fn ending(trial: &Trial, is_ours: bool) -> Ending {
    let Some(exception) = &trial.exception else { return Ending::Judgeable(solution_failed(trial)) };
    let kind = exception.kind.as_str();
    let has_work = trial.workspace().is_some();
    let message = told(exception);
    let fault = |boundary, kind: Option<&str>, retryable| Fault {
        boundary,
        kind: kind.map(str::to_owned),
        message: message.clone(),
        retryable,
    };
    let named =
        |list: &[(&str, &'static str)]| list.iter().find(|(name, _)| *name == kind).map(|(_, kind)| *kind);
    if kind == "CancelledError" {
        return Ending::Lost(Outcome::Cancelled, fault(Boundary::Cancelled, None, true));
    }
    if kind == "AgentTimeoutError" {
        let message = "a limit ended the agent's work: timeout".to_owned();
        return Ending::Judgeable(Some(Fault {
            message,
            ..fault(Boundary::Harness, Some("timeout"), false)
        }));
    }
    if kind == "NonZeroAgentExitCodeError" {
        return Ending::Judgeable(Some(fault(Boundary::Harness, Some("agent_error"), false)));
    }
    if OVERLONG.contains(&kind) {
        let found = fault(Boundary::Provider, Some("overlong"), false);
        return judged_or(has_work, found, Outcome::AgentFault);
    }
    if ["AgentSafetyRefusalError", "ContentPolicyViolationError"].contains(&kind) {
        let found = fault(Boundary::Provider, Some("content_filter"), false);
        return judged_or(has_work, found, Outcome::AgentFault);
    }
    if VERIFIER.contains(&kind) && has_work {
        return Ending::Judgeable(None);
    }
    if VERIFIER.contains(&kind) {
        return Ending::Lost(Outcome::VerifierFault, fault(Boundary::Verifier, None, true));
    }
    if SANDBOX.contains(&kind) || kind.starts_with("GKE") {
        return Ending::Lost(Outcome::InfraFault, fault(Boundary::Sandbox, None, true));
    }
    if let Some(kind) = named(&PROVIDER_PASSING) {
        return Ending::Lost(Outcome::InfraFault, fault(Boundary::Provider, Some(kind), true));
    }
    if kind.starts_with("ApiConnection") {
        return Ending::Lost(Outcome::InfraFault, fault(Boundary::Provider, Some("network"), true));
    }
    if let Some(kind) = named(&PROVIDER_LASTING) {
        return Ending::Lost(Outcome::InfraFault, fault(Boundary::Provider, Some(kind), false));
    }
    if kind == "BudgetExceededError" {
        return Ending::Lost(Outcome::Cancelled, fault(Boundary::Cancelled, Some("budget"), true));
    }
    if ["ServiceOperationsUnsupportedError", "MissingExtraError", "RegradeError"].contains(&kind) {
        return Ending::Lost(Outcome::InfraFault, fault(Boundary::Internal, None, false));
    }
    // An unknown exception. Before the agent began, the environment caused it; afterwards, a foreign agent did.
    if is_ours || !trial.times.agent_began {
        return Ending::Lost(Outcome::InfraFault, fault(Boundary::Sandbox, None, true));
    }
    judged_or(has_work, fault(Boundary::Harness, Some("agent_error"), false), Outcome::AgentFault)
}

fn judged_or(has_work: bool, fault: Fault, outcome: Outcome) -> Ending {
    if has_work { Ending::Judgeable(Some(fault)) } else { Ending::Lost(outcome, fault) }
}

/// Harbor ignores a reference solution that fails, but leaves a file.
fn solution_failed(trial: &Trial) -> Option<Fault> {
    if trial.agent.name.as_deref() != Some("oracle") {
        return None;
    }
    let text = aec_base::file::read_text(
        &trial.path.join("agent/exit-code.txt"),
        100,
        aec_base::file::Links::Refuse,
    )
    .ok()?;
    let code = text.trim();
    (code != "0").then(|| Fault {
        boundary: Boundary::Harness,
        kind: Some("agent_error".to_owned()),
        message: format!("the solution ended with exit code {}", aec_base::text::printable(code)),
        retryable: false,
    })
}

fn told(exception: &Exception) -> String {
    let line = exception.message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let line: String = line.chars().take(400).collect();
    let text = if line.is_empty() { exception.kind.clone() } else { format!("{}: {line}", exception.kind) };
    aec_base::text::printable(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(exception: &str, workspace: bool, began: bool) -> Ending {
        let directory = tempfile::tempdir().unwrap();
        let execution = if began { r#"{"started_at": "2026-01-01T00:00:00Z"}"# } else { "null" };
        let text = format!(
            r#"{{"trial_name": "t", "exception_info": {{"exception_type": "{exception}", "exception_message": "why\nmore"}},
                "agent_execution": {execution}}}"#
        );
        fs_err::write(directory.path().join("result.json"), text).unwrap();
        if workspace {
            fs_err::create_dir_all(directory.path().join("artifacts/workspace")).unwrap();
        }
        ending(&Trial::read(directory.path()).unwrap(), false)
    }

    fn lost(exception: &str) -> (Outcome, Boundary, bool) {
        match trial(exception, false, true) {
            Ending::Lost(outcome, fault) => (outcome, fault.boundary, fault.retryable),
            Ending::Judgeable(_) => panic!("{exception} is judged"),
        }
    }

    #[test]
    fn every_exception_has_one_side() {
        assert_eq!(lost("CancelledError"), (Outcome::Cancelled, Boundary::Cancelled, true));
        assert_eq!(lost("SandboxBuildFailedError"), (Outcome::InfraFault, Boundary::Sandbox, true));
        assert_eq!(lost("RateLimitError"), (Outcome::InfraFault, Boundary::Provider, true));
        assert_eq!(lost("AuthenticationError"), (Outcome::InfraFault, Boundary::Provider, false));
        assert_eq!(lost("MissingExtraError"), (Outcome::InfraFault, Boundary::Internal, false));
        assert_eq!(lost("FileNotFoundError"), (Outcome::AgentFault, Boundary::Harness, false));
        assert_eq!(lost("RewardFileNotFoundError"), (Outcome::VerifierFault, Boundary::Verifier, true));
        let early = trial("FileNotFoundError", false, false);
        assert!(
            matches!(early, Ending::Lost(Outcome::InfraFault, fault) if fault.boundary == Boundary::Sandbox)
        );
    }

    #[test]
    fn what_an_agent_left_counts_whatever_ended_it() {
        for (exception, kind) in [
            ("AgentTimeoutError", "timeout"),
            ("NonZeroAgentExitCodeError", "agent_error"),
            ("ContextWindowExceededError", "overlong"),
            ("FileNotFoundError", "agent_error"),
        ] {
            let Ending::Judgeable(Some(fault)) = trial(exception, true, true) else { panic!("{exception}") };
            assert_eq!(fault.kind.as_deref(), Some(kind));
        }
        assert_eq!(trial("VerifierTimeoutError", true, true), Ending::Judgeable(None));
    }
}
