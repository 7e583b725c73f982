//! The facts of one trial, from its record and its trajectory: how it stopped, what it called, where it failed.

use std::path::PathBuf;

use aec_base::content::ContentStore;
use aec_base::name::Name;
use aec_judge::settle::order::Source;
use aec_judge::verdict::Outcome;
use aec_ledger::layout::stem;
use aec_ledger::record::TrialRecord;
use aec_ledger::transcript::{self, Event};
use serde::Serialize;
use serde_json::Value;

use crate::selection::is_full;
use crate::shown;

/// Why a trial did not get full reward, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// It got full reward.
    Solved,
    /// There was an answer, and the verifier disagrees with a part of it.
    Partial,
    /// There was an answer, and the verifier agrees with no part of it.
    Disagreement,
    /// The agent left nothing to judge.
    NoAnswer,
    /// The agent's own work ended in an error and got no reward.
    RuntimeError,
    /// It failed through no fault of the agent.
    Infrastructure,
    /// It was stopped, or its answer was never judged.
    Unjudged,
}

impl Class {
    pub fn name(self) -> &'static str {
        match self {
            Self::Solved => "solved",
            Self::Partial => "partial",
            Self::Disagreement => "disagreement",
            Self::NoAnswer => "no_answer",
            Self::RuntimeError => "runtime_error",
            Self::Infrastructure => "infrastructure",
            Self::Unjudged => "unjudged",
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct TraceFacts {
    pub trial_id: Name,
    pub experiment_id: Name,
    /// Counted from 1.
    pub attempt: u32,
    pub task_id: String,
    pub family: String,
    /// Counted from 1.
    pub repetition: u32,
    pub agent: Name,
    pub harness: String,
    pub model: Option<String>,
    pub outcome: Outcome,
    pub reward: Option<f64>,
    pub class: Class,
    /// What ended the agent's work.
    pub stop_condition: String,
    pub turns_used: u64,
    pub max_turns: Option<u64>,
    /// Includes calls that submit an answer.
    pub tool_calls: u64,
    pub tool_errors: u64,
    /// Calls that submit an answer.
    pub submit_calls: u64,
    pub submit_reached: bool,
    /// Whether the environment had the last word, as it has after an answer was submitted.
    pub final_environment_response: bool,
    pub empty_responses: u64,
    /// Whether an empty answer ended its work.
    pub empty_error: bool,
    /// Which side caused a fault, and its kind.
    pub error_type: Option<String>,
    pub output_source: Option<Source>,
    /// Parts of the answer that are right.
    pub fields_correct: usize,
    /// Parts of the answer.
    pub fields_total: usize,
    pub tokens_in: Option<u64>,
    pub tokens_out: Option<u64>,
    pub cost_usd: Option<f64>,
    /// Seconds from start to end.
    pub seconds: f64,
    /// Whether the trajectory could be read; without it, the values that only it contains are 0.
    pub has_trace: bool,
    /// The conversation below the root of `jobs`.
    pub conversation: Option<PathBuf>,
    /// Texts of agents and their tools. They may try to manipulate the reader of a report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<Said>,
}

/// Texts of agents and their tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Said {
    /// The first error message of a tool.
    pub first_error: Option<String>,
}

impl TraceFacts {
    pub fn read(record: &TrialRecord, contents: &ContentStore) -> Self {
        Self::of(record, transcript::of_record(record, contents))
    }

