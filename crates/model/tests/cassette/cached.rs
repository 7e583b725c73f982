//! Answering from a directory and adding to it.

use std::path::Path;
use std::sync::Arc;

use aec_base::env::Env;
use aec_base::secret::Redactor;
use aec_model::cassette::{Cache, Call, Lookup};
use aec_model::failure::{Failure, FailureKind};
use aec_model::message::{Reply, Request};

use crate::cassette::{record, recorder, reply, request};

fn open(directory: &Path) -> Cache {
    let (cache, problems) = Cache::open(directory, Arc::new(Redactor::default())).unwrap();
    assert!(problems.iter().all(|problem| problem.id.as_deref() == Some("K017")), "{problems:?}");
    cache
}

/// Answers from the cache, or from the model if the cache has no answer.
fn ask(cache: &Cache, request: &Request, live: &Result<Reply, Failure>) -> String {
    match cache.look_up("s", "m", request) {
        Lookup::Found(played) => format!("cached {}", crate::cassette::text(&played)),
        Lookup::Ask(ticket) => {
            let call = Call { request, endpoint: "e", events: &[], outcome: live };
            cache.record(ticket, &call).unwrap();
            format!("live {}", live.as_ref().map_or_else(Failure::to_string, Reply::text))
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "what a model says is an outcome")]
fn said(text: &str) -> Result<Reply, Failure> {
    Ok(reply(text))
}

#[test]
fn what_is_known_is_not_asked_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("not/there/yet");
    let (q, r) = (request(&["q"]), request(&["r"]));
    let cache = open(&path);
    assert_eq!(ask(&cache, &q, &said("1")), "live 1");
    assert_eq!(ask(&cache, &q, &said("2")), "live 2", "repetitions are not collapsed");
    drop(cache);
    let cache = open(&path);
    assert_eq!(ask(&cache, &q, &said("-")), "cached 1");
    assert_eq!(ask(&cache, &q, &said("-")), "cached 2");
    assert_eq!(ask(&cache, &q, &said("3")), "live 3");
    assert_eq!(ask(&cache, &r, &said("r")), "live r");
    drop(cache);
    let cache = open(&path);
    let answers: Vec<String> = (0..4).map(|_| ask(&cache, &q, &said("4"))).collect();
    assert_eq!(answers, ["cached 1", "cached 2", "cached 3", "live 4"]);
    assert_eq!(ask(&cache, &r, &said("-")), "cached r");
}

#[test]
fn a_cache_that_asks_nothing_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cache");
    drop(open(&path));
    assert!(!path.exists());
    ask(&open(&path), &request(&["q"]), &said("1"));
    ask(&open(&path), &request(&["q"]), &said("-"));
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1);
}

#[test]
fn failures_are_asked_again() {
    let dir = tempfile::tempdir().unwrap();
    let q = request(&["q"]);
    let failed = Err(Failure::passing(FailureKind::Server, "broken"));
    // A recording keeps failures, and a cache may be opened on it.
    record(&recorder(dir.path()), "s", &q, &failed);
    let cache = open(dir.path());
    assert_eq!(ask(&cache, &q, &failed), "live server: broken");
    drop(cache);
    let cache = open(dir.path());
    assert_eq!(ask(&cache, &q, &said("better")), "live better");
    drop(cache);
    let cache = open(dir.path());
    assert_eq!(ask(&cache, &q, &said("-")), "cached better");
    assert_eq!(ask(&cache, &q, &said("more")), "live more");
}

#[test]
fn places_left_empty_are_not_filled_twice() {
    let dir = tempfile::tempdir().unwrap();
    let q = request(&["q"]);
    let recorder = recorder(dir.path());
    drop(recorder.begin("s", "m", &q));
    record(&recorder, "s", &q, &said("1"));
    drop(recorder);
    let cache = open(dir.path());
    assert_eq!(ask(&cache, &q, &said("-")), "cached 1");
    assert_eq!(ask(&cache, &q, &said("2")), "live 2");
    drop(cache);
    let cache = open(dir.path());
    let answers: Vec<String> = (0..3).map(|_| ask(&cache, &q, &said("3"))).collect();
    assert_eq!(answers, ["cached 1", "cached 2", "live 3"]);
}

#[test]
fn requests_with_secrets_are_known_again() {
    let dir = tempfile::tempdir().unwrap();
    let env = Env::from_shell([("A_TOKEN".to_owned(), "secret-1".to_owned())]);
    let redactor = Arc::new(Redactor::from_env(&env));
    let q = request(&["say secret-1"]);
    for expected in ["live 1", "cached 1"] {
        let (cache, _) = Cache::open(dir.path(), Arc::clone(&redactor)).unwrap();
        assert_eq!(ask(&cache, &q, &said("1")), expected);
    }
    // Without the variable, the same text is found too.
    assert_eq!(ask(&open(dir.path()), &q, &said("2")), "cached 1");
}
