//! A recording process that is killed at any moment loses no call that it reported as recorded.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use aec_base::problem::Severity;
use aec_model::message::{Message, Request, Role};

use crate::cassette::{open, record, recorder, reply, request, text};

const DIRECTORY: &str = "AEC_CASSETTE_PROBE";
const SCOPE: &str = "AEC_CASSETTE_PROBE_SCOPE";

fn kills() -> u32 {
    if aec_xtest::full() { 200 } else { 20 }
}

/// How long the process continues after some calls: irregular times (fractions of the golden ratio).
fn moment(round: u32) -> Duration {
    Duration::from_millis(4).mul_f64((f64::from(round) * 0.618_033_988_75).fract())
}

fn answer(number: usize) -> String {
    format!("answer {number} {}", "padding ".repeat(number * 977 % 4000))
}

fn next(conversation: &mut Request, number: usize) {
    if number % 8 == 7 {
        conversation.messages.clear();
    }
    conversation.messages.push(reply(&answer(number)).into_message());
    conversation.messages.push(Message::text(Role::User, format!("and {number}?")));
}

#[test]
fn what_was_acknowledged_is_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..kills() {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "cassette::kill::probe", "--nocapture", "--include-ignored"])
            .env(DIRECTORY, dir.path())
            .env(SCOPE, round.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut done =
            lines.by_ref().filter(|line| line.starts_with("done ")).take(round as usize * 7 % 13 + 1).count();
        std::thread::sleep(moment(round));
        child.kill().unwrap();
        done += lines.filter(|line| line.starts_with("done ")).count();
        child.wait().unwrap();
        acknowledged.push(done);
    }
    let (player, problems) = open(dir.path());
    assert!(problems.iter().all(|problem| problem.severity == Severity::Note), "{problems:?}");
    for (round, count) in acknowledged.iter().enumerate() {
        let mut conversation = request(&["begin"]);
        for number in 0..*count {
            let played = player.play(&round.to_string(), "m", &conversation).unwrap();
            assert_eq!(text(&played), answer(number), "round {round}");
            next(&mut conversation, number);
        }
    }
    assert!(acknowledged.iter().all(|count| *count > 0));
    println!("{} calls in {} rounds, {} torn files", player.len(), kills(), problems.len());
}

/// The child process that is killed above.
#[test]
#[ignore = "the test above starts it"]
fn probe() {
    let directory = std::env::var_os(DIRECTORY).unwrap();
    let scope = std::env::var(SCOPE).unwrap();
    let recorder = recorder(std::path::Path::new(&directory));
    let mut conversation = request(&["begin"]);
    for number in 0..100_000 {
        record(&recorder, &scope, &conversation, &Ok(reply(&answer(number))));
        let mut stdout = std::io::stdout().lock();
        // The line may follow output of the test harness.
        writeln!(stdout, "\ndone {number}").unwrap();
        stdout.flush().unwrap();
        next(&mut conversation, number);
    }
}
