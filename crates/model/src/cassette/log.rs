//! The file that one process appends to: what it holds already, and how a record gets into it whole.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use aec_base::digest::Digest;

use super::canonical::json;
use super::format::{Header, LONGEST_LINE, TurnLine};

/// Names a text within the process. Never written.
pub(super) type TextKey = [u8; 16];

/// The key of a text.
pub(super) fn text_key(text: &str) -> TextKey {
    short(&Digest::of(text.as_bytes()))
}

/// The first half of a digest: enough to tell apart what one directory holds.
pub(super) fn short(digest: &Digest) -> [u8; 16] {
    let (half, _) = digest.bytes().split_at(16);
    half.try_into().unwrap_or_default()
}

/// What a file must be able to do; tests have one that fails.
pub(super) trait Sink: Write {
    /// Cuts the end off.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl Sink for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

/// A file and the numbers of what it defines.
pub(super) struct Log<S> {
    sink: S,
    path: PathBuf,
    length: u64,
    /// Whether the file ends within a line.
    torn: bool,
    next: u32,
    texts: HashMap<TextKey, u32>,
    turns: HashMap<(Option<u32>, u32), u32>,
}

impl Log<File> {
    /// A new file in the directory, which no other process has.
    pub(super) fn create(directory: &Path) -> io::Result<Self> {
        fs_err::create_dir_all(directory)?;
        let mut number = 0;
        for entry in fs_err::read_dir(directory)? {
            number = number.max(file_number(&entry?.file_name().to_string_lossy()).unwrap_or(0));
        }
        loop {
            number = number.saturating_add(1);
            let path = directory.join(file_name(number));
            match File::options().append(true).create_new(true).open(&path) {
                // A file without a first line is of no use to anyone.
                Ok(file) => {
                    return Self::begin(file, path.clone()).inspect_err(|_| drop(fs_err::remove_file(&path)));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < u32::MAX => {}
                Err(error) => return Err(name_path(&path, &error)),
            }
        }
    }

    /// Sees to it that the file survives a crash of the machine.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.sink.sync_all().map_err(|error| name_path(&self.path, &error))?;
        match self.path.parent() {
            Some(directory) => fs_err::File::open(directory)?.sync_all(),
            None => Ok(()),
        }
    }
}

impl<S: Sink> Log<S> {
    pub(super) fn begin(sink: S, path: PathBuf) -> io::Result<Self> {
        let mut log = Self {
            sink,
            path,
            length: 0,
            torn: false,
            next: 1,
            texts: HashMap::new(),
            turns: HashMap::new(),
        };
        log.write(&Header::line())?;
        Ok(log)
    }

    /// Lines that refer to each other, for [`Self::append`].
    pub(super) fn batch(&self) -> Batch<'_, S> {
        Batch {
            log: self,
            new: New { lines: String::new(), next: self.next, texts: HashMap::new(), turns: HashMap::new() },
        }
    }

    /// Appends all lines of a batch or, as far as anyone can see, none.
    pub(super) fn append(&mut self, new: New) -> io::Result<()> {
        // Numbers of a batch that did not get through may stand in the file, and are not given again.
        self.next = new.next;
        self.write(&new.lines)?;
        self.texts.extend(new.texts);
        self.turns.extend(new.turns);
        Ok(())
    }

    fn write(&mut self, lines: &str) -> io::Result<()> {
        let separated;
        let bytes = if self.torn {
            separated = format!("\n{lines}");
            separated.as_bytes()
        } else {
            lines.as_bytes()
        };
        match self.sink.write_all(bytes) {
            Ok(()) => {
                self.torn = false;
                self.length += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                // What got through is taken back. If even that is impossible, the next record begins a new
                // line, and readers report the piece of a line before it.
                if self.sink.cut(self.length).is_err() {
                    self.torn = true;
                }
                Err(name_path(&self.path, &error))
            }
        }
    }
}

/// Lines to append at once.
pub(super) struct Batch<'a, S> {
    log: &'a Log<S>,
    new: New,
}

/// The content of a batch.
pub(super) struct New {
    lines: String,
    next: u32,
    texts: HashMap<TextKey, u32>,
    turns: HashMap<(Option<u32>, u32), u32>,
}

