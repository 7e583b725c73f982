//! What a rollout did, derived from its messages: turns, calls, submitted answers, and its last message.

use std::collections::HashSet;
use std::ptr;

use aec_ledger::transcript::SUBMIT_TOOL;
use aec_ledger::transcript::chat::{Message, Role};
use aec_model::message::ToolCall;

use crate::rollouts::message::{answered_calls, is_of, object};
use crate::rollouts::rollout::{Rollout, Submission};
use crate::rollouts::stop::{Stop, StopKind};
use crate::rollouts::tool_result::ToolResult;
use crate::rollouts::value::first_text;

const EMPTY_ERROR: &str = "EmptyModelResponseError";

/// Fills in everything that follows from messages, stop and error.
pub(crate) fn describe(rollout: &mut Rollout) {
    let messages = std::mem::take(&mut rollout.messages);
    let completion = messages.get(rollout.prompt_messages..).unwrap_or_default();
    rollout.turns = completion.iter().filter(|message| message.role == Role::Assistant).count();
    rollout.final_text = completion
        .iter()
        .rev()
        .find(|message| message.role == Role::Assistant && !message.text.trim().is_empty())
        .map(|message| message.text.clone());
    rollout.stop.kind = stop_kind(rollout, completion);
    rollout.final_environment_response = has_final_response(rollout, completion);
    count_calls(rollout, completion);
    rollout.is_empty_response = is_empty_response(rollout, completion);
    rollout.messages = messages;
}

fn last_assistant(completion: &[Message]) -> Option<usize> {
    completion.iter().rposition(|message| message.role == Role::Assistant)
}

fn stop_kind(rollout: &Rollout, completion: &[Message]) -> StopKind {
    let Stop { given, .. } = &rollout.stop;
    let kind = match given.as_deref() {
        Some(word) => StopKind::read(word),
        None if rollout.error.is_some() => StopKind::Error,
        None => StopKind::Unknown,
    };
    // Verifiers checks the limit on turns first, so it is also the stop of a successful single-turn rollout, and of one
    // whose model finished on its last turn.
    let is_done = completion.last().is_some_and(|last| {
        last.role == Role::Assistant && last.tool_calls.is_empty() && !last.text.trim().is_empty()
    });
    match kind {
        StopKind::TurnLimit if is_done && !rollout.tools.is_empty() => StopKind::NoToolsCalled,
        StopKind::TurnLimit if is_done && rollout.turns == 1 => StopKind::Completed,
        kind => kind,
    }
}

fn has_final_response(rollout: &Rollout, completion: &[Message]) -> bool {
    if rollout.stop.given.as_deref() == Some("has_final_env_response") {
        return true;
    }
    let calling = |message: &Message| !message.tool_calls.is_empty();
    let Some(last) = completion.iter().rposition(calling).filter(|_| rollout.error.is_none()) else {
        return false;
    };
    let turn = &completion[last..];
    turn[0].tool_calls.iter().any(|call| is_of(call, SUBMIT_TOOL))
        && turn.iter().zip(answered_calls(turn)).skip(1).any(|(message, call)| match message.role {
            Role::Tool => {
                call.is_some_and(|call| is_of(call, SUBMIT_TOOL))
                    && !ToolResult::read(message, call).is_failed
            }
            Role::User => true,
            Role::System | Role::Assistant => false,
        })
}

fn count_calls(rollout: &mut Rollout, completion: &[Message]) {
    let last = last_assistant(completion);
    let mut accepted: HashSet<*const ToolCall> = HashSet::new();
    for (message, call) in completion.iter().zip(answered_calls(completion)) {
        let is_failed = message.role == Role::Tool && ToolResult::read(message, call).is_failed;
        rollout.tool_errors += usize::from(is_failed);
        accepted.extend(call.filter(|_| !is_failed).map(ptr::from_ref));
    }
    for (at, message) in completion.iter().enumerate() {
        for call in &message.tool_calls {
            rollout.tool_calls += 1;
            *rollout.calls_by_name.entry(call.name.clone()).or_default() += 1;
            if is_of(call, SUBMIT_TOOL) {
                // The final response of an environment need not be a tool's result.
                let is_last = rollout.final_environment_response && last == Some(at);
                let is_accepted = is_last || accepted.contains(&ptr::from_ref(call));
                rollout.submissions.push(submission(call, is_accepted));
            }
        }
    }
}

fn submission(call: &ToolCall, is_accepted: bool) -> Submission {
    let object = object(call).unwrap_or_default();
    Submission {
        arguments: call.arguments.clone(),
        text: first_text(&object, &["content", "answer", "text"]),
        path: first_text(&object, &["path"]),
        is_accepted,
    }
}

fn is_empty_response(rollout: &Rollout, completion: &[Message]) -> bool {
    if let Some(error) = &rollout.error {
        return error.is(EMPTY_ERROR);
    }
    match last_assistant(completion) {
        Some(last) => completion[last].is_empty(),
        // The row claims that it ended with an answer, but there is none.
        None => {
            let kinds =
                [StopKind::Completed, StopKind::NoToolsCalled, StopKind::TurnLimit, StopKind::Unknown];
            rollout.is_completed != Some(false) && kinds.contains(&rollout.stop.kind)
        }
    }
}
