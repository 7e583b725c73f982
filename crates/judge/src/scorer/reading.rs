//! Reads one given value before it is compared with the expected one.

use std::borrow::Cow;

use aec_base::decimal::Decimal;

use super::answers::{Column, Field, Shape};
use super::keys::Bases;
use super::marks::{
    approximated, has_digit_in, holds_nothing, is_placeholder, split_remark, unmarked, without_ticks,
};
use super::numeral::numeral;
use super::relaxed::Value;
use super::remarks::{is_clear, is_harmless, is_silent};
use super::report::Status;
use super::spec::{Kind, Scalar, TRUTHS, Want, named};
use super::submission::Claim;
use super::text::{compact, fold, stated, word};
use super::units::convert;
use super::words::{has, words};

/// The meaning of a value. An unreadable value matches nothing and agrees only with itself.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    Unread(String),
    Number(f64),
    Integer(Decimal),
    Truth(bool),
    /// An option or a text.
    Text(String),
    /// A text, and the same without marks and remark.
    Told {
        whole: String,
        bare: String,
    },
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

/// Reads a claim according to the field's type.
pub(super) fn read(field: &Field, claim: &Claim) -> Reading {
    let value = &claim.value;
    match &field.shape {
        Shape::One { scalar, .. } => read_one(scalar, value, &claim.unit),
        Shape::List { item, wants, .. } => read_list(item, wants.len(), value),
        Shape::Table { columns, bases, rows } => read_table(columns, bases, rows.len(), value),
    }
}

