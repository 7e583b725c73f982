//! Trajectories in parts: a page reads a limited number of events from a position in the file, whatever its length.

use std::fs::File;
use std::io::{self, BufReader, Seek as _, SeekFrom};
use std::path::Path;

use aec_base::digest::Digest;
use aec_base::file::{Links, open_regular};
use aec_base::jsonl;
use aec_ledger::transcript::Event;
use aec_report::html::TraceEntry;
use aec_report::shown::entry;

pub(crate) const PART: usize = 200;

/// Most characters of one text; a longer one keeps its head and tail, and the page links to the whole file.
const TEXT: usize = 20_000;

/// Bytes of a part; the event that exceeds them is the last one.
const PART_BYTES: u64 = 1_000_000;

/// A longer event is not parsed.
const LONGEST_LINE: usize = 8 * 1024 * 1024;

/// The rest of a longer trajectory is ignored.
const LONGEST_FILE: u64 = 4 * 1024 * 1024 * 1024;

/// The positions of the events of a trajectory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TraceMap {
    pub(crate) events: usize,
    /// The first event of each part, and its offset.
    parts: Vec<(usize, u64)>,
    /// When the first event happened, in milliseconds.
    start: Option<i64>,
}

#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) entries: Vec<TraceEntry>,
    /// Events that were read, including those that are not shown.
    pub(crate) read: usize,
    /// The offset of the next event.
    pub(crate) offset: u64,
}

fn open(path: &Path) -> io::Result<File> {
    open_regular(path, LONGEST_FILE, Links::Refuse)
        .map(|(file, _)| file)
        .map_err(|error| io::Error::new(error.io_kind(), error.to_string()))
}

impl TraceMap {
    /// Scans a file once. Content that does not match its digest is an error.
    pub(crate) fn read(path: &Path, digest: Option<Digest>) -> io::Result<Self> {
        let from = BufReader::with_capacity(256 * 1024, aec_base::digest::Reading::new(open(path)?));
        let mut lines = jsonl::Reader::new(from);
        let (mut parts, mut events, mut offset, mut start) = (Vec::<(usize, u64)>::new(), 0, 0, None);
        while let Some(line) = lines.next_line(if events == 0 { LONGEST_LINE } else { 0 })? {
            if !line.is_whole && digest.is_none() {
                break;
            }
            let is_full =
                |(first, place): &(usize, u64)| events - first >= PART || offset - place >= PART_BYTES;
            if parts.last().is_none_or(is_full) {
                parts.push((events, offset));
            }
            if events == 0 {
                start = moment(line.bytes);
            }
            events += 1;
            offset += line.length;
        }
        if digest.is_some_and(|digest| digest != lines.into_inner().into_inner().finish()) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the content is not what its digest says",
            ));
        }
        Ok(Self { events, parts, start })
    }

    /// The part that contains an event: the number of its first event, and its events.
    pub(crate) fn part(&self, path: &Path, event: usize) -> io::Result<(usize, Part)> {
        let at = self.parts.partition_point(|(first, _)| *first <= event).saturating_sub(1);
        let Some((first, offset)) = self.parts.get(at) else { return Ok((0, Part::default())) };
        let next = self.parts.get(at + 1).map_or(self.events, |(next, _)| *next);
        Ok((*first, read_part(path, *offset, next - first, self.start)?))
    }

    /// The first event of the preceding part.
    pub(crate) fn before(&self, first: usize) -> Option<usize> {
        let at = self.parts.partition_point(|(known, _)| *known < first);
        self.parts.get(at.checked_sub(1)?).map(|(first, _)| *first)
    }
}

/// When the first event of a file happened, in milliseconds.
pub(crate) fn start(path: &Path) -> Option<i64> {
    let mut lines = jsonl::Reader::new(BufReader::new(open(path).ok()?));
    moment(lines.next_line(LONGEST_LINE).ok()??.bytes)
}

fn moment(line: &[u8]) -> Option<i64> {
    Some(aec_base::json::from_slice::<Event>(line).ok()?.timestamp?.to_milliseconds())
}

