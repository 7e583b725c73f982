//! Append-only files of JSON lines: lines are appended whole, and readers cope with what a crash left at the end.
//!
//! A process that is killed, or a full disk, leaves the beginning of a line. [`Appender`] removes it or, if it
//! cannot, begins a new line after it; [`split`] and [`Reader`] tell it apart from whole lines.
//!
//! Two append-only files deliberately do not use this module. The journal of the ledger holds entries with lengths
//! and checksums instead of lines. Many processes share the file of a day's spending, so none of them may remove
//! anything.

use std::fs::File;
use std::io::{self, BufRead, Read as _, Seek as _, SeekFrom, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::staging::sync_parent;

/// Serialises a value as a line with its line break.
pub fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// The target of appended lines; tests use one that fails.
pub trait Sink: Write {
    /// Truncates to `length` bytes.
    fn cut(&mut self, length: u64) -> io::Result<()>;

    /// Waits until everything is on the disk; fails if the file was removed.
    fn settle(&mut self) -> io::Result<()>;
}

impl Sink for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn settle(&mut self) -> io::Result<()> {
        self.sync_data()?;
        // The lines of a file without a name are lost when it is closed.
        if self.metadata()?.nlink() == 0 {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the file was removed"));
        }
        Ok(())
    }
}

/// Appends whole lines to a file. Nothing else may append to the file meanwhile.
#[derive(Debug)]
pub struct Appender<S = File> {
    sink: S,
    path: PathBuf,
    length: u64,
    /// Whether the file ends in the middle of a line.
    torn: bool,
}

impl Appender {
    /// Creates a file, which must not exist. Its name is durable after [`Self::sync`].
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = File::options().append(true).create_new(true).open(path);
        Ok(Self::new(file.map_err(|error| named(path, &error))?, path))
    }

    /// Continues a file; an incomplete last line stays in it for inspection.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).append(true).open(path);
        Self::of(file.map_err(|error| named(path, &error))?, path)
    }

    /// Continues a file that is open for reading and appending.
    pub fn of(mut file: File, path: &Path) -> io::Result<Self> {
        let mut last = [b'\n'];
        let length = file.metadata()?.len();
        if length > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        Ok(Self { sink: file, path: path.to_owned(), length, torn: last != *b"\n" })
    }

    /// Continues a file after its first `whole` bytes, which end with a line break, and cuts off the rest.
    pub fn open_after(path: &Path, whole: u64) -> io::Result<Self> {
        let open = || {
            let file = File::options().append(true).open(path)?;
            file.set_len(whole)?;
            file.sync_all()?;
            Ok(file)
        };
        let file = open().map_err(|error| named(path, &error))?;
        Ok(Self { sink: file, path: path.to_owned(), length: whole, torn: false })
    }

    /// Waits until the file and its name are on the disk.
    pub fn sync(&self) -> io::Result<()> {
        self.sink.sync_all().and_then(|()| sync_parent(&self.path)).map_err(|error| named(&self.path, &error))
    }
}

impl<S: Sink> Appender<S> {
    /// Starts with an empty target.
    pub fn new(sink: S, path: &Path) -> Self {
        Self { sink, path: path.to_owned(), length: 0, torn: false }
    }

