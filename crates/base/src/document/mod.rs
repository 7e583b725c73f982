//! Documents that people write (TOML, YAML, JSON) as one tree with positions.
//!
//! Serde stops at the first mistake and does not keep the positions of values. So a file becomes a [`Node`] tree
//! first; [`Document::decode`] then fills a serde type from it and reports *every* unknown key, wrong type and bad
//! value with its line and column. The same types give the JSON Schemas, so file, code and schema agree.

mod decode;
mod json;
mod part;
mod toml;
mod yaml;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use decode::Decoded;
pub use part::Part;
pub use toml::table as toml_table;

use crate::file::{Links, ReadError, read_text};
use crate::problem::{Place, Problem};

/// Configuration files are small; a larger one is a mistake or an attack.
pub const CONFIG_FILE_LIMIT: u64 = 1024 * 1024;

/// The letter that starts the ids of a file format's problems, such as `T` in `T003`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family(pub char);

/// The problems that all formats share; their numbers are the same in every family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// 001: the file cannot be read.
    Unreadable = 1,
    /// 002: the file is not valid TOML, YAML or JSON.
    Syntax = 2,
    /// 003: an unknown key.
    UnknownKey = 3,
    /// 004: a value of the wrong type.
    WrongType = 4,
    /// 005: a value that is not allowed.
    BadValue = 5,
    /// 006: a required key is missing.
    MissingKey = 6,
    /// 007: two keys that mean the same or contradict each other.
    Conflict = 7,
}

impl Family {
    pub fn id(self, shared: Shared) -> String {
        self.number(shared as u32)
    }

    /// The id of a problem that only this family has.
    pub fn number(self, number: u32) -> String {
        format!("{}{number:03}", self.0)
    }
}

/// The notation a document is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// TOML 1.1.
    Toml,
    /// YAML: plain data only, no tags, bounded aliases, `true` and `false` as the only booleans.
    Yaml,
    Json,
}

impl Syntax {
    fn name(self) -> &'static str {
        match self {
            Self::Toml => "TOML",
            Self::Yaml => "YAML",
            Self::Json => "JSON",
        }
    }
}

/// A value and its position.
#[derive(Clone, Debug, PartialEq)]
struct Node {
    value: Value,
    /// Byte offset in the source.
    offset: usize,
}

/// The kinds of value that all three notations share. A TOML date is its text.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    /// Null (YAML and JSON only).
    Null,
    Bool(bool),
    Integer(i64),
    /// A number with a fraction or exponent.
    Float(f64),
    String(String),
    List(Vec<Node>),
    /// A table, in source order, without duplicate keys.
    Table(Vec<Entry>),
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    key: String,
    /// Byte offset of the key in the source.
    offset: usize,
    value: Node,
}

impl Node {
    fn get(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }
}

impl Value {
    /// Describes the value for the end of a sentence such as "must be a table, not …".
    fn describe(&self) -> String {
        match self {
            Self::Null => "empty".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => format!("{value:?}"),
            Self::String(_) => "text".to_owned(),
            Self::List(_) => "a list".to_owned(),
            Self::Table(_) => "a table".to_owned(),
        }
    }
}

/// The first entry whose key occurs before.
fn repeated(entries: &[Entry]) -> Option<&Entry> {
    let mut known = HashSet::with_capacity(entries.len());
    entries.iter().find(|entry| !known.insert(entry.key.as_str()))
}

/// A parsed file.
#[derive(Debug)]
pub struct Document {
    path: PathBuf,
    text: String,
    /// Where its lines begin, once a place is asked for: a file of a million values may have as many mistakes.
    lines: OnceLock<Vec<usize>>,
    root: Node,
    family: Family,
}

/// An error of a parser, before it becomes a [`Problem`].
struct SyntaxError {
    message: String,
    offset: Option<usize>,
}

impl Document {
    /// Reads and parses a configuration file; `path` may be a symbolic link.
    pub fn read(path: &Path, syntax: Syntax, family: Family) -> Result<Self, Vec<Problem>> {
        Self::read_with(path, syntax, family, Links::Follow)
    }

