//! Parses TOML text into a [`Node`] tree.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Entry, Node, SyntaxError, Value};

/// A broken file gives a cascade of follow-up errors; the first few are enough.
const MOST_SYNTAX_ERRORS: usize = 5;

pub(super) fn parse(text: &str) -> Result<Node, Vec<SyntaxError>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(errors
            .iter()
            .take(MOST_SYNTAX_ERRORS)
            .map(|error| SyntaxError {
                message: error.message().to_owned(),
                offset: error.span().map(|span| span.start),
            })
            .collect());
    }
    let offset = table.span().start;
    convert_table(table.into_inner(), offset).map_err(|error| vec![error])
}

fn convert_table(table: DeTable<'_>, offset: usize) -> Result<Node, SyntaxError> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, value) in table {
        let offset = key.span().start;
        entries.push(Entry { key: key.into_inner().into_owned(), offset, value: convert(value)? });
    }
    // The parser sorts keys; restore the author's order.
    entries.sort_by_key(|entry| entry.offset);
    Ok(Node { value: Value::Table(entries), offset })
}

fn convert(spanned: Spanned<DeValue<'_>>) -> Result<Node, SyntaxError> {
    let offset = spanned.span().start;
    let unfit = |what: &str| SyntaxError { message: format!("{what} is out of range"), offset: Some(offset) };
    let value = match spanned.into_inner() {
        DeValue::String(text) => Value::String(text.into_owned()),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .map(Value::Integer)
            .map_err(|_| unfit("the whole number"))?,
        DeValue::Float(float) => float.as_str().parse().map(Value::Float).map_err(|_| unfit("the number"))?,
        DeValue::Boolean(boolean) => Value::Bool(boolean),
        DeValue::Datetime(date) => Value::String(date.to_string()),
        DeValue::Array(items) => Value::List(items.into_iter().map(convert).collect::<Result<_, _>>()?),
        DeValue::Table(table) => return convert_table(table, offset),
    };
    Ok(Node { value, offset })
}
