//! Runs a cluster's programs with a bound on time and output: they wait when the controller is down.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longer output is refused. A hundred thousand jobs need less.
const LIMIT: u64 = 512 * 1024 * 1024;

/// The output of a program.
#[derive(Debug)]
pub struct Answer {
    /// Whether it exited with 0.
    pub success: bool,
    pub stdout: Vec<u8>,
    /// Shortened to the first lines.
    pub stderr: String,
}

/// The program of this name on a search path.
pub fn find(name: &str, search_path: Option<&OsStr>) -> Option<PathBuf> {
    std::env::split_paths(search_path?).filter(|directory| directory.is_absolute()).find_map(|directory| {
        let path = directory.join(name);
        let metadata = path.metadata().ok()?;
        (metadata.is_file() && metadata.permissions().mode() & 0o111 != 0).then_some(path)
    })
}

/// Runs a program to its end within the given time. It does not inherit the variables with these names.
pub fn ask(
    program: &Path,
    arguments: &[OsString],
    directory: Option<&Path>,
    without: &[String],
    patience: Duration,
) -> io::Result<Answer> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    for name in without {
        command.env_remove(name);
    }
    let mut child = command.spawn()?;
    let stdout = child.stdout.take().map(collect);
    let stderr = child.stderr.take().map(collect);
    let deadline = Instant::now() + patience;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() >= deadline {
            child.kill().ok();
            child.wait().ok();
            let name = program.file_name().unwrap_or_default().to_string_lossy();
            let what = format!("{name} did not answer within {} s", patience.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, what));
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let stdout = joined(stdout)?;
    if stdout.len() as u64 >= LIMIT {
        return Err(io::Error::other("the answer is too long"));
    }
    let stderr = joined(stderr)?;
    Ok(Answer { success: status.success(), stdout, stderr: shortened(&stderr) })
}

type Collector = std::thread::JoinHandle<io::Result<Vec<u8>>>;

fn collect(stream: impl Read + Send + 'static) -> Collector {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.take(LIMIT).read_to_end(&mut bytes)?;
        Ok(bytes)
    })
}

fn joined(collector: Option<Collector>) -> io::Result<Vec<u8>> {
    match collector.map(std::thread::JoinHandle::join) {
        Some(Ok(read)) => read,
        Some(Err(_)) => Err(io::Error::other("the answer could not be read")),
        None => Ok(Vec::new()),
    }
}

/// The first lines, on one line.
fn shortened(bytes: &[u8]) -> String {
    const MOST: usize = 400;
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(4).collect();
    let text = aec_base::text::printable(&lines.join("; ")).to_string();
    if text.chars().count() > MOST { text.chars().take(MOST).chain(['…']).collect() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, patience: Duration) -> io::Result<Answer> {
        let arguments = ["-c".into(), script.into()];
        ask(Path::new("/bin/sh"), &arguments, None, &["HOME".to_owned()], patience)
    }

    #[test]
    fn programs_are_asked_for_a_bounded_time() {
        let answer = sh("echo out $HOME; echo err >&2; exit 3", Duration::from_secs(10)).unwrap();
        assert_eq!((answer.success, answer.stdout.as_slice()), (false, b"out\n".as_slice()));
        assert_eq!(answer.stderr, "err");
        let begun = Instant::now();
        let error = sh("exec sleep 60", Duration::from_millis(100)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn programs_are_found_on_the_search_path() {
        assert!(find("sh", Some(OsStr::new("/nowhere:/bin"))).is_some());
        assert_eq!(find("sh", Some(OsStr::new("/nowhere:relative"))), None);
        assert_eq!(find("sh", None), None);
    }
}
