//! How long reports of a big ledger take, with the real binary: `cargo bench --bench report`. The figures of
//! `docs/performance.md` come from here.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot measure stops and says what it saw"
)]

use std::time::Duration;

use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_judge::verdict::Outcome;
use aec_ledger::example;
use aec_ledger::layout::Ledger;
use aec_ledger::record::{Artefact, TrialRecord};
use aec_xtest::bench::{Place, is_asked_for, milliseconds};
use serde_json::json;

/// The most that `report leaderboard` and `evaluate` may take at 100,000 records.
const TABLES: Duration = Duration::from_millis(300);
/// The most memory that they may take, in MB.
const MEMORY: f64 = 200.0;
/// The most that the HTML report of 10,000 trials may take.
const PAGE: Duration = Duration::from_secs(3);

const ROUNDS: usize = 9;

fn main() {
    if !is_asked_for() {
        return;
    }
    tables(100_000);
    page(10_000);
}

fn tables(size: usize) {
    let place = Place::new(env!("CARGO_BIN_EXE_aec-bench"), "report-tables");
    place.run("init --no-example");
    let ledger = Ledger::new(place.path().join("artefacts/ledger"));
    write(&ledger, size, None);
    std::thread::sleep(Duration::from_millis(1100));
    place.run("ledger reindex");
    println!("{size} records, 1,000 tasks, 10 agents (limits {TABLES:?}, {MEMORY} MB)");
    for command in [
        "report leaderboard --json",
        "evaluate -e experiment --json",
        "evaluate -e experiment --json --bootstrap",
        "report summary --json",
    ] {
        let limit = (!command.contains("bootstrap")).then_some(TABLES);
        line(command, place.median(ROUNDS, |_| command.to_owned()), limit);
        println!("  {:<44} {:9.1} MB", "its memory", place.peak_memory(command));
    }
}

fn page(size: usize) {
    let place = Place::new(env!("CARGO_BIN_EXE_aec-bench"), "report-page");
    place.run("init --no-example");
    let ledger = Ledger::new(place.path().join("artefacts/ledger"));
    write(&ledger, size, Some(12));
    std::thread::sleep(Duration::from_millis(1100));
    place.run("ledger reindex");
    println!("{size} trials with traces (limit {PAGE:?}, 5 MB)");
    let command = "evaluate -e experiment --json --report r.html --force";
    line("HTML report", place.median(3, |_| command.to_owned()), Some(PAGE));
    let bytes = place.path().join("r.html").metadata().unwrap().len();
    println!("  {:<44} {:9.2} MB", "its size", f64::from(u32::try_from(bytes).unwrap()) / 1e6);
    println!("  {:<44} {:9.1} MB", "its memory", place.peak_memory(command));
    for command in [
        "report traces -e experiment --json",
        "report behavioral -e experiment --json",
        "report fields -e experiment --json",
    ] {
        line(command, place.median(3, |_| command.to_owned()), None);
    }
}

fn line(what: &str, time: Duration, limit: Option<Duration>) {
    let ratio = limit.map(|limit| format!("  {:.2} of the limit", time.as_secs_f64() / limit.as_secs_f64()));
    println!("  {what:<44} {:9.1} ms{}", milliseconds(time), ratio.unwrap_or_default());
}

/// Writes records like those of a run, without syncing each; if `turns` is given, each has a trace of that many turns.
fn write(ledger: &Ledger, size: usize, turns: Option<usize>) {
    let directory = ledger.experiment(&Name::parse("experiment").unwrap());
    std::fs::create_dir_all(directory.path()).unwrap();
    for number in 0..size {
        let mut record = record(number);
        if let Some(turns) = turns {
            let text = trajectory(number, turns);
            let digest = ledger.contents().put(text.as_bytes()).unwrap();
            let path = "trajectory.jsonl".to_owned();
            record.timing.artefacts.push(Artefact { path, digest, size: text.len() as u64 });
        }
        std::fs::write(directory.record(&record.trial_id, 1), record.to_json().unwrap()).unwrap();
    }
}

fn record(number: usize) -> TrialRecord {
    let mut record = example::record("experiment", &format!("trial-{number:07}"), 1);
    let (agent, task) = (format!("agent-{}", number % 10), number / 10 % 1000);
    record.agent.digest = Digest::of(agent.as_bytes());
    record.agent.name = Name::parse(&agent).unwrap();
    record.task.task_id = format!("structural/beam/instance-{task:04}");
    record.task.task_revision = Digest::of(record.task.task_id.as_bytes());
    record.task.family = format!("template:structural/beam-{}", task % 40);
    record.task.difficulty = Some(["easy", "medium", "hard"][task % 3].to_owned());
    record.repetition = u32::try_from(number / 10_000).unwrap() + 1;
    record.evaluation = Some(example::evaluation(f64::from(u32::try_from(number * 7 % 11).unwrap()) / 10.0));
    if number.is_multiple_of(10) { example::with_outcome(record, Outcome::AgentFault) } else { record }
}

fn trajectory(number: usize, turns: usize) -> String {
    let mut events = Vec::new();
    for step in 1..=turns {
        let says = format!("step {step} of trial {number}: the moment is {} kNm", step * number % 977);
        let id = format!("c{step}");
        let command = format!("python3 calc.py --case {number}");
        let printed = (number.wrapping_mul(2_654_435_761) % 100_003).to_string();
        events.extend([
            json!({"step": step, "role": "assistant", "content": says}),
            json!({"step": step, "role": "tool_call", "tool_name": "bash", "tool_call_id": id, "arguments": {"command": command}}),
            json!({"step": step, "role": "tool_result", "tool_call_id": id, "stdout": printed, "stderr": "", "exit_code": 0}),
        ]);
    }
    events.iter().flat_map(|event| [event.to_string(), "\n".to_owned()]).collect()
}
