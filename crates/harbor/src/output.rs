//! Reads the output of Harbor's program while a job runs: new lines, and the last ones.

use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use aec_base::{jsonl, text};

/// Lines of Harbor's output that are shown when it fails.
const TOLD_LINES: usize = 12;

pub(crate) struct Tail {
    path: PathBuf,
    at: u64,
    rest: Vec<u8>,
}

impl Tail {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, at: 0, rest: Vec::new() }
    }

    /// New complete lines.
    pub(crate) fn lines(&mut self) -> Vec<String> {
        const MOST: u64 = 16 * 1024 * 1024;
        let read = std::fs::File::open(&self.path).and_then(|mut file| {
            file.seek(io::SeekFrom::Start(self.at))?;
            file.take(MOST).read_to_end(&mut self.rest)
        });
        self.at += read.unwrap_or(0) as u64;
        let (lines, torn) = jsonl::split(&self.rest);
        let lines =
            lines.map(|line| String::from_utf8_lossy(line).trim_end_matches('\r').to_owned()).collect();
        self.rest = torn.to_vec();
        lines
    }
}

/// The last lines of Harbor's output.
pub(crate) fn last_lines(log: &Path) -> String {
    const TAIL: u64 = 16 * 1024;
    let mut bytes = Vec::new();
    let read = std::fs::File::open(log).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(io::SeekFrom::Start(length.saturating_sub(TAIL)))?;
        file.read_to_end(&mut bytes)
    });
    if read.is_err() {
        return String::new();
    }
    let said = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(TOLD_LINES)..].join(" / ");
    text::printable(&last).into_owned()
}
