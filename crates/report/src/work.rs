//! A trial as the analysis of behaviour reads it: turns, from the events of its trajectory.

use aec_base::timestamp::Timestamp;
use aec_judge::settle::order::Source;
use aec_ledger::record::TrialRecord;
use aec_run::trajectory::{Event, EventRole};
use serde_json::Value;

use crate::behaviour::trace::{Call, CallResult, DeclaredTool, TaskFacts, Trace, Turn};

/// The turns of a trial. `tools` are those that its task brings along.
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

/// Events of one step are one turn. Prompts, notes and the bookkeeping of model calls are none.
fn turns(events: Vec<Event>) -> Vec<Turn> {
    let start = events.iter().find_map(|event| event.timestamp.as_ref()).map(Timestamp::to_milliseconds);
    let mut turns: Vec<Turn> = Vec::new();
    for event in events {
        if !matches!(event.role, EventRole::Assistant | EventRole::ToolCall | EventRole::ToolResult) {
            continue;
        }
        let now = event.timestamp.as_ref().map(Timestamp::to_milliseconds);
        let offset = now.zip(start).and_then(|(now, start)| u64::try_from(now - start).ok());
        if turns.last().is_none_or(|turn| turn.index != event.step) {
            turns.push(Turn { index: event.step, offset_ms: offset, ..Turn::default() });
        }
        let Some(turn) = turns.last_mut() else { continue };
        let id = event.tool_call_id.unwrap_or_default();
        match event.role {
            EventRole::Assistant => {
                turn.text = event.content.unwrap_or_default();
                turn.reasoning = event.reasoning.unwrap_or_default();
            }
            EventRole::ToolCall => turn.calls.push(Call {
                name: event.tool_name.unwrap_or_default(),
                id,
                arguments: event.arguments.unwrap_or(Value::Null),
                command: event.command,
            }),
            _ => turn.results.push(CallResult {
                call_id: id,
                stdout: event.stdout.unwrap_or_default(),
                stderr: event.stderr.unwrap_or_default(),
                exit_code: event.exit_code,
                is_error: None,
                duration_ms: event.duration_ms,
            }),
        }
    }
    turns
}
