//! Records calls: one file per process, one write per call.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aec_base::digest::{Digest, Hasher};
use aec_base::secret::Redactor;

use super::canonical::{self, Prints, json};
use super::format::{CallLine, Outcome, StoredReply, StoredRequest};
use super::log::{Log, TextKey, short, text_key};
use super::redact::Scrubber;
use crate::event::CallEvent;
use crate::failure::Failure;
use crate::message::{Message, Reply, Request, Tool};

/// Writes calls to its own file in a directory.
pub struct Recorder {
    directory: PathBuf,
    redactor: Arc<Redactor>,
    /// How many calls with each request began, by scope and digest.
    begun: Mutex<HashMap<[u8; 16], u32>>,
    log: Mutex<Option<Log>>,
}

/// The position of a call that has begun. Dropping the ticket leaves the position empty.
#[must_use = "a call is recorded with its ticket"]
#[derive(Debug)]
pub struct Ticket {
    scope: String,
    model: String,
    print: Print,
    occurrence: u32,
}

/// A finished call.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub request: &'a Request,
    /// The label of the endpoint that was called last.
    pub endpoint: &'a str,
    pub events: &'a [CallEvent],
    pub outcome: &'a Result<Reply, Failure>,
}

/// Digest of a scrubbed request, and the keys of the texts it would store.
#[derive(Debug)]
pub(super) struct Print {
    pub(super) digest: Digest,
    redacted: bool,
    messages: Vec<TextKey>,
    tools: Option<TextKey>,
}

impl Recorder {
    /// Creates a new file in the directory, which is created if necessary.
    pub fn create(directory: &Path, redactor: Arc<Redactor>) -> io::Result<Self> {
        let recorder = Self::idle(directory, redactor);
        *lock(&recorder.log) = Some(Log::create(directory)?);
        Ok(recorder)
    }

    /// A recorder that creates its file with the first call.
    pub(super) fn idle(directory: &Path, redactor: Arc<Redactor>) -> Self {
        Self {
            directory: directory.to_path_buf(),
            redactor,
            begun: Mutex::new(HashMap::new()),
            log: Mutex::new(None),
        }
    }

    /// Fixes the position of a call among equal ones of its scope. Calls must begin in the order of their requests.
    pub fn begin(&self, scope: &str, model: &str, request: &Request) -> Ticket {
        self.begin_printed(scope, model, self.print(model, request))
    }

    pub(super) fn begin_printed(&self, scope: &str, model: &str, print: Print) -> Ticket {
        let mut ticket = self.ticket(scope, model, print, 0);
        let mut hasher = Hasher::default();
        hasher.part(ticket.scope.as_bytes());
        hasher.part(ticket.print.digest.bytes());
        let key = short(&hasher.finish());
        let mut begun = lock(&self.begun);
        let count = begun.entry(key).or_default();
        ticket.occurrence = *count;
        *count = count.saturating_add(1);
        ticket
    }

    /// A ticket for a position that the caller has counted.
    pub(super) fn ticket(&self, scope: &str, model: &str, print: Print, occurrence: u32) -> Ticket {
        let scrub = |text: &str| self.redactor.scrub(text.to_owned());
        Ticket { scope: scrub(scope), model: scrub(model), print, occurrence }
    }

