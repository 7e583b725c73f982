//! A row of verifiers from 0.4 on (`traces.jsonl`): an episode with the traces of its participants.
//!
//! A trace keeps its messages as a tree, because a conversation may be restarted from any point. The rollout is the
//! path that ends at the last message.

use aec_ledger::transcript::chat::{Message, Role};
use aec_model::message::Tool;
use serde_json::Value;

use crate::rollouts::behaviour::describe;
use crate::rollouts::message::{pair_calls, passed_over, read_message, read_tools};
use crate::rollouts::problem::Note;
use crate::rollouts::rollout::{Rollout, RolloutError, Timing};
use crate::rollouts::sample::{read_metrics, seconds};
use crate::rollouts::stop::Stop;
use crate::rollouts::task::Task;
use crate::rollouts::value::{Object, count, flag, id, number, object, take, text};

/// Whether an object can be an episode.
pub(crate) fn is_episode(row: &Object) -> bool {
    row.get("traces").is_some_and(Value::is_array)
}

/// Whether an object can be a trace without its episode.
pub(crate) fn is_trace(row: &Object) -> bool {
    row.get("nodes").is_some_and(Value::is_array)
}

/// The rollouts of an episode. An episode without traces failed before any agent took part; it is a rollout, too.
pub(crate) fn read_episode(mut episode: Object, mut notes: Vec<Note>) -> Vec<Rollout> {
    let mut traces = Vec::new();
    for trace in take(&mut episode, "traces").and_then(into_array).unwrap_or_default() {
        match trace {
            Value::Object(trace) => traces.push(trace),
            other => notes.push(passed_over("traces", &other)),
        }
    }
    if traces.is_empty() {
        return vec![read(episode, notes)];
    }
    let error = read_error(&episode);
    traces.into_iter().map(|trace| read_with(trace, notes.clone(), error.clone())).collect()
}

pub(crate) fn read(trace: Object, notes: Vec<Note>) -> Rollout {
    read_with(trace, notes, None)
}

/// Reads a trace of an episode, which may have failed although the trace did not.
fn read_with(mut trace: Object, mut notes: Vec<Note>, episode_error: Option<RolloutError>) -> Rollout {
    let nodes = take(&mut trace, "nodes").and_then(into_array).unwrap_or_default();
    let mut tools = take(&mut trace, "tools").map_or_else(Vec::new, |value| read_tools(value, &mut notes));
    let tree = Tree::read(nodes, &mut notes);
    if tools.is_empty() {
        tools = tree.tools;
    }
    let metrics = read_metrics(take(&mut trace, "metrics"), &mut notes);
    let reward = read_reward(take(&mut trace, "rewards"), &mut notes);
    let stop = Stop { given: text(&trace, "stop_condition"), ..Stop::default() };
    let usage = Usage::read(&trace);
    let error = read_error(&trace).or(episode_error);
    let config = object(&trace, "agent").and_then(|agent| object(agent, "config"));
    let data = object(&trace, "task").and_then(|task| object(task, "data"));
    let mut rollout = Rollout {
        sample_id: id(&trace, "id"),
        example_id: data.and_then(|data| id(data, "idx")),
        task: read_task(&trace, data, config),
        model: config.and_then(|config| text(config, "model")),
        verifiers: object(&trace, "verifiers").and_then(|verifiers| text(verifiers, "version")),
        prompt_messages: tree.prompt_messages,
        messages: tree.messages,
        branches: tree.branches,
        tools,
        reward,
        metrics,
        is_completed: flag(&trace, "is_completed"),
        is_truncated: Some(is_truncated(&trace, &stop)),
        stop,
        error,
        timing: read_timing(&trace),
        tokens_in: usage.input,
        tokens_out: usage.output,
        cost_usd: usage.cost,
        notes,
        ..Rollout::default()
    };
    describe(&mut rollout);
    rollout
}

fn into_array(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(items) => Some(items),
        _ => None,
    }
}

/// The path to the last message of a tree.
struct Tree {
    messages: Vec<Message>,
    prompt_messages: usize,
    branches: usize,
    tools: Vec<Tool>,
}

impl Tree {
    fn read(nodes: Vec<Value>, notes: &mut Vec<Note>) -> Self {
        let mut nodes: Vec<Object> = nodes
            .into_iter()
            .map(|node| match node {
                Value::Object(node) => node,
                other => {
                    notes.push(passed_over("nodes", &other));
                    Object::new()
                }
            })
            .collect();
        let parents: Vec<Option<usize>> = nodes
            .iter()
            .map(|node| count(node, "parent").and_then(|parent| usize::try_from(parent).ok()))
            .collect();
        let mut is_leaf = vec![true; nodes.len()];
        for parent in parents.iter().flatten() {
            if let Some(leaf) = is_leaf.get_mut(*parent) {
                *leaf = false;
            }
        }
        let mut path = Vec::new();
        let mut next = nodes.len().checked_sub(1);
        while let Some(at) = next {
            path.push(at);
            // A parent comes before its children; otherwise the walk could go in circles.
            next = parents[at].filter(|parent| *parent < at);
            if next.is_none() && parents[at].is_some() {
                notes.push(Note::PassedOver {
                    key: "parent".to_owned(),
                    found: "not an earlier message".to_owned(),
                });
            }
        }
        path.reverse();
        let mut tree = Self {
            messages: Vec::with_capacity(path.len()),
            prompt_messages: 0,
            branches: is_leaf.iter().filter(|leaf| **leaf).count().max(1),
            tools: Vec::new(),
        };
        let mut is_prompt = true;
        for at in path {
            if let Some(tools) = take(&mut nodes[at], "tools") {
                tree.tools = read_tools(tools, notes);
            }
            let is_sampled = flag(&nodes[at], "sampled").unwrap_or(false);
            let Some(message) =
                take(&mut nodes[at], "message").and_then(|message| read_message(message, Role::User, notes))
            else {
                continue;
            };
            // Messages given to the model belong to the prompt, whatever role they name.
            is_prompt &= !is_sampled;
            tree.messages.push(message);
            tree.prompt_messages += usize::from(is_prompt);
        }
        pair_calls(&mut tree.messages);
        tree
    }
}

