//! Secrets do not reach a cassette, and calls that contained one are still found.

use std::sync::Arc;

use aec_base::env::Env;
use aec_base::secret::Redactor;
use aec_model::cassette::{Call, Recorder, request_digest};
use aec_model::event::CallEvent;
use aec_model::failure::{Failure, FailureKind};
use aec_model::message::{Message, Request, Role};

use crate::cassette::{open, reply, request, text};

const SECRET: &str = "hunter2\"x";

fn redactor(secret: &str) -> Arc<Redactor> {
    Arc::new(Redactor::from_env(&Env::from_shell([("DB_PASSWORD".to_owned(), secret.to_owned())])))
}

fn everything(directory: &std::path::Path) -> String {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect()
}

fn conversation() -> (Request, Request) {
    let first = request(&["the password?"]);
    let mut second = first.clone();
    second.messages.push(reply(&format!("it is {SECRET}")).into_message());
    second.messages.push(Message::text(Role::User, format!("use {SECRET} and {SECRET}")));
    second.sampling.stop.push(SECRET.into());
    (first, second)
}

fn record(directory: &std::path::Path) {
    let recorder = Recorder::create(directory, redactor(SECRET)).unwrap();
    let (first, second) = conversation();
    let failure = Failure::passing(FailureKind::Auth, format!("{SECRET} refused"));
    let events = [
        CallEvent::Attempt { attempt: 1, endpoint: format!("at {SECRET}"), at_most: None },
        CallEvent::Failed {
            attempt: 1,
            failure: failure.clone(),
            elapsed_ms: 1,
            wait_ms: None,
            charged: None,
        },
    ];
    let endpoint = format!("host/{SECRET}");
    let calls = [
        (&first, Ok(reply(&format!("it is {SECRET}")))),
        (&second, Ok(reply("done"))),
        (&second, Err(failure)),
    ];
    for (request, outcome) in &calls {
        let ticket = recorder.begin(&format!("trial {SECRET}"), "m", request);
        recorder.record(ticket, &Call { request, endpoint: &endpoint, events: &events, outcome }).unwrap();
    }
}

#[test]
fn nothing_of_a_secret_is_written() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path());
    let written = everything(dir.path());
    assert!(!written.contains("hunter2"), "{written}");
    assert!(written.contains("[DB_PASSWORD redacted]"));
    // Nor a digest with which a guess could be checked.
    let (_, second) = conversation();
    assert!(!written.contains(&request_digest("m", &second).hex()));
}

#[test]
fn calls_that_held_a_secret_are_found_with_it_and_without() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path());
    let scope = format!("trial {SECRET}");
    let (first, second) = conversation();
    let failure = Failure::passing(FailureKind::Auth, "[DB_PASSWORD redacted] refused");

    // The program sends the secret again: the tool that printed it printed it once more.
    let (player, problems) = open(dir.path());
    assert!(problems.is_empty(), "{problems:?}");
    let played = player.play(&scope, "m", &first).unwrap();
    assert_eq!(text(&played), "it is [DB_PASSWORD redacted]");
    assert_eq!(played.endpoint, "host/[DB_PASSWORD redacted]");
    assert_eq!(text(&player.play(&scope, "m", &second).unwrap()), "done");
    assert_eq!(player.play(&scope, "m", &second).unwrap().outcome, Err(failure.clone()));
    assert!(player.play(&scope, "m", &second).is_err());

    // It continues with the replayed reply.
    let (player, _) = open(dir.path());
    let plain = serde_json::to_string(&second).unwrap().replace("hunter2\\\"x", "[DB_PASSWORD redacted]");
    let second: Request = serde_json::from_str(&plain).unwrap();
    assert_eq!(text(&player.play("trial [DB_PASSWORD redacted]", "m", &second).unwrap()), "done");

    // A different request is not mistaken for a redacted one.
    let mut other = second.clone();
    other.messages[2] = Message::text(Role::User, "use it");
    assert!(player.play(&scope, "m", &other).is_err());
    let mut other = second.clone();
    other.sampling.seed = Some(1);
    assert!(player.play(&scope, "m", &other).is_err());
    assert!(player.play(&scope, "n", &second).is_err());
    assert_eq!(player.play(&scope, "m", &second).unwrap().outcome, Err(failure));
}

#[test]
fn a_secret_that_is_a_word_of_the_format_breaks_nothing() {
    for word in ["message", "assistant", "occurrence", "number", "sha256", "aec-bench cassette"] {
        let dir = tempfile::tempdir().unwrap();
        let recorder = Recorder::create(dir.path(), redactor(word)).unwrap();
        crate::cassette::record(&recorder, "s", &request(&["hello", "there", word]), &Ok(reply("done")));
        let (player, problems) = open(dir.path());
        assert!(problems.is_empty(), "{word}: {problems:?}");
        assert_eq!(text(&player.play("s", "m", &request(&["hello", "there", word])).unwrap()), "done");
    }
}

#[test]
fn a_model_whose_name_holds_a_secret_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::create(dir.path(), redactor("ollama")).unwrap();
    let request = request(&["q"]);
    let outcome = Ok(reply("done"));
    for model in ["ollama/one", "two"] {
        let ticket = recorder.begin("", model, &request);
        recorder
            .record(ticket, &Call { request: &request, endpoint: "", events: &[], outcome: &outcome })
            .unwrap();
    }
    let (player, _) = open(dir.path());
    assert!(player.play("", "other/three", &request).is_err());
    assert_eq!(text(&player.play("", "ollama/one", &request).unwrap()), "done");
    assert_eq!(text(&player.play("", "two", &request).unwrap()), "done");
}