/// Complete events from an offset on, at most `most` and as many as a page can show.
pub(crate) fn read_part(path: &Path, offset: u64, most: usize, start: Option<i64>) -> io::Result<Part> {
    let mut file = open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut lines = jsonl::Reader::new(BufReader::with_capacity(64 * 1024, file));
    let mut part = Part { offset, ..Part::default() };
    while part.read < most && part.offset - offset < PART_BYTES {
        let Some(line) = lines.next_line(LONGEST_LINE)? else { break };
        if !line.is_whole {
            break;
        }
        part.read += 1;
        part.offset += line.length;
        let entry = match aec_base::json::from_slice::<Event>(line.bytes) {
            Ok(event) => entry(event, start).map(|entry| entry.clipped(TEXT)),
            Err(_) => Some(note(line.length)),
        };
        part.entries.extend(entry);
    }
    Ok(part)
}

fn note(bytes: u64) -> TraceEntry {
    TraceEntry {
        role: "note".to_owned(),
        text: Some(format!("an event of {bytes} bytes is torn or too long to be shown")),
        ..TraceEntry::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(lines: &[String]) -> (tempfile::TempDir, std::path::PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trajectory.jsonl");
        std::fs::write(&path, lines.concat()).unwrap();
        (directory, path)
    }

    fn said(number: usize) -> String {
        format!(
            "{{\"step\":1,\"role\":\"note\",\"content\":\"n{number}\",\"timestamp\":\"2026-01-01T00:00:{:02}Z\"}}\n",
            number % 60
        )
    }

    #[test]
    fn a_long_trace_is_read_part_by_part() {
        let lines: Vec<String> = (0..PART * 2 + 5).map(said).collect();
        let (_kept, path) = file(&lines);
        let digest = Digest::of(lines.concat().as_bytes());
        let map = TraceMap::read(&path, Some(digest)).unwrap();
        assert_eq!((map.events, map.parts.len()), (PART * 2 + 5, 3));
        assert_eq!((map.before(0), map.before(PART), map.before(PART * 2)), (None, Some(0), Some(PART)));
        let (from, part) = map.part(&path, PART + 7).unwrap();
        assert_eq!((from, part.entries.len()), (PART, PART));
        assert_eq!(part.entries[0].text.as_deref(), Some(format!("n{PART}").as_str()));
        assert_eq!(part.entries[0].offset_ms, Some(PART as u64 % 60 * 1000));
        let (from, last) = map.part(&path, usize::MAX).unwrap();
        assert_eq!((from, last.entries.len(), last.offset), (PART * 2, 5, lines.concat().len() as u64));
        assert!(TraceMap::read(&path, Some(Digest::of(b"another"))).is_err());
    }

    #[test]
    fn torn_and_endless_lines_are_told_and_not_kept_in_memory() {
        let endless = format!("{{\"role\":\"note\",\"content\":\"{}\"}}\n", "x".repeat(LONGEST_LINE));
        let lines = [said(0), "not json\n".to_owned(), endless, said(1), "{\"role\":\"no".to_owned()];
        let (_kept, path) = file(&lines);
        let map = TraceMap::read(&path, None).unwrap();
        assert_eq!(map.events, 4, "what has no end yet is no event");
        let part = map.part(&path, 0).unwrap().1;
        let texts: Vec<&str> = part.entries.iter().map(|entry| entry.text.as_deref().unwrap()).collect();
        assert_eq!((texts.len(), texts[0]), (3, "n0"), "the long one is the last of its part");
        assert!(texts[1].contains("9 bytes") && texts[2].contains("torn or too long"), "{texts:?}");
        let (first, part) = map.part(&path, 3).unwrap();
        assert_eq!((first, part.entries[0].text.as_deref()), (3, Some("n1")));
        let next = read_part(&path, part.offset, PART, None).unwrap();
        assert_eq!((next.read, next.offset), (0, part.offset));
    }

    #[test]
    fn a_part_with_long_texts_ends_early() {
        let long = format!("{{\"role\":\"note\",\"content\":\"{}\"}}\n", "x".repeat(100_000));
        let (_kept, path) = file(&vec![long; 100]);
        let map = TraceMap::read(&path, None).unwrap();
        let (first, part) = map.part(&path, 15).unwrap();
        assert_eq!((first, part.read, map.parts.len()), (10, 10, 10));
        assert!(part.entries[0].text.as_ref().unwrap().len() < 21_000);
    }
}
