//! The rows of a file, one at a time, whether the file has one row per line or is one document.

use std::io::{self, BufRead, Cursor};
use std::path::{Path, PathBuf};

use aec_base::jsonl::Reader;
use bytes::Bytes;
use serde_json::Value;

use crate::rollouts::document::{Piece, Pieces};
use crate::rollouts::json::{self, Parsed};
use crate::rollouts::problem::{Problem, ProblemKind};
use crate::rollouts::recognise::{skip_mark, stands_on_lines};
use crate::rollouts::rollout::Rollout;
use crate::rollouts::value::{Object, kind};
use crate::rollouts::{sample, trace};

/// In bytes.
pub const ROW_LIMIT: usize = 64 * 1024 * 1024;

#[derive(Debug)]
pub struct Row {
    /// Counted from 1.
    pub line: u64,
    /// The row as it was written.
    pub raw: Bytes,
    /// Its rollouts: one, or as many as took part in an episode.
    pub rollouts: Vec<Rollout>,
}

/// The rows of a file, one at a time. A row that cannot be read is returned as a problem, and the next one follows.
pub struct Rows<R> {
    form: Form<R>,
    file: PathBuf,
    limit: usize,
    /// The rows of a page that was itself a row.
    page: Option<Box<Rows<Cursor<Vec<u8>>>>>,
    is_over: bool,
}

enum Form<R> {
    Lines(Reader<R>),
    Document(Pieces<R>),
}

impl<R: BufRead> Rows<R> {
    /// Reads one row per line.
    pub fn lines(mut input: R, file: &Path) -> Self {
        skip_mark(&mut input);
        Self::new(Form::Lines(Reader::new(input)), file, ROW_LIMIT)
    }

    /// Samples of a hosted evaluation: a page, an array, or several of them in a row.
    pub fn document(mut input: R, file: &Path) -> Self {
        skip_mark(&mut input);
        Self::new(Form::Document(Pieces::new(input, ROW_LIMIT, 1)), file, ROW_LIMIT)
    }

