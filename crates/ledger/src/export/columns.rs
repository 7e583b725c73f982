//! The columns of flat exports, in one table.

use crate::expected::Absent;
use crate::read::Stored;
use crate::record::TrialRecord;

/// The type of a column. Every cell may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text in UTF-8.
    Text,
    /// A whole number of 64 bits.
    Integer,
    /// A number of 64 bits.
    Number,
}

pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
    pub about: &'static str,
    pub(super) value: fn(&Stored) -> Cell,
}

/// A value; `None` is an empty cell.
pub(super) enum Cell {
    Text(Option<String>),
    Integer(Option<i64>),
    Number(Option<f64>),
}

macro_rules! columns {
    ($($kind:ident $name:ident: $about:literal = |$record:ident| $value:expr;)*) => {
        [$(Column {
            name: stringify!($name),
            kind: Kind::$kind,
            about: $about,
            value: |stored| {
                let $record = Of(stored);
                cell::$kind($value)
            },
        },)*]
    };
}

/// Every column, in the order of export.
pub const COLUMNS: [Column; 45] = columns! {
    Text experiment_id: "the experiment" = |of| of.0.record.experiment_id.to_string();
    Text trial_id: "the trial" = |of| of.0.record.trial_id.to_string();
    Integer attempt: "which try at the trial, from 1" = |of| of.0.record.attempt;
    Integer repetition: "which repetition of task and agent, from 1" = |of| of.0.record.repetition;
    Text key: "digest of task revision, agent and repetition" = |of| of.0.record.key.to_string();
    Text plan: "digest of the plan" = |of| of.0.record.plan.to_string();
    Text dataset_id: "the dataset, as NAME@VERSION" = |of| of.0.record.dataset_id.clone();
    Text task_id: "the task" = |of| of.0.record.task.task_id.clone();
    Text task_revision: "digest of the task's files" = |of| of.0.record.task.task_revision.to_string();
    Text domain: "discipline" = |of| of.0.record.task.domain.clone();
    Text difficulty: "how hard the task is" = |of| of.0.record.task.difficulty.clone();
    Text visibility: "who may see the task" = |of| of.0.record.task.visibility.clone();
    Text family: "the task's family" = |of| of.0.record.task.family.clone();
    Text agent: "the agent" = |of| of.0.record.agent.name.to_string();
    Text agent_digest: "digest of harness, model, parameters and prompt" = |of| of.0.record.agent.digest.to_string();
    Text harness: "the harness" = |of| of.0.record.agent.adapter.clone();
    Text model: "the model as the experiment names it" = |of| of.0.record.agent.model.clone();
    Text resolved_model: "the model as the provider names it" = |of| of.0.record.agent.resolved_model.clone();
    Text outcome: "what became of it" = |of| of.0.record.outcome.name().to_owned();
    Number reward: "from 0 to 1; empty when it was not scored" = |of| of.0.record.reward();
    Text fault_boundary: "which side caused the fault" = |of| of.fault().map(|fault| fault.boundary.name().to_owned());
    Text fault_kind: "the kind of the fault" = |of| of.fault().and_then(|fault| fault.kind.clone());
    Text fault_message: "the fault in one line" = |of| of.fault().map(|fault| fault.message.clone());
    Text output_source: "where the answer came from" = |of| of.word(of.0.record.outputs.output_source);
    Text judged: "how the verdict was reached" = |of| of.0.record.judged().map(str::to_owned);
    Text backend: "where it ran" = |of| of.0.record.environment.compute_backend.clone();
    Text sandbox: "how well the agent was isolated" = |of| of.word(of.0.record.environment.sandbox);
    Integer model_calls: "calls that were or may have been billed" = |of| of.0.record.cost.model_calls;
    Integer unpriced_calls: "calls of models without a price" = |of| of.0.record.cost.unpriced_calls;
    Integer unsettled_calls: "calls whose cost is unknown" = |of| of.0.record.cost.unsettled_calls;
    Integer tokens_in: "input tokens, including cached ones" = |of| of.0.record.cost.tokens_in;
    Integer tokens_out: "output tokens, including thoughts" = |of| of.0.record.cost.tokens_out;
    Integer cache_read_tokens: "input read from the provider's cache" = |of| of.0.record.cost.cache_read_tokens;
    Integer cache_write_tokens: "input written to the provider's cache" = |of| of.0.record.cost.cache_write_tokens;
    Integer reasoning_tokens: "thoughts, if they are counted separately" = |of| of.0.record.cost.reasoning_tokens;
    Number cost_usd: "dollars; empty when a model had no price" = |of| of.0.record.cost.estimated_cost_usd;
    Text timestamp: "when it began, in UTC" = |of| of.0.record.timestamp.to_string();
    Text completed_at: "when it was done, in UTC" =
        |of| of.0.record.timing.completed_at.as_ref().map(ToString::to_string);
    Number total_seconds: "from start to end" = |of| Some(of.0.record.timing.total_seconds);
    Number setup_seconds: "creating and filling the sandbox" = |of| of.0.record.timing.setup_seconds;
    Number agent_seconds: "the agent's work" = |of| of.0.record.timing.agent_seconds;
    Number verification_seconds: "the judge's work" = |of| of.0.record.timing.verification_seconds;
    Text completeness: "whether nothing is missing from the record" =
        |of| of.0.record.completeness.name().to_owned();
    Text record: "digest of the record's file" = |of| of.0.digest.to_string();
    Integer size: "length of the record's file" = |of| of.0.size;
};

