//! TOML text as a tree that knows where each value stands and keeps the order of the file.

use aec_base::document::Shared;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::reader::Reader;

/// A broken file gives a cascade of follow-up errors; the first few tell the story.
const MOST_SYNTAX_ERRORS: usize = 5;

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    /// Byte offset in the text.
    pub(super) offset: usize,
}

/// The kinds of value. A date is its text.
#[derive(Debug)]
pub(super) enum Value {
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key with its value.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    /// Byte offset of the key.
    pub(super) offset: usize,
    pub(super) node: Node,
}

impl Value {
    /// The value in words, for a sentence that says what it is not.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => format!("{value:?}"),
            Self::Text(_) => "text".to_owned(),
            Self::List(_) => "a list".to_owned(),
            Self::Table(_) => "a table".to_owned(),
        }
    }
}

/// The top level of a text, or the reader's problems say why there is none.
pub(super) fn parse(reader: &mut Reader<'_>) -> Option<Vec<Entry>> {
    let text = reader.text;
    if let Some(offset) = text.find('\0') {
        syntax_problem(reader, "it contains a NUL character", Some(offset));
        return None;
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors.iter().take(MOST_SYNTAX_ERRORS) {
        syntax_problem(reader, error.message(), error.span().map(|span| span.start));
    }
    if !errors.is_empty() {
        return None;
    }
    Some(entries(reader, table.into_inner()))
}

fn syntax_problem(reader: &mut Reader<'_>, message: &str, offset: Option<usize>) {
    reader.error(
        offset.unwrap_or(0),
        Shared::Syntax,
        format!("not valid TOML: {message}"),
        "correct the file at this place; nothing in it was used",
    );
}

fn entries(reader: &mut Reader<'_>, table: DeTable<'_>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::with_capacity(table.len());
    for (key, value) in table {
        let offset = key.span().start;
        if let Some(node) = node(reader, value) {
            entries.push(Entry { key: key.into_inner().into_owned(), offset, node });
        }
    }
    // The parser sorts keys; whoever wrote them had an order in mind.
    entries.sort_by_key(|entry| entry.offset);
    entries
}

fn node(reader: &mut Reader<'_>, spanned: Spanned<DeValue<'_>>) -> Option<Node> {
    let offset = spanned.span().start;
    let value = match spanned.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) => Value::Integer(number),
            Err(_) => return unfit(reader, offset),
        },
        DeValue::Float(float) => match float.as_str().parse() {
            Ok(number) => Value::Float(number),
            Err(_) => return unfit(reader, offset),
        },
        DeValue::Boolean(boolean) => Value::Bool(boolean),
        DeValue::Datetime(date) => Value::Text(date.to_string()),
        DeValue::Array(items) => {
            Value::List(items.into_iter().filter_map(|item| node(reader, item)).collect())
        }
        DeValue::Table(table) => Value::Table(entries(reader, table)),
    };
    Some(Node { value, offset })
}

fn unfit(reader: &mut Reader<'_>, offset: usize) -> Option<Node> {
    reader.error(offset, Shared::BadValue, "the number is out of range".to_owned(), "write a smaller number");
    None
}