    /// Reads and parses a configuration file.
    pub fn read_with(
        path: &Path,
        syntax: Syntax,
        family: Family,
        links: Links,
    ) -> Result<Self, Vec<Problem>> {
        let text = read_text(path, CONFIG_FILE_LIMIT, links)
            .map_err(|error| vec![unreadable(path, &error, family)])?;
        Self::parse(path, text, syntax, family)
    }

    /// Parses text that was read from `path`.
    pub fn parse(path: &Path, text: String, syntax: Syntax, family: Family) -> Result<Self, Vec<Problem>> {
        let parsed = if let Some(offset) = text.find('\0') {
            Err(vec![SyntaxError { message: "it contains a NUL character".into(), offset: Some(offset) }])
        } else {
            match syntax {
                Syntax::Toml => toml::parse(&text),
                Syntax::Yaml => yaml::parse(&text).map_err(|error| vec![error]),
                Syntax::Json => json::parse(&text).map_err(|error| vec![error]),
            }
        };
        match parsed {
            Ok(root) => Ok(Self { path: path.to_path_buf(), text, lines: OnceLock::new(), root, family }),
            Err(errors) => Err(errors
                .into_iter()
                .map(|error| {
                    let problem = Problem::error(format!("not valid {}: {}", syntax.name(), error.message))
                        .id(family.id(Shared::Syntax))
                        .fix("correct the file at this place; nothing in it was used");
                    match error.offset {
                        Some(offset) => problem.at(place(path, &text, offset)),
                        None => problem.in_file(path),
                    }
                })
                .collect()),
        }
    }

    /// The position of a dotted key's value, or of its nearest existing parent.
    pub fn place(&self, key: &str) -> Place {
        let mut offset = 0;
        let mut node = &self.root;
        for part in key.split('.').filter(|part| !part.is_empty()) {
            let Some(entry) = node.get(part) else { break };
            offset = entry.offset;
            node = &entry.value;
        }
        self.place_at(offset)
    }

    /// The position of element `index` of a list.
    pub fn place_in_list(&self, key: &str, index: usize) -> Place {
        let mut node = &self.root;
        for part in key.split('.') {
            let Some(entry) = node.get(part) else { return self.place(key) };
            node = &entry.value;
        }
        match &node.value {
            Value::List(items) if index < items.len() => self.place_at(items[index].offset),
            _ => self.place(key),
        }
    }

    /// Line and column of a byte offset.
    fn place_at(&self, offset: usize) -> Place {
        let lines = self.lines.get_or_init(|| {
            let breaks = memchr::memchr_iter(b'\n', self.text.as_bytes()).map(|at| at + 1);
            std::iter::once(0).chain(breaks).collect()
        });
        let offset = self.text.floor_char_boundary(offset);
        let line = lines.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = lines.get(line).copied().unwrap_or_default();
        counted(&self.path, line, &self.text[start..offset])
    }

    /// A problem of this document's family at a dotted key.
    pub fn problem(&self, shared: Shared, key: &str, what: impl Into<String>) -> Problem {
        Problem::error(what).id(self.family.id(shared)).at(self.place(key))
    }
}

/// The problem of a file that cannot be read.
pub fn unreadable(path: &Path, error: &ReadError, family: Family) -> Problem {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    Problem::error(format!("cannot read {name}: {error}"))
        .id(family.id(Shared::Unreadable))
        .fix(error.fix())
        .in_file(path)
}

/// Line and column of a byte offset.
pub fn place(path: &Path, text: &str, offset: usize) -> Place {
    let before = &text[..text.floor_char_boundary(offset)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    counted(path, before.matches('\n').count(), &before[line_start..])
}

/// The place after so many lines and this beginning of a line.
fn counted(path: &Path, lines: usize, before: &str) -> Place {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Place { file: path.to_path_buf(), line: number(lines + 1), column: number(before.chars().count() + 1) }
}
