//! The cost of running: direct trials against a model server on the same machine, tool loops against bare rooms, and
//! the memory of a large plan. The real binary, real files, real rooms.
//!
//! `cargo bench --bench run` prints the figures that `docs/performance.md` quotes. Environment: `AEC_BENCH_TRIALS=4000`,
//! `AEC_BENCH_PLANNED=100000`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints and stops at the first fault"
)]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aec_sandbox::{ExecSpec, Limits, Room, RoomSpec, Sandbox as _};
use aec_xtest::bench::{Place, is_asked_for};

/// Number of rooms that are open at the same time, both for trials and for bare rooms.
const AT_ONCE: usize = 8;

const PROGRAM: &str = env!("CARGO_BIN_EXE_aec-bench");

fn main() {
    if !is_asked_for() {
        return;
    }
    aec_sandbox::use_shim(PROGRAM.into());
    let number = |name: &str, usual: usize| {
        std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
    };
    // Nothing is removed before the end: for minutes after many files were removed, ext4 searches for free inodes.
    let _places = [
        direct(number("AEC_BENCH_TRIALS", 4000)),
        tool_loop(),
        large_plan(number("AEC_BENCH_PLANNED", 100_000)),
    ];
}

/// A model server in a separate process.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(place: &Place, line: &str) -> Self {
        let mut child = place.command(line).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { child, url: url.trim().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A project with twenty generated tasks whose verifier has a native equivalent.
fn project(name: &str) -> Place {
    let place = Place::new(PROGRAM, name);
    place.run("init --no-example");
    place.run("generate task structural/bolt-group-loading --instances 20 --seed 7");
    std::fs::create_dir_all(place.path().join("configs")).unwrap();
    place
}

fn endpoints(place: &Place, url: &str) {
    let text = format!(
        "[[endpoint]]\nendpoint_id = \"bench\"\nmodel = \"bench\"\nurl = \"{url}/v1\"\nkey = \"BENCH_KEY\"\n"
    );
    std::fs::write(place.path().join("configs/endpoints.toml"), text).unwrap();
}

/// Runs a command. Returns its time, the processor time of it and its children, and its peak memory.
fn measure(command: &mut Command) -> (Duration, Duration, f64) {
    let started = Instant::now();
    let mut child = command.env("BENCH_KEY", "key-of-the-benchmark").spawn().unwrap();
    let mut peak = 0.0_f64;
    let mut cpu = Duration::ZERO;
    let status = loop {
        // Measured while the process lives, because the kernel forgets a process that has been waited for.
        if let Some((now, memory)) = usage(child.id()) {
            cpu = cpu.max(now);
            peak = peak.max(memory);
        }
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    assert!(matches!(status.code(), Some(0 | 1)), "{command:?}: {status}");
    (started.elapsed(), cpu, peak)
}

/// Processor time, and peak memory in MB, of a process without its children.
fn usage(pid: u32) -> Option<(Duration, f64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some((Duration::from_millis(ticks * 10), kilobytes / 1024.0))
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn direct(trials: usize) -> Place {
    const ROUNDS: usize = 3;
    let place = project("direct");
    let server = Server::start(&place, "dev serve-model --quiet");
    endpoints(&place, &server.url);
    println!("direct trials: one call, native scorer, durable record, all files of the layout");
    for round in 0..ROUNDS {
        let line = format!(
            "run structural --model bench --harness direct -n {} -e round-{round} --concurrency 64 --quiet",
            trials / 20
        );
        let (time, cpu, peak) = measure(&mut place.command(&line));
        let rate = trials as f64 / time.as_secs_f64();
        let each = cpu.as_secs_f64() * 1000.0 / trials as f64;
        println!(
            "  {trials} trials in {:.2} s: {rate:.0}/s (limit 400, ratio {:.2}), {each:.2} ms CPU each (limit 2), peak {peak:.0} MB",
            time.as_secs_f64(),
            rate / 400.0,
        );
    }
    place
}

/// Three turns with tools in a real room, against one room and three commands alone.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn tool_loop() -> Place {
    const TRIALS: usize = 400;
    let place = project("tool-loop");
    let script = "replies:\n\
        - tool_calls: [{name: bash, arguments: {command: 'true'}}]\n\
        - tool_calls: [{name: bash, arguments: {command: 'true'}}]\n\
        - tool_calls: [{name: bash, arguments: {command: 'true'}}]\n\
        - text: done\n";
    std::fs::write(place.path().join("replies.yaml"), script).unwrap();
    let server = Server::start(&place, "dev serve-model --script replies.yaml --quiet");
    endpoints(&place, &server.url);
    println!(
        "\ntool loops: three tool turns in a room, judged and recorded ({TRIALS} trials, {AT_ONCE} at once)"
    );
    for round in 0..3 {
        let bare = bare_rate(TRIALS);
        let line = format!(
            "run structural --model bench --harness tool_loop -n {} -e loop-{round} --concurrency {AT_ONCE} --quiet",
            TRIALS / 20
        );
        let (time, _, _) = measure(&mut place.command(&line));
        let rate = TRIALS as f64 / time.as_secs_f64();
        println!(
            "  {rate:.1}/s; one room and three commands alone {bare:.1}/s; ratio {:.2} (limit 0.50)",
            rate / bare
        );
    }
    place
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn bare_rate(trials: usize) -> f64 {
    let python = aec_sandbox::python::find(std::env::var_os("PATH").as_deref());
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                for _ in 0..trials / AT_ONCE {
                    // The same room that agents get, with an interpreter in it.
                    let mut spec = RoomSpec {
                        writable: vec!["/workspace".into(), "/logs".into()],
                        sealed: Vec::new(),
                        show: Vec::new(),
                        programs: Vec::new(),
                        limits: Limits { cpus: 2, memory_mb: 4096, storage_mb: 10240, pids: 512 },
                        network: false,
                    };
                    if let Some(python) = &python {
                        spec.offer_python(python);
                    }
                    let mut room = Room::open(&spec).unwrap();
                    for _ in 0..3 {
                        room.exec(&ExecSpec::new(["bash", "-c", "true"]), &mut |_, _| {}).unwrap();
                    }
                    room.freeze().unwrap();
                }
            });
        }
    });
    trials as f64 / started.elapsed().as_secs_f64()
}

/// A plan of many trials, of which a part is carried out.
fn large_plan(planned: usize) -> Place {
    let place = project("large");
    println!("\na plan of {planned} trials (limit 300 MB)");
    let plan = format!("run structural --harness nop -n {} -e large --quiet", planned / 20);
    let (time, _, peak) = measure(&mut place.command(&format!("{plan} --dry-run")));
    println!("  --dry-run: {:.2} s, peak {peak:.0} MB", time.as_secs_f64());
    let (time, _, peak) = measure(&mut place.command(&format!("{plan} --max-time 20")));
    println!("  20 s of it: {:.2} s, peak {peak:.0} MB", time.as_secs_f64());
    let (time, _, peak) = measure(&mut place.command("run --resume large --quiet --max-time 5"));
    println!("  resumed for 5 s: {:.2} s, peak {peak:.0} MB", time.as_secs_f64());
    place
}
