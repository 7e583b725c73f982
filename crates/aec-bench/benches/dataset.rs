//! How long datasets take, with the real binary: `cargo bench --bench dataset`. The figures of
//! `docs/performance.md` come from here.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot measure stops and says what it saw"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use aec_xtest::bench::{Place, is_asked_for, milliseconds};

/// The most that `dataset create` and `dataset verify` may take together at 5,000 tasks.
const LIMIT: Duration = Duration::from_secs(3);

const ROUNDS: usize = 5;

fn main() {
    if !is_asked_for() {
        return;
    }
    let sizes = std::env::var("AEC_BENCH_TASKS").unwrap_or_else(|_| "500 5000".to_owned());
    println!(
        "datasets, warm, median of {ROUNDS} runs; create and verify at 5000 tasks: limit {LIMIT:?} together"
    );
    for size in sizes.split_whitespace().map(|size| size.parse().unwrap()) {
        measure(size);
    }
}

fn measure(size: usize) {
    let place = project(size);
    let create = place.median(ROUNDS, |round| format!("dataset create --name set --version 1.0.{round}"));
    println!("{size:>8} tasks");
    println!("  create             {:9.1} ms", milliseconds(create));
    let verify = place.median(ROUNDS, |_| "dataset verify set".to_owned());
    println!("  verify             {:9.1} ms", milliseconds(verify));
    println!("  both               {:9.1} ms", milliseconds(create + verify));
    let lines = [
        ("near duplicates", "dataset show set --near-duplicates"),
        ("diff", "dataset diff set@1.0.0 set"),
        ("split", "dataset split set --seed 7"),
        ("export", "dataset export set --output set.tar.zst"),
        ("import, all kept", "dataset import set.tar.zst"),
    ];
    for (name, line) in lines {
        println!("  {name:<18} {:9.1} ms", milliseconds(place.median(ROUNDS, |_| line.to_owned())));
    }
    let archive = place.path().join("set.tar.zst");
    for round in 0..=ROUNDS {
        place.run(&format!("init --no-example other-{round}"));
    }
    let import =
        place.median(ROUNDS, |round| format!("--project other-{round} dataset import {}", archive.display()));
    println!("  import, all new    {:9.1} ms", milliseconds(import));
    println!("  archive            {:9} KB", std::fs::metadata(archive).unwrap().len() / 1000);
}

/// A project with tasks of ten files, one of them 50 KB that is the same in all.
fn project(size: usize) -> Place {
    let place = Place::new(env!("CARGO_BIN_EXE_aec-bench"), "dataset");
    place.run("init --no-example");
    let tasks = place.path().join("tasks");
    aec_xtest::tree::write_tree(&tasks, size);
    let verifier = lines(1430, |line| format!("# line {line:05} of the same verifier"));
    for (number, task) in task_directories(&tasks).into_iter().enumerate() {
        let sentences = lines(30, |line| {
            format!("Given {line} is {} kN over {} m.", number * 7 % 9973 + line, number % 97 + 3)
        });
        let instruction = format!("# A task\n\n{sentences}\nWrite the answer to `/workspace/output.json`.\n");
        for (file, content) in [
            ("instruction.md", instruction.as_str()),
            ("tests/verify.py", &verifier),
            ("tests/answers.json", "{}\n"),
            ("environment/loads.csv", &sentences),
        ] {
            std::fs::write(task.join(file), content).unwrap();
        }
    }
    place
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect::<Vec<_>>().join("\n") + "\n"
}

fn task_directories(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.join("task.toml").is_file() {
            found.push(path);
        } else if path.is_dir() {
            found.extend(task_directories(&path));
        }
    }
    found.sort();
    found
}
