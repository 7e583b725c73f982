//! Reads one given value before it is compared with the expected one.

use aec_base::decimal::Decimal;

use super::answers::{Column, Field, Shape};
use super::numeral::numeral;
use super::relaxed::Value;
use super::report::Status;
use super::spec::{Kind, Scalar, Want, named};
use super::text::{compact, is_space, squeeze};
use super::units::convert;

/// The meaning of a value. An unreadable value matches nothing and agrees only with itself.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    Unread(String),
    Number(f64),
    Integer(Decimal),
    Truth(bool),
    /// An option or a text.
    Text(String),
    /// The items of a list, the rows of a table, the cells of a row.
    List(Vec<Self>),
}

/// A content, or why there is none.
pub(super) struct Reading {
    pub(super) content: Content,
    /// Status and message for an unreadable value.
    pub(super) fault: Option<(Status, &'static str)>,
}

impl Reading {
    fn of(content: Content) -> Self {
        Self { content, fault: None }
    }

    fn unread(value: &Value, status: Status, message: &'static str) -> Self {
        Self { content: Content::Unread(value.show()), fault: Some((status, message)) }
    }
}

/// Reads a value according to the field's type.
pub(super) fn read(field: &Field, value: &Value) -> Reading {
    match &field.shape {
        Shape::One { scalar, .. } => read_one(scalar, value),
        Shape::List { item, wants, .. } => read_list(item, wants.len(), value),
        Shape::Table { columns, rows } => read_table(columns, rows.len(), value),
    }
}

fn read_one(scalar: &Scalar, value: &Value) -> Reading {
    let (inner, unit) = match value {
        Value::Object(pairs) => match unwrapped(pairs) {
            Ok(found) => found,
            Err((status, message)) => return Reading::unread(value, status, message),
        },
        Value::List(_) => return Reading::unread(value, Status::Invalid, "a list where one value belongs"),
        Value::Bare(text) | Value::Quoted(text) => (text.as_str(), ""),
    };
    let blank = match value {
        Value::Object(pairs) => first_value(pairs).is_some_and(Value::is_blank),
        other => other.is_blank(),
    };
    if blank {
        return Reading::unread(value, Status::Missing, "no value");
    }
    let invalid = |message| Reading::unread(value, Status::Invalid, message);
    let without_unit = !matches!(scalar.kind, Kind::Number(_) | Kind::Integer);
    if without_unit && !unit.is_empty() {
        return invalid("a unit where none belongs");
    }
    match &scalar.kind {
        Kind::Number(_) | Kind::Integer => read_number(scalar, value, inner, unit),
        Kind::Boolean(truths) => match named(truths, &compact(inner)) {
            Some(truth) => Reading::of(Content::Truth(*truth)),
            None => invalid("neither true nor false"),
        },
        Kind::Choice { spellings, .. } => match named(spellings, &compact(inner)) {
            Some(option) => Reading::of(Content::Text(option.clone())),
            None => invalid("not one of the options"),
        },
        Kind::Text => Reading::of(Content::Text(squeeze(inner))),
    }
}

fn is_value(key: &str) -> bool {
    compact(key) == "value"
}

fn first_value(pairs: &[(String, Value)]) -> Option<&Value> {
    pairs.iter().find(|(key, _)| is_value(key)).map(|(_, item)| item)
}

/// Value and unit of `{"value": 12.5, "unit": "kN"}`.
fn unwrapped(pairs: &[(String, Value)]) -> Result<(&str, &str), (Status, &'static str)> {
    let values: Vec<&Value> = pairs.iter().filter(|(key, _)| is_value(key)).map(|(_, item)| item).collect();
    let units: Vec<&Value> = pairs
        .iter()
        .filter(|(key, item)| matches!(compact(key).as_str(), "unit" | "units") && !item.is_blank())
        .map(|(_, item)| item)
        .collect();
    let scalars = |items: &[&'_ Value]| items.iter().all(|item| item.scalar().is_some());
    let Some(value) =
        values.first().and_then(|value| value.scalar()).filter(|_| scalars(&values) && scalars(&units))
    else {
        return Err((Status::Invalid, "an object where one value belongs"));
    };
    let unit = units.first().and_then(|unit| unit.scalar());
    let torn = values.iter().any(|other| other.scalar() != Some(value))
        || units.iter().any(|other| other.scalar() != unit);
    if torn {
        return Err((Status::Contradictory, "more than one value or unit"));
    }
    Ok((value, unit.unwrap_or_default().trim_matches(is_space)))
}

fn read_number(scalar: &Scalar, value: &Value, inner: &str, unit: &str) -> Reading {
    let invalid = |message| Reading::unread(value, Status::Invalid, message);
    let Some(read) = numeral(inner) else { return invalid("not one number") };
    if !read.rest.is_empty() && !unit.is_empty() && read.rest != unit {
        return invalid("two units");
    }
    let x = read.real();
    if x.is_infinite() {
        return invalid("not a finite number");
    }
    let unit = if read.rest.is_empty() { unit } else { &read.rest };
    let difference = matches!(&scalar.kind, Kind::Number(tolerance) if tolerance.difference);
    let y = match convert(x, unit, &scalar.unit, &scalar.unit_words, difference) {
        Ok(y) => y,
        Err(why) => return Reading::unread(value, Status::WrongUnit, why),
    };
    if y.is_infinite() {
        return invalid("not a finite number");
    }
    #[expect(clippy::float_cmp, reason = "unchanged means that nothing was converted")]
    let unchanged = x == y;
    if unchanged && matches!(scalar.kind, Kind::Integer) {
        return Reading::of(Content::Integer(read.decimal()));
    }
    Reading::of(Content::Number(y))
}

/// Stuffing: too many items to be worth reading.
fn too_many(given: usize, expected: usize) -> bool {
    given > 4 * expected + 16
}

fn read_list(item: &Scalar, expected: usize, value: &Value) -> Reading {
    match value {
        Value::List(items) if too_many(items.len(), expected) => {
            Reading::unread(value, Status::Invalid, "far too many items")
        }
        Value::List(items) => {
            Reading::of(Content::List(items.iter().map(|given| read_one(item, given).content).collect()))
        }
        _ if value.is_blank() => Reading::unread(value, Status::Missing, "no value"),
        _ => Reading::unread(value, Status::Invalid, "not a list"),
    }
}

type Row<'a> = (Option<&'a str>, &'a [(String, Value)]);

fn read_table(columns: &[Column], expected: usize, value: &Value) -> Reading {
    if value.is_blank() {
        return Reading::unread(value, Status::Missing, "no value");
    }
    let rows: Option<Vec<Row<'_>>> = match value {
        Value::List(rows) => rows
            .iter()
            .map(|row| if let Value::Object(cells) = row { Some((None, cells.as_slice())) } else { None })
            .collect(),
        // Rows as an object of objects, keyed by the first column.
        Value::Object(rows) => rows
            .iter()
            .map(|(key, row)| {
                if let Value::Object(cells) = row {
                    Some((Some(key.as_str()), cells.as_slice()))
                } else {
                    None
                }
            })
            .collect(),
        Value::Bare(_) | Value::Quoted(_) => None,
    };
    let Some(rows) = rows else { return Reading::unread(value, Status::Invalid, "not a list of objects") };
    if too_many(rows.len(), expected) {
        return Reading::unread(value, Status::Invalid, "far too many rows");
    }
    Reading::of(Content::List(rows.into_iter().map(|row| read_row(columns, row)).collect()))
}

/// The contents of a row's cells in the order of the columns.
fn read_row(columns: &[Column], (key, cells): Row<'_>) -> Content {
    let mut given: Vec<Vec<Content>> = vec![Vec::new(); columns.len()];
    if let (Some(key), Some(column)) = (key, columns.first()) {
        given[0].push(read_one(&column.scalar, &Value::Quoted(key.to_owned())).content);
    }
    for (name, item) in cells {
        let folded = compact(name);
        if let Some(at) = columns.iter().position(|column| column.folded == folded) {
            given[at].push(read_one(&columns[at].scalar, item).content);
        }
    }
    let settled = |contents: Vec<Content>| {
        let mut contents = contents.into_iter();
        let nothing = || Content::Unread(String::new());
        let Some(first) = contents.next() else { return nothing() };
        if contents.all(|other| agree(&first, &other)) { first } else { nothing() }
    };
    Content::List(given.into_iter().map(settled).collect())
}

/// Whether two contents are the same answer.
pub(super) fn agree(one: &Content, other: &Content) -> bool {
    match (one, other) {
        (Content::Number(one), Content::Number(other)) => {
            (one - other).abs() <= 1e-9 * one.abs().max(other.abs())
        }
        (Content::List(one), Content::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| agree(one, other))
        }
        _ => one == other,
    }
}

/// Whether a content is the expected value.
pub(super) fn matches_want(want: &Want, content: &Content) -> bool {
    match (want, content) {
        // The slack accepts 0.4 as within 0.1 of 0.3, despite the rounding of binary fractions.
        (Want::Number { value, bound }, Content::Number(x)) => {
            (x - value).abs() <= bound * 1.000_000_001 + value.abs() * 1e-12
        }
        (Want::Integer { value, .. }, Content::Number(x)) => (x - value).abs() <= 1e-9 * value.abs(),
        (Want::Integer { form, .. }, Content::Integer(given)) => form == given,
        (Want::Truth(truth), Content::Truth(given)) => truth == given,
        (Want::Option(option), Content::Text(given)) => option == given,
        (Want::Texts(accept), Content::Text(given)) => accept.contains(given),
        _ => false,
    }
}
