//! Thousands of concurrent calls.

use std::collections::BTreeSet;
use std::sync::Mutex;

use aec_model::cassette::Call;

use crate::cassette::{open, recorder, reply, request, text};

const THREADS: usize = 16;
const CALLS: usize = 100;

#[test]
fn every_answer_is_given_exactly_once() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = recorder(dir.path());
    std::thread::scope(|threads| {
        for thread in 0..THREADS {
            let recorder = &recorder;
            threads.spawn(move || {
                for number in 0..CALLS {
                    // One scope per thread, and one that all threads share.
                    for scope in [format!("own-{thread}"), "shared".to_owned()] {
                        let request = request(&["same", "for", "all"]);
                        let ticket = recorder.begin(&scope, "m", &request);
                        let outcome = Ok(reply(&format!("{thread}/{number}")));
                        let call = Call { request: &request, endpoint: "", events: &[], outcome: &outcome };
                        recorder.record(ticket, &call).unwrap();
                    }
                }
            });
        }
    });
    let (player, problems) = open(dir.path());
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(player.len(), 2 * THREADS * CALLS);
    let shared = Mutex::new(Vec::new());
    std::thread::scope(|threads| {
        for thread in 0..THREADS {
            let (player, shared) = (&player, &shared);
            threads.spawn(move || {
                for number in 0..CALLS {
                    let request = request(&["same", "for", "all"]);
                    let own = player.play(&format!("own-{thread}"), "m", &request).unwrap();
                    assert_eq!(text(&own), format!("{thread}/{number}"));
                    let played = player.play("shared", "m", &request).unwrap();
                    shared.lock().unwrap().push(text(&played));
                }
            });
        }
    });
    let shared = shared.into_inner().unwrap();
    assert_eq!(shared.len(), THREADS * CALLS);
    assert_eq!(shared.into_iter().collect::<BTreeSet<_>>().len(), THREADS * CALLS);
}

#[test]
fn recorders_never_share_a_file() {
    let dir = tempfile::tempdir().unwrap();
    std::thread::scope(|threads| {
        for thread in 0..THREADS {
            let path = dir.path();
            threads.spawn(move || {
                let recorder = recorder(path);
                let outcome = Ok(reply(&thread.to_string()));
                crate::cassette::record(&recorder, &thread.to_string(), &request(&["q"]), &outcome);
            });
        }
    });
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), THREADS);
    let (player, problems) = open(dir.path());
    assert!(problems.is_empty(), "{problems:?}");
    for thread in 0..THREADS {
        let played = player.play(&thread.to_string(), "m", &request(&["q"])).unwrap();
        assert_eq!(text(&played), thread.to_string());
    }
}
