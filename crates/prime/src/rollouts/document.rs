//! Splits a JSON document into samples, one after the other: a page `{"samples": […], "total": …}`, the same below
//! `data`, a bare array, and any number of these in a row. The document is never held in memory as a whole.

use std::io::{self, BufRead};

/// A piece of a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Sample {
        line: u64,
        bytes: Vec<u8>,
    },
    /// An object without its samples: the other members of a page, or an object that is itself a sample.
    Object {
        line: u64,
        bytes: Vec<u8>,
        /// Whether it contained samples.
        is_page: bool,
    },
    /// A sample, or the rest of a page, that is longer than allowed.
    TooLong {
        line: u64,
    },
    /// The document ends in the middle.
    Torn {
        /// The line on which the incomplete piece begins.
        line: u64,
    },
    /// The document is not JSON from here on; the rest cannot be split.
    Broken {
        line: u64,
        found: String,
    },
}

/// Cuts a document into pieces.
pub(crate) struct Pieces<R> {
    input: R,
    limit: usize,
    line: u64,
    open: Vec<Open>,
    is_over: bool,
}

/// A bracket that is not closed yet.
enum Open {
    Array,
    Object(OpenObject),
}

struct OpenObject {
    line: u64,
    /// The members that are not samples.
    members: Vec<u8>,
    is_page: bool,
    is_too_long: bool,
}

enum Captured {
    Whole(Vec<u8>),
    TooLong,
    Torn,
}

impl<R: BufRead> Pieces<R> {
    pub(crate) fn new(input: R, limit: usize, line: u64) -> Self {
        Self { input, limit, line, open: Vec::new(), is_over: false }
    }

    /// The current line.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// `None` at the end.
    pub(crate) fn next_piece(&mut self) -> io::Result<Option<Piece>> {
        while !self.is_over {
            let found = self.skip_blanks()?;
            let piece = match self.open.pop() {
                None => self.begin(found),
                Some(Open::Array) => self.item(found)?,
                Some(Open::Object(object)) => self.member(object, found)?,
            };
            if piece.is_some() {
                return Ok(piece);
            }
        }
        Ok(None)
    }

    fn begin(&mut self, found: Option<u8>) -> Option<Piece> {
        match found {
            None => {
                self.is_over = true;
                None
            }
            Some(b'[' | b'{') => {
                self.descend(found);
                None
            }
            Some(byte) => Some(self.broken(byte)),
        }
    }

    fn descend(&mut self, bracket: Option<u8>) {
        self.input.consume(1);
        self.open.push(match bracket {
            Some(b'{') => Open::Object(OpenObject {
                line: self.line,
                members: Vec::new(),
                is_page: false,
                is_too_long: false,
            }),
            _ => Open::Array,
        });
    }

    fn item(&mut self, found: Option<u8>) -> io::Result<Option<Piece>> {
        match found {
            None => return Ok(Some(self.torn(self.line))),
            Some(b']') => {
                self.input.consume(1);
                return Ok(None);
            }
            Some(byte @ (b'}' | b':')) => return Ok(Some(self.broken(byte))),
            Some(_) => {}
        }
        self.open.push(Open::Array);
        let line = self.line;
        Ok(Some(match self.capture()? {
            Captured::Whole(bytes) => Piece::Sample { line, bytes },
            Captured::TooLong => Piece::TooLong { line },
            Captured::Torn => self.torn(line),
        }))
    }

    fn member(&mut self, mut object: OpenObject, found: Option<u8>) -> io::Result<Option<Piece>> {
        match found {
            None => return Ok(Some(self.torn(object.line))),
            Some(b'}') => {
                self.input.consume(1);
                return Ok(self.close(object));
            }
            Some(b'"') => {}
            Some(byte) => return Ok(Some(self.broken(byte))),
        }
        let key = match self.capture()? {
            Captured::Whole(key) => key,
            Captured::TooLong => Vec::new(),
            Captured::Torn => return Ok(Some(self.torn(object.line))),
        };
        match self.skip_blanks()? {
            Some(b':') => self.input.consume(1),
            Some(byte) => return Ok(Some(self.broken(byte))),
            None => return Ok(Some(self.torn(object.line))),
        }
        let value = self.skip_blanks()?;
        let is_samples = key == b"\"samples\"";
        let is_wrapper = key == b"\"data\"" && self.open.is_empty();
        object.is_page |= is_samples || (is_wrapper && value == Some(b'['));
        if (is_samples && value == Some(b'[')) || (is_wrapper && matches!(value, Some(b'[' | b'{'))) {
            self.open.push(Open::Object(object));
            self.descend(value);
            return Ok(None);
        }
        match self.capture()? {
            Captured::Torn => return Ok(Some(self.torn(object.line))),
            Captured::Whole(value) => object.add(&key, &value, self.limit),
            Captured::TooLong => object.is_too_long = true,
        }
        self.open.push(Open::Object(object));
        Ok(None)
    }