/// Shortcuts to parts of a record.
struct Of<'a>(&'a Stored);

impl Of<'_> {
    fn record(&self) -> &TrialRecord {
        &self.0.record
    }

    fn fault(&self) -> Option<&aec_judge::settle::outcome::Fault> {
        self.record().fault.as_ref()
    }

    /// The name that records use for a value.
    fn word<T: serde::Serialize>(&self, value: Option<T>) -> Option<String> {
        match serde_json::to_value(value?) {
            Ok(serde_json::Value::String(word)) => Some(word),
            _ => None,
        }
    }
}

/// Conversions from fields to cells.
#[expect(non_snake_case, reason = "named like the kinds of columns")]
mod cell {
    use super::Cell;

    pub(super) fn Text(text: impl Into<Option<String>>) -> Cell {
        Cell::Text(text.into())
    }

    pub(super) fn Integer(number: impl Whole) -> Cell {
        Cell::Integer(number.whole())
    }

    pub(super) fn Number(number: Option<f64>) -> Cell {
        Cell::Number(number)
    }

    /// Integers of any width, optional or not.
    pub(super) trait Whole {
        fn whole(self) -> Option<i64>;
    }

    impl Whole for u32 {
        fn whole(self) -> Option<i64> {
            Some(self.into())
        }
    }

    impl Whole for u64 {
        fn whole(self) -> Option<i64> {
            Some(i64::try_from(self).unwrap_or(i64::MAX))
        }
    }

    impl Whole for Option<u64> {
        fn whole(self) -> Option<i64> {
            self.and_then(Whole::whole)
        }
    }
}

/// The outcome of a trial that a package withheld. No record has it.
pub(super) const WITHHELD: &str = "withheld";

/// What is known of a trial that a package withheld.
pub(super) fn withheld(column: &Column, absent: &Absent) -> Cell {
    let Absent { trial, planned } = absent;
    let planned = planned.as_ref();
    let text = match column.name {
        "experiment_id" => Some(trial.experiment_id.to_string()),
        "trial_id" => Some(trial.trial_id.to_string()),
        "outcome" => Some(WITHHELD.to_owned()),
        "task_id" => planned.map(|planned| planned.task_id.clone()),
        "task_revision" => planned.map(|planned| planned.task_revision.to_string()),
        "agent" => planned.map(|planned| planned.agent.clone()),
        "agent_digest" => planned.map(|planned| planned.agent_digest.to_string()),
        "harness" => planned.map(|planned| planned.harness.clone()),
        "model" => planned.and_then(|planned| planned.model.clone()),
        _ => None,
    };
    match (column.kind, column.name) {
        (Kind::Text, _) => Cell::Text(text),
        (Kind::Integer, "attempt") => Cell::Integer(Some(trial.attempt.into())),
        (Kind::Integer, "repetition") => Cell::Integer(planned.map(|planned| planned.repetition.into())),
        (Kind::Integer, _) => Cell::Integer(None),
        (Kind::Number, _) => Cell::Number(None),
    }
}
