//! One file of a cassette: scanned once for positions, then read in pieces on demand.

use std::fs::File;
use std::io::{self, BufReader};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use aec_base::document::Shared;
use aec_base::file::{Links, open_regular};
use aec_base::jsonl::{self, Reader};
use aec_base::problem::Problem;
use indexmap::IndexSet;
use serde::de::DeserializeOwned;

use super::FAMILY;
use super::format::{CallLine, FORMAT, Header, LONGEST_LINE, Line, Outcome, SCHEMA_VERSION, TurnLine};
use super::log::short;
use super::shelf::Entry;
use crate::message::{Message, Tool};

/// Further problems of one file are only counted.
const MOST_PROBLEMS: usize = 20;

/// A file and the positions of its texts.
pub(super) struct Tape {
    path: PathBuf,
    file: File,
    texts: Vec<Text>,
    turns: Vec<Turn>,
}

/// The position of a text.
struct Text {
    number: u32,
    length: u32,
    offset: u64,
}

/// A message after other ones.
struct Turn {
    number: u32,
    after: Option<u32>,
    message: u32,
    /// Number of messages up to this one.
    depth: u32,
}

/// A recorded call that cannot be read any more.
#[derive(Clone, Debug)]
pub(super) struct Unreadable {
    pub(super) file: PathBuf,
    pub(super) why: String,
}

impl Tape {
    /// Scans a file. `None` if it is unusable; then the problems contain an error.
    pub(super) fn scan(
        path: &Path,
        index: u32,
        scopes: &mut IndexSet<Box<str>>,
        problems: &mut Vec<Problem>,
    ) -> Option<(Self, Vec<Entry>)> {
        let file = match open_regular(path, u64::MAX, Links::Refuse) {
            Ok((file, _)) => file,
            Err(error) => {
                let what = format!("cannot read the cassette: {error}");
                problems.push(
                    Problem::error(what).id(FAMILY.id(Shared::Unreadable)).fix(error.fix()).in_file(path),
                );
                return None;
            }
        };
        let tape = Self { path: path.to_path_buf(), file, texts: Vec::new(), turns: Vec::new() };
        let mut scan = Scan { tape, index, scopes, entries: Vec::new(), problems: Vec::new(), unsaid: 0 };
        let read = scan.read();
        let Scan { mut tape, mut entries, problems: found, unsaid, .. } = scan;
        problems.extend(found);
        if unsaid > 0 {
            let what = format!("{unsaid} more damaged lines");
            problems.push(Problem::warning(what).id(FAMILY.number(16)).in_file(path));
        }
        if let Err(problem) = read {
            problems.push(*problem);
            return None;
        }
        tape.texts.shrink_to_fit();
        tape.turns.shrink_to_fit();
        entries.shrink_to_fit();
        Some((tape, entries))
    }

    pub(super) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn call(&self, entry: &Entry) -> Result<CallLine, Unreadable> {
        let bytes = self.bytes(entry.offset, entry.length)?;
        match aec_base::json::from_slice(&bytes) {
            Ok(Line::Call(line)) => Ok(*line),
            _ => Err(self.unreadable("it was changed after it was opened")),
        }
    }

    pub(super) fn message(&self, number: u32) -> Result<Message, Unreadable> {
        self.text(number)
    }

    pub(super) fn tools(&self, number: u32) -> Result<Vec<Tool>, Unreadable> {
        self.text(number)
    }

    /// The numbers of the messages up to a turn, oldest first.
    pub(super) fn conversation(&self, turn: Option<u32>) -> Vec<u32> {
        let mut numbers = Vec::new();
        let mut next = turn;
        while let Some(turn) = next.and_then(|number| self.turn(number)) {
            numbers.push(turn.message);
            // Turns refer only backwards, so this ends.
            next = turn.after;
        }
        numbers.reverse();
        numbers
    }