    /// The piece that a complete object makes, if any.
    fn close(&mut self, object: OpenObject) -> Option<Piece> {
        let OpenObject { line, mut members, is_page, is_too_long } = object;
        members.insert(0, b'{');
        members.push(b'}');
        match self.open.last_mut() {
            // `data` of an object that is itself a sample.
            Some(Open::Object(outer)) if !is_page => {
                outer.is_too_long |= is_too_long;
                outer.add(b"\"data\"", &members, self.limit);
                None
            }
            outer => {
                if let Some(Open::Object(outer)) = outer {
                    outer.is_page = true;
                }
                Some(if is_too_long {
                    Piece::TooLong { line }
                } else {
                    Piece::Object { line, bytes: members, is_page }
                })
            }
        }
    }

    fn torn(&mut self, line: u64) -> Piece {
        self.is_over = true;
        Piece::Torn { line }
    }

    fn broken(&mut self, byte: u8) -> Piece {
        self.is_over = true;
        Piece::Broken { line: self.line, found: format!("`{}`", byte.escape_ascii()) }
    }

    /// Skips blanks and commas, and returns the next byte.
    fn skip_blanks(&mut self) -> io::Result<Option<u8>> {
        loop {
            let chunk = fill(&mut self.input)?;
            let blanks =
                chunk.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',')).count();
            let next = chunk.get(blanks).copied();
            let is_end = chunk.is_empty();
            self.line += line_breaks(&chunk[..blanks]);
            self.input.consume(blanks);
            if next.is_some() || is_end {
                return Ok(next);
            }
        }
    }

    /// Takes the value that begins here.
    fn capture(&mut self) -> io::Result<Captured> {
        let mut bytes = Vec::new();
        let mut is_too_long = false;
        let mut scan = Scan::default();
        loop {
            let chunk = fill(&mut self.input)?;
            if chunk.is_empty() {
                return Ok(Captured::Torn);
            }
            let end = scan.end(chunk);
            let part = &chunk[..end.unwrap_or(chunk.len())];
            self.line += line_breaks(part);
            if bytes.len() + part.len() > self.limit {
                is_too_long = true;
                bytes = Vec::new();
            } else if !is_too_long {
                bytes.extend_from_slice(part);
            }
            let used = part.len();
            self.input.consume(used);
            if end.is_some() {
                return Ok(if is_too_long { Captured::TooLong } else { Captured::Whole(bytes) });
            }
        }
    }
}

impl OpenObject {
    fn add(&mut self, key: &[u8], value: &[u8], limit: usize) {
        if self.members.len() + key.len() + value.len() > limit {
            self.is_too_long = true;
            return;
        }
        if !self.members.is_empty() {
            self.members.push(b',');
        }
        self.members.extend_from_slice(key);
        self.members.push(b':');
        self.members.extend_from_slice(value);
    }
}

fn fill(input: &mut impl BufRead) -> io::Result<&[u8]> {
    while let Err(error) = input.fill_buf() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    input.fill_buf()
}

#[expect(clippy::naive_bytecount, reason = "a few percent of reading; not worth another crate")]
fn line_breaks(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Finds the end of one value across chunks. It counts brackets, so that no depth exhausts the stack.
#[derive(Default)]
pub(crate) struct Scan {
    depth: usize,
    in_text: bool,
    is_escaped: bool,
    is_begun: bool,
}

impl Scan {
    /// The number of bytes of the chunk that belong to the value, if it ends here.
    fn end(&mut self, chunk: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(byte) = chunk.get(at) {
            if self.in_text {
                if self.is_escaped {
                    self.is_escaped = false;
                    at += 1;
                    continue;
                }
                at += chunk[at..].iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
                match chunk[at] {
                    b'\\' => self.is_escaped = true,
                    _ => self.in_text = false,
                }
                at += 1;
                if !self.in_text && self.depth == 0 {
                    return Some(at);
                }
                continue;
            }
            match byte {
                b'"' => self.in_text = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth == 0 => return Some(at),
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                b',' | b' ' | b'\t' | b'\r' | b'\n' if self.depth == 0 && self.is_begun => return Some(at),
                _ => {}
            }
            self.is_begun = true;
            at += 1;
        }
        None
    }
}
