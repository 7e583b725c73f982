//! Converts trials that Harbor carried out for a plan to records of that plan.

use std::collections::BTreeMap;
use std::io;

use aec_base::file::{Links, read_text};
use aec_base::problem::Problem;
use aec_base::timestamp::Timestamp;
use aec_judge::settle::outcome::{Boundary, Ending, Fault};
use aec_judge::verdict::Outcome;
use aec_ledger::record::{Cost, Timing, TrialRecord};
use aec_ledger::transcript::conversation::CONVERSATION_FILE;
use aec_ledger::transcript::{self, Event, TRAJECTORY_FILE};
use aec_run::agent_entry::{RESULT_FILE, source_of_word};
use aec_run::elsewhere::{Returned, loop_ending, record};
use aec_run::experiment::Harness;
use aec_run::import::Verification;
use aec_run::plan::PlannedTrial;
use aec_run::task::PreparedTask;
use aec_run::trial::Shared;
use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::fault::ending;
use crate::keep::evidence;
use crate::result::Trial;

/// The prompt that the loop finds in the workspace.
const SYSTEM_PROMPT: &str = aec_run::agent_entry::SYSTEM_PROMPT_FILE;
/// Files that the loop writes into the workspace; a killed loop leaves them there.
const OURS: [&str; 4] = [RESULT_FILE, TRAJECTORY_FILE, CONVERSATION_FILE, SYSTEM_PROMPT];
const EVENTS_LIMIT: u64 = 256 * 1024 * 1024;

pub(crate) struct Came {
    /// The harness of the planned agent.
    pub(crate) harness: Harness,
    pub(crate) version: String,
}

/// The record of a planned trial, and a problem if our judge gives another reward.
pub(crate) fn record_of(
    shared: &Shared,
    planned: &PlannedTrial,
    attempt: u32,
    task: &PreparedTask,
    trial: &Trial,
    came: &Came,
) -> io::Result<(TrialRecord, Option<Problem>)> {
    let is_loop = came.harness == Harness::ToolLoop;
    let events = if is_loop { events(trial) } else { Vec::new() };
    let report = trial.work.metadata.get("report").and_then(Value::as_object).cloned().unwrap_or_default();
    let ending = match ending(trial, true) {
        Ending::Judgeable(None) if is_loop && trial.exception.is_none() => {
            if report.is_empty() {
                silent(trial)
            } else {
                loop_ending(&report, &events)
            }
        }
        other => other,
    };
    let workspace = trial.workspace();
    let artefacts = evidence(&trial.path, &shared.contents, &shared.redactor)?;
    let timeout = shared.plan.conditions.timeout_override.map_or_else(|| task.agent_seconds(), u64::from);
    let own = shared.plan.agents[planned.agent].parameters.get("timeout_sec").and_then(Value::as_u64);
    let returned = Returned {
        trial: planned,
        attempt,
        task,
        started: trial.times.started.clone().unwrap_or_else(Timestamp::now_in_milliseconds),
        ending,
        workspace: workspace.as_deref(),
        ours: if is_loop { &OURS } else { &[] },
        published: report.get("output_source").and_then(Value::as_str).and_then(source_of_word),
        events,
        note: note(trial),
        timeout_sec: own.map_or(timeout, |own| own.min(timeout)),
        tool_versions: BTreeMap::from([("harbor".to_owned(), came.version.clone())]),
        agent_result: agent_result(trial, &report),
        cost: cost(trial),
        timing: timing(trial, artefacts),
        runtime_image: format!("harbor:{}", trial.environment),
    };
    let mut record = record(shared, returned)?;
    let problem = compare(&mut record, trial);
    Ok((record, problem))
}

/// Compares our verdict with Harbor's reward. Ours counts; Harbor's is kept as evidence.
fn compare(record: &mut TrialRecord, trial: &Trial) -> Option<Problem> {
    let verification = match (record.reward(), trial.reward()) {
        (Some(local), told @ Some(_)) => Verification::compare(local, told),
        _ => Verification::Unverified("one of the two verifiers gave no reward".to_owned()),
    };
    verification.note(&mut record.outputs.agent_result);
    verification.problem(record.trial_id.as_str())
}