    /// The file, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends all lines or, as readers see it, none. Completes a last line without a line break first. A crash of
    /// the machine may lose appended lines.
    pub fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.write(lines, |_| Ok(()))
    }

    /// Like [`Self::append`], but waits until the lines are on the disk.
    pub fn append_durably(&mut self, lines: &[u8]) -> io::Result<()> {
        self.write(lines, Sink::settle)
    }

    fn write(&mut self, lines: &[u8], settle: impl FnOnce(&mut S) -> io::Result<()>) -> io::Result<()> {
        let separated;
        let bytes = if self.torn {
            separated = [b"\n", lines].concat();
            &separated
        } else {
            lines
        };
        match self.sink.write_all(bytes).and_then(|()| settle(&mut self.sink)) {
            Ok(()) => {
                self.torn = false;
                self.length += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                // Remove the part that was written. If that fails, the next append begins with a line break, and
                // readers skip the partial line before it.
                if self.sink.cut(self.length).is_err() {
                    self.torn = true;
                }
                Err(named(&self.path, &error))
            }
        }
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Splits into whole lines without their line breaks, and the partial line that may follow them.
pub fn split(bytes: &[u8]) -> (impl Iterator<Item = &[u8]>, &[u8]) {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let (whole, torn) = bytes.split_at(whole);
    (whole.split_inclusive(|byte| *byte == b'\n').map(|line| &line[..line.len() - 1]), torn)
}

/// Reads lines one by one; of a long line it holds no more than the caller asks for.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    buffer: Vec<u8>,
    number: u64,
    next: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The text without its line break; only the beginning of a line that is too long.
    pub bytes: &'a [u8],
    /// Its number, from 1.
    pub number: u64,
    /// Where it begins.
    pub offset: u64,
    /// Its length in the file, including the line break.
    pub length: u64,
    /// Whether it has a line break.
    pub is_whole: bool,
}

impl Line<'_> {
    /// Whether it is longer than the caller asked for.
    pub fn is_too_long(&self) -> bool {
        self.length - u64::from(self.is_whole) > self.bytes.len() as u64
    }

    /// Where the next line begins.
    pub fn end(&self) -> u64 {
        self.offset + self.length
    }
}

impl<R: BufRead> Reader<R> {
    /// Bytes of the buffer that are kept from line to line.
    const KEPT: usize = 1024 * 1024;

    /// `from` must be at the beginning of a line.
    pub fn new(from: R) -> Self {
        Self { from, buffer: Vec::new(), number: 0, next: 0 }
    }

    /// The next line with at most `most` of its bytes; `None` at the end.
    pub fn next_line(&mut self, most: usize) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        // Free the memory of one huge line before the lines that follow.
        self.buffer.shrink_to(Self::KEPT);
        let first = (&mut self.from).take((most as u64).saturating_add(1));
        let mut length = { first }.read_until(b'\n', &mut self.buffer)? as u64;
        if length == 0 {
            return Ok(None);
        }
        let mut is_whole = self.buffer.ends_with(b"\n");
        if is_whole {
            self.buffer.pop();
        } else if length > most as u64 {
            self.buffer.truncate(most);
            let (skipped, found) = self.skip()?;
            length += skipped;
            is_whole = found;
        }
        self.number += 1;
        let offset = self.next;
        self.next += length;
        Ok(Some(Line { bytes: &self.buffer, number: self.number, offset, length, is_whole }))
    }

    fn skip(&mut self) -> io::Result<(u64, bool)> {
        let mut skipped = 0;
        loop {
            let piece = match self.from.fill_buf() {
                Ok(piece) => piece,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let end = piece.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(piece.len(), |end| end + 1);
            self.from.consume(used);
            skipped += used as u64;
            if end.is_some() || used == 0 {
                return Ok((skipped, end.is_some()));
            }
        }
    }

    /// The number of the line that comes next, from 1.
    pub fn next_number(&self) -> u64 {
        self.number + 1
    }

    /// Whether nothing follows.
    pub fn is_at_end(&mut self) -> io::Result<bool> {
        Ok(self.from.fill_buf()?.is_empty())
    }

    pub fn into_inner(self) -> R {
        self.from
    }
}

#[cfg(test)]
mod tests {

    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;

