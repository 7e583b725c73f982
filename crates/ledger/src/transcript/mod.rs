//! What happened in an attempt: the events of `trajectory.jsonl`, and the views of them that all crates use.
//!
//! Code that needs to know what an agent said, called or spent uses a view from here: [`messages`] is the conversation
//! as chat messages, [`turns`] the calls with their results, [`counts`] their totals, [`cost`] the cost of the model
//! calls, [`conversation`] the file beside the trajectory.
//!
//! An event's times come last on its line, so that the digest of a trajectory without times covers a prefix of each
//! line. Readers ignore unknown keys.

pub mod chat;
pub mod conversation;
mod cost;
mod counts;
pub mod turns;

use std::collections::HashSet;

use aec_base::content::ContentStore;
use aec_base::digest::Digest;
use aec_base::secret::Redactor;
use aec_base::timestamp::Timestamp;
use aec_model::event::CallEvent;
use aec_model::failure::Failure;
use aec_model::message::{Reply, ToolCall, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::record::TrialRecord;

pub use chat::messages;
pub use cost::cost;
pub use counts::{Counts, counts};
pub use turns::turns;

pub const TRAJECTORY_FILE: &str = "trajectory.jsonl";
/// The tool that submits an answer.
pub const SUBMIT_TOOL: &str = "submit_answer";

/// In characters.
const SUMMARY: usize = 200;
/// In bytes; the rest is not read.
const TRAJECTORY_LIMIT: u64 = 256 * 1024 * 1024;

/// One event. Absent values are not written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// 0 before the first answer, then the number of the turn.
    pub step: u32,
    pub role: EventRole,
    /// The text. For a tool's result: what the model received, if it is not just stdout, stderr and exit code in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The model's thoughts, as far as the provider reveals them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The command line of a tool call that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Arguments of a tool call: an object, or the text that should have been one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// A tool's standard output, as the model saw it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The beginning of a long output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_summary: Option<String>,
    /// Pictures that a tool returned, by their paths in the workspace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<String>,
    /// The workspace after this event: digest of its list of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Digest>,
    /// The model as the provider names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Progress of a model call: each request that is sent, and how it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallEvent>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Duration of a tool call. Written with the times.
    #[serde(skip_serializing)]
    pub duration_ms: Option<u64>,
    /// When it happened. Written with the times.
    #[serde(skip_serializing)]
    pub timestamp: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventRole {
    /// The system prompt.
    System,
    /// The prompt, or a message from the harness.
    #[default]
    User,
    Assistant,
    ToolCall,
    ToolResult,
    /// Progress of a model call.
    ModelCall,
    /// A note by the harness: a limit reached, a fault, the end.
    Note,
}

impl Event {
    pub fn text(role: EventRole, text: impl Into<String>) -> Self {
        Self { role, content: Some(text.into()), ..Self::default() }
    }

    /// The model's text. Its tool calls are separate events.
    pub fn reply(reply: &Reply) -> Self {
        Self {
            reasoning: reply.thoughts(),
            model: reply.model.clone(),
            usage: reply.usage,
            ..Self::text(EventRole::Assistant, reply.text())
        }
    }

    /// A tool call. `object` holds the arguments, if they are an object.
    pub fn tool_call(call: &ToolCall, object: Option<Map<String, Value>>) -> Self {
        Self {
            role: EventRole::ToolCall,
            tool_name: Some(call.name.clone()),
            tool_call_id: Some(call.id.clone()),
            command: object.as_ref().and_then(|object| object.get("command")?.as_str().map(str::to_owned)),
            arguments: Some(object.map_or_else(|| Value::from(call.arguments.clone()), Value::Object)),
            ..Self::default()
        }
    }

    /// A tool's result.
    pub fn tool_result(stdout: String, stderr: String) -> Self {
        let output_summary = summary(&stdout);
        Self {
            role: EventRole::ToolResult,
            stdout: Some(stdout),
            stderr: Some(stderr),
            output_summary,
            ..Self::default()
        }
    }

    /// Adds to a tool's result the text that the model received, unless the other fields already give it.
    #[must_use]
    pub fn told(self, text: String) -> Self {
        let is_clear = conversation::returned(&self) == text;
        Self { content: (!is_clear).then_some(text), ..self }
    }

    /// Scrubs everything that people, programs, models and providers write: all but the role and numbers, whose names and
    /// values are this program's.
    pub fn scrub(&mut self, redactor: &Redactor) {
        let Self {
            step: _,
            role: _,
            content,
            reasoning,
            tool_name,
            tool_call_id,
            command,
            arguments,
            stdout,
            stderr,
            exit_code: _,
            output_summary,
            media,
            snapshot: _,
            model,
            usage: _,
            call,
            metadata,
            duration_ms: _,
            timestamp: _,
        } = self;
        for text in [content, reasoning, tool_name, tool_call_id, command, stderr, model] {
            redactor.scrub_some(text);
        }
        // The beginning of an output may end within a secret.
        if let Some(stdout) = stdout
            && redactor.scrub_text(stdout)
        {
            *output_summary = summary(stdout);
        }
        redactor.scrub_some(output_summary);
        for path in media {
            redactor.scrub_text(path);
        }
        if let Some(arguments) = arguments {
            redactor.scrub_value(arguments);
        }
        if let Some(call) = call {
            call.scrub(redactor);
        }
        redactor.scrub_object(metadata);
    }

    /// The event as JSON without its times: the input of a trajectory's digest.
    pub fn timeless(&self) -> String {
        // Writing fails only for maps whose keys are not texts; an event has none.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The event as a line of the file. `timeless` is the result of [`Self::timeless`].
    pub fn line(&self, mut timeless: String) -> String {
        timeless.pop();
        if let Some(duration) = self.duration_ms {
            timeless.push_str(&format!(",\"duration_ms\":{duration}"));
        }
        if let Some(timestamp) = &self.timestamp {
            timeless.push_str(&format!(",\"timestamp\":\"{timestamp}\""));
        }
        timeless.push_str("}\n");
        timeless
    }

    /// Whether a tool failed.
    pub fn is_failed(&self) -> bool {
        self.exit_code.is_some_and(|code| code != 0)
            || self.metadata.get("is_error").and_then(Value::as_bool) == Some(true)
    }

    /// A failed attempt at a model call: its number, the failure, and after how many milliseconds.
    pub fn failed_call(&self) -> Option<(u32, &Failure, u64)> {
        match &self.call {
            Some(CallEvent::Failed { attempt, failure, elapsed_ms, .. }) => {
                Some((*attempt, failure, *elapsed_ms))
            }
            _ => None,
        }
    }
}

/// The beginning of a long output.
fn summary(stdout: &str) -> Option<String> {
    stdout.char_indices().nth(SUMMARY).map(|(end, _)| format!("{}…", &stdout[..end]))
}

/// The events of a trajectory. Invalid lines are left out: a crash leaves a torn end.
pub fn read(text: &[u8]) -> Vec<Event> {
    String::from_utf8_lossy(text).lines().filter_map(|line| aec_base::json::from_str(line).ok()).collect()
}

/// Events as the lines of a trajectory.
pub fn lines(events: &[Event]) -> String {
    events.iter().map(|event| event.line(event.timeless())).collect()
}

/// The events of a trial, if its trajectory can be read.
pub fn of_record(record: &TrialRecord, contents: &ContentStore) -> Option<Vec<Event>> {
    let path = record.outputs.trajectory_path.as_ref()?;
    let artefact = record.all_artefacts().find(|artefact| artefact.path == *path)?;
    of_content(artefact.digest, contents)
}

/// The events of a trajectory by its digest, if they can be read.
pub fn of_content(digest: Digest, contents: &ContentStore) -> Option<Vec<Event>> {
    Some(read(&contents.read(digest, TRAJECTORY_LIMIT).ok()?))
}

pub fn system_prompt(events: &[Event]) -> Option<&str> {
    events.iter().find(|event| event.role == EventRole::System)?.content.as_deref()
}

/// The model as the provider last named it.
pub fn model(events: &[Event]) -> Option<&str> {
    events.iter().rev().find_map(|event| event.model.as_deref())
}

/// Ids of calls that the harness made itself before the model's first answer, such as the start of a user's program.
fn calls_of_harness(events: &[Event]) -> HashSet<String> {
    let before = events.iter().take_while(|event| event.role != EventRole::Assistant);
    before
        .filter(|event| event.role == EventRole::ToolCall && event.step == 0)
        .filter_map(|event| event.tool_call_id.clone())
        .collect()
}
