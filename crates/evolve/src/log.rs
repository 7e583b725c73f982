//! The log of a run: one JSON object per line, appended and synced before the run acts on it. A partial line, left by a
//! process that was killed while writing, is removed before the next write.

use std::io::{self, Read as _};
use std::path::Path;

use aec_base::file::write_atomic;
use aec_base::jsonl::{self, Appender};
use aec_base::problem::Problem;
use aec_base::secret::Redactor;
use aec_base::text;
use aec_base::timestamp::Timestamp;

use crate::FAMILY;
use crate::event::{Entry, Event, LOG_VERSION};

pub const LOG_FILE: &str = "events.jsonl";
/// A longer log is a mistake or an attack.
const LOG_LIMIT: u64 = 2 * 1024 * 1024 * 1024;

pub struct Log {
    lines: Appender,
    next: u64,
    redactor: Redactor,
}

impl Log {
    /// Starts a log with its first event. No log may exist yet. It appears together with that event or not at all, so
    /// every log can be resumed.
    pub fn create(directory: &Path, redactor: Redactor, first: Event) -> io::Result<Self> {
        let path = directory.join(LOG_FILE);
        if path.symlink_metadata().is_ok() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("{}: there is a log already", path.display()),
            ));
        }
        let (_, line) = line(0, first, &redactor)?;
        write_atomic(&path, &line)?;
        Ok(Self { lines: Appender::open(&path)?, next: 1, redactor })
    }

    /// Continues a log: returns it with its entries.
    pub fn resume(directory: &Path, redactor: Redactor) -> Result<(Self, Vec<Entry>), Vec<Problem>> {
        let path = directory.join(LOG_FILE);
        let Read { entries, whole } = read(&path)?;
        let lines = Appender::open_after(&path, whole).map_err(|error| vec![unwritable(&path, &error)])?;
        let next = entries.last().map_or(0, |entry| entry.sequence + 1);
        Ok((Self { lines, next, redactor }, entries))
    }

    /// Removes known secrets from texts.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Adds an event. It is durable when this returns.
    pub fn add(&mut self, event: Event) -> io::Result<Entry> {
        let (entry, line) = line(self.next, event, &self.redactor)?;
        self.lines.append_durably(&line)?;
        self.next += 1;
        Ok(entry)
    }
}

/// An event as it is written. The returned entry has the secrets removed too, so that the state equals the log.
fn line(sequence: u64, event: Event, redactor: &Redactor) -> io::Result<(Entry, Vec<u8>)> {
    let entry = Entry { sequence, at: Timestamp::now_in_milliseconds(), event };
    let told = serde_json::to_value(&entry)?;
    let mut scrubbed = told.clone();
    redactor.scrub_value(&mut scrubbed);
    let line = jsonl::line(&scrubbed)?;
    let entry = if scrubbed == told { entry } else { serde_json::from_value(scrubbed)? };
    Ok((entry, line))
}

struct Read {
    entries: Vec<Entry>,
    /// Bytes up to the end of the last whole line.
    whole: u64,
}

pub fn entries(directory: &Path) -> Result<Vec<Entry>, Vec<Problem>> {
    read(&directory.join(LOG_FILE)).map(|read| read.entries)
}

fn read(path: &Path) -> Result<Read, Vec<Problem>> {
    let unreadable = |error: &dyn std::fmt::Display| {
        let problem = Problem::error(format!("the log of the run cannot be read: {error}"));
        vec![problem.id(FAMILY.number(30)).fix("name a run of `history`").in_file(path)]
    };
    let (file, _) = aec_base::file::open_regular(path, LOG_LIMIT, aec_base::file::Links::Refuse)
        .map_err(|error| unreadable(&error))?;
    let mut bytes = Vec::new();
    file.take(LOG_LIMIT).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    let mut entries = Vec::new();
    let (lines, torn) = jsonl::split(&bytes);
    for line in lines {
        let entry: Entry = aec_base::json::from_slice(line)
            .map_err(|error| vec![damaged(path, entries.len() + 1, &error.to_string())])?;
        if entry.sequence != entries.len() as u64 {
            return Err(vec![damaged(path, entries.len() + 1, "lines are missing or duplicated")]);
        }
        entries.push(entry);
    }
    let whole = (bytes.len() - torn.len()) as u64;
    match entries.first().map(|entry| &entry.event) {
        Some(Event::RunStarted(started)) if started.schema_version == LOG_VERSION => {
            Ok(Read { entries, whole })
        }
        Some(Event::RunStarted(started)) => {
            let what = format!(
                "the log has version {}, this program reads version {LOG_VERSION}",
                started.schema_version
            );
            let problem = Problem::error(what).id(FAMILY.number(31));
            Err(vec![problem.fix("use the program that made it").in_file(path)])
        }
        _ => Err(vec![damaged(path, 1, "it does not begin with the start of a run")]),
    }
}

