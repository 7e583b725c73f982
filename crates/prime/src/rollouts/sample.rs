//! A row of verifiers up to 0.3 (`results.jsonl`) and a sample of a hosted evaluation, which were once the same format.

use std::collections::BTreeMap;

use aec_ledger::transcript::chat::Role;
use serde_json::Value;

use crate::rollouts::behaviour::describe;
use crate::rollouts::message::{pair_calls, passed_over, read_messages, read_tools};
use crate::rollouts::problem::Note;
use crate::rollouts::rollout::{Rollout, RolloutError, Timing};
use crate::rollouts::stop::Stop;
use crate::rollouts::task::{Task, read_info};
use crate::rollouts::value::{Object, count, first_text, flag, id, number, object, take, text};

/// Numbers of a row that are not metrics.
const NO_METRICS: [&str; 15] = [
    "advantage",
    "attempt",
    "cost",
    "cost_usd",
    "example_id",
    "generation_ms",
    "id",
    "latency_ms",
    "num_steps",
    "reward",
    "rollout_number",
    "score",
    "scoring_ms",
    "total_ms",
    "total_time",
];

/// Whether an object can be such a row.
pub(crate) fn is_sample(row: &Object) -> bool {
    row.contains_key("completion") || row.contains_key("prompt")
}

pub(crate) fn read(mut row: Object, mut notes: Vec<Note>) -> Rollout {
    let info = read_info(take(&mut row, "info")).unwrap_or_else(|value| {
        notes.push(passed_over("info", &value));
        None
    });
    let mut messages =
        take(&mut row, "prompt").map_or_else(Vec::new, |value| read_messages(value, Role::User, &mut notes));
    let prompt_messages = messages.len();
    if let Some(value) = take(&mut row, "completion") {
        messages.extend(read_messages(value, Role::Assistant, &mut notes));
    }
    pair_calls(&mut messages);
    let tools = take(&mut row, "tool_defs")
        .or_else(|| take(&mut row, "oai_tools"))
        .map_or_else(Vec::new, |value| read_tools(value, &mut notes));
    let metrics = match take(&mut row, "metrics") {
        None => loose_metrics(&row),
        given => read_metrics(given, &mut notes),
    };
    let usage = object(&row, "token_usage").or_else(|| object(&row, "usage"));
    let mut rollout = Rollout {
        sample_id: id(&row, "sample_id").or_else(|| id(&row, "trajectory_id")),
        example_id: id(&row, "example_id").or_else(|| id(&row, "id")),
        rollout_number: count(&row, "rollout_number"),
        attempt: count(&row, "attempt"),
        task: read_task(&row, info.as_ref()),
        model: first_text(&row, &["model", "model_name"]),
        messages,
        prompt_messages,
        branches: 1,
        tools,
        reward: read_reward(&row, &mut notes),
        metrics,
        stop: Stop { given: text(&row, "stop_condition"), ..Stop::default() },
        is_completed: flag(&row, "is_completed"),
        is_truncated: flag(&row, "is_truncated"),
        error: read_error(&row),
        timing: read_timing(&row),
        tokens_in: usage
            .and_then(|usage| count(usage, "input_tokens").or_else(|| count(usage, "prompt_tokens"))),
        tokens_out: usage
            .and_then(|usage| count(usage, "output_tokens").or_else(|| count(usage, "completion_tokens"))),
        cost_usd: read_cost(&row),
        created_at: text(&row, "created_at"),
        notes,
        ..Rollout::default()
    };
    describe(&mut rollout);
    rollout
}

fn read_task(row: &Object, info: Option<&Object>) -> Task {
    // Up to 0.1.12 `task` is a label for routing; later it is an object, and then it may name the task itself.
    let label = match row.get("task") {
        Some(Value::String(label)) if !label.is_empty() => Some(label.clone()),
        Some(Value::Object(task)) => first_text(task, &["task_id", "id", "name"]),
        _ => None,
    };
    Task::read(info, text(row, "answer"), label)
}

