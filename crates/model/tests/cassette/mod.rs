//! Cassettes from outside: whatever is recorded is replayed, whatever happens in between.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod bad_input;
mod cached;
mod documents;
mod kill;
mod misses;
mod round_trip;
mod secrets;
mod threads;

use std::path::Path;
use std::sync::Arc;

use aec_base::problem::Problem;
use aec_base::secret::Redactor;
use aec_model::cassette::{Call, Played, Player, Recorder};
use aec_model::event::CallEvent;
use aec_model::failure::Failure;
use aec_model::message::{Message, Reply, Request, Role, Stop, Usage};

/// A recorder that knows no secrets.
fn recorder(directory: &Path) -> Recorder {
    Recorder::create(directory, Arc::new(Redactor::default())).unwrap()
}

/// A player for a directory without errors, and its warnings and notes.
fn open(directory: &Path) -> (Player, Vec<Problem>) {
    Player::open(directory).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// A conversation with alternating user and assistant texts.
fn request(texts: &[&str]) -> Request {
    let roles = [Role::User, Role::Assistant];
    let messages = texts.iter().zip(roles.into_iter().cycle()).map(|(text, role)| Message::text(role, *text));
    Request { messages: messages.collect(), ..Request::default() }
}

/// A reply with one text.
fn reply(text: &str) -> Reply {
    Reply {
        parts: Message::text(Role::Assistant, text).parts,
        stop: Stop::End,
        usage: Some(Usage { input: 3, output: 2, ..Usage::default() }),
        model: Some("model-1".into()),
        id: None,
        extra: serde_json::Map::new(),
    }
}

fn events() -> Vec<CallEvent> {
    vec![CallEvent::Attempt { attempt: 1, endpoint: "local".into(), at_most: None }]
}

/// Begins and records a call.
fn record(recorder: &Recorder, scope: &str, request: &Request, outcome: &Result<Reply, Failure>) {
    let ticket = recorder.begin(scope, "m", request);
    let call = Call { request, endpoint: "local", events: &events(), outcome };
    recorder.record(ticket, &call).unwrap();
}

/// The text of a replayed reply.
fn text(played: &Played) -> String {
    played.outcome.as_ref().unwrap().text()
}

/// Problems as lines, without the directory.
fn lines(problems: &[Problem], directory: &Path) -> String {
    let lines: Vec<String> = problems
        .iter()
        .map(|problem| format!("{} {} {problem}", problem.severity, problem.id.as_deref().unwrap_or("-")))
        .collect();
    lines.join("\n").replace(&directory.display().to_string(), "DIR")
}
