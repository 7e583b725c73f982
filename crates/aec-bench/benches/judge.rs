//! The cost of rooms and verdicts, against bubblewrap and a cold interpreter in the same run.
//!
//! `cargo bench --bench judge` prints the figures that `docs/performance.md` quotes.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark prints and stops at the first fault"
)]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use aec_judge::golden::submission_with_output;
use aec_judge::judge::{Isolation, Judge, Surface};
use aec_judge::pool::Pool;
use aec_judge::submission::Submission;
use aec_sandbox::{ExecSpec, Limits, Room, RoomSpec, Sandbox as _};

fn main() {
    // `cargo test --benches` runs this too, with other arguments.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    aec_sandbox::use_shim(env!("CARGO_BIN_EXE_aec-bench").into());
    rooms();
    verifications();
}

fn spec() -> RoomSpec {
    RoomSpec {
        writable: vec!["/workspace".into(), "/logs".into()],
        sealed: vec!["/tests".into()],
        show: Vec::new(),
        programs: Vec::new(),
        limits: Limits { cpus: 2, memory_mb: 4096, storage_mb: 10240, pids: 256 },
        network: false,
    }
}

/// Opening and closing a room around `true`, interleaved with bubblewrap doing the same.
fn rooms() {
    const ROUNDS: usize = 300;
    let mut room_times = Vec::new();
    let mut bwrap_times = Vec::new();
    let has_bwrap = bwrap().status().is_ok_and(|status| status.success());
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let mut room = Room::open(&spec()).unwrap();
        room.exec(&ExecSpec::new(["true"]), &mut |_, _| {}).unwrap();
        drop(room);
        room_times.push(started.elapsed());
        if has_bwrap {
            let started = Instant::now();
            bwrap().status().unwrap();
            bwrap_times.push(started.elapsed());
        }
    }
    let room = milliseconds(median(&mut room_times));
    println!("a room around `true`, median of {ROUNDS}: {room:.2} ms");
    if has_bwrap {
        let bwrap = milliseconds(median(&mut bwrap_times));
        println!(
            "bwrap --unshare-all around `true`:       {bwrap:.2} ms  (ratio {:.2}, limit 1.3)",
            room / bwrap
        );
    } else {
        println!("bwrap is not installed; no ratio");
    }
    let mut room = Room::open(&spec()).unwrap();
    let mut exec_times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            room.exec(&ExecSpec::new(["true"]), &mut |_, _| {}).unwrap();
            started.elapsed()
        })
        .collect();
    println!("`true` in an open room:                  {:.2} ms", milliseconds(median(&mut exec_times)));
    let mut wipe_times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            drop(room.wipe().unwrap());
            started.elapsed()
        })
        .collect();
    println!("wiping a room:                           {:.2} ms", milliseconds(median(&mut wipe_times)));
}

/// A verifier of the usual kind, cold and warm, on all cores.
fn verifications() {
    const VERIFY: &str = "import argparse, json, math, pathlib, re\n\
        answer = json.loads(pathlib.Path('/workspace/output.json').read_text())\n\
        met = [math.isclose(answer.get(k, math.nan), v, rel_tol=0.01) for k, v in {'a': 1.5, 'b': 2.5}.items()]\n\
        pathlib.Path('/logs/verifier/reward.json').write_text(json.dumps({'reward': sum(met) / len(met)}))\n";
    let directory = std::env::temp_dir().join(format!("aec-bench-judge-{}", std::process::id()));
    aec_xtest::tree::write_task(&directory.join("task"), aec_xtest::tree::TASK_TOML);
    std::fs::write(directory.join("task/tests/verify.py"), VERIFY).unwrap();
    let id = aec_task::id::TaskId::parse("civil/bench").unwrap();
    let task = aec_task::task::Task::load(id, &directory.join("task")).unwrap().task;
    let store = aec_base::content::ContentStore::new(directory.join("store"));
    let submission = submission_with_output(&task, b"{\"a\": 1.5, \"b\": 2.5}", &store).unwrap();
    let python = aec_sandbox::python::find(std::env::var_os("PATH").as_deref());
    let cold = Judge {
        isolation: Isolation::Room,
        python,
        surface: Surface::default(),
        pool: None,
        native: true,
        containers: None,
    };
    let warm = Judge { pool: Some(std::sync::Arc::new(Pool::default())), ..cold.clone() };
    let (cold_rate, cold_p99) = rate(&cold, &task, &submission, 200);
    let (warm_rate, warm_p99) = rate(&warm, &task, &submission, 2000);
    println!("\nverify.py in its own room, 2 at a time");
    println!("  cold: {cold_rate:7.1} per second, p99 {cold_p99:6.1} ms");
    println!(
        "  warm: {warm_rate:7.1} per second, p99 {warm_p99:6.1} ms  (ratio {:.1}, limit 5)",
        warm_rate / cold_rate
    );
    let before = resident_memory();
    rate(&warm, &task, &submission, 10_000);
    println!(
        "  memory of this process: {before:.1} MB before 10,000 verifications, {:.1} MB after",
        resident_memory()
    );
    std::fs::remove_dir_all(directory).unwrap();
}

/// Verifications per second on two threads, and the 99th percentile in milliseconds.
fn rate(judge: &Judge, task: &aec_task::task::Task, submission: &Submission, count: usize) -> (f64, f64) {
    let started = Instant::now();
    let mut times: Vec<Duration> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    (0..count / 2)
                        .map(|_| {
                            let started = Instant::now();
                            let verdict = judge.verdict(task, submission);
                            assert_eq!(verdict.reward, Some(1.0), "{verdict:?}");
                            started.elapsed()
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let seconds = started.elapsed().as_secs_f64();
    times.sort_unstable();
    (times.len() as f64 / seconds, milliseconds(times[times.len() * 99 / 100]))
}

/// Resident memory in MB, as the kernel reports it.
fn resident_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
}

/// The same isolation with the usual tool: system read-only, private /tmp, /proc and /dev, no network.
fn bwrap() -> Command {
    let mut command = Command::new("bwrap");
    command
        .args(["--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr"])
        .args([
            "--symlink",
            "usr/bin",
            "/bin",
            "--symlink",
            "usr/lib",
            "/lib",
            "--symlink",
            "usr/lib64",
            "/lib64",
        ])
        .args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/workspace", "true"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