    fn text<T: DeserializeOwned>(&self, number: u32) -> Result<T, Unreadable> {
        let text =
            self.find_text(number).ok_or_else(|| self.unreadable(&format!("it has no text {number}")))?;
        let bytes = self.bytes(text.offset, text.length)?;
        let parsed = match aec_base::json::from_slice(&bytes) {
            Ok(Line::Message(line) | Line::Tools(line)) => aec_base::json::from_str(line.value.get()),
            Ok(_) => return Err(self.unreadable("it was changed after it was opened")),
            Err(error) => Err(error),
        };
        parsed.map_err(|error| self.unreadable(&format!("text {number}: {error}")))
    }

    fn bytes(&self, offset: u64, length: u32) -> Result<Vec<u8>, Unreadable> {
        let mut bytes = vec![0; length as usize];
        self.file.read_exact_at(&mut bytes, offset).map_err(|error| self.unreadable(&error.to_string()))?;
        Ok(bytes)
    }

    fn unreadable(&self, why: &str) -> Unreadable {
        Unreadable { file: self.path.clone(), why: why.to_owned() }
    }

    fn find_text(&self, number: u32) -> Option<&Text> {
        self.texts.binary_search_by_key(&number, |text| text.number).ok().map(|at| &self.texts[at])
    }

    fn turn(&self, number: u32) -> Option<&Turn> {
        self.turns.binary_search_by_key(&number, |turn| turn.number).ok().map(|at| &self.turns[at])
    }
}

/// The scan of a file.
struct Scan<'a> {
    tape: Tape,
    index: u32,
    scopes: &'a mut IndexSet<Box<str>>,
    entries: Vec<Entry>,
    problems: Vec<Problem>,
    unsaid: usize,
}

/// Why a line is unusable.
enum Damage {
    /// It is not a valid record.
    Form(String),
    /// It refers to an undefined number.
    Reference(String),
}

