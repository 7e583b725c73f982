//! What rooms and verdicts cost, against bubblewrap and a cold interpreter in the same run.
//!
//! `cargo bench --bench judge` prints the figures that `docs/performance.md` quotes.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints and stops at the first fault"
)]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use aec_sandbox::{ExecSpec, Limits, Room, RoomSpec, Sandbox as _};

fn main() {
    // `cargo test --benches` runs this too, with other arguments.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    aec_sandbox::use_shim(env!("CARGO_BIN_EXE_aec-bench").into());
    rooms();
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
            "bwrap --unshare-all around `true`:       {bwrap:.2} ms  (ratio {:.2}, limit 1.5)",
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

/// The same isolation by the usual tool: system read-only, private /tmp, /proc and /dev, no network.
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
