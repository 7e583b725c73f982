//! The file to which one process appends: its present contents, and atomic writing of records.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use aec_base::digest::Digest;
use aec_base::jsonl::Appender;

use super::canonical::json;
use super::format::{Header, LONGEST_LINE, TurnLine};

/// Identifies a text within the process. Never written.
pub(super) type TextKey = [u8; 16];

pub(super) fn text_key(text: &str) -> TextKey {
    short(&Digest::of(text.as_bytes()))
}

/// The first half of a digest: enough to distinguish everything in one directory.
pub(super) fn short(digest: &Digest) -> [u8; 16] {
    let (half, _) = digest.bytes().split_at(16);
    half.try_into().unwrap_or_default()
}

/// A file and the numbers of its definitions.
pub(super) struct Log {
    lines: Appender,
    next: u32,
    texts: HashMap<TextKey, u32>,
    turns: HashMap<(Option<u32>, u32), u32>,
}

impl Log {
    /// Creates a new file in the directory, which no other process uses.
    pub(super) fn create(directory: &Path) -> io::Result<Self> {
        fs_err::create_dir_all(directory)?;
        let mut number = 0;
        for entry in fs_err::read_dir(directory)? {
            number = number.max(file_number(&entry?.file_name().to_string_lossy()).unwrap_or(0));
        }
        loop {
            number = number.saturating_add(1);
            let path = directory.join(file_name(number));
            match Appender::create(&path) {
                // A file without a first line is useless.
                Ok(lines) => return Self::begin(lines).inspect_err(|_| drop(fs_err::remove_file(&path))),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < u32::MAX => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes sure that the file survives a crash of the machine.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.lines.sync()
    }

    fn begin(mut lines: Appender) -> io::Result<Self> {
        lines.append(Header::line().as_bytes())?;
        Ok(Self { lines, next: 1, texts: HashMap::new(), turns: HashMap::new() })
    }

    /// Collects lines that refer to each other, for [`Self::append`].
    pub(super) fn batch(&self) -> Batch<'_> {
        Batch {
            log: self,
            new: New { lines: String::new(), next: self.next, texts: HashMap::new(), turns: HashMap::new() },
        }
    }

    /// Appends either all lines of a batch or, as far as readers can see, none.
    pub(super) fn append(&mut self, new: New) -> io::Result<()> {
        // A failed batch may have left its numbers in the file, so they are not reused.
        self.next = new.next;
        self.lines.append(new.lines.as_bytes())?;
        self.texts.extend(new.texts);
        self.turns.extend(new.turns);
        Ok(())
    }
}

/// Lines to append together.
pub(super) struct Batch<'a> {
    log: &'a Log,
    new: New,
}

/// The content of a batch.
pub(super) struct New {
    lines: String,
    next: u32,
    texts: HashMap<TextKey, u32>,
    turns: HashMap<(Option<u32>, u32), u32>,
}

impl Batch<'_> {
    /// The number of a text, which is added unless the file has it.
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

    /// The number of a turn, which is added unless the file has it.
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

    pub(super) fn line(&mut self, line: &str) -> io::Result<()> {
        if line.len() >= LONGEST_LINE {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!(
                    "{}: a record of {} bytes does not fit a cassette (at most {LONGEST_LINE})",
                    self.log.lines.path().display(),
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
                format!("{}: the cassette has no more numbers", self.log.lines.path().display()),
            )
        })?;
        Ok(number)
    }
}

/// The name of the file with this number. Up to a million, names sort like numbers.
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

    fn add(log: &mut Log, text: &str) -> io::Result<()> {
        let mut batch = log.batch();
        let number = batch.text("message", text_key(text), || format!("\"{text}\""))?;
        batch.turn(None, number)?;
        let new = batch.finish();
        log.append(new)
    }

    #[test]
    fn numbers_of_lines_that_did_not_get_through_are_not_given_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = Log::create(directory.path()).unwrap();
        add(&mut log, "a").unwrap();
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let usual = std::mem::replace(&mut log.lines, Appender::new(full, Path::new("calls")));
        let error = add(&mut log, "b").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        log.lines = usual;
        add(&mut log, "b").unwrap();
        add(&mut log, "a").unwrap();
        let text = fs_err::read_to_string(directory.path().join(file_name(1))).unwrap();
        insta::assert_snapshot!(text, @r#"
        {"format":"aec-bench cassette","schema_version":1}
        {"message":{"number":1,"value":"a"}}
        {"turn":{"number":2,"message":1}}
        {"message":{"number":5,"value":"b"}}
        {"turn":{"number":6,"message":5}}
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
        let directory = tempfile::tempdir().unwrap();
        let log = Log::create(directory.path()).unwrap();
        let error = log.batch().line(&"x".repeat(LONGEST_LINE)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
