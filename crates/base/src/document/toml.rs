//! Parses TOML text into a [`Node`] tree.

use serde::de::Error as _;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toml_parser::lexer::TokenKind;

use super::{Entry, Node, SyntaxError, Value};

/// A broken file gives a cascade of follow-up errors; the first few are enough.
const MOST_SYNTAX_ERRORS: usize = 5;

/// Most levels of tables and lists, as in YAML. The parser limits brackets, but not the dots of a key, each of which
/// makes a table in a table.
const DEEPEST: usize = 64;

/// Most parts of a file: names, texts, numbers, brackets, commas.
const MOST_TOKENS: usize = 4_000_000;

/// Reads a file of another program, of which no positions are needed.
pub fn table(text: &str) -> Result<toml::Table, toml::de::Error> {
    match excess(text) {
        Some(error) => Err(toml::de::Error::custom(error.message)),
        None => text.parse(),
    }
}

pub(super) fn parse(text: &str) -> Result<Node, Vec<SyntaxError>> {
    if let Some(error) = excess(text) {
        return Err(vec![error]);
    }
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

/// The place where a file nests deeper than allowed, or has too many parts. This uses the words of the parser itself, so
/// no text is read here in another way than there.
fn excess(text: &str) -> Option<SyntaxError> {
    // The open brackets, each with the dots of the key before it, and the dots since.
    let (mut open, mut above, mut dots) = (Vec::new(), 0, 0);
    for (count, token) in toml_parser::Source::new(text).lex().enumerate() {
        let offset = Some(token.span().start());
        if count == MOST_TOKENS {
            return Some(SyntaxError { message: format!("it has more than {MOST_TOKENS} parts"), offset });
        }
        match token.kind() {
            TokenKind::Dot => dots += 1,
            kind @ (TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket) => {
                above += dots + 1;
                open.push((kind, dots + 1));
                dots = 0;
            }
            TokenKind::RightSquareBracket => {
                close(&mut open, &mut above, &mut dots, TokenKind::LeftSquareBracket);
            }
            TokenKind::RightCurlyBracket => {
                close(&mut open, &mut above, &mut dots, TokenKind::LeftCurlyBracket);
            }
            TokenKind::Comma | TokenKind::Newline => dots = 0,
            _ => {}
        }
        if above + dots > DEEPEST {
            let message = format!("it is nested deeper than {DEEPEST} levels");
            return Some(SyntaxError { message, offset });
        }
    }
    None
}

/// Leaves the innermost bracket, if it is of this kind: in a broken file the parser may go on otherwise.
fn close(open: &mut Vec<(TokenKind, usize)>, above: &mut usize, dots: &mut usize, kind: TokenKind) {
    if let Some((_, levels)) = open.pop_if(|(last, _)| *last == kind) {
        *above -= levels;
    }
    *dots = 0;
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