/// A loop that left no report did not run.
fn silent(trial: &Trial) -> Ending {
    let code = trial.work.metadata.get("exit_code").map_or_else(|| "unknown".to_owned(), Value::to_string);
    let said = read_text(&trial.path.join("agent/stderr.txt"), 64 * 1024, Links::Refuse).unwrap_or_default();
    let line = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    let line: String = line.chars().take(300).collect();
    let message = format!("the loop did not run in the environment (exit code {code}): {line}");
    let message = aec_base::text::printable(&message).into_owned();
    let fault = Fault { boundary: Boundary::Sandbox, kind: None, message, retryable: true };
    Ending::Lost(Outcome::InfraFault, fault)
}

/// The events of the loop: from where its files were moved, or from where it was killed.
fn events(trial: &Trial) -> Vec<Event> {
    let mut places = vec![trial.path.join("agent").join(TRAJECTORY_FILE)];
    places.extend(trial.workspace().map(|workspace| workspace.join(TRAJECTORY_FILE)));
    let text = places.iter().find_map(|place| read_text(place, EVENTS_LIMIT, Links::Refuse).ok());
    transcript::read(text.unwrap_or_default().as_bytes())
}

/// Leaves out Harbor's random names and ids, so that the same work gives the same events.
fn note(trial: &Trial) -> (String, Map<String, Value>) {
    let exception = trial.exception.as_ref().map(|exception| exception.kind.as_str());
    let facts = json!({ "environment": trial.environment, "exception": exception });
    ("carried out by Harbor".to_owned(), Map::from_iter([("harbor".to_owned(), facts)]))
}

/// The agent's result for records of planned and foreign trials.
pub(super) fn agent_result(trial: &Trial, report: &Map<String, Value>) -> IndexMap<String, Value> {
    let mut result = IndexMap::new();
    for key in ["turns_used", "max_turns", "tool_calls", "stop_reason", "output_source"] {
        if let Some(value) = report.get(key) {
            result.insert(key.to_owned(), value.clone());
        }
    }
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            result.insert(key.to_owned(), value);
        }
    };
    put("source", Some("harbor".into()));
    put("source_trial", Some(trial.name.as_str().into()));
    put("source_id", trial.id.clone().map(Value::from));
    put("source_reward", trial.reward().map(Value::from));
    put("source_rewards", (trial.rewards.len() > 1).then(|| json!(trial.rewards)));
    put("source_exception", trial.exception.as_ref().map(|exception| exception.kind.as_str().into()));
    result
}

pub(super) fn cost(trial: &Trial) -> Cost {
    let work = &trial.work;
    // Harbor reports tokens and dollars, but not calls.
    let unpriced = work.cost_usd.is_none() && work.tokens_in.is_some_and(|tokens| tokens > 0);
    let silent = work.tokens_in.is_none() && work.tokens_out.is_none() && work.cost_usd.is_none();
    Cost {
        model_calls: u64::from(!silent),
        unpriced_calls: u64::from(unpriced),
        tokens_in: if silent { Some(0) } else { work.tokens_in },
        tokens_out: if silent { Some(0) } else { work.tokens_out },
        cache_read_tokens: if silent { Some(0) } else { work.cached },
        estimated_cost_usd: if silent { Some(0.0) } else { work.cost_usd },
        ..Cost::default()
    }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of one trial fit")]
pub(super) fn timing(trial: &Trial, artefacts: Vec<aec_ledger::record::Artefact>) -> Timing {
    let times = &trial.times;
    let span = times.finished.as_ref().zip(times.started.as_ref());
    let span = span.map_or(0, |(end, start)| (end.to_milliseconds() - start.to_milliseconds()).max(0));
    Timing {
        completed_at: times.finished.clone(),
        total_seconds: span as f64 / 1000.0,
        setup_seconds: times.setup,
        agent_seconds: times.agent,
        verification_seconds: times.verifier,
        artefacts,
    }
}
