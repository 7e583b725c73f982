//! How long commands take, as ratios to `/bin/true` and to each other in the same run.
//!
//! `cargo bench --bench commands` prints the table that `docs/performance.md` quotes. Environment:
//! `AEC_BENCH_TASKS="500 5000 20000"` chooses the sizes.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints and stops at the first fault"
)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_aec-bench");

fn main() {
    // `cargo test --benches` runs this too, with other arguments.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    start_up();
    let sizes = std::env::var("AEC_BENCH_TASKS").unwrap_or_else(|_| "500 5000 20000".to_owned());
    task_trees(sizes.split_whitespace().map(|size| size.parse().unwrap()));
}

/// Start-up against the cheapest program there is, interleaved so that both see the same machine.
fn start_up() {
    const ROUNDS: usize = 300;
    let directory = tempfile_dir("start-up");
    run(&directory, &["init"]);
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); 3];
    for _ in 0..ROUNDS {
        times[0].push(time(&mut Command::new("/bin/true")));
        times[1].push(time(&mut program(&directory, &["--version"])));
        times[2].push(time(&mut program(&directory, &["config", "view"])));
    }
    let medians: Vec<f64> = times.iter_mut().map(|times| milliseconds(median(times))).collect();
    println!("start-up, median of {ROUNDS} interleaved runs");
    println!("  /bin/true    {:7.2} ms", medians[0]);
    println!("  --version    {:7.2} ms  (+{:.2} ms, limit +6)", medians[1], medians[1] - medians[0]);
    println!("  config view  {:7.2} ms  (+{:.2} ms, limit +10)", medians[2], medians[2] - medians[0]);
    std::fs::remove_dir_all(directory).unwrap();
}

fn task_trees(sizes: impl Iterator<Item = usize>) {
    const ROUNDS: usize = 5;
    println!("\ntask trees, warm, median of {ROUNDS} runs (limits at 5000: 1000 ms, 100 MB)");
    println!("{:>8}  {:>22}  {:>22}", "tasks", "task list", "task validate --all");
    for size in sizes {
        let directory = tempfile_dir("tree");
        run(&directory, &["init", "--no-example"]);
        aec_test::tree::write_tree(&directory.join("tasks"), size);
        let mut cells = Vec::new();
        for arguments in [["--json", "task", "list"].as_slice(), &["--json", "task", "validate", "--all"]] {
            run(&directory, arguments);
            let mut times: Vec<Duration> =
                (0..ROUNDS).map(|_| time(&mut program(&directory, arguments))).collect();
            let memory = peak_memory(&directory, arguments);
            cells.push(format!("{:8.1} ms {memory:6.1} MB", milliseconds(median(&mut times))));
        }
        println!("{size:>8}  {:>22}  {:>22}", cells[0], cells[1]);
        std::fs::remove_dir_all(directory).unwrap();
    }
}

fn tempfile_dir(name: &str) -> std::path::PathBuf {
    let directory = std::env::temp_dir().join(format!("aec-bench-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

fn program(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).current_dir(directory).env("HOME", directory);
    command
}

fn run(directory: &Path, arguments: &[&str]) {
    let status = program(directory, arguments).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(status.success(), "{arguments:?}: {status}");
}

fn time(command: &mut Command) -> Duration {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    command.status().unwrap();
    started.elapsed()
}

/// What the program itself reports under `--verbose`, in MB.
fn peak_memory(directory: &Path, arguments: &[&str]) -> f64 {
    let output = program(directory, arguments).arg("--verbose").output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let number = log.split("peak_memory=\"").nth(1).and_then(|rest| rest.split(' ').next());
    number
        .and_then(|kilobytes| kilobytes.parse::<f64>().ok())
        .map_or(f64::NAN, |kilobytes| kilobytes / 1024.0)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
