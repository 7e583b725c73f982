//! No input harms a reader: every reader of foreign text gets hundreds of mutations of a sound input, and bombs (depth,
//! width, long texts, huge numbers, aliases). It may refuse them, but it must not abort, hang or fill the memory.
//!
//! Each reader runs in a process of its own, so that a stack overflow is one failed reader and its memory is its own.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test stops at the first thing that is not as it should be, and says what it was at"
)]

mod input;
mod list;
mod outside;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use self::list::{READERS, Reader};

/// The variable with the name of the reader that a process is for.
const CHOICE: &str = "AEC_TEST_READER";

/// What every reader gets. The fast tier tries a part, because nothing here is optimised.
fn mutations() -> usize {
    if aec_xtest::full() { 500 } else { 80 }
}

/// Places of a sound input in which each bomb is planted.
fn most_places() -> usize {
    if aec_xtest::full() { usize::MAX } else { 1 }
}

/// The stack of a reader: that of a thread of the program, and four times as much where functions are not optimised.
const STACK: usize = if cfg!(debug_assertions) { 8 << 20 } else { 2 << 20 };

/// How long a reader may be silent. A watchdog, not a promise of speed: sound inputs take milliseconds, and tests are
/// compiled without optimisation.
const SILENCE: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 2 });

/// Most memory that a reader may take beyond what its process has anyway, in KiB.
const MEMORY: u64 = 200 * 1024;

/// On the version before this test, 9 readers aborted with a stack overflow at 20,000 levels (JSON documents such as
/// manifests and plans, TOML with dotted keys) and the same documents took minutes for 200,000 keys.
#[test]
fn hostile_input_harms_no_reader() {
    if let Some(name) = std::env::var_os(CHOICE) {
        let reader = READERS.iter().find(|reader| *reader.name == *name).unwrap();
        let thread = std::thread::Builder::new().stack_size(STACK);
        return thread.spawn(|| torture(reader)).unwrap().join().unwrap();
    }
    assert!(READERS.len() >= 30, "{}", READERS.len());
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(reader) = READERS.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(why) = watched(reader) {
                        failures.lock().unwrap().push(format!("{}: {why}", reader.name));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Runs a reader in a process, and says how it failed.
fn watched(reader: &Reader) -> Result<(), String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["readers::hostile_input_harms_no_reader", "--exact", "--nocapture", "--test-threads=1"])
        .env(CHOICE, reader.name)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (said, heard) = channel();
    let stderr = child.stderr.take().unwrap();
    let listener = std::thread::spawn(move || {
        let mut lines = BufReader::new(stderr);
        let mut line = Vec::new();
        while lines.by_ref().take(4096).read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            if said.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                return;
            }
            line.clear();
        }
    });
    let mut last: Vec<String> = Vec::new();
    let silent = loop {
        match heard.recv_timeout(SILENCE) {
            Ok(line) => {
                last.push(line);
                let surplus = last.len().saturating_sub(6);
                last.drain(..surplus);
            }
            Err(RecvTimeoutError::Disconnected) => break false,
            Err(RecvTimeoutError::Timeout) => break true,
        }
    };
    if silent {
        child.kill().unwrap();
    }
    let status = child.wait().unwrap();
    listener.join().unwrap();
    match (silent, status.success()) {
        (true, _) => Err(format!("it was silent for {SILENCE:?} after: {}", last.join(" | "))),
        (false, false) => Err(format!("{status} after: {}", last.join(" | "))),
        (false, true) => Ok(()),
    }
}

/// Gives everything to one reader. The last line on stderr says what it got when it failed.
fn torture(reader: &Reader) {
    let seed = (reader.seed)();
    let before = most_memory();
    let give = |what: &str, bytes: &[u8]| {
        eprintln!("{what}");
        let began = Instant::now();
        (reader.read)(bytes);
        let took = began.elapsed();
        if took > Duration::from_secs(1) {
            eprintln!("{what} took {took:?}");
        }
        let grown = most_memory().saturating_sub(before);
        assert!(grown < MEMORY, "{what} took {grown} KiB of memory");
    };
    give("the sound input", &seed);
    for number in 0..mutations() {
        give(&format!("mutation {number}"), &input::mutation(&seed, number));
    }
    for (name, bomb) in input::bombs() {
        give(&name, &bomb);
        for (place, bytes) in input::planted(&seed, &bomb).into_iter().take(most_places()).enumerate() {
            give(&format!("{name} at value {place}"), &bytes);
        }
    }
}

/// The highest memory of this process so far, in KiB.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