type Fault = (Status, &'static str);

/// Reads one value. `key_unit` is the unit that its key states.
fn read_one(scalar: &Scalar, value: &Value, key_unit: &str) -> Reading {
    let unread = |(status, message)| Reading::unread(value, status, message);
    let mut given = value;
    if let Value::List(items) = given {
        match items.as_slice() {
            [only] if !matches!(only, Value::List(_)) => given = only,
            _ => return unread((Status::Invalid, "a list where one value belongs")),
        }
    }
    let mut unit = Cow::Borrowed("");
    if let Value::Object(pairs) = given {
        match unwrapped(pairs) {
            Ok((inner, stated)) => {
                given = inner;
                unit = stated.map(unmarked).unwrap_or_default();
            }
            Err(fault) => return unread(fault),
        }
    }
    let Some(text) = given.scalar().filter(|_| !given.is_blank()) else {
        return unread((Status::Missing, "no value"));
    };
    let read = match &scalar.kind {
        Kind::Number(_) | Kind::Integer => read_number(scalar, text, [&unit, key_unit]),
        _ if !unit.is_empty() => return unread((Status::Invalid, "a unit where none belongs")),
        Kind::Boolean { meanings, passing } => {
            let meanings = Meanings { words: meanings, passing, truth: |truth: &bool| Some(*truth) };
            let truth = meanings.read(text).copied().map(Content::Truth);
            truth.ok_or((Status::Invalid, "neither true nor false"))
        }
        Kind::Choice { meanings, passing, .. } => {
            let meanings = Meanings { words: meanings, passing, truth: |_: &String| None };
            let option = meanings.read(text).cloned().map(Content::Text);
            option.ok_or((Status::Invalid, "not one of the options"))
        }
        Kind::Text if is_placeholder(text) && !scalar.literal => Err((Status::Missing, "no value")),
        Kind::Text => Ok(read_text(text)),
    };
    match read {
        Ok(content) => Reading::of(content),
        Err(_) if is_placeholder(text) => unread((Status::Missing, "no value")),
        Err(fault) => unread(fault),
    }
}

fn is_value(key: &str) -> bool {
    compact(key) == "value"
}

/// Value and unit of `{"value": 12.5, "unit": "kN"}`.
fn unwrapped(pairs: &[(String, Value)]) -> Result<(&Value, Option<&str>), Fault> {
    let values: Vec<&Value> = pairs.iter().filter(|(key, _)| is_value(key)).map(|(_, item)| item).collect();
    let units: Vec<&Value> = pairs
        .iter()
        .filter(|(key, item)| matches!(compact(key).as_str(), "unit" | "units") && !item.is_blank())
        .map(|(_, item)| item)
        .collect();
    let scalars = |items: &[&'_ Value]| items.iter().all(|item| item.scalar().is_some());
    let Some(value) = values.first().filter(|_| scalars(&values) && scalars(&units)) else {
        return Err((Status::Invalid, "an object where one value belongs"));
    };
    let unit = units.first().and_then(|unit| unit.scalar());
    let torn = values.iter().any(|other| other.scalar() != value.scalar())
        || units.iter().any(|other| other.scalar() != unit);
    if torn { Err((Status::Contradictory, "more than one value or unit")) } else { Ok((value, unit)) }
}

/// Reads a number; `units` are those stated in other places.
fn read_number(scalar: &Scalar, given: &str, units: [&str; 2]) -> Result<Content, Fault> {
    let plain = unmarked(given);
    let bare = match without_ticks(&plain) {
        (bare, Some(true)) => bare,
        _ => plain.as_ref(),
    };
    let plain = approximated(bare);
    let fault = match measured(scalar, plain, units) {
        Ok((content, _)) => return Ok(content),
        Err(fault) => fault,
    };
    let (bare, remark) = split_remark(plain).ok_or(fault)?;
    let (content, with_unit) = measured(scalar, &bare, units).map_err(|_| fault)?;
    let has_unit = with_unit || units.iter().any(|unit| !unit.is_empty());
    let clear = repeats(scalar, &content, &remark)
        || (is_harmless(&remark) && (has_unit || is_clear(&remark, &scalar.nouns)));
    if clear { Ok(content) } else { Err(fault) }
}

/// Whether a remark is the same value once more, with a unit: "0.76 (76%)".
fn repeats(scalar: &Scalar, content: &Content, remark: &str) -> bool {
    measured(scalar, remark, ["", ""]).is_ok_and(|(other, with_unit)| with_unit && agree(&other, content))
}

/// A number with a unit, and whether it has one.
fn measured(scalar: &Scalar, text: &str, units: [&str; 2]) -> Result<(Content, bool), Fault> {
    let read = numeral(text).ok_or((Status::Invalid, "not one number"))?;
    let x = read.real();
    if x.is_infinite() {
        return Err((Status::Invalid, "not a finite number"));
    }
    let mut found = None;
    for unit in [read.rest.as_str(), units[0], units[1]].into_iter().filter(|unit| !unit.is_empty()) {
        let y = converted(scalar, x, unit).map_err(|why| (Status::WrongUnit, why))?;
        if y.is_infinite() {
            return Err((Status::Invalid, "not a finite number"));
        }
        if !close(*found.get_or_insert(y), y) {
            return Err((Status::Invalid, "two units"));
        }
    }
    let y = found.unwrap_or(x);
    #[expect(clippy::float_cmp, reason = "unchanged means that nothing was converted")]
    let unchanged = x == y;
    let content = if unchanged && matches!(scalar.kind, Kind::Integer) {
        Content::Integer(read.decimal())
    } else {
        Content::Number(y)
    };
    Ok((content, !read.rest.is_empty()))
}

/// `x`, given in a unit, in the unit of the field.
fn converted(scalar: &Scalar, x: f64, unit: &str) -> Result<f64, &'static str> {
    if counts(scalar, unit) {
        return Ok(x);
    }
    let difference = matches!(&scalar.kind, Kind::Number(tolerance) if tolerance.difference);
    convert(x, unit, &scalar.unit, &scalar.unit_words, difference)
}

/// Whether a text behind a whole number says what is counted: "bolts" for `n_bolts`, "No." for everything.
fn counts(scalar: &Scalar, text: &str) -> bool {
    if !matches!(scalar.kind, Kind::Integer) || !scalar.unit_text.is_empty() {
        return false;
    }
    let folded = fold(text);
    let mut said = folded.split(' ').map(|part| part.trim_matches('.')).filter(|part| !part.is_empty());
    let mut last = "";
    let known = said.all(|part| {
        last = part;
        has(&scalar.nouns, part) || has(&words().counters, part)
    });
    known && !matches!(last, "" | "per")
}

/// The words of a boolean or choice and what they mean.
pub(super) struct Meanings<'a, T> {
    words: &'a [(String, T)],
    /// Whether a meaning is that a check passed, where that is asked.
    passing: &'a [(T, bool)],
    truth: fn(&T) -> Option<bool>,
}

