//! How long a big ledger takes, with the real binary: `cargo bench --bench ledger`. The figures of
//! `docs/performance.md` come from here.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot measure stops and says what it saw"
)]

use std::time::{Duration, Instant};

use aec_base::digest::Digest;
use aec_base::timestamp::Timestamp;
use aec_judge::verdict::Outcome;
use aec_ledger::example;
use aec_ledger::index::{Filter, Index};
use aec_ledger::layout::Ledger;
use aec_ledger::record::TrialRecord;
use aec_xtest::bench::{Place, is_asked_for, milliseconds};

/// The most that `ledger reindex` may take at 100,000 records.
const COLD: Duration = Duration::from_secs(20);
/// The most that `ledger list` may take at 100,000 records when nothing changed.
const WARM: Duration = Duration::from_millis(50);

const ROUNDS: usize = 9;

fn main() {
    if !is_asked_for() {
        return;
    }
    let sizes = std::env::var("AEC_BENCH_RECORDS").unwrap_or_else(|_| "10000 100000".to_owned());
    println!(
        "ledgers of one experiment; reindex: limit {COLD:?}, list: limit {WARM:?}, both at 100000 records"
    );
    for size in sizes.split_whitespace().map(|size| size.parse().unwrap()) {
        measure(size);
    }
}

fn measure(size: usize) {
    let place = Place::new(env!("CARGO_BIN_EXE_aec-bench"), "ledger");
    place.run("init --no-example");
    let ledger = Ledger::new(place.path().join("artefacts/ledger"));
    let bytes = write_records(&ledger, size);
    println!("{size:>8} records of {} bytes on average", bytes / size);
    // The index reads again a directory that changed within the last second; the benchmark measures a ledger at rest.
    std::thread::sleep(Duration::from_millis(1100));

    let cold = place.run("ledger reindex");
    line("reindex", cold, Some(COLD));
    println!("  memory of reindex  {:9.1} MB", place.peak_memory("ledger reindex"));
    println!("  index              {:9} KB", ledger.index_file().metadata().unwrap().len() / 1000);
    let warm = place.median(ROUNDS, |_| "ledger list".to_owned());
    line("list", warm, Some(WARM));
    line(
        "list, filtered",
        place.median(ROUNDS, |_| "ledger list --agent agent-3 --outcome scored".to_owned()),
        None,
    );
    line("show", place.median(ROUNDS, |round| format!("ledger show trial-{round:07}")), None);

    let record = record(size);
    let text = record.to_json().unwrap();
    let started = Instant::now();
    std::fs::write(ledger.experiment(&record.experiment_id).record(&record.trial_id, 1), &text).unwrap();
    let mut index = Index::open(&ledger).unwrap();
    index.add(&record, Digest::of(text.as_bytes()), text.len() as u64).unwrap();
    drop(index);
    line("add one record", started.elapsed(), None);
    line("list it", place.run("ledger list"), None);
    example::write(&ledger, &self::record(size + 1));
    line("list one dropped in", place.run("ledger list"), None);
    let found = Index::open(&ledger).unwrap().count(&Filter::default()).unwrap();
    assert_eq!(found, size + 2, "both are in the index");

    for format in ["jsonl", "csv", "parquet"] {
        let time = place.run(&format!("ledger export -o all.{format} --force"));
        line(&format!("export {format}"), time, None);
    }
    println!("  memory of parquet  {:9.1} MB", place.peak_memory("ledger export -o all.parquet --force"));
    line("verify", place.run("ledger verify"), None);
}

fn line(what: &str, time: Duration, limit: Option<Duration>) {
    let ratio = limit.map(|limit| format!("  {:.2} of the limit", time.as_secs_f64() / limit.as_secs_f64()));
    println!("  {what:<18} {:9.1} ms{}", milliseconds(time), ratio.unwrap_or_default());
}

/// Writes records like those of a run, without syncing each. Returns their size in bytes.
fn write_records(ledger: &Ledger, size: usize) -> usize {
    let first = record(0);
    let directory = ledger.experiment(&first.experiment_id);
    std::fs::create_dir_all(directory.path()).unwrap();
    let mut bytes = 0;
    for number in 0..size {
        let record = record(number);
        let text = record.to_json().unwrap();
        bytes += text.len();
        std::fs::write(directory.record(&record.trial_id, record.attempt), text).unwrap();
    }
    bytes
}

fn record(number: usize) -> TrialRecord {
    let mut record = example::record("experiment", &format!("trial-{number:07}"), 1);
    record.timestamp = Timestamp::from_seconds(1_775_952_000 + number as u64);
    record.agent.name = aec_base::name::Name::parse(&format!("agent-{}", number % 7)).unwrap();
    record.task.task_id = format!("structural.beam.instance-{}", number / 7);
    record.inputs.instruction = "A beam of 6 m carries 12 kN/m over its whole length. ".repeat(20);
    if number.is_multiple_of(10) { example::with_outcome(record, Outcome::AgentFault) } else { record }
}