    /// The facts of a trial, from its record and the events of its trajectory.
    pub fn of(record: &TrialRecord, events: Option<Vec<Event>>) -> Self {
        let has_trace = events.is_some();
        let seen = transcript::counts(&transcript::turns(events.unwrap_or_default()));
        let result = |key: &str| record.outputs.agent_result.get(key);
        let number = |key: &str| result(key).and_then(Value::as_u64);
        let flag = |key: &str| result(key).and_then(Value::as_bool);
        let (correct, total) = fields(record);
        let submit_calls = number("submit_calls").unwrap_or(seen.submit_calls);
        let submitted = flag("submitted").unwrap_or(submit_calls > 0);
        let kind = record.fault.as_ref().and_then(|fault| fault.kind.clone());
        let turns = number("turns_used").unwrap_or(seen.turns);
        Self {
            trial_id: record.trial_id.clone(),
            experiment_id: record.experiment_id.clone(),
            attempt: record.attempt,
            task_id: record.task.task_id.clone(),
            family: record.task.family.clone(),
            repetition: record.repetition,
            agent: record.agent.name.clone(),
            harness: record.agent.adapter.clone(),
            model: record.agent.model.clone(),
            outcome: record.outcome,
            reward: record.reward(),
            class: class(record),
            stop_condition: stop_condition(record, submitted),
            turns_used: turns,
            max_turns: number("max_turns"),
            tool_calls: if has_trace { seen.tool_calls } else { number("tool_calls").unwrap_or(0) },
            tool_errors: number("tool_errors").unwrap_or(seen.tool_errors),
            submit_calls,
            submit_reached: submitted,
            final_environment_response: flag("final_environment_response").unwrap_or(submitted),
            empty_responses: seen.empty_responses,
            empty_error: kind.as_deref() == Some("empty"),
            error_type: record.fault.as_ref().map(|fault| match &fault.kind {
                Some(kind) => format!("{}/{kind}", fault.boundary.name()),
                None => fault.boundary.name().to_owned(),
            }),
            output_source: record.outputs.output_source,
            fields_correct: correct,
            fields_total: total,
            tokens_in: record.cost.tokens_in,
            tokens_out: record.cost.tokens_out,
            cost_usd: record.cost.estimated_cost_usd,
            seconds: record.timing.total_seconds,
            has_trace,
            conversation: record.outputs.conversation_path.as_ref().map(|path| {
                PathBuf::from(record.experiment_id.as_str())
                    .join(stem(&record.trial_id, record.attempt))
                    .join(path)
            }),
            untrusted: Some(Said { first_error: seen.first_error }),
        }
    }

    /// The same without texts of agents and their tools.
    #[must_use]
    pub fn without_text(self) -> Self {
        Self { untrusted: None, ..self }
    }
}

fn class(record: &TrialRecord) -> Class {
    let reward = record.reward();
    let answered = record.outputs.output_source.is_some();
    match record.outcome {
        Outcome::Scored if reward.is_some_and(is_full) => Class::Solved,
        Outcome::Scored if reward.is_some_and(|reward| reward > 0.0) => Class::Partial,
        Outcome::Scored if answered => Class::Disagreement,
        Outcome::Scored if record.fault.is_some() => Class::RuntimeError,
        Outcome::Scored => Class::NoAnswer,
        Outcome::AgentFault => Class::RuntimeError,
        Outcome::InfraFault | Outcome::VerifierFault => Class::Infrastructure,
        Outcome::Cancelled | Outcome::Unverified => Class::Unjudged,
    }
}

fn stop_condition(record: &TrialRecord, submitted: bool) -> String {
    let result = |key: &str| record.outputs.agent_result.get(key).and_then(Value::as_str);
    if let Some(stop) = result("stop_condition") {
        return stop.to_owned();
    }
    match result("stop_reason") {
        Some("done") if submitted => "submitted".to_owned(),
        Some(reason) => reason.to_owned(),
        None => match &record.fault {
            Some(fault) => fault.kind.clone().unwrap_or_else(|| fault.boundary.name().to_owned()),
            None if submitted => "submitted".to_owned(),
            None => "done".to_owned(),
        },
    }
}

/// The numbers of right parts and of all parts of the answer that the verifier reports on.
fn fields(record: &TrialRecord) -> (usize, usize) {
    let scores: Vec<f64> = shown::fields(record).iter().filter_map(|field| field.score).collect();
    (scores.iter().filter(|score| is_full(**score)).count(), scores.len())
}
