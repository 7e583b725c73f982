//! How long datasets take, with the real binary: `cargo bench --bench dataset`. The figures of
//! `docs/performance.md` come from here.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot measure stops and says what it saw"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_aec-bench");

/// The most that `dataset create` and `dataset verify` may take together at 5,000 tasks.
const LIMIT: Duration = Duration::from_secs(3);

const ROUNDS: usize = 5;

fn main() {
    // `cargo test --benches` runs this too; there it only shows that it starts.
    if !std::env::args().any(|argument| argument == "--bench") {
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
    let directory = project(size);
    let median_of = |arguments: &dyn Fn(usize) -> Vec<String>| {
        let mut times: Vec<Duration> = (0..=ROUNDS).map(|round| run(&directory, &arguments(round))).collect();
        // The first run warms up.
        times.remove(0);
        median(&mut times)
    };
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<String>>();
    let create = median_of(&|round| words(&format!("dataset create --name set --version 1.0.{round}")));
    println!("{size:>8} tasks");
    println!("  create             {:9.1} ms", milliseconds(create));
    let verify = median_of(&|_| words("dataset verify set"));
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
        println!("  {name:<18} {:9.1} ms", milliseconds(median_of(&|_| words(line))));
    }
    let archive = directory.join("set.tar.zst");
    let import = median_of(&|round| {
        let other = directory.join(format!("other-{round}"));
        std::fs::create_dir(&other).unwrap();
        run(&other, &words("init --no-example"));
        vec![
            "--project".into(),
            other.display().to_string(),
            "dataset".into(),
            "import".into(),
            archive.display().to_string(),
        ]
    });
    println!("  import, all new    {:9.1} ms", milliseconds(import));
    println!("  archive            {:9} KB", std::fs::metadata(archive).unwrap().len() / 1000);
    std::fs::remove_dir_all(directory).unwrap();
}

/// A project with tasks of ten files, one of them 50 KB that is the same in all.
fn project(size: usize) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("aec-bench-dataset-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    run(&directory, &["init".into(), "--no-example".into()]);
    let tasks = directory.join("tasks");
    aec_test::tree::write_tree(&tasks, size);
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
    directory
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

/// Runs a command that must succeed, or find something.
fn run(directory: &Path, arguments: &[String]) -> Duration {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).current_dir(directory).env("HOME", directory);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let started = Instant::now();
    let output = command.output().unwrap();
    let time = started.elapsed();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{arguments:?}: {said}");
    time
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
