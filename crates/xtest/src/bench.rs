//! What benchmarks share: the real binary in a temporary directory, times, medians, memory.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A directory to measure in. Dropping it removes it.
pub struct Place {
    program: PathBuf,
    directory: PathBuf,
}

impl Place {
    /// Makes an empty directory for the program at this path.
    pub fn new(program: impl Into<PathBuf>, name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("aec-bench-{name}-{}", std::process::id()));
        fs_err::create_dir_all(&directory).expect("a directory to measure in");
        Self { program: program.into(), directory }
    }

    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// A command line of the program; words are separated by blanks.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(line.split_whitespace()).current_dir(&self.directory).env("HOME", &self.directory);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Runs a command, which must succeed or report findings.
    pub fn run(&self, line: &str) -> Duration {
        let mut command = self.command(line);
        let started = Instant::now();
        let output = command.stderr(Stdio::piped()).output().expect("the program starts");
        let time = started.elapsed();
        accept(line, &output);
        time
    }

    /// The median of `rounds` runs after a warm-up run; `line` gets the number of the run.
    pub fn median(&self, rounds: usize, line: impl Fn(usize) -> String) -> Duration {
        self.run(&line(0));
        let mut times: Vec<Duration> = (1..=rounds).map(|round| self.run(&line(round))).collect();
        median(&mut times)
    }

    /// The peak memory that the program reports under `--verbose`, in MB.
    pub fn peak_memory(&self, line: &str) -> f64 {
        let output =
            self.command(line).arg("--verbose").stderr(Stdio::piped()).output().expect("the program starts");
        accept(line, &output);
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        let number = log.split("peak_memory=\"").nth(1).and_then(|rest| rest.split(' ').next());
        let kilobytes = number.and_then(|kilobytes| kilobytes.parse::<f64>().ok());
        kilobytes.map_or(f64::NAN, |kilobytes| kilobytes / 1024.0)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A failed benchmark reports its failure itself.
        fs_err::remove_dir_all(&self.directory).ok();
    }
}

fn accept(line: &str, output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{line}: {said}");
}

/// Whether this is a measurement: `cargo test --benches` runs benchmarks too, with other arguments.
pub fn is_asked_for() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// How long a command takes, whatever its exit code is.
pub fn time(command: &mut Command) -> Duration {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    command.status().expect("the command starts");
    started.elapsed()
}

pub fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
