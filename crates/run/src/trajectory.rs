//! What happens during an attempt, written as it happens: `trajectory.jsonl`, one event a line.
//!
//! An event's times come last on its line, so that the digest of a trajectory without its times is the digest of what
//! stands before them. Whoever reads trajectories ignores keys that it does not know.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aec_base::digest::{Digest, Hasher};
use aec_base::secret::Redactor;
use aec_base::timestamp::Timestamp;
use aec_model::event::CallEvent;
use aec_model::message::{Part, Reply, ToolCall, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::conversation;

/// The file of events.
pub const TRAJECTORY_FILE: &str = "trajectory.jsonl";

/// A summary is this long.
const SUMMARY: usize = 200;

/// One event. Absent keys are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// 0 before the first answer, then the number of the turn.
    pub step: u32,
    /// What kind of event.
    pub role: EventRole,
    /// Text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// What the model thought, as far as the provider shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Which tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Which call of a tool.
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
    /// Scrubs what people and programs said. What gives an event its form is ours.
    fn scrub(&mut self, redactor: &Redactor) {
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
}

/// What a tool returned.
#[derive(Clone, Debug, Default)]
pub struct ToolOutcome {
    /// What it printed, as the model sees it.
    pub stdout: String,
    /// What it complained of.
    pub stderr: String,
    /// Exit code; absent when there was none.
    pub exit_code: Option<i32>,
    /// How long it took.
    pub duration: Duration,
    /// Pictures, by their paths in the workspace.
    pub media: Vec<String>,
    /// The workspace after it.
    pub snapshot: Option<Digest>,
}

/// Hears events as they are written.
pub type Listener = Arc<dyn Fn(&Event) + Send + Sync>;

/// The trajectory of one attempt. Clones write to the same file.
#[derive(Clone)]
pub struct Trajectory(Arc<Mutex<Inner>>);

struct Inner {
    path: PathBuf,
    file: File,
    step: u32,
    hasher: Hasher,
    conversation: String,
    snapshots: Vec<Digest>,
    redactor: Arc<Redactor>,
    listener: Option<Listener>,
    error: Option<io::Error>,
}

/// A trajectory that is complete.
#[derive(Debug)]
pub struct Finished {
    /// Its file.
    pub path: PathBuf,
    /// Digest without times.
    pub content: Digest,
    /// Who said what, as `conversation.jsonl`.
    pub conversation: String,
    /// The states of the workspace that its events name.
    pub snapshots: Vec<Digest>,
}

impl Trajectory {
    /// Begins a file. Secrets are scrubbed from everything that is written.
    pub fn create(directory: &Path, redactor: Arc<Redactor>, listener: Option<Listener>) -> io::Result<Self> {
        let path = directory.join(TRAJECTORY_FILE);
        let file = File::options().append(true).create_new(true).open(&path)?;
        Ok(Self(Arc::new(Mutex::new(Inner {
            path,
            file,
            step: 0,
            hasher: Hasher::default(),
            conversation: String::new(),
            snapshots: Vec::new(),
            redactor,
            listener,
            error: None,
        }))))
    }

    /// Begins the next turn.
    pub fn next_step(&self) {
        self.inner().step += 1;
    }

    /// The system prompt.
    pub fn system(&self, text: &str) {
        self.add(Event { role: EventRole::System, content: Some(text.to_owned()), ..Event::default() });
    }

    /// The prompt, or what the harness says.
    pub fn user(&self, text: &str) {
        self.add(Event { role: EventRole::User, content: Some(text.to_owned()), ..Event::default() });
    }

    /// What the model says. Its tool calls are events of their own.
    pub fn assistant(&self, reply: &Reply) {
        let thoughts: Vec<&str> = reply
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Reasoning { text, .. } if !text.is_empty() => Some(text.as_str()),
                _ => None,
            })
            .collect();
        self.add(Event {
            role: EventRole::Assistant,
            content: Some(reply.text()),
            reasoning: (!thoughts.is_empty()).then(|| thoughts.join("\n")),
            model: reply.model.clone(),
            usage: reply.usage,
            ..Event::default()
        });
    }

    /// The model calls a tool.
    pub fn tool_call(&self, call: &ToolCall) {
        let object = call.object();
        let command = object.as_ref().and_then(|object| object.get("command")?.as_str().map(str::to_owned));
        self.add(Event {
            role: EventRole::ToolCall,
            tool_name: Some(call.name.clone()),
            tool_call_id: Some(call.id.clone()),
            command,
            arguments: Some(object.map_or_else(|| Value::from(call.arguments.clone()), Value::Object)),
            ..Event::default()
        });
    }

    /// What the tool returned.
    pub fn tool_result(&self, call: &ToolCall, outcome: &ToolOutcome) {
        let summary =
            outcome.stdout.char_indices().nth(SUMMARY).map(|(end, _)| format!("{}…", &outcome.stdout[..end]));
        self.add(Event {
            role: EventRole::ToolResult,
            tool_name: Some(call.name.clone()),
            tool_call_id: Some(call.id.clone()),
            stdout: Some(outcome.stdout.clone()),
            stderr: Some(outcome.stderr.clone()),
            exit_code: outcome.exit_code,
            output_summary: summary,
            media: outcome.media.clone(),
            snapshot: outcome.snapshot,
            duration_ms: Some(u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX)),
            ..Event::default()
        });
    }

    /// A model call as it goes on. This is what says after a crash which calls were under way.
    pub fn model_call(&self, call: &CallEvent) {
        self.add(Event { role: EventRole::ModelCall, call: Some(call.clone()), ..Event::default() });
    }

    /// A model call beside the conversation, with the plane that it belongs to.
    pub fn model_call_of(&self, plane: &str, call: &CallEvent) {
        let metadata = Map::from_iter([("plane".to_owned(), Value::from(plane))]);
        self.add(Event {
            role: EventRole::ModelCall,
            call: Some(call.clone()),
            metadata,
            ..Event::default()
        });
    }

    /// What the harness notes.
    pub fn note(&self, text: impl Into<String>, metadata: Map<String, Value>) {
        self.add(Event { role: EventRole::Note, content: Some(text.into()), metadata, ..Event::default() });
    }

    fn add(&self, mut event: Event) {
        let mut inner = self.inner();
        event.step = inner.step;
        event.timestamp = Some(Timestamp::now_in_milliseconds());
        event.scrub(&inner.redactor);
        inner.append(&event);
        let listener = inner.listener.clone();
        drop(inner);
        if let Some(listener) = listener {
            listener(&event);
        }
    }

    /// Takes over events that were written elsewhere, with their own steps and times. States of a workspace that they
    /// name are elsewhere too.
    pub(crate) fn adopt(&self, events: impl IntoIterator<Item = Event>) {
        let mut inner = self.inner();
        for mut event in events {
            event.snapshot = None;
            event.scrub(&inner.redactor);
            inner.step = inner.step.max(event.step);
            inner.append(&event);
        }
    }

    /// Ends the trajectory. What could not be written is told now: evidence must not be lost in silence.
    pub fn finish(&self) -> io::Result<Finished> {
        let mut inner = self.inner();
        if let Some(error) = inner.error.take() {
            return Err(error);
        }
        let content = std::mem::take(&mut inner.hasher).finish();
        // The file is evidence from now on; nobody writes to it any more.
        inner.error = Some(io::Error::other("the trajectory is finished"));
        Ok(Finished {
            path: inner.path.clone(),
            content,
            conversation: std::mem::take(&mut inner.conversation),
            snapshots: std::mem::take(&mut inner.snapshots),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn append(&mut self, event: &Event) {
        if self.error.is_some() {
            return;
        }
        let mut line = serde_json::to_string(event).unwrap_or_default();
        self.hasher.part(line.as_bytes());
        self.conversation.push_str(&conversation::lines([event]));
        self.snapshots.extend(event.snapshot);
        line.pop();
        if let Some(duration) = event.duration_ms {
            line.push_str(&format!(",\"duration_ms\":{duration}"));
        }
        if let Some(timestamp) = &event.timestamp {
            line.push_str(&format!(",\"timestamp\":\"{timestamp}\""));
        }
        line.push_str("}\n");
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            self.error = Some(error);
        }
    }
}

impl Finished {
    /// What some events of a file add up to, when whoever wrote them is gone.
    pub(crate) fn of(path: PathBuf, events: &[Event]) -> Self {
        let mut hasher = Hasher::default();
        for event in events {
            hasher.part(serde_json::to_string(event).unwrap_or_default().as_bytes());
        }
        let snapshots = events.iter().filter_map(|event| event.snapshot).collect();
        Self { path, content: hasher.finish(), conversation: conversation::lines(events), snapshots }
    }
}

/// The events of a trajectory, and the numbers of the lines that are none. A torn end is what a crash leaves.
pub fn read(text: &str) -> (Vec<Event>, Vec<usize>) {
    let mut events = Vec::new();
    let mut torn = Vec::new();
    for (index, line) in text.lines().enumerate() {
        match serde_json::from_str(line) {
            Ok(event) => events.push(event),
            Err(_) => torn.push(index + 1),
        }
    }
    (events, torn)
}