    /// Writes a call. It is on the cassette when this returns; see [`Self::finish`] for crashes of the machine.
    pub fn record(&self, ticket: Ticket, call: &Call<'_>) -> io::Result<()> {
        if call.request.messages.len() != ticket.print.messages.len() {
            let what = "a call is recorded with another request than it began with";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let prepared = PreparedEntry::new(&self.redactor, call);
        let mut log = lock(&self.log);
        let log = match &mut *log {
            Some(log) => log,
            none => none.insert(Log::create(&self.directory)?),
        };
        let mut batch = log.batch();
        let mut turn = None;
        for (message, key) in call.request.messages.iter().zip(&ticket.print.messages) {
            let number =
                batch.text("message", *key, || json(&scrubbed_message(&self.redactor, message).0))?;
            turn = Some(batch.turn(turn, number)?);
        }
        let tools = match ticket.print.tools {
            Some(key) => {
                let make = || json(&scrubbed_tools(&self.redactor, &call.request.tools).0);
                Some(batch.text("tools", key, make)?)
            }
            None => None,
        };
        let outcome = match prepared.outcome {
            Ok((message, reply)) => {
                let text = json(&message);
                let message = batch.text("message", text_key(&text), || text)?;
                Outcome::Reply(StoredReply { message, ..reply })
            }
            Err(failure) => Outcome::Failure(failure),
        };
        let line = CallLine {
            scope: ticket.scope,
            model: ticket.model,
            digest: ticket.print.digest,
            occurrence: ticket.occurrence,
            redacted: ticket.print.redacted,
            request: StoredRequest { turn, tools, ..prepared.request },
            endpoint: prepared.endpoint,
            events: prepared.events,
            outcome,
        };
        batch.line(&format!("{{\"call\":{}}}", json(&line)))?;
        let new = batch.finish();
        log.append(new)
    }

    /// Waits until the recorded calls are on disk. Dropping the recorder does the same but ignores errors.
    pub fn finish(&self) -> io::Result<()> {
        lock(&self.log).as_ref().map_or(Ok(()), Log::sync)
    }

    /// The print of a scrubbed request.
    pub(super) fn print(&self, model: &str, request: &Request) -> Print {
        let mut redacted = self.redactor.finds(model);
        let model = self.redactor.scrub(model.to_owned());
        let mut messages = Vec::with_capacity(request.messages.len());
        let mut prints = Vec::with_capacity(request.messages.len());
        for message in &request.messages {
            let (message, found) = scrubbed_message(&self.redactor, message);
            redacted |= found;
            let print = canonical::message_print(&message);
            // Texts are stored in their original spelling: a reply must come back as the provider wrote it.
            let key =
                if canonical::has_spellings(&message) { text_key(&json(&message)) } else { short(&print) };
            messages.push(key);
            prints.push(print);
        }
        let (tools, found) = scrubbed_tools(&self.redactor, &request.tools);
        redacted |= found;
        let (settings, found) = scrubbed_settings(&self.redactor, request);
        redacted |= found;
        let prints = Prints {
            messages: prints,
            tools: Digest::of(canonical::tools_text(&tools).as_bytes()),
            settings: Digest::of(
                canonical::settings_text(&settings.tool_choice, &settings.sampling).as_bytes(),
            ),
        };
        Print {
            digest: prints.digest(&model),
            redacted,
            messages,
            tools: (!tools.is_empty()).then(|| text_key(&json(&tools))),
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Drop cannot report errors; callers that need them call `finish`.
        self.finish().ok();
    }
}

/// The parts of a record that need no numbers, prepared before the file is locked.
struct PreparedEntry {
    request: StoredRequest,
    endpoint: String,
    events: Vec<CallEvent>,
    outcome: Result<(Message, StoredReply), Failure>,
}

impl PreparedEntry {
    fn new(redactor: &Redactor, call: &Call<'_>) -> Self {
        let mut scrubber = Scrubber::new(redactor);
        let mut events = call.events.to_vec();
        for event in &mut events {
            scrubber.event(event);
        }
        let outcome = match call.outcome.clone() {
            Ok(mut reply) => {
                scrubber.reply(&mut reply);
                Ok(StoredReply::split(reply))
            }
            Err(mut failure) => {
                scrubber.failure(&mut failure);
                Err(failure)
            }
        };
        Self {
            request: scrubbed_settings(redactor, call.request).0,
            endpoint: redactor.scrub(call.endpoint.to_owned()),
            events,
            outcome,
        }
    }
}

fn scrubbed_message(redactor: &Redactor, message: &Message) -> (Message, bool) {
    let mut message = message.clone();
    let mut scrubber = Scrubber::new(redactor);
    scrubber.message(&mut message);
    (message, scrubber.found)
}

fn scrubbed_tools(redactor: &Redactor, tools: &[Tool]) -> (Vec<Tool>, bool) {
    let mut tools = tools.to_vec();
    let mut scrubber = Scrubber::new(redactor);
    scrubber.tools(&mut tools);
    (tools, scrubber.found)
}

/// The parts of a request other than messages and tools.
fn scrubbed_settings(redactor: &Redactor, request: &Request) -> (StoredRequest, bool) {
    let mut settings = StoredRequest {
        turn: None,
        tools: None,
        tool_choice: request.tool_choice.clone(),
        sampling: request.sampling.clone(),
    };
    let mut scrubber = Scrubber::new(redactor);
    scrubber.choice(&mut settings.tool_choice);
    scrubber.sampling(&mut settings.sampling);
    (settings, scrubber.found)
}

/// No invariant is broken while the lock is held, so a poisoned lock is still usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