fn damaged(path: &Path, line: usize, why: &str) -> Problem {
    let mut problem = Problem::error("the log of the run is damaged")
        .id(FAMILY.number(32))
        .why(text::printable(why).into_owned())
        .fix("restore it from a copy; nothing was changed")
        .in_file(path);
    problem.line = u32::try_from(line).ok();
    problem
}

fn unwritable(path: &Path, error: &io::Error) -> Problem {
    Problem::error(format!("the log of the run cannot be written: {error}"))
        .id(FAMILY.number(33))
        .fix("check the directory, its permissions and the free space")
        .in_file(path)
}

#[cfg(test)]
mod tests {
    use aec_base::digest::Digest;
    use aec_base::name::Name;

    use super::*;
    use crate::event::{Kind, RunStarted};

    fn started() -> Event {
        let name = |text: &str| Name::parse(text).unwrap();
        Event::RunStarted(Box::new(RunStarted {
            schema_version: LOG_VERSION,
            run: name("a-1"),
            kind: Kind::Evolution,
            experiment: name("evolve-a-1"),
            roots: None,
            workspace: "workspaces/a".to_owned(),
            workspace_name: name("a"),
            baseline: Digest::of(b"a"),
            prompt_letters: 10,
            agents: vec!["evolve".to_owned()],
            horizon: 10,
            settings: serde_json::json!({}),
            division: None,
            tool_version: "0".to_owned(),
        }))
    }

    #[test]
    fn half_a_line_is_taken_away() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = Log::create(directory.path(), Redactor::default(), started()).unwrap();
        log.add(Event::Resumed { tool_version: "1".to_owned() }).unwrap();
        let path = directory.path().join(LOG_FILE);
        let whole = fs_err::read(&path).unwrap();
        for cut in [whole.len() + 1, whole.len() + 20] {
            let mut bytes = whole.clone();
            bytes.extend_from_slice(&b"{\"sequence\":2,\"at\":\"2026-01-01"[..cut - whole.len()]);
            fs_err::write(&path, &bytes).unwrap();
            assert_eq!(entries(directory.path()).unwrap().len(), 2);
            let (mut log, read) = Log::resume(directory.path(), Redactor::default()).unwrap();
            assert_eq!(read.len(), 2);
            assert_eq!(log.add(Event::Resumed { tool_version: "2".to_owned() }).unwrap().sequence, 2);
            assert_eq!(entries(directory.path()).unwrap().len(), 3);
        }
        assert!(Log::create(directory.path(), Redactor::default(), started()).is_err(), "one is there");
    }

    #[test]
    fn damage_is_named_and_nothing_is_changed() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = Log::create(directory.path(), Redactor::default(), started()).unwrap();
        log.add(Event::Resumed { tool_version: "1".to_owned() }).unwrap();
        let path = directory.path().join(LOG_FILE);
        let text = fs_err::read_to_string(&path).unwrap();
        let second = text.lines().nth(1).unwrap().to_owned();
        let first = text.lines().next().unwrap().to_owned();
        for (broken, id) in [
            (String::new(), "X032"),
            ("\u{0}\n".to_owned(), "X032"),
            (format!("{second}\n"), "X032"),
            (format!("{first}\n{second}\n{second}\n"), "X032"),
            (format!("{first}\nnot json\n{second}\n"), "X032"),
            (format!("{}\n", first.replace("\"schema_version\":1", "\"schema_version\":2")), "X031"),
            (format!("{first}\n{}\n", second.replace("resumed", "unheard_of")), "X032"),
        ] {
            fs_err::write(&path, &broken).unwrap();
            let problem = Log::resume(directory.path(), Redactor::default()).err().unwrap().remove(0);
            assert_eq!(problem.id.as_deref(), Some(id), "{broken}");
            assert_eq!(fs_err::read_to_string(&path).unwrap(), broken);
        }
        fs_err::remove_file(&path).unwrap();
        assert_eq!(entries(directory.path()).unwrap_err()[0].id.as_deref(), Some("X030"));
    }
}