impl Scan<'_> {
    fn read(&mut self) -> Result<(), Box<Problem>> {
        let path = self.tape.path.clone();
        let failed = |error: io::Error| {
            let what = format!("cannot read the cassette: {error}");
            Box::new(Problem::error(what).id(FAMILY.id(Shared::Unreadable)).in_file(&path))
        };
        let file = self.tape.file.try_clone().map_err(failed)?;
        let mut lines = Reader::new(BufReader::with_capacity(64 * 1024, file));
        if !self.header(lines.next_line(LONGEST_LINE).map_err(failed)?)? {
            return Ok(());
        }
        while let Some(line) = lines.next_line(LONGEST_LINE).map_err(failed)? {
            let number = u32::try_from(line.number).unwrap_or(u32::MAX);
            if !line.is_whole {
                let what = "the last line is not complete and is left out";
                let note = Problem::note(what)
                    .id(FAMILY.number(13))
                    .why("the recording process was stopped while it wrote, or is still writing");
                self.problems.push(self.at(note, number));
                return Ok(());
            }
            let taken = if line.is_too_long() {
                Err(Damage::Form(format!("it is {} bytes long, more than {LONGEST_LINE}", line.length)))
            } else {
                self.line(line.bytes, line.offset)
            };
            if let Err(damage) = taken {
                self.report(number, damage);
            }
        }
        Ok(())
    }

    /// Checks the first line; `false` if nothing follows it.
    fn header(&mut self, line: Option<jsonl::Line<'_>>) -> Result<bool, Box<Problem>> {
        // A process killed at once leaves an empty file or part of the line that it always writes first.
        let born = line.filter(|line| line.is_whole || !Header::line().as_bytes().starts_with(line.bytes));
        let Some(line) = born else {
            let note = Problem::note("the cassette is empty").id(FAMILY.number(15));
            self.problems.push(note.in_file(&self.tape.path));
            return Ok(false);
        };
        match aec_base::json::from_slice::<Header>(line.bytes) {
            Ok(header) if header.format == FORMAT && header.schema_version > SCHEMA_VERSION => {
                let what = format!(
                    "the cassette has schema version {}; this aec-bench reads up to {SCHEMA_VERSION}",
                    header.schema_version
                );
                let problem = Problem::error(what)
                    .id(FAMILY.number(12))
                    .fix("use the aec-bench that recorded it, or a newer one");
                Err(Box::new(self.at(problem, 1)))
            }
            Ok(header) if header.format == FORMAT && header.schema_version > 0 => Ok(true),
            _ => {
                let problem = Problem::error("this is not a cassette: its first line does not say so")
                    .id(FAMILY.number(11))
                    .fix("remove the file from the directory");
                Err(Box::new(self.at(problem, 1)))
            }
        }
    }

    fn line(&mut self, line: &[u8], offset: u64) -> Result<(), Damage> {
        let length = u32::try_from(line.len()).unwrap_or(u32::MAX);
        match aec_base::json::from_slice(line) {
            Ok(Line::Message(text) | Line::Tools(text)) => {
                self.check_order(text.number)?;
                self.tape.texts.push(Text { number: text.number, length, offset });
                Ok(())
            }
            Ok(Line::Turn(turn)) => self.turn(&turn),
            Ok(Line::Call(call)) => self.call(&call, length, offset),
            // Serde also counts lines, but sees only this one.
            Err(error) => Err(Damage::Form(error.to_string().replace(" at line 1 column ", " at column "))),
        }
    }

    /// Numbers must increase, so that they can be searched and nothing refers to itself.
    fn check_order(&self, number: u32) -> Result<(), Damage> {
        let text = self.tape.texts.last().map_or(0, |text| text.number);
        let turn = self.tape.turns.last().map_or(0, |turn| turn.number);
        if number > text.max(turn) {
            Ok(())
        } else {
            Err(Damage::Form(format!("its number {number} was given before")))
        }
    }

    fn turn(&mut self, turn: &TurnLine) -> Result<(), Damage> {
        self.check_order(turn.number)?;
        self.check_text("message", turn.message)?;
        let depth = self.depth(turn.after)?.saturating_add(1);
        let TurnLine { number, after, message } = *turn;
        self.tape.turns.push(Turn { number, after, message, depth });
        Ok(())
    }

    fn call(&mut self, call: &CallLine, length: u32, offset: u64) -> Result<(), Damage> {
        let messages = self.depth(call.request.turn)?;
        if let Some(tools) = call.request.tools {
            self.check_text("tools", tools)?;
        }
        if let Outcome::Reply(reply) = &call.outcome {
            self.check_text("message", reply.message)?;
        }
        let scope = match self.scopes.get_index_of(call.scope.as_str()) {
            Some(index) => index,
            None => self.scopes.insert_full(call.scope.as_str().into()).0,
        };
        self.entries.push(Entry {
            digest: short(&call.digest),
            offset,
            length,
            scope: u32::try_from(scope).unwrap_or(u32::MAX),
            occurrence: call.occurrence,
            file: self.index,
            messages,
            redacted: call.redacted,
        });
        Ok(())
    }

    fn depth(&self, turn: Option<u32>) -> Result<u32, Damage> {
        let Some(number) = turn else { return Ok(0) };
        match self.tape.turn(number) {
            Some(turn) => Ok(turn.depth),
            None => Err(Damage::Reference(format!("turn {number}"))),
        }
    }

    fn check_text(&self, kind: &str, number: u32) -> Result<(), Damage> {
        match self.tape.find_text(number) {
            Some(_) => Ok(()),
            None => Err(Damage::Reference(format!("{kind} {number}"))),
        }
    }

    fn report(&mut self, line: u32, damage: Damage) {
        if self.problems.len() >= MOST_PROBLEMS {
            self.unsaid += 1;
            return;
        }
        let problem = match damage {
            Damage::Form(why) => Problem::warning(format!("the line is damaged and left out: {why}"))
                .id(FAMILY.id(Shared::Syntax)),
            Damage::Reference(what) => Problem::warning(format!(
                "the line is left out: it refers to {what}, which is not in the file"
            ))
            .id(FAMILY.number(14)),
        };
        self.problems.push(self.at(problem, line));
    }

    fn at(&self, problem: Problem, line: u32) -> Problem {
        Problem { line: Some(line), ..problem.in_file(&self.tape.path) }
    }
}
