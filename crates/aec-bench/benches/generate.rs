//! How long generation takes, with the real binary and the whole library: `cargo bench --bench generate`. The figures
//! of `docs/performance.md` come from here. `AEC_BENCH_INSTANCES="1000 10000"` chooses the sizes.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints and stops at the first fault"
)]

use std::process::Command;
use std::time::Duration;

use aec_xtest::bench::{Place, is_asked_for, median, milliseconds, time as time_of};

const ROUNDS: usize = 3;

fn main() {
    if !is_asked_for() {
        return;
    }
    let sizes = std::env::var("AEC_BENCH_INSTANCES").unwrap_or_else(|_| "1000 10000".to_owned());
    println!("generate suite, median of {ROUNDS} runs (limits at 1000: 5 s, 150 MB)");
    println!("{:>10}  {:>10}  {:>14}  {:>10}  {:>10}", "instances", "time", "each", "memory", "cp -r");
    for size in sizes.split_whitespace().map(|size| size.parse::<u32>().unwrap()) {
        measure(size);
    }
}

fn measure(size: u32) {
    let place = Place::new(env!("CARGO_BIN_EXE_aec-bench"), "generate");
    place.run("init --no-example");
    let suite = format!(
        "name = \"large\"\nseed = 1\n[coverage]\ndifficulties = {{ easy = 0.34, medium = 0.33, hard = 0.33 }}\n\
         [visibility]\nmix = {{ all_given = 0.8, partial = 0.2 }}\n[tool_mode]\nmix = {{ with_tool = 0.5, no_tool = 0.5 }}\n\
         [instances]\nper_task = {size}\ntotal_max = {size}\n"
    );
    std::fs::write(place.path().join("suite.toml"), suite).unwrap();
    // Nothing is removed between the runs: file systems are slow to reuse what was just freed.
    let line = |round: usize| format!("--json generate suite --output out-{round}");
    let memory = place.peak_memory(&line(0));
    let mut times: Vec<Duration> = (1..=ROUNDS).map(|round| place.run(&line(round))).collect();
    let time = median(&mut times);
    let mut copy = Command::new("cp");
    let copy = time_of(copy.args(["-r", "out-0", "copy"]).current_dir(place.path()));
    let each = milliseconds(time) / f64::from(size);
    println!(
        "{size:>10}  {:>8.2} s  {each:>11.2} ms  {memory:>7.1} MB  {:>8.2} s",
        time.as_secs_f64(),
        copy.as_secs_f64()
    );
}
