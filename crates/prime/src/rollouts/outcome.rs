//! The parts of a record that reports read, from a rollout: the keys of `agent_result`, the frame in the agent's
//! configuration, and the fault.

use aec_judge::settle::outcome::{AGENT_ERROR, Boundary, Fault};
use indexmap::IndexMap;
use serde_json::Value;

use crate::rollouts::rollout::{Rollout, RolloutError};
use crate::rollouts::run::Run;
use crate::rollouts::stop::StopKind;

/// The harness's summary for `outputs.agent_result`. Unknown values are left out.
pub fn agent_result(rollout: &Rollout, run: &Run) -> IndexMap<String, Value> {
    let mut result = IndexMap::new();
    let mut put = |key: &str, value: Value| drop(result.insert(key.to_owned(), value));
    put("turns_used", rollout.turns.into());
    if let Some(turns) = rollout.task.max_turns.or(run.max_turns) {
        put("max_turns", turns.into());
    }
    put("tool_calls", rollout.tool_calls.into());
    put("tool_errors", rollout.tool_errors.into());
    put("submit_calls", rollout.submissions.len().into());
    put("submitted", rollout.submissions.iter().any(|submission| submission.is_accepted).into());
    put("final_environment_response", rollout.final_environment_response.into());
    if let Some(given) = &rollout.stop.given {
        put("stop_condition", given.clone().into());
    }
    put("stop_reason", stop_reason(rollout).into());
    result
}

/// What ended the work, in the terms of our own harnesses.
fn stop_reason(rollout: &Rollout) -> &'static str {
    match rollout.stop.kind {
        _ if rollout.is_empty_response => "provider_error",
        StopKind::Completed | StopKind::NoToolsCalled => "done",
        StopKind::TurnLimit => "turn_limit_reached",
        StopKind::TokenLimit => "token_budget_reached",
        StopKind::PromptTooLong => "provider_error",
        StopKind::Timeout => "timeout",
        StopKind::Error => match rollout.error.as_ref().map(boundary) {
            Some(Boundary::Provider) => "provider_error",
            _ => "failed",
        },
        StopKind::Other => "other",
        StopKind::Unknown => "unknown",
    }
}

/// The settings that must be equal before two runs can be compared, for `agent.configuration`, without unknown ones.
pub fn configuration(rollout: &Rollout, run: &Run) -> IndexMap<String, Value> {
    let task = &rollout.task;
    let text = |text: Option<&str>| text.map(Value::from);
    let number = |number: Option<u64>| number.map(Value::from);
    let told = [
        ("environment", text(run.environment.as_deref().or(task.package.name.as_deref()))),
        ("split", text(run.split().or(task.split.as_deref()))),
        ("seed", run.seed().or(task.seed.as_ref()).cloned()),
        ("harness", text(run.harness.as_deref().or(task.harness.as_deref()))),
        ("max_tokens", number(run.max_tokens())),
        ("max_turns", number(task.max_turns.or(run.max_turns))),
        ("max_total_tokens", number(task.max_total_tokens.or(run.max_total_tokens))),
    ];
    let told = told.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let mut configuration: IndexMap<String, Value> = told.collect();
    for (key, value) in &run.sampling {
        configuration.entry(key.clone()).or_insert_with(|| value.clone());
    }
    configuration
}

pub fn fault(rollout: &Rollout) -> Option<Fault> {
    let fault = |boundary, kind, message: &str| Some(Fault::lasting(boundary, Some(kind), message));
    if let Some(error) = &rollout.error {
        let boundary = boundary(error);
        let found = Fault::lasting(boundary, kind(error), one_line(error));
        return Some(Fault { retryable: boundary == Boundary::Sandbox, ..found });
    }
    if rollout.is_empty_response {
        return fault(Boundary::Provider, "empty", "the model answered with nothing");
    }
    let limit = |kind| fault(Boundary::Harness, kind, &format!("a limit ended the agent's work: {kind}"));
    match rollout.stop.kind {
        StopKind::TurnLimit => limit("turn_limit_reached"),
        StopKind::TokenLimit => limit("token_budget_reached"),
        StopKind::Timeout => limit("timeout"),
        StopKind::PromptTooLong => {
            fault(Boundary::Provider, "overlong", "the conversation did not fit into the model")
        }
        StopKind::Error => fault(Boundary::Harness, AGENT_ERROR, "the rollout ended with an error"),
        _ => None,
    }
}

/// Which side caused an error. Writers name errors by class; unknown ones count as the environment program's.
fn boundary(error: &RolloutError) -> Boundary {
    let is = |kinds: &[&str]| kinds.iter().any(|kind| error.is(kind));
    if is(&[
        "EmptyModelResponseError",
        "InvalidModelResponseError",
        "OverlongPromptError",
        "ModelError",
        "ProviderError",
    ]) {
        Boundary::Provider
    } else if is(&["SandboxError", "BrowserSandboxError", "InfraError", "TunnelError", "InterceptionError"]) {
        Boundary::Sandbox
    } else if is(&["TaskError", "EnvError"]) {
        Boundary::Task
    } else {
        Boundary::Harness
    }
}

fn kind(error: &RolloutError) -> Option<&'static str> {
    if error.is("EmptyModelResponseError") {
        return Some("empty");
    }
    if error.is("OverlongPromptError") {
        return Some("overlong");
    }
    if error.is("InvalidModelResponseError") {
        return Some("protocol");
    }
    if boundary(error) != Boundary::Provider {
        return (boundary(error) == Boundary::Harness).then_some(AGENT_ERROR);
    }
    match error.status_code? {
        401 | 403 => Some("auth"),
        429 => Some("rate"),
        500.. => Some("server"),
        400..=499 => Some("request"),
        _ => None,
    }
}

fn one_line(error: &RolloutError) -> String {
    let Some(message) = &error.message else { return error.kind.clone() };
    let line = message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    if line.starts_with(&error.kind) { line.to_owned() } else { format!("{}: {line}", error.kind) }
}