impl<'a, T: PartialEq> Meanings<'a, T> {
    pub(super) fn get(&self, word: &str) -> Option<&'a T> {
        named(self.words, word)
    }

    fn passes(&self, meaning: &T) -> Option<bool> {
        self.passing.iter().find(|(known, _)| known == meaning).map(|(_, passed)| *passed)
    }

    /// Whether a word of a remark answers the question of a check the other way than `found`.
    pub(super) fn contradicts(&self, found: &T, part: &str) -> bool {
        let truth = TRUTHS.iter().find(|(known, _)| *known == part).map(|(_, truth)| *truth);
        self.passes(found).is_some_and(|passed| truth.is_some_and(|truth| truth != passed))
    }

    /// Whether a tick or cross says the same as the word beside it.
    fn supports(&self, found: &T, tick: bool) -> bool {
        (self.truth)(found).unwrap_or_else(|| self.passes(found).unwrap_or(true)) == tick
    }

    /// What the given text names.
    fn read(&self, given: &str) -> Option<&'a T> {
        if let Some(found) = self.get(&word(given)) {
            return Some(found);
        }
        let plain = unmarked(given);
        if let Some(found) = self.get(&word(&plain)) {
            return Some(found);
        }
        let parts = split_remark(&plain);
        let (bare, remark) = match &parts {
            Some((bare, remark)) => (bare.as_str(), Some(remark)),
            None => (&*plain, None),
        };
        let (bare, tick) = without_ticks(bare);
        let found = match (self.get(&word(bare)), tick) {
            (None, Some(tick)) if bare.is_empty() => {
                self.passing.iter().find(|(_, passed)| *passed == tick).map(|(meaning, _)| meaning)
            }
            (found, _) => found,
        }?;
        let sound = tick.is_none_or(|tick| self.supports(found, tick))
            && remark.is_none_or(|remark| is_silent(bare, remark, self, found));
        sound.then_some(found)
    }
}

/// A text as given, and without marks and remark if that differs.
fn read_text(given: &str) -> Content {
    let (whole, plain) = (stated(given), unmarked(given));
    // In "P7 (P8)" the remark may be another answer.
    let clear =
        |bare: &str, remark: &str| is_harmless(remark) && !(has_digit_in(bare) && has_digit_in(remark));
    let bare = match split_remark(&plain).filter(|(bare, remark)| clear(bare, remark)) {
        Some((bare, _)) => stated(&bare),
        None => stated(&plain),
    };
    if bare.is_empty() || bare == whole { Content::Text(whole) } else { Content::Told { whole, bare } }
}

/// Stuffing: too many items to be worth reading.
fn too_many(given: usize, expected: usize) -> bool {
    given > 4 * expected + 16
}

fn is_unread(content: &Content) -> bool {
    matches!(content, Content::Unread(_))
}

fn read_list(item: &Scalar, expected: usize, value: &Value) -> Reading {
    let unread = |status, message| Reading::unread(value, status, message);
    if value.is_blank() {
        return unread(Status::Missing, "no value");
    }
    let items = match value {
        Value::List(items) => items.as_slice(),
        _ if expected == 1 => std::slice::from_ref(value),
        _ if holds_nothing(value, "") => return unread(Status::Missing, "no value"),
        _ => return unread(Status::Invalid, "not a list"),
    };
    if too_many(items.len(), expected) {
        return unread(Status::Invalid, "far too many items");
    }
    let contents: Vec<Content> = items.iter().map(|given| read_one(item, given, "").content).collect();
    if contents.iter().all(is_unread) && holds_nothing(value, "") {
        return unread(Status::Missing, "no value");
    }
    Reading::of(Content::List(contents))
}