    /// Reads rows in the form that the beginning of the file shows.
    pub fn recognise(mut input: R, file: &Path) -> io::Result<Self> {
        let is_lines = stands_on_lines(input.fill_buf()?)
            .unwrap_or_else(|| file.extension().is_some_and(|extension| extension == "jsonl"));
        Ok(if is_lines { Self::lines(input, file) } else { Self::document(input, file) })
    }

    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        if let Form::Document(pieces) = &mut self.form {
            pieces.set_limit(limit);
        }
        self
    }

    fn new(form: Form<R>, file: &Path, limit: usize) -> Self {
        Self { form, file: file.to_owned(), limit, page: None, is_over: false }
    }

    /// The next row that is not inside a page; `None` after storing a page that was itself a row.
    fn next_own(&mut self) -> Option<Result<Row, Problem>> {
        let (line, bytes) = match self.next_bytes() {
            Ok(found) => found?,
            Err(problem) => return Some(Err(problem)),
        };
        match json::parse(&bytes) {
            Ok(Parsed { value: Value::Object(object), .. }) if is_page(&object) => {
                let pieces = Pieces::new(Cursor::new(bytes), self.limit, line);
                self.page = Some(Box::new(Rows::new(Form::Document(pieces), &self.file, self.limit)));
                None
            }
            Ok(parsed) => Some(match rollouts(parsed) {
                Ok(rollouts) => Ok(Row { line, raw: bytes.into(), rollouts }),
                Err(kind) => Err(Problem::new(&self.file, Some(line), kind)),
            }),
            Err(kind) => {
                let kind = self.torn_or(kind);
                Some(Err(Problem::new(&self.file, Some(line), kind)))
            }
        }
    }

    /// Only the last row of a file can be torn; elsewhere, a row that ends too early is malformed.
    fn torn_or(&mut self, kind: ProblemKind) -> ProblemKind {
        let is_last = match &mut self.form {
            Form::Lines(reader) => reader.is_at_end().unwrap_or(false),
            Form::Document(_) => false,
        };
        match kind {
            ProblemKind::Torn if !is_last => ProblemKind::Malformed("it ends in the middle".to_owned()),
            kind => kind,
        }
    }

    /// The bytes of the next row, and the line on which they begin.
    fn next_bytes(&mut self) -> Result<Option<(u64, Vec<u8>)>, Problem> {
        while !self.is_over {
            let found = match &mut self.form {
                Form::Lines(reader) => match reader.next_line(self.limit) {
                    Ok(Some(line)) if line.is_too_long() => {
                        Found::Problem(line.number, ProblemKind::TooLong { limit: self.limit })
                    }
                    Ok(Some(line)) if line.bytes.iter().all(u8::is_ascii_whitespace) => continue,
                    Ok(Some(line)) => Found::Row(line.number, line.bytes.to_vec()),
                    Ok(None) => Found::End,
                    Err(error) => Found::Unreadable(reader.next_number(), error),
                },
                Form::Document(pieces) => match pieces.next_piece() {
                    Ok(Some(piece)) => self.of_piece(piece),
                    Ok(None) => Found::End,
                    Err(error) => Found::Unreadable(pieces.line(), error),
                },
            };
            match found {
                Found::Row(line, bytes) => return Ok(Some((line, bytes))),
                Found::Page => {}
                Found::Problem(line, kind) => return Err(Problem::new(&self.file, Some(line), kind)),
                Found::End => self.is_over = true,
                Found::Unreadable(line, error) => {
                    self.is_over = true;
                    return Err(Problem::new(&self.file, Some(line), error.into()));
                }
            }
        }
        Ok(None)
    }

    fn of_piece(&mut self, piece: Piece) -> Found {
        match piece {
            Piece::Sample { line, bytes } | Piece::Object { line, bytes, is_page: false } => {
                Found::Row(line, bytes)
            }
            Piece::Object { line, bytes, is_page: true } => match json::parse(&bytes) {
                Ok(_) => Found::Page,
                Err(kind) => Found::Problem(line, kind),
            },
            Piece::TooLong { line } => Found::Problem(line, ProblemKind::TooLong { limit: self.limit }),
            Piece::Torn { line } => Found::Problem(line, ProblemKind::Torn),
            Piece::Broken { line, found } => {
                let what = format!("{found} where `{{` or `[` or their end was expected");
                Found::Problem(line, ProblemKind::Malformed(what))
            }
        }
    }
}

enum Found {
    Row(u64, Vec<u8>),
    /// The metadata of a page.
    Page,
    Problem(u64, ProblemKind),
    End,
    Unreadable(u64, io::Error),
}

impl<R: BufRead> Iterator for Rows<R> {
    type Item = Result<Row, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(page) = &mut self.page {
                let row = page.next();
                if row.is_some() {
                    return row;
                }
                self.page = None;
            }
            let row = self.next_own();
            if row.is_some() || self.page.is_none() {
                return row;
            }
        }
    }
}

fn is_page(object: &Object) -> bool {
    object.get("samples").is_some_and(Value::is_array) && !sample::is_sample(object)
}

/// Reads a sample of a hosted evaluation; `evaluation` names it in problems.
pub fn sample(raw: Bytes, evaluation: &Path) -> Result<Row, Problem> {
    let read = match raw.len() {
        ..=ROW_LIMIT => json::parse(&raw).and_then(rollouts),
        _ => Err(ProblemKind::TooLong { limit: ROW_LIMIT }),
    };
    match read {
        Ok(rollouts) => Ok(Row { line: 1, raw, rollouts }),
        Err(kind) => Err(Problem::new(evaluation, None, kind)),
    }
}

pub fn rollouts(row: Parsed) -> Result<Vec<Rollout>, ProblemKind> {
    let Parsed { value, notes } = row;
    let object = match value {
        Value::Object(object) => object,
        other => return Err(ProblemKind::NotARollout { found: kind(&other).to_owned() }),
    };
    if trace::is_episode(&object) {
        Ok(trace::read_episode(object, notes))
    } else if trace::is_trace(&object) {
        Ok(vec![trace::read(object, notes)])
    } else if sample::is_sample(&object) {
        Ok(vec![sample::read(object, notes)])
    } else {
        Err(ProblemKind::NotARollout { found: "an object without these keys".to_owned() })
    }
}
