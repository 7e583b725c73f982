//! The cost of the long-document harnesses: a turn of a session against bare Python, planning of many parts, and the
//! memory of many sessions at once. The real binary, real rooms, real Python.
//!
//! `cargo bench --bench rlm` prints the figures that `docs/performance.md` quotes. Environment: `AEC_BENCH_SESSIONS=200`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints and stops at the first fault"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use aec_rlm::plan::{CallShape, Plan, Request};
use aec_rlm::split::Form;
use aec_task::long_documents::settings::PlannerSettings;
use aec_xtest::bench::{Place, is_asked_for, median, milliseconds};

const PROGRAM: &str = env!("CARGO_BIN_EXE_aec-bench");

/// Turns of a long session, fewer than the usual limit.
const TURNS: u32 = 90;

fn main() {
    if !is_asked_for() {
        return;
    }
    let sessions =
        std::env::var("AEC_BENCH_SESSIONS").ok().and_then(|value| value.parse().ok()).unwrap_or(200);
    turns();
    planning();
    memory(sessions);
}

/// A project with one task, and a model that sends the same cell in every turn and then ends the work.
fn project(name: &str, turns: u32, cell: &str) -> Place {
    let place = Place::new(PROGRAM, name);
    place.run("init --no-example");
    place.run("generate task structural/bolt-group-loading --instances 1 --seed 7");
    let reply = |code: &str| {
        let call = serde_json::json!({"name": "repl", "arguments": {"code": code}});
        serde_json::json!({"tool_calls": [call]})
    };
    let mut replies = vec![reply(cell); turns.saturating_sub(1) as usize];
    replies.push(reply("FINAL()"));
    let script = serde_json::json!({ "replies": replies });
    std::fs::write(place.path().join("replies.yaml"), script.to_string()).unwrap();
    place
}

fn line(experiment: &str, repetitions: usize) -> String {
    format!(
        "run structural --harness rlm --model offline/scripted:replies.yaml --repetitions {repetitions} -e {experiment} \
         --concurrency {repetitions} --quiet"
    )
}

/// The same cells, sent one by one to a Python process that does nothing else.
fn bare_python(cells: u32, cell: &str) -> Duration {
    const LOOP: &str = "import sys\nspace = {}\nfor line in sys.stdin:\n    exec(line, space)\n    print('done', flush=True)\n";
    let python = aec_sandbox::python::find(std::env::var_os("PATH").as_deref()).unwrap();
    let mut child = Command::new(python.path)
        .args(["-c", LOOP])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut done = String::new();
    let mut run = || {
        writeln!(input, "{cell}").unwrap();
        output.read_line(&mut done).unwrap();
    };
    run();
    let started = Instant::now();
    (0..cells).for_each(|_| run());
    let time = started.elapsed() / cells;
    child.kill().ok();
    child.wait().ok();
    time
}

fn turns() {
    const CELL: &str = "x = sum(i * i for i in range(1000))";
    const ROUNDS: usize = 7;
    let (short, long) = (project("short", 1, CELL), project("long", TURNS + 1, CELL));
    let (mut bare, mut own) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let begun = long.run(&line(&format!("long-{round}"), 1));
        let ended = short.run(&line(&format!("short-{round}"), 1));
        own.push(begun.saturating_sub(ended) / TURNS);
        bare.push(bare_python(TURNS, CELL));
    }
    let (own, bare) = (milliseconds(median(&mut own)), milliseconds(median(&mut bare)));
    println!(
        "a turn of rlm: one call of an offline model, one cell, all events written; {TURNS} turns, median of {ROUNDS}"
    );
    println!("  rlm          {own:7.3} ms");
    println!("  bare Python  {bare:7.3} ms");
    println!("  overhead     {:7.3} ms  (limit 5)", own - bare);
}

fn planning() {
    const ROUNDS: usize = 9;
    let text = "A sentence with some words, and a few more.\n\n".repeat(190_000);
    let planner =
        PlannerSettings { context_window_chars: 1_000, accuracy_target: 0.01, ..PlannerSettings::default() };
    let call = CallShape::for_window(1_000);
    let request = Request { section: "s", source: "a.md", text: &text, form: Form::Text };
    let mut parts = 0;
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            let plan = Plan::make(&[request], &planner, &call).unwrap();
            parts = plan.trees[0].leaves.len();
            started.elapsed()
        })
        .collect();
    println!(
        "planning {parts} parts of {} MB: {:.1} ms, median of {ROUNDS} (limit 50 for 10,000)",
        text.len() >> 20,
        milliseconds(median(&mut times))
    );
}

fn memory(sessions: usize) {
    let place = project("memory", 2, "import time\ntime.sleep(45)");
    let mut child = place.command(&line("memory", sessions)).spawn().unwrap();
    let (mut most, mut at_once, mut python) = (0, 0, 0);
    while child.try_wait().unwrap().is_none() {
        let (own, running, others) = family(child.id());
        if own > most {
            (most, python) = (own, others);
        }
        at_once = at_once.max(running);
        std::thread::sleep(Duration::from_millis(500));
    }
    println!(
        "{at_once} sessions of rlm at once ({sessions} trials): {} MB beside Python (limit 1000), {} MB of Python",
        most >> 10,
        python >> 10
    );
}

/// Memory in KB of a process and its descendants without Python processes, then the number and memory of the Python
/// processes. Shared pages are counted once.
fn family(root: u32) -> (u64, usize, u64) {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let Some((head, tail)) = stat.rsplit_once(')') else { continue };
        let parent = tail.split_whitespace().nth(1).and_then(|field| field.parse::<u32>().ok());
        parents.push((pid, parent.unwrap_or(0), head.contains("(python")));
    }
    let (mut own, mut count, mut python) = (0, 0, 0);
    let mut waiting = vec![root];
    while let Some(pid) = waiting.pop() {
        waiting.extend(parents.iter().filter(|(_, parent, _)| *parent == pid).map(|(pid, ..)| *pid));
        let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
        let kilobytes: u64 =
            pss.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or_default();
        if parents.iter().any(|(other, _, is_python)| *other == pid && *is_python) {
            python += kilobytes;
            count += 1;
        } else {
            own += kilobytes;
        }
    }
    (own, count, python)
}
