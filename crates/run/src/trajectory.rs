//! Writes the events of an attempt as they happen: `trajectory.jsonl`, one event per line, without secrets.
//! [`aec_ledger::transcript`] defines and reads events.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aec_base::digest::{Digest, Hasher};
use aec_base::secret::Redactor;
use aec_base::timestamp::Timestamp;
use aec_ledger::transcript::conversation;
use aec_ledger::transcript::{Event, EventRole, TRAJECTORY_FILE};
use aec_model::event::CallEvent;
use aec_model::message::{Reply, ToolCall};
use serde_json::{Map, Value};

/// A tool's result.
#[derive(Clone, Debug, Default)]
pub struct ToolOutcome {
    /// Standard output as the model sees it.
    pub stdout: String,
    pub stderr: String,
    pub exit_code: Option<i32>,
    pub duration: Duration,
    /// Pictures, by their paths in the workspace.
    pub media: Vec<String>,
    /// The snapshot of the workspace after the call.
    pub snapshot: Option<Digest>,
    /// The text that the model receives.
    pub told: String,
}

/// Receives events as they are written.
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

#[derive(Debug)]
pub struct Finished {
    pub path: PathBuf,
    /// Digest without times.
    pub content: Digest,
    /// The text of `conversation.jsonl`.
    pub conversation: String,
    /// The snapshots that its events name.
    pub snapshots: Vec<Digest>,
}

impl Trajectory {
    /// Begins a file. Secrets are scrubbed from everything written.
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

    pub fn system(&self, text: &str) {
        self.add(Event::text(EventRole::System, text));
    }

    /// Writes the prompt, or a message from the harness.
    pub fn user(&self, text: &str) {
        self.add(Event::text(EventRole::User, text));
    }

    /// Writes the model's reply. Its tool calls are separate events.
    pub fn assistant(&self, reply: &Reply) {
        self.add(Event::reply(reply));
    }

    pub fn tool_call(&self, call: &ToolCall) {
        self.add(Event::tool_call(call, call.object()));
    }

    pub fn tool_result(&self, call: &ToolCall, outcome: &ToolOutcome) {
        let event = Event {
            tool_name: Some(call.name.clone()),
            tool_call_id: Some(call.id.clone()),
            exit_code: outcome.exit_code,
            media: outcome.media.clone(),
            snapshot: outcome.snapshot,
            duration_ms: Some(u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX)),
            ..Event::tool_result(outcome.stdout.clone(), outcome.stderr.clone())
        };
        self.add(event.told(outcome.told.clone()));
    }

    /// Writes the progress of a model call. After a crash this shows which calls were in flight.
    pub fn model_call(&self, call: &CallEvent) {
        self.add(Event { role: EventRole::ModelCall, call: Some(call.clone()), ..Event::default() });
    }

    /// Writes the progress of a model call outside the conversation, with its plane.
    pub fn model_call_of(&self, plane: &str, call: &CallEvent) {
        let metadata = Map::from_iter([("plane".to_owned(), Value::from(plane))]);
        self.add(Event {
            role: EventRole::ModelCall,
            call: Some(call.clone()),
            metadata,
            ..Event::default()
        });
    }

    /// Writes a note of the harness.
    pub fn note(&self, text: impl Into<String>, metadata: Map<String, Value>) {
        self.add(Event { metadata, ..Event::text(EventRole::Note, text) });
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

    /// Adds events that another process wrote, with their own steps and times. The snapshots that they name are not
    /// available here.
    pub(crate) fn adopt(&self, events: impl IntoIterator<Item = Event>) {
        let mut inner = self.inner();
        for mut event in events {
            event.snapshot = None;
            event.scrub(&inner.redactor);
            inner.step = inner.step.max(event.step);
            inner.append(&event);
        }
    }

    /// Ends the trajectory. Earlier write errors are returned now: evidence must not be lost silently.
    pub fn finish(&self) -> io::Result<Finished> {
        let mut inner = self.inner();
        if let Some(error) = inner.error.take() {
            return Err(error);
        }
        let content = std::mem::take(&mut inner.hasher).finish();
        // From now on the file is evidence and must not change.
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
        let timeless = event.timeless();
        self.hasher.part(timeless.as_bytes());
        self.conversation.push_str(&conversation::lines([event]));
        self.snapshots.extend(event.snapshot);
        if let Err(error) = self.file.write_all(event.line(timeless).as_bytes()) {
            self.error = Some(error);
        }
    }
}

impl Finished {
    /// The summary of a file's events, when their writer is gone.
    pub(crate) fn of(path: PathBuf, events: &[Event]) -> Self {
        let mut hasher = Hasher::default();
        for event in events {
            hasher.part(event.timeless().as_bytes());
        }
        let snapshots = events.iter().filter_map(|event| event.snapshot).collect();
        Self { path, content: hasher.finish(), conversation: conversation::lines(events), snapshots }
    }
}
