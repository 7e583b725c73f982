//! Phrases about a run while it goes on. Lines, bars and the full screen share them.

use std::time::Instant;

use aec_base::decimal::rounded;
use aec_judge::verdict::Outcome;
use aec_run::event::{RunStarted, StopReason, TrialRef};
use aec_run::tally::AgentTally;

use super::state::{Ended, State};
use crate::progress::figures::{self, UNKNOWN, grouped, guess, many, money_left, rate, span};

/// `120/500 trials`.
pub(crate) fn trials(state: &State) -> String {
    format!("{}/{} trials", grouped(state.done() as u64), grouped(state.to_run() as u64))
}

/// `reward 0.61 (of 110)`.
pub(crate) fn reward(tally: &AgentTally) -> String {
    match tally.mean_reward() {
        Some(mean) => format!("reward {} (of {})", rounded(mean, 2), grouped(tally.counted() as u64)),
        None => format!("reward {UNKNOWN} (of 0)"),
    }
}

/// `3 infra faults`, for every outcome other than scored.
pub(crate) fn unscored(state: &State) -> Vec<String> {
    let mut parts: Vec<String> = state
        .unscored()
        .map(|(outcome, count)| match outcome {
            Outcome::AgentFault => many(count, "agent fault"),
            Outcome::InfraFault => many(count, "infra fault"),
            Outcome::VerifierFault => many(count, "verifier fault"),
            Outcome::Scored | Outcome::Cancelled | Outcome::Unverified => {
                format!("{} {}", grouped(count as u64), outcome.name())
            }
        })
        .collect();
    if state.retried > 0 {
        parts.push(format!("{} tried again", grouped(state.retried as u64)));
    }
    parts
}

/// `$0.42`, and how many attempts had no price.
pub(crate) fn cost(state: &State) -> String {
    figures::cost(state.spent(), state.unpriced)
}

/// `1 m 05 s elapsed`.
pub(crate) fn elapsed(state: &State, now: Instant) -> String {
    format!("{} elapsed", span(now.saturating_duration_since(state.began)))
}

/// `12.3/s`.
pub(crate) fn pace(state: &State, now: Instant) -> String {
    state.rate(now).map_or_else(|| format!("{UNKNOWN}/s"), rate)
}

/// `about 30 s left`, while trials are left.
pub(crate) fn left(state: &State, now: Instant) -> Option<String> {
    if state.ended.is_some() || state.done() >= state.to_run() && state.running().len() == 0 {
        return None;
    }
    let guess = state.left(now).map(guess);
    Some(guess.map_or_else(|| format!("{UNKNOWN} left"), |time| format!("about {time} left")))
}

/// All phrases on one line.
pub(crate) fn so_far(state: &State, now: Instant) -> String {
    let mut parts = vec![trials(state), reward(&state.all)];
    parts.extend(unscored(state));
    parts.extend([cost(state), pace(state, now)]);
    parts.extend(left(state, now));
    parts.join(", ")
}

pub(crate) fn attempt(state: &State, trial: &TrialRef) -> String {
    let task = state.safe(&trial.task);
    let mut text = format!("{} ({task}, {}, repetition {}", trial.trial_id, trial.agent, trial.repetition);
    if trial.attempt > 1 {
        text.push_str(&format!(", attempt {}", trial.attempt));
    }
    text.push(')');
    text
}

/// An attempt that was not simply scored, and what went wrong.
pub(crate) fn fault(state: &State, ended: &Ended) -> Option<String> {
    if matches!(ended.outcome, Outcome::Scored | Outcome::Unverified) && ended.message.is_none() {
        return None;
    }
    let mut text = format!("{}: {}", ended.outcome.name(), attempt(state, &ended.trial));
    if let Some(message) = &ended.message {
        text.push_str(&format!(": {message}"));
    }
    if ended.retried {
        text.push_str("; it is tried again");
    }
    Some(text)
}

pub(crate) fn start(started: &RunStarted) -> String {
    let mut text = format!(
        "run {}: {} planned, {} done before, {} to run, {} at once",
        started.experiment_id,
        many(started.planned, "trial"),
        grouped(started.done_before as u64),
        grouped(started.to_run as u64),
        grouped(started.concurrency as u64),
    );
    if let Some(most) = started.max_cost {
        let more = if started.done_before > 0 || started.interrupted > 0 { " more" } else { "" };
        text.push_str(&format!(", at most {}{more}", money_left(most)));
    }
    if started.interrupted > 0 {
        text.push_str(&format!(", {} left over by a killed session", many(started.interrupted, "attempt")));
    }
    for forecast in &started.forecasts {
        text.push_str(&format!("; expected of {}: {}", forecast.agent, forecast.all));
    }
    text
}

/// Why no further trial is started.
pub(crate) fn stop_reason(reason: &StopReason) -> String {
    match reason {
        StopReason::Asked => "asked to stop".to_owned(),
        StopReason::Insisted => "asked to stop at once".to_owned(),
        StopReason::Budget(message) => format!("the budget is used up: {message}"),
        StopReason::Time => "the time is over".to_owned(),
        StopReason::Faults(message) => format!("too many faults: {message}"),
        StopReason::Storage(message) => format!("nothing more can be recorded: {message}"),
    }
}

/// Why no further trial is started, and what happens to running ones.
pub(crate) fn stopping(state: &State, reason: &StopReason) -> String {
    let running = many(state.running().len(), "running trial");
    match reason {
        StopReason::Asked => format!("finishing {running}; press again to cancel them"),
        StopReason::Insisted => format!("cancelling {running}"),
        _ => format!("stopping, {}; finishing {running}", state.safe(&stop_reason(reason))),
    }
}

pub(crate) fn end(state: &State) -> Option<String> {
    let ended = state.ended.as_ref()?;
    let word = if ended.stopped.is_some() { "stopped" } else { "done" };
    let mut parts = vec![
        format!(
            "{word}: {} of {} executed",
            grouped(ended.all.executed as u64),
            many(ended.all.planned, "trial")
        ),
        reward(&ended.all),
        figures::cost(ended.spent.unwrap_or_default(), ended.unpriced),
        span(ended.duration),
    ];
    if let Some(reason) = &ended.stopped {
        parts.push(state.safe(&stop_reason(reason)));
    }
    Some(parts.join(", "))
}

/// Attempts that have sent no event for long, the quietest first.
pub(crate) fn stuck(state: &State, now: Instant) -> Option<String> {
    const NAMED: usize = 3;
    let stuck = state.stuck(now);
    if stuck.is_empty() {
        return None;
    }
    let named: Vec<String> = stuck
        .iter()
        .take(NAMED)
        .map(|running| {
            let quiet = now.saturating_duration_since(running.heard);
            format!("{} ({}) for {}", running.trial.trial_id, state.safe(&running.trial.task), span(quiet))
        })
        .collect();
    let more = stuck.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("no sign of life from {}{more}", named.join(", ")))
}