/// The reward, which old hosted samples call a score.
fn read_reward(row: &Object, notes: &mut Vec<Note>) -> Option<f64> {
    let key = ["reward", "score"].into_iter().find(|key| row.contains_key(*key))?;
    let reward = number(row, key);
    if reward.is_none() {
        notes.push(passed_over("reward", &row[key]));
    }
    reward
}

/// Metrics of a row without a table of them: up to 0.1.9 every other number is a metric.
fn loose_metrics(row: &Object) -> BTreeMap<String, f64> {
    let numbers = row.iter().filter(|(name, _)| !NO_METRICS.contains(&name.as_str()));
    numbers.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect()
}

pub(crate) fn read_metrics(value: Option<Value>, notes: &mut Vec<Note>) -> BTreeMap<String, f64> {
    let mut metrics = BTreeMap::new();
    match value {
        None => {}
        Some(Value::Object(object)) => {
            for (name, value) in object {
                match value.as_f64().filter(|value| value.is_finite()) {
                    Some(number) => drop(metrics.insert(name, number)),
                    None if value.is_null() => {}
                    None => notes.push(passed_over(&format!("metrics.{name}"), &value)),
                }
            }
        }
        Some(other) => notes.push(passed_over("metrics", &other)),
    }
    metrics
}

fn read_error(row: &Object) -> Option<RolloutError> {
    let error = match row.get("error")? {
        Value::String(text) if !text.is_empty() => {
            // Python's representation of an exception: `Kind('message')`.
            let kind = text.split(['(', ':']).next().unwrap_or(text).trim();
            return Some(RolloutError {
                kind: kind.to_owned(),
                message: Some(text.clone()),
                chain: vec![kind.to_owned()],
                status_code: None,
            });
        }
        Value::Object(error) => error,
        _ => return None,
    };
    let chain: Vec<String> = text(error, "error_chain_str")
        .map(|chain| chain.split(" -> ").map(str::to_owned).collect())
        .unwrap_or_default();
    let kind = first_text(error, &["error", "type"]).or_else(|| chain.first().cloned());
    let kind = kind.unwrap_or_else(|| "Error".to_owned());
    // An error that only passes on another one has its own name as message; the chain tells what happened.
    let message = text(error, "message").filter(|message| *message != kind);
    Some(RolloutError {
        message: message.or_else(|| text(error, "error_chain_repr")),
        kind,
        chain,
        status_code: None,
    })
}

fn read_timing(row: &Object) -> Timing {
    let empty = Object::new();
    let timing = object(row, "timing").unwrap_or(&empty);
    // Up to 0.1.9 the times are in the row itself; up to 0.1.12 they are in milliseconds.
    let milliseconds = |key: &str| number(timing, key).or_else(|| number(row, key)).map(|time| time / 1000.0);
    Timing {
        started: number(timing, "start_time"),
        total: number(timing, "total")
            .or_else(|| milliseconds("total_ms"))
            .or_else(|| number(row, "total_time"))
            .or_else(|| milliseconds("latency_ms")),
        generation: seconds(timing, "generation").or_else(|| milliseconds("generation_ms")),
        scoring: seconds(timing, "scoring").or_else(|| milliseconds("scoring_ms")),
    }
}

/// Seconds of a part of the work: a number, or a span with its length or its ends.
pub(crate) fn seconds(timing: &Object, key: &str) -> Option<f64> {
    let Some(span) = object(timing, key) else { return number(timing, key) };
    number(span, "duration").or_else(|| {
        let (start, end) = (number(span, "start")?, number(span, "end")?);
        (end >= start && end > 0.0).then_some(end - start)
    })
}

fn read_cost(row: &Object) -> Option<f64> {
    number(row, "cost_usd")
        .or_else(|| number(row, "cost"))
        .or_else(|| number(object(row, "cost")?, "total_usd"))
}