    /// A disk with little space that may fail to truncate files or to sync them.
    #[derive(Debug)]
    struct Disk {
        content: Vec<u8>,
        room: usize,
        cuts: bool,
        settles: bool,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room);
            if count == 0 {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            self.content.extend_from_slice(&bytes[..count]);
            self.room -= count;
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Sink for Disk {
        fn cut(&mut self, length: u64) -> io::Result<()> {
            if !self.cuts {
                return Err(io::Error::from(io::ErrorKind::Unsupported));
            }
            self.content.truncate(usize::try_from(length).unwrap());
            Ok(())
        }

        fn settle(&mut self) -> io::Result<()> {
            if self.settles { Ok(()) } else { Err(io::Error::other("no")) }
        }
    }

    fn texts(bytes: &[u8]) -> Vec<String> {
        let (lines, torn) = split(bytes);
        assert!(torn.is_empty());
        lines.map(|line| String::from_utf8(line.to_vec()).unwrap()).collect()
    }

    #[test]
    fn a_full_disk_leaves_whole_lines() {
        for (cuts, expected) in [(true, vec!["first", "third"]), (false, vec!["first", "seco", "third"])] {
            let disk = Disk { content: Vec::new(), room: 10, cuts, settles: true };
            let mut log = Appender::new(disk, Path::new("log"));
            log.append(b"first\n").unwrap();
            let error = log.append(b"second\n").unwrap_err();
            assert!(error.to_string().starts_with("log: "), "{error}");
            log.sink.room = 100;
            log.append(b"third\n").unwrap();
            assert_eq!(texts(&log.sink.content), expected);
        }
    }

    #[test]
    fn what_is_not_durable_is_taken_back() {
        let disk = Disk { content: Vec::new(), room: 100, cuts: true, settles: false };
        let mut log = Appender::new(disk, Path::new("log"));
        log.append(b"first\n").unwrap();
        log.append_durably(b"second\n").unwrap_err();
        log.sink.settles = true;
        log.append_durably(b"third\n").unwrap();
        assert_eq!(texts(&log.sink.content), ["first", "third"]);
    }

    #[test]
    fn a_torn_end_is_kept_or_cut() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut log = Appender::create(&path).unwrap();
        log.append(&line(&serde_json::json!({"a": 1})).unwrap()).unwrap();
        log.sync().unwrap();
        assert_eq!((log.length, log.path()), (8, path.as_path()));
        assert!(Appender::create(&path).is_err(), "there is one");
        fs_err::write(&path, "{\"a\":1}\n{\"b").unwrap();
        Appender::open(&path).unwrap().append_durably(b"2\n").unwrap();
        assert_eq!(texts(&fs_err::read(&path).unwrap()), ["{\"a\":1}", "{\"b", "2"]);
        Appender::open_after(&path, 8).unwrap().append_durably(b"3\n").unwrap();
        assert_eq!(texts(&fs_err::read(&path).unwrap()), ["{\"a\":1}", "3"]);
    }

    #[test]
    fn lines_in_a_removed_file_are_not_durable() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut log = Appender::create(&path).unwrap();
        fs_err::remove_file(&path).unwrap();
        assert_eq!(log.append_durably(b"1\n").unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    proptest! {
        /// Wherever the file is cut off, exactly the whole lines before the cut are read.
        #[test]
        fn whole_lines_survive_a_cut(
            lines in proptest::collection::vec("[a-z\\r]{0,12}", 0..8),
            cut in any::<prop::sample::Index>(),
            (capacity, most) in (1..20_usize, 0..16_usize),
        ) {
            let text = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect::<String>();
            let text = &text[..cut.index(text.len() + 1)];
            let expected: Vec<&str> = text.split_inclusive('\n').collect();
            let (whole, torn) = split(text.as_bytes());
            let mut found: Vec<String> = whole.map(|line| String::from_utf8(line.to_vec()).unwrap() + "\n").collect();
            found.extend((!torn.is_empty()).then(|| String::from_utf8(torn.to_vec()).unwrap()));
            prop_assert_eq!(&found, &expected);
            let mut reader = Reader::new(BufReader::with_capacity(capacity, text.as_bytes()));
            let mut offset = 0;
            for (number, expected) in (1..).zip(&expected) {
                let line = reader.next_line(most).unwrap().unwrap();
                let content = expected.trim_end_matches('\n');
                prop_assert_eq!(line.bytes, &content.as_bytes()[..content.len().min(most)]);
                prop_assert_eq!(line.is_too_long(), content.len() > most);
                prop_assert_eq!(line.is_whole, expected.ends_with('\n'));
                prop_assert_eq!((line.number, line.offset, line.length), (number, offset, expected.len() as u64));
                offset = line.end();
            }
            prop_assert!(reader.is_at_end().unwrap());
            prop_assert_eq!(reader.next_line(most).unwrap(), None);
        }
    }
}
