//! Writes what happens during an attempt as it happens: `trajectory.jsonl`, one event a line, without secrets. What an
//! event is and how it is read is [`aec_ledger::transcript`].

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
    /// What the model is told of it.
    pub told: String,
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
        self.add(Event::text(EventRole::System, text));
    }

    /// The prompt, or what the harness says.
    pub fn user(&self, text: &str) {
        self.add(Event::text(EventRole::User, text));
    }

    /// What the model says. Its tool calls are events of their own.
    pub fn assistant(&self, reply: &Reply) {
        self.add(Event::reply(reply));
    }

    /// The model calls a tool.
    pub fn tool_call(&self, call: &ToolCall) {
        self.add(Event::tool_call(call, call.object()));
    }

    /// What the tool returned.
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
    /// What some events of a file add up to, when whoever wrote them is gone.
    pub(crate) fn of(path: PathBuf, events: &[Event]) -> Self {
        let mut hasher = Hasher::default();
        for event in events {
            hasher.part(event.timeless().as_bytes());
        }
        let snapshots = events.iter().filter_map(|event| event.snapshot).collect();
        Self { path, content: hasher.finish(), conversation: conversation::lines(events), snapshots }
    }
}