fn read_task(trace: &Object, data: Option<&Object>, config: Option<&Object>) -> Task {
    let mut facts = data.cloned().unwrap_or_default();
    if let Some(info) = object(trace, "info") {
        facts.extend(info.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    let key = object(trace, "task").and_then(|task| text(task, "key"));
    let named = ["id", "name"].into_iter().find_map(|name| id(&facts, name)).or(key);
    let answer = text(&facts, "answer").filter(|_| named.is_none());
    let mut task = Task::read(Some(&facts), answer, named);
    if let Some(config) = config {
        task.harness = task.harness.or_else(|| text(object(config, "harness")?, "id"));
        task.isolation = task.isolation.or_else(|| text(object(config, "runtime")?, "type"));
        task.max_turns = task.max_turns.or_else(|| count(config, "max_turns"));
        task.max_total_tokens = task.max_total_tokens.or_else(|| count(config, "max_total_tokens"));
    }
    if task.instruction.is_none() {
        task.instruction = text(&facts, "prompt");
    }
    task
}

/// The weighted sum of scores. Absent, rather than 0, for a trace without rewards or with rewards that are not numbers.
fn read_reward(rewards: Option<Value>, notes: &mut Vec<Note>) -> Option<f64> {
    let rewards = match rewards? {
        Value::Object(rewards) => rewards,
        other => {
            notes.push(passed_over("rewards", &other));
            return None;
        }
    };
    let mut sum = None;
    let mut is_whole = true;
    for (name, reward) in rewards {
        let value = match &reward {
            Value::Object(reward) => {
                let weight = if reward.contains_key("weight") { number(reward, "weight") } else { Some(1.0) };
                number(reward, "score").zip(weight).map(|(score, weight)| score * weight)
            }
            other => other.as_f64(),
        };
        match value.filter(|value| value.is_finite()) {
            Some(value) => sum = Some(sum.unwrap_or(0.0) + value),
            None => {
                is_whole = false;
                notes.push(passed_over(&format!("rewards.{name}"), &reward));
            }
        }
    }
    sum.filter(|_| is_whole)
}

fn read_error(row: &Object) -> Option<RolloutError> {
    let errors: Vec<&Object> = row.get("errors")?.as_array()?.iter().filter_map(Value::as_object).collect();
    let last = errors.last()?;
    Some(RolloutError {
        kind: text(last, "type").unwrap_or_else(|| "Error".to_owned()),
        message: text(last, "message"),
        chain: errors.iter().rev().filter_map(|error| text(error, "type")).collect(),
        status_code: count(last, "status_code").and_then(|code| u16::try_from(code).ok()),
    })
}

fn calls(trace: &Object) -> impl DoubleEndedIterator<Item = &Object> {
    trace.get("calls").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

/// As verifiers decides it: a limit was reached, or the last answer was cut off.
fn is_truncated(trace: &Object, stop: &Stop) -> bool {
    const LIMITS: [&str; 5] =
        ["max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens", "compaction_failed"];
    let last = calls(trace).rev().find(|call| call.get("error").is_none_or(Value::is_null));
    stop.given.as_deref().is_some_and(|given| LIMITS.contains(&given))
        || last.and_then(|call| text(call, "finish_reason")).as_deref() == Some("length")
}

#[derive(Default)]
struct Usage {
    input: Option<u64>,
    output: Option<u64>,
    cost: Option<f64>,
}

impl Usage {
    /// The sum over all calls, as verifiers up to 0.3 counts and providers bill. A trace's own `num_input_tokens`
    /// counts input of several calls only once, and is 0 if no provider reported tokens.
    fn read(trace: &Object) -> Self {
        let mut sum = Self::default();
        for usage in calls(trace).filter_map(|call| object(call, "usage")) {
            let read = [count(usage, "prompt_tokens"), count(usage, "cached_input_tokens")];
            add(&mut sum.input, read.into_iter().flatten().reduce(u64::saturating_add));
            add(&mut sum.output, count(usage, "completion_tokens"));
            if let Some(cost) = number(usage, "cost") {
                sum.cost = Some(sum.cost.unwrap_or(0.0) + cost);
            }
        }
        sum
    }
}

fn add(sum: &mut Option<u64>, more: Option<u64>) {
    *sum = [*sum, more].into_iter().flatten().reduce(u64::saturating_add);
}

fn read_timing(trace: &Object) -> Timing {
    let empty = Object::new();
    let timing = object(trace, "timing").unwrap_or(&empty);
    let started = number(timing, "start").filter(|start| *start > 0.0);
    let end = ["scoring", "finalize", "agent", "setup", "boot"]
        .into_iter()
        .filter_map(|part| number(object(timing, part)?, "end"))
        .find(|end| *end > 0.0);
    Timing {
        started,
        total: started.zip(end).map(|(start, end)| end - start).filter(|total| *total >= 0.0),
        generation: seconds(timing, "agent"),
        scoring: seconds(timing, "scoring"),
    }
}
