//! The output of a worker on disk, up to a limited size.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Lines kept for messages.
const LAST_LINES: usize = 20;
/// Longest piece of a line kept for messages.
const LONGEST_LINE: usize = 400;

#[derive(Clone, Debug, Default)]
pub(crate) struct LastLines(Arc<Mutex<VecDeque<String>>>);

impl LastLines {
    pub(crate) fn get(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn push(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(line).trim_end().chars().take(LONGEST_LINE).collect::<String>();
        if text.is_empty() {
            return;
        }
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LAST_LINES {
            lines.pop_front();
        }
        lines.push_back(text);
    }
}

/// A file that is renamed to `<name>.1` once it holds half of the allowed bytes.
struct BoundedLog {
    path: PathBuf,
    file: Option<File>,
    written: u64,
    half: u64,
}

impl BoundedLog {
    fn open(path: &Path, most: u64) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(path).ok();
        let written = file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |data| data.len());
        Self { path: path.to_owned(), file, written, half: (most / 2).max(1) }
    }

    /// Ignores errors: a full disk must not stop the rollouts.
    fn write(&mut self, data: &[u8]) {
        if self.written >= self.half {
            let mut aside = self.path.clone().into_os_string();
            aside.push(".1");
            self.file = std::fs::rename(&self.path, aside).and_then(|()| File::create(&self.path)).ok();
            self.written = 0;
        }
        if let Some(file) = &mut self.file
            && file.write_all(data).is_ok()
        {
            self.written = self.written.saturating_add(data.len() as u64);
        }
    }
}

/// Copies everything from the reader to the file until the reader ends.
pub(crate) fn copy_output(mut reader: impl Read, path: &Path, most: u64, lines: &LastLines) {
    let mut log = BoundedLog::open(path, most);
    let mut buffer = vec![0; 64 * 1024];
    let mut line = Vec::new();
    loop {
        let count = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let data = &buffer[..count];
        log.write(data);
        for &byte in data {
            if byte == b'\n' {
                lines.push(&line);
                line.clear();
            } else if line.len() < 4 * LONGEST_LINE {
                line.push(byte);
            }
        }
    }
    lines.push(&line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_without_end_is_bounded_on_disk_and_its_end_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("env_worker_0.log");
        let lines = LastLines::default();
        let output: String =
            (0..200_000).fold(String::new(), |text, number| text + &format!("line {number}\n"));
        copy_output(output.as_bytes(), &path, 200_000, &lines);
        let kept: u64 = std::fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        assert!(kept <= 200_000 + 2 * 64 * 1024, "{kept}");
        assert_eq!(lines.get().last().map(String::as_str), Some("line 199999"));
        assert_eq!(lines.get().len(), LAST_LINES);
    }

    #[test]
    fn bytes_that_are_no_text_and_a_line_without_end_do_no_harm() {
        let directory = tempfile::tempdir().unwrap();
        let lines = LastLines::default();
        let mut output = vec![b'x'; 1_000_000];
        output.extend_from_slice(b"\n\xff\xfe\x00\n\n");
        copy_output(output.as_slice(), &directory.path().join("log"), 1024, &lines);
        assert_eq!(lines.get().len(), 2);
        assert_eq!(lines.get()[0].len(), LONGEST_LINE);
    }
}