type Row<'a> = (Option<&'a str>, &'a [(String, Value)]);

fn read_table(columns: &[Column], bases: &Bases, expected: usize, value: &Value) -> Reading {
    let unread = |status, message| Reading::unread(value, status, message);
    if value.is_blank() {
        return unread(Status::Missing, "no value");
    }
    let key = columns.first().map_or("", |column| column.folded.as_str());
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
    let Some(rows) = rows else {
        return if holds_nothing(value, key) {
            unread(Status::Missing, "no value")
        } else {
            unread(Status::Invalid, "not a list of objects")
        };
    };
    if too_many(rows.len(), expected) {
        return unread(Status::Invalid, "far too many rows");
    }
    let rows: Vec<Vec<Content>> = rows.into_iter().map(|row| read_row(columns, bases, row)).collect();
    if rows.iter().all(|cells| cells[1..].iter().all(is_unread)) && holds_nothing(value, key) {
        return unread(Status::Missing, "no value");
    }
    Reading::of(Content::List(rows.into_iter().map(Content::List).collect()))
}

/// The contents of a row's cells in the order of the columns.
fn read_row(columns: &[Column], bases: &Bases, (key, cells): Row<'_>) -> Vec<Content> {
    let mut given: Vec<Vec<Content>> = vec![Vec::new(); columns.len()];
    if let (Some(key), Some(column)) = (key, columns.first()) {
        given[0].push(read_one(&column.scalar, &Value::Quoted(key.to_owned()), "").content);
    }
    for (name, item) in cells {
        let folded = compact(name);
        let found = match columns.iter().position(|column| column.folded == folded) {
            Some(at) => Some((at, String::new())),
            None => bases.find(name, |at| columns.get(at).map(|column| &column.scalar)),
        };
        if let Some((at, unit)) = found {
            given[at].push(read_one(&columns[at].scalar, item, &unit).content);
        }
    }
    let settled = |contents: Vec<Content>| {
        let mut contents = contents.into_iter();
        let nothing = || Content::Unread(String::new());
        let Some(first) = contents.next() else { return nothing() };
        if contents.all(|other| agree(&first, &other)) { first } else { nothing() }
    };
    given.into_iter().map(settled).collect()
}

/// Whether two contents are the same answer.
pub(super) fn agree(one: &Content, other: &Content) -> bool {
    match (one, other) {
        (Content::Number(one), Content::Number(other)) => close(*one, *other),
        (Content::List(one), Content::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| agree(one, other))
        }
        _ => one == other,
    }
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(other.abs())
}

/// Whether a content is the expected value.
pub(super) fn matches_want(want: &Want, content: &Content) -> bool {
    match (want, content) {
        // The slack accepts 0.4 as within 0.1 of 0.3, despite the rounding of binary fractions.
        (Want::Number { value, bound }, Content::Number(x)) => {
            (x - value).abs() <= bound * 1.000_000_001 + value.abs() * 1e-12
        }
        (Want::Integer { value, .. }, Content::Number(x)) => (x - value).abs() <= 1e-12 * value.abs(),
        (Want::Integer { form, .. }, Content::Integer(given)) => form == given,
        (Want::Truth(truth), Content::Truth(given)) => truth == given,
        (Want::Option(option), Content::Text(given)) => option == given,
        (Want::Texts(accept), Content::Text(given)) => accept.contains(given),
        (Want::Texts(accept), Content::Told { whole, bare }) => {
            accept.contains(whole) || accept.contains(bare)
        }
        _ => false,
    }
}
