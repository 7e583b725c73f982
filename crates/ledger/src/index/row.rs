//! A row of the index: the part of a record that lists, reports and evaluations need.

use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_base::timestamp::Timestamp;
use aec_judge::settle::order::AnswerOrder;
use aec_judge::verdict::Outcome;
use rusqlite::types::{Type, Value};
use serde::Serialize;

use crate::read::RecordFile;
use crate::record::{Completeness, TrialRecord};

/// One attempt in the index.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub experiment_id: Name,
    pub trial_id: Name,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The repetition, from 1.
    pub repetition: u32,
    /// Digest of task revision, agent and repetition.
    pub key: Digest,
    pub plan: Digest,
    pub task_id: String,
    /// Digest of the task's files.
    pub task_revision: Digest,
    pub domain: String,
    /// The task's own statement, if any.
    pub difficulty: Option<String>,
    /// Who may see the task, if the task says so.
    pub visibility: Option<String>,
    pub family: String,
    pub agent: Name,
    /// Digest of harness, model, parameters and prompt.
    pub agent_digest: Digest,
    pub adapter: String,
    pub model: Option<String>,
    /// Which of several answers counted.
    #[serde(skip)]
    pub answer_order: AnswerOrder,
    pub dataset_id: Option<String>,
    pub outcome: Outcome,
    /// Which side caused the fault.
    pub fault_boundary: Option<String>,
    pub fault_kind: Option<String>,
    /// The fault in one line.
    pub fault_message: Option<String>,
    pub reward: Option<f64>,
    /// How the reward was reached: `native`, `room` or `elsewhere`, or `trusted` if it counts only because the user said so.
    pub judged: Option<String>,
    pub cost_usd: Option<f64>,
    pub tokens_in: Option<u64>,
    pub tokens_out: Option<u64>,
    /// Calls that were or may have been billed.
    pub model_calls: u64,
    /// When it began.
    pub timestamp: Timestamp,
    pub total_seconds: f64,
    pub agent_seconds: Option<f64>,
    pub completeness: Completeness,
    /// Digest of the record's file.
    pub record: Digest,
    /// Length of the record's file.
    pub size: u64,
}

/// The columns of a task, which many records share.
pub(super) const TASKS: [&str; 6] =
    ["task_id", "task_revision", "domain", "difficulty", "visibility", "family"];

/// The columns of an agent, which many records share.
pub(super) const AGENTS: [&str; 5] = ["agent", "agent_digest", "adapter", "model", "answer_order"];

/// The columns of the record itself. [`Row::take`] expects them first, then those of its task and its agent.
pub(super) const COLUMNS: [&str; 23] = [
    "experiment_id",
    "trial_id",
    "attempt",
    "repetition",
    "key",
    "plan",
    "dataset_id",
    "outcome",
    "fault_boundary",
    "fault_kind",
    "fault_message",
    "reward",
    "cost_usd",
    "tokens_in",
    "tokens_out",
    "model_calls",
    "timestamp",
    "total_seconds",
    "agent_seconds",
    "completeness",
    "record",
    "size",
    "judged",
];

impl Row {
    /// The row of a record; `digest` and `size` are those of its file.
    pub fn new(record: &TrialRecord, digest: Digest, size: u64) -> Self {
        let fault = record.fault.as_ref();
        Self {
            experiment_id: record.experiment_id.clone(),
            trial_id: record.trial_id.clone(),
            attempt: record.attempt,
            repetition: record.repetition,
            key: record.key,
            plan: record.plan,
            task_id: record.task.task_id.clone(),
            task_revision: record.task.task_revision,
            domain: record.task.domain.clone(),
            difficulty: record.task.difficulty.clone(),
            visibility: record.task.visibility.clone(),
            family: record.task.family.clone(),
            agent: record.agent.name.clone(),
            agent_digest: record.agent.digest,
            adapter: record.agent.adapter.clone(),
            model: record.agent.model.clone(),
            answer_order: record.outputs.answer_order,
            dataset_id: record.dataset_id.clone(),
            outcome: record.outcome,
            fault_boundary: fault.map(|fault| fault.boundary.name().to_owned()),
            fault_kind: fault.and_then(|fault| fault.kind.clone()),
            fault_message: fault.map(|fault| fault.message.clone()),
            reward: record.reward(),
            judged: record.judged().map(str::to_owned),
            cost_usd: record.cost.estimated_cost_usd,
            tokens_in: record.cost.tokens_in,
            tokens_out: record.cost.tokens_out,
            model_calls: record.cost.model_calls,
            timestamp: record.timestamp.clone(),
            total_seconds: record.timing.total_seconds,
            agent_seconds: record.timing.agent_seconds,
            completeness: record.completeness,
            record: digest,
            size,
        }
    }

    /// The record's file.
    pub fn file(&self) -> RecordFile {
        RecordFile {
            experiment: self.experiment_id.clone(),
            trial: self.trial_id.clone(),
            attempt: self.attempt,
        }
    }

    pub(super) fn values(&self) -> [Value; COLUMNS.len()] {
        [
            text(self.experiment_id.as_str()),
            text(self.trial_id.as_str()),
            Value::Integer(self.attempt.into()),
            Value::Integer(self.repetition.into()),
            digest(self.key),
            digest(self.plan),
            maybe(self.dataset_id.as_ref()),
            text(self.outcome.name()),
            maybe(self.fault_boundary.as_ref()),
            maybe(self.fault_kind.as_ref()),
            maybe(self.fault_message.as_ref()),
            real(self.reward),
            real(self.cost_usd),
            self.tokens_in.map_or(Value::Null, whole),
            self.tokens_out.map_or(Value::Null, whole),
            whole(self.model_calls),
            text(self.timestamp.as_str()),
            Value::Real(self.total_seconds),
            real(self.agent_seconds),
            text(self.completeness.name()),
            digest(self.record),
            whole(self.size),
            maybe(self.judged.as_ref()),
        ]
    }

