//! How long commands take, as ratios to `/bin/true` and to each other in the same run.
//!
//! `cargo bench --bench commands` prints the table that `docs/performance.md` quotes. Environment:
//! `AEC_BENCH_TASKS="500 5000 20000"` chooses the sizes.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints and stops at the first fault"
)]

use std::process::Command;
use std::time::Duration;

use aec_xtest::bench::{Place, is_asked_for, median, milliseconds, time};

const PROGRAM: &str = env!("CARGO_BIN_EXE_aec-bench");

fn main() {
    if !is_asked_for() {
        return;
    }
    start_up();
    let sizes = std::env::var("AEC_BENCH_TASKS").unwrap_or_else(|_| "500 5000 20000".to_owned());
    task_trees(sizes.split_whitespace().map(|size| size.parse().unwrap()));
}

/// Start-up against the cheapest program, interleaved so that both run under the same conditions.
fn start_up() {
    const ROUNDS: usize = 300;
    let place = Place::new(PROGRAM, "start-up");
    place.run("init");
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); 4];
    for _ in 0..ROUNDS {
        times[0].push(time(&mut Command::new("/bin/true")));
        for (slot, line) in [(1, "--version"), (2, "config view"), (3, "generate list-templates")] {
            times[slot].push(time(&mut place.command(line)));
        }
    }
    let medians: Vec<f64> = times.iter_mut().map(|times| milliseconds(median(times))).collect();
    println!("start-up, median of {ROUNDS} interleaved runs");
    println!("  /bin/true                {:7.2} ms", medians[0]);
    println!(
        "  --version                {:7.2} ms  (+{:.2} ms, limit +6)",
        medians[1],
        medians[1] - medians[0]
    );
    println!(
        "  config view              {:7.2} ms  (+{:.2} ms, limit +10)",
        medians[2],
        medians[2] - medians[0]
    );
    println!("  generate list-templates  {:7.2} ms  (limit 30)", medians[3]);
}

fn task_trees(sizes: impl Iterator<Item = usize>) {
    const ROUNDS: usize = 5;
    println!("\ntask trees, warm, median of {ROUNDS} runs (limits at 5000: 1000 ms, 100 MB)");
    println!("{:>8}  {:>22}  {:>22}", "tasks", "task list", "task validate --all");
    for size in sizes {
        let place = Place::new(PROGRAM, "tree");
        place.run("init --no-example");
        aec_xtest::tree::write_tree(&place.path().join("tasks"), size);
        let cell = |line: &str| {
            let time = milliseconds(place.median(ROUNDS, |_| line.to_owned()));
            format!("{time:8.1} ms {:6.1} MB", place.peak_memory(line))
        };
        println!("{size:>8}  {:>22}  {:>22}", cell("--json task list"), cell("--json task validate --all"));
    }
}
