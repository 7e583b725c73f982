//! What was said and done in an attempt: the events of `trajectory.jsonl`, and the views of them that everybody uses.
//!
//! Whoever wants to know what an agent said, called or spent asks a view here: [`messages`] is the conversation as chat
//! messages, [`turns`] the calls with their results, [`counts`] what they add up to, [`cost`] what its calls took,
//! [`conversation`] the file beside the trajectory.
//!
//! An event's times come last on its line, so that the digest of a trajectory without its times is the digest of what
//! comes before them. Readers ignore keys that they do not know.

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

/// The file of events.
pub const TRAJECTORY_FILE: &str = "trajectory.jsonl";
/// The tool that hands in an answer.
pub const SUBMIT_TOOL: &str = "submit_answer";

/// A summary is this long.
const SUMMARY: usize = 200;
/// A trajectory is read at most this far.
const TRAJECTORY_LIMIT: u64 = 256 * 1024 * 1024;

/// One event. Absent keys are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// 0 before the first answer, then the number of the turn.
    pub step: u32,
    /// What kind of event.
    pub role: EventRole,
    /// Text. Of a tool's result it is what the model was told, where that is not output, complaint and exit code in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// What the model thought, as far as the provider shows it.
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
    /// What a tool printed, as the model saw it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// What a tool complained of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// Exit code of a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The beginning of a long output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_summary: Option<String>,
    /// Pictures that a tool returned, by their paths in the workspace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<String>,
    /// The state of the workspace after this event: digest of its list of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Digest>,
    /// The model as the provider names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What an answer took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// A model call as it goes on: each request that is sent, and how it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallEvent>,
    /// Anything else.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// How long a tool took. Written with the times.
    #[serde(skip_serializing)]
    pub duration_ms: Option<u64>,
    /// When it happened. Written with the times.
    #[serde(skip_serializing)]
    pub timestamp: Option<Timestamp>,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventRole {
    /// Standing instructions.
    System,
    /// The prompt, or what the harness says.
    #[default]
    User,
    /// What the model says.
    Assistant,
    /// The model calls a tool.
    ToolCall,
    /// What the tool returned.
    ToolResult,
    /// A model call as it goes on.
    ModelCall,
    /// What the harness notes: a limit that was reached, a fault, how it ended.
    Note,
}

impl Event {
    pub fn text(role: EventRole, text: impl Into<String>) -> Self {
        Self { role, content: Some(text.into()), ..Self::default() }
    }

    /// What the model says. Its tool calls are events of their own.
    pub fn reply(reply: &Reply) -> Self {
        Self {
            reasoning: reply.thoughts(),
            model: reply.model.clone(),
            usage: reply.usage,
            ..Self::text(EventRole::Assistant, reply.text())
        }
    }

    /// The model calls a tool. `object` are the arguments, if they are an object.
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

    /// What a tool returned.
    pub fn tool_result(stdout: String, stderr: String) -> Self {
        let output_summary =
            stdout.char_indices().nth(SUMMARY).map(|(end, _)| format!("{}…", &stdout[..end]));
        Self {
            role: EventRole::ToolResult,
            stdout: Some(stdout),
            stderr: Some(stderr),
            output_summary,
            ..Self::default()
        }
    }

    /// The same, of a tool's result, with what the model was told of it, as far as the rest does not say that.
    #[must_use]
    pub fn told(self, text: String) -> Self {
        let is_clear = conversation::returned(&self) == text;
        Self { content: (!is_clear).then_some(text), ..self }
    }

    /// Scrubs what people and programs said. What gives an event its form is ours.
    pub fn scrub(&mut self, redactor: &Redactor) {
        for text in [
            &mut self.content,
            &mut self.reasoning,
            &mut self.command,
            &mut self.stdout,
            &mut self.stderr,
            &mut self.output_summary,
        ] {
            redactor.scrub_some(text);
        }
        if let Some(arguments) = &mut self.arguments {
            redactor.scrub_value(arguments);
        }
        self.metadata.values_mut().for_each(|value| redactor.scrub_value(value));
    }

    /// The event without its times, as JSON: what the digest of a trajectory is made of.
    pub fn timeless(&self) -> String {
        // Only a map with keys that are no texts cannot be written, and there is none.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The event as a line of the file. `timeless` is what [`Self::timeless`] gave.
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

    /// The attempt of a model call that failed: its number, how, and after how many milliseconds.
    pub fn failed_call(&self) -> Option<(u32, &Failure, u64)> {
        match &self.call {
            Some(CallEvent::Failed { attempt, failure, elapsed_ms, .. }) => {
                Some((*attempt, failure, *elapsed_ms))
            }
            _ => None,
        }
    }
}

/// The events of a trajectory. Lines that are none are left out: a torn end is what a crash leaves.
pub fn read(text: &[u8]) -> Vec<Event> {
    String::from_utf8_lossy(text).lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
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

/// The standing instructions.
pub fn system_prompt(events: &[Event]) -> Option<&str> {
    events.iter().find(|event| event.role == EventRole::System)?.content.as_deref()
}

/// The model as the provider named it last.
pub fn model(events: &[Event]) -> Option<&str> {
    events.iter().rev().find_map(|event| event.model.as_deref())
}

/// The ids of calls that the harness made by itself before the model spoke, such as the start of somebody's program.
fn calls_of_harness(events: &[Event]) -> HashSet<String> {
    let before = events.iter().take_while(|event| event.role != EventRole::Assistant);
    before
        .filter(|event| event.role == EventRole::ToolCall && event.step == 0)
        .filter_map(|event| event.tool_call_id.clone())
        .collect()
}
