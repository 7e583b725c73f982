//! Measures the native scorer on an answer of ten fields; the limit is 20 microseconds.
//!
//! `cargo bench -p aec-judge --bench scorer` prints the time.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints and stops at the first fault"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use aec_judge::scorer::{Answers, score};

const ANSWERS: &str = r#"{"version": 1, "output": "output.json", "fields": {
    "moment": {"type": "number", "value": 12.5, "unit": "kN.m", "rel_tol": 0.01},
    "shear": {"type": "number", "value": 33.2, "unit": "kN", "rel_tol": 0.01},
    "stress": {"type": "number", "value": 210, "unit": "MPa", "sig": 3},
    "deflection": {"type": "number", "value": 8.4, "unit": "mm", "abs_tol": 0.1},
    "utilisation": {"type": "number", "value": 76, "unit": "%", "rel_tol": 0.02},
    "bolts": {"type": "integer", "value": 6},
    "compliant": {"type": "boolean", "value": true},
    "grade": {"type": "choice", "value": "C30/37", "options": ["C25/30", "C30/37"]},
    "standard": {"type": "text", "accept": ["AS 3600"]},
    "loads": {"type": "list", "items": [1, 2, 3], "item": {"type": "number", "unit": "kN", "rel_tol": 0.01}}
}}"#;

const SUBMISSION: &str = r#"{
  "moment": 12.5, "shear": "33.2 kN", "stress": {"value": 210, "unit": "N/mm2"}, "deflection": 8.4,
  "utilisation": "76%", "bolts": 6, "compliant": true, "grade": "C30/37", "standard": "AS 3600", "loads": [1, 2, 3]
}"#;

fn main() {
    // `cargo test --benches` runs this too, without this argument.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let answers = Answers::parse(ANSWERS.as_bytes()).unwrap();
    let found = score(&answers, SUBMISSION.as_bytes());
    assert!(found.reward > 0.999_999_5, "{}", found.to_details_json());
    let scoring = median(|| drop(black_box(score(&answers, black_box(SUBMISSION.as_bytes())))));
    let writing = median(|| drop(black_box(found.to_details_json())));
    let parsing = median(|| drop(black_box(Answers::parse(black_box(ANSWERS.as_bytes())))));
    println!("ten fields, {} bytes, median of 1000 rounds of 10", SUBMISSION.len());
    println!("  score           {:6.2} µs  (limit 20)", microseconds(scoring));
    println!("  details.json    {:6.2} µs", microseconds(writing));
    println!("  parse answers   {:6.2} µs", microseconds(parsing));
}

/// The time of one run, measured in rounds of ten to reduce the cost of reading the clock.
fn median(mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..1000)
        .map(|_| {
            let started = Instant::now();
            for _ in 0..10 {
                run();
            }
            started.elapsed() / 10
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