    pub(super) fn task_values(&self) -> [Value; TASKS.len()] {
        [
            text(&self.task_id),
            digest(self.task_revision),
            text(&self.domain),
            maybe(self.difficulty.as_ref()),
            maybe(self.visibility.as_ref()),
            text(&self.family),
        ]
    }

    pub(super) fn agent_values(&self) -> [Value; AGENTS.len()] {
        [
            text(self.agent.as_str()),
            digest(self.agent_digest),
            text(&self.adapter),
            maybe(self.model.as_ref()),
            text(self.answer_order.name()),
        ]
    }

    /// Reads a row of a query that selects all columns: those of the record, its task and its agent.
    pub(super) fn take(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let digest = |at: usize| row.get::<_, [u8; 32]>(at).map(Digest::from);
        let count = |at: usize| row.get::<_, i64>(at).map(i64::cast_unsigned);
        let tokens = |at: usize| row.get::<_, Option<i64>>(at).map(|count| count.map(i64::cast_unsigned));
        let (task, agent) = (COLUMNS.len(), COLUMNS.len() + TASKS.len());
        Ok(Self {
            experiment_id: name(row, 0)?,
            trial_id: name(row, 1)?,
            attempt: row.get(2)?,
            repetition: row.get(3)?,
            key: digest(4)?,
            plan: digest(5)?,
            task_id: row.get(task)?,
            task_revision: digest(task + 1)?,
            domain: row.get(task + 2)?,
            difficulty: row.get(task + 3)?,
            visibility: row.get(task + 4)?,
            family: row.get(task + 5)?,
            agent: name(row, agent)?,
            agent_digest: digest(agent + 1)?,
            adapter: row.get(agent + 2)?,
            model: row.get(agent + 3)?,
            answer_order: order(row, agent + 4)?,
            dataset_id: row.get(6)?,
            outcome: outcome(row, 7)?,
            fault_boundary: row.get(8)?,
            fault_kind: row.get(9)?,
            fault_message: row.get(10)?,
            reward: row.get(11)?,
            cost_usd: row.get(12)?,
            tokens_in: tokens(13)?,
            tokens_out: tokens(14)?,
            model_calls: count(15)?,
            timestamp: Timestamp::try_from(row.get::<_, String>(16)?).map_err(|error| foreign(16, error))?,
            total_seconds: row.get(17)?,
            agent_seconds: row.get(18)?,
            completeness: match row.get::<_, String>(19)?.as_str() {
                "complete" => Completeness::Complete,
                _ => Completeness::Partial,
            },
            record: digest(20)?,
            size: count(21)?,
            judged: row.get(22)?,
        })
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn maybe(text: Option<&String>) -> Value {
    text.cloned().map_or(Value::Null, Value::Text)
}

fn digest(digest: Digest) -> Value {
    Value::Blob(digest.bytes().to_vec())
}

fn real(number: Option<f64>) -> Value {
    number.map_or(Value::Null, Value::Real)
}

fn whole(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

pub(super) fn name(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Name> {
    Name::try_from(row.get::<_, String>(at)?).map_err(|error| foreign(at, error))
}

pub(super) fn outcome(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Outcome> {
    let text: String = row.get(at)?;
    let known = Outcome::ALL.into_iter().find(|outcome| outcome.name() == text);
    known.ok_or_else(|| foreign(at, format!("{text} is not an outcome")))
}

pub(super) fn order(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<AnswerOrder> {
    let text: String = row.get(at)?;
    AnswerOrder::parse(&text).ok_or_else(|| foreign(at, format!("{text} is not an order of answers")))
}

/// An error for a value that this program never wrote: another program changed the index.
pub(super) fn foreign(
    at: usize,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(at, Type::Text, error.into())
}

/// A time as a number that sorts chronologically, whatever the form of its text: `20260412000000123`.
pub(super) fn moment(timestamp: &Timestamp) -> i64 {
    let text = timestamp.as_str();
    let (whole, rest) = text.split_at_checked(19).unwrap_or((text, ""));
    let fraction = rest.strip_prefix('.').unwrap_or_default();
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).chain(std::iter::repeat(b'0')).take(3);
    let all = whole.bytes().filter(u8::is_ascii_digit).chain(digits);
    all.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'))
}

/// The time, to the second.
pub(super) fn timestamp(moment: i64) -> Option<Timestamp> {
    let digits = format!("{:014}", moment / 1000);
    let part = |from: usize, to: usize| digits.get(from..to);
    let (date, time) =
        ((part(0, 4)?, part(4, 6)?, part(6, 8)?), (part(8, 10)?, part(10, 12)?, part(12, 14)?));
    let text = format!("{}-{}-{}T{}:{}:{}Z", date.0, date.1, date.2, time.0, time.1, time.2);
    Timestamp::try_from(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_sort_like_time() {
        let read = |text: &str| moment(&Timestamp::try_from(text.to_owned()).unwrap());
        let ordered = [
            "2026-04-11T23:59:59.9Z",
            "2026-04-12T00:00:00Z",
            "2026-04-12T00:00:00.001Z",
            "2026-04-12T00:00:00.12345+00:00",
            "2026-04-12T00:00:01+00:00",
        ];
        assert!(ordered.map(read).is_sorted());
        assert_eq!(read("2026-04-12T00:00:00Z"), read("2026-04-12T00:00:00.000+00:00"));
        assert_eq!(timestamp(read(ordered[3])).unwrap().as_str(), "2026-04-12T00:00:00Z");
    }
}
