//! Converts the events of a trial's trajectory to turns, for the analysis of behaviour.

use aec_judge::settle::order::Source;
use aec_ledger::record::TrialRecord;
use aec_ledger::transcript::{Event, turns};
use serde_json::Value;

use crate::behaviour::trace::{DeclaredTool, TaskFacts, Trace};

/// The turns of a trial. `tools` are those of its task.
pub fn trace_of(record: &TrialRecord, events: Vec<Event>, tools: Vec<DeclaredTool>) -> Trace {
    let output = record.outputs.agent_output.as_ref();
    let empty = record.fault.as_ref().is_some_and(|fault| fault.kind.as_deref() == Some("empty"));
    Trace {
        turns: turns(events),
        task: TaskFacts {
            input_files: record.inputs.input_files.iter().map(|file| file.path.clone()).collect(),
            declared_tools: tools,
            output_path: output.map(|output| output.output_path.clone()).unwrap_or_default(),
            root: None,
        },
        reward: record.reward(),
        submitted: record.outputs.agent_result.get("submitted").and_then(Value::as_bool),
        output_present: record
            .outputs
            .submission
            .is_some()
            .then_some(record.outputs.output_source == Some(Source::File)),
        empty_replies: usize::from(empty),
    }
}