impl<S> Batch<'_, S> {
    /// The number of a text, which is made only if the file does not have it.
    pub(super) fn text(
        &mut self,
        kind: &str,
        key: TextKey,
        make: impl FnOnce() -> String,
    ) -> io::Result<u32> {
        if let Some(number) = self.log.texts.get(&key).or_else(|| self.new.texts.get(&key)) {
            return Ok(*number);
        }
        let number = self.number()?;
        self.line(&format!("{{\"{kind}\":{{\"number\":{number},\"value\":{}}}}}", make()))?;
        self.new.texts.insert(key, number);
        Ok(number)
    }

    /// The number of a turn.
    pub(super) fn turn(&mut self, after: Option<u32>, message: u32) -> io::Result<u32> {
        let key = (after, message);
        if let Some(number) = self.log.turns.get(&key).or_else(|| self.new.turns.get(&key)) {
            return Ok(*number);
        }
        let number = self.number()?;
        self.line(&format!("{{\"turn\":{}}}", json(&TurnLine { number, after, message })))?;
        self.new.turns.insert(key, number);
        Ok(number)
    }

    /// Adds a line.
    pub(super) fn line(&mut self, line: &str) -> io::Result<()> {
        if line.len() >= LONGEST_LINE {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!(
                    "{}: a record of {} bytes does not fit a cassette (at most {LONGEST_LINE})",
                    self.log.path.display(),
                    line.len()
                ),
            ));
        }
        self.new.lines.push_str(line);
        self.new.lines.push('\n');
        Ok(())
    }

    pub(super) fn finish(self) -> New {
        self.new
    }

    fn number(&mut self) -> io::Result<u32> {
        let number = self.new.next;
        self.new.next = number.checked_add(1).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("{}: the cassette has no more numbers", self.log.path.display()),
            )
        })?;
        Ok(number)
    }
}

fn name_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The name of the file of this number. Names sort as numbers do for the first million.
fn file_name(number: u32) -> String {
    format!("calls-{number:06}.jsonl")
}

/// The number in the name of a cassette file.
pub(super) fn file_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("calls-")?.strip_suffix(".jsonl")?;
    let plain = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with little room that may be unable to shorten files.
    struct Disk {
        content: Vec<u8>,
        room: usize,
        cuts: bool,
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
    }

    fn add(log: &mut Log<Disk>, text: &str) -> io::Result<()> {
        let mut batch = log.batch();
        let number = batch.text("message", text_key(text), || format!("\"{text}\""))?;
        batch.turn(None, number)?;
        let new = batch.finish();
        log.append(new)
    }

    fn after_a_full_disk(cuts: bool) -> String {
        let disk = Disk { content: Vec::new(), room: 1000, cuts };
        let mut log = Log::begin(disk, PathBuf::from("calls")).unwrap();
        add(&mut log, "a").unwrap();
        log.sink.room = 50;
        let error = add(&mut log, "b").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().starts_with("calls: "), "{error}");
        add(&mut log, "b").unwrap_err();
        log.sink.room = 1000;
        add(&mut log, "b").unwrap();
        add(&mut log, "a").unwrap();
        String::from_utf8(log.sink.content).unwrap()
    }

    #[test]
    fn a_full_disk_leaves_whole_lines() {
        insta::assert_snapshot!(after_a_full_disk(true), @r#"
        {"format":"aec-bench cassette","schema_version":1}
        {"message":{"number":1,"value":"a"}}
        {"turn":{"number":2,"message":1}}
        {"message":{"number":7,"value":"b"}}
        {"turn":{"number":8,"message":7}}
        "#);
    }

    #[test]
    fn a_torn_line_is_ended_before_the_next_record() {
        insta::assert_snapshot!(after_a_full_disk(false), @r#"
        {"format":"aec-bench cassette","schema_version":1}
        {"message":{"number":1,"value":"a"}}
        {"turn":{"number":2,"message":1}}
        {"message":{"number":3,"value":"b"}}
        {"turn":{"num
        {"message":{"number":7,"value":"b"}}
        {"turn":{"number":8,"message":7}}
        "#);
    }

    #[test]
    fn names_of_files() {
        assert_eq!(file_name(12), "calls-000012.jsonl");
        for (name, number) in [
            ("calls-000012.jsonl", Some(12)),
            ("calls-1000000.jsonl", Some(1_000_000)),
            ("calls-12.jsonl", None),
            ("calls-+00012.jsonl", None),
            ("calls-99999999999.jsonl", None),
            ("calls-000012.json", None),
        ] {
            assert_eq!(file_number(name), number, "{name}");
        }
    }

    #[test]
    fn records_that_no_reader_would_take_are_refused() {
        let disk = Disk { content: Vec::new(), room: 1000, cuts: true };
        let log = Log::begin(disk, PathBuf::from("calls")).unwrap();
        let error = log.batch().line(&"x".repeat(LONGEST_LINE)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
