//! The bounded output of a command: head and tail in memory, and optionally everything in a file.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write as _};
use std::path::PathBuf;

#[derive(Clone, Debug)]
pub struct OutputLimits {
    /// Bytes kept from the beginning.
    pub head: usize,
    /// Bytes kept from the end.
    pub tail: usize,
    /// A file for the whole stream, with its own limit.
    pub spill: Option<Spill>,
}

#[derive(Clone, Debug)]
pub struct Spill {
    /// Created, or replaced if it exists.
    pub file: PathBuf,
    /// Bytes beyond this are only counted.
    pub limit: u64,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self { head: 64 * 1024, tail: 64 * 1024, spill: None }
    }
}

/// The kept parts of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    pub head: Vec<u8>,
    /// Its end, if bytes between head and tail were dropped.
    pub tail: Vec<u8>,
    /// Dropped bytes between head and tail.
    pub omitted: u64,
}

impl Captured {
    /// Reads a stream to its end. An error counts as the end.
    pub fn read_from(reader: &mut impl Read, limits: OutputLimits) -> Self {
        let Ok(mut capture) = Capture::new(limits) else { return Self::default() };
        let mut buffer = [0; 16 * 1024];
        while let Ok(count @ 1..) = reader.read(&mut buffer) {
            capture.push(&buffer[..count]);
        }
        capture.finish()
    }

    /// Head and tail as text, with a line that tells how much is missing between them.
    pub fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.head).into_owned();
        if self.omitted > 0 {
            text.push_str(&format!("\n[… {} bytes left out …]\n", self.omitted));
        }
        text.push_str(&String::from_utf8_lossy(&self.tail));
        text
    }
}

/// Keeps head and tail of a stream while it arrives.
pub struct Capture {
    limits: OutputLimits,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    spill: Option<(File, u64)>,
}

impl Capture {
    pub fn new(limits: OutputLimits) -> std::io::Result<Self> {
        let spill = match &limits.spill {
            Some(spill) => Some((File::create(&spill.file)?, spill.limit)),
            None => None,
        };
        Ok(Self { limits, head: Vec::new(), tail: VecDeque::new(), total: 0, spill })
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if let Some((file, left)) = &mut self.spill {
            let take = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
            // A full disk must not change the result of the command; head and tail are still kept.
            if file.write_all(&bytes[..take]).is_err() {
                *left = 0;
            }
            *left = left.saturating_sub(take as u64);
        }
        let to_head = bytes.len().min(self.limits.head - self.head.len());
        self.head.extend_from_slice(&bytes[..to_head]);
        let rest = &bytes[to_head..];
        let rest = &rest[rest.len().saturating_sub(self.limits.tail)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.limits.tail);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    pub fn finish(self) -> Captured {
        let kept = (self.head.len() + self.tail.len()) as u64;
        Captured { head: self.head, tail: self.tail.into(), omitted: self.total - kept }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(limits: OutputLimits, chunks: &[&[u8]]) -> Captured {
        let mut capture = Capture::new(limits).unwrap();
        for chunk in chunks {
            capture.push(chunk);
        }
        capture.finish()
    }

    #[test]
    fn head_and_tail_are_kept_and_the_gap_is_counted() {
        let limits = || OutputLimits { head: 4, tail: 3, spill: None };
        assert_eq!(capture(limits(), &[b"abc"]).text(), "abc");
        assert_eq!(capture(limits(), &[b"abcdefg"]).text(), "abcdefg");
        let long = capture(limits(), &[b"abcdef", b"ghij", b"k"]);
        assert_eq!(
            (long.head.as_slice(), long.tail.as_slice(), long.omitted),
            (&b"abcd"[..], &b"ijk"[..], 4)
        );
        assert_eq!(capture(limits(), &[b"abcdefghijklmnop"]).tail, b"nop");
    }

    #[test]
    fn everything_goes_to_the_file_up_to_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("out");
        let spill = Some(Spill { file: file.clone(), limit: 5 });
        capture(OutputLimits { head: 1, tail: 1, spill }, &[b"abc", b"defg"]);
        assert_eq!(std::fs::read(file).unwrap(), b"abcde");
    }
}
