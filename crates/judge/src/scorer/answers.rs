//! The answers file: parsing, checks, and helpers of the checks.
//!
//! Every check, its order and its text are those of `Sheet` in `python/verify.py`.

use aec_base::json::float_text;

use super::MAX_ITEMS;
use super::keys::Bases;
use super::relaxed::{Parser, Value};
use super::spec::{Kind, SCALARS, Scalar, Want, kind_of, own_keys, scalar};
use super::text::compact;

/// Types of a field, in the order that messages list them.
const KINDS: [&str; 7] = ["number", "integer", "boolean", "choice", "text", "list", "table"];

/// Why an answers file cannot be used. This is the task's fault, so no submission is scored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AnswersError(String);

impl AnswersError {
    pub(super) fn at(place: &str, text: &str) -> Self {
        Self(format!("{place}: {text}"))
    }
}

/// A checked answers file.
#[derive(Clone, Debug)]
pub struct Answers {
    output: String,
    pub(super) fields: Vec<Field>,
    /// Folded names and the positions of their fields, sorted.
    names: Vec<(String, usize)>,
    /// Names of fields that have a unit.
    bases: Bases,
}

#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) weight: f64,
    pub(super) meaning: String,
    /// The expected value for the details.
    pub(super) shown: String,
    pub(super) shape: Shape,
}

/// The structure of a field's value.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    One { scalar: Scalar, want: Want },
    List { item: Scalar, wants: Vec<Want>, ordered: bool },
    Table { columns: Vec<Column>, bases: Bases, rows: Vec<Vec<Want>> },
}

/// A column of a table; the first is the key.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) folded: String,
    pub(super) scalar: Scalar,
}

impl Answers {
    pub fn parse(bytes: &[u8]) -> Result<Self, AnswersError> {
        let text = std::str::from_utf8(bytes).map_err(|_| AnswersError::at("answers", "not UTF-8"))?;
        let characters: Vec<char> = text.chars().collect();
        let mut parser = Parser::strict(&characters);
        let root = root(&mut parser)
            .ok_or_else(|| AnswersError::at("answers", &format!("not JSON at character {}", parser.at)))?;
        refuse_repeated_keys(&root)?;
        let Value::Object(pairs) = &root else {
            return Err(AnswersError::at("answers", "must be an object"));
        };
        only(pairs, &["version", "output", "fields"], "answers")?;
        let one = |version: Number| (version.value - 1.0).abs() == 0.0;
        need(get(pairs, "version").and_then(number).is_some_and(one), "answers", "`version` must be 1")?;
        let Some(output) = get(pairs, "output").and_then(text_of_path) else {
            return Err(AnswersError::at("answers", "`output` must be a file below /workspace"));
        };
        let fields = match get(pairs, "fields") {
            Some(Value::Object(fields)) if (1..=1000).contains(&fields.len()) => fields,
            _ => return Err(AnswersError::at("answers", "`fields` must have 1 to 1000 fields")),
        };
        let mut answers = Self {
            output: output.to_owned(),
            fields: Vec::new(),
            names: Vec::new(),
            bases: Bases::default(),
        };
        for (name, raw) in fields {
            let place = format!("fields.{name}");
            let folded = compact(name);
            let slot = answers.names.binary_search_by(|(known, _)| known.as_str().cmp(&folded));
            let Err(slot) = slot else {
                return Err(AnswersError::at(&place, "the name is empty or there twice"));
            };
            need(!folded.is_empty(), &place, "the name is empty or there twice")?;
            let empty_word = matches!(folded.as_str(), "value" | "unit" | "units");
            need(!empty_word, &place, "the name says nothing; name the quantity")?;
            answers.names.insert(slot, (folded, answers.fields.len()));
            answers.fields.push(field(name, raw, &place)?);
        }
        answers.bases = Bases::new(answers.fields.iter().map(|field| (field.name.as_str(), field.scalar())));
        Ok(answers)
    }

    /// Path of the submission below `/workspace`.
    pub fn output(&self) -> &str {
        &self.output
    }

    /// The position of the field that a submission's key names, and the unit that the key states.
    pub(super) fn position(&self, key: &str) -> Option<(usize, String)> {
        let folded = compact(key);
        match self.names.binary_search_by(|(known, _)| known.as_str().cmp(&folded)) {
            Ok(found) => self.names.get(found).map(|(_, position)| (*position, String::new())),
            Err(_) => self.bases.find(key, |at| self.fields.get(at).and_then(Field::scalar)),
        }
    }
}

impl Field {
    /// The value of a field that has only one.
    fn scalar(&self) -> Option<&Scalar> {
        if let Shape::One { scalar, .. } = &self.shape { Some(scalar) } else { None }
    }
}

/// The object that makes up the whole file.
fn root(parser: &mut Parser<'_>) -> Option<Value> {
    parser.space().ok()?;
    if parser.peek() != Some('{') {
        return None;
    }
    let root = parser.object(1).ok()?;
    parser.space().ok()?;
    parser.peek().is_none().then_some(root)
}

fn refuse_repeated_keys(value: &Value) -> Result<(), AnswersError> {
    match value {
        Value::List(items) => items.iter().try_for_each(refuse_repeated_keys),
        Value::Object(pairs) => {
            let mut seen = std::collections::HashSet::new();
            for (key, item) in pairs {
                need(seen.insert(key), "answers", &format!("`{key}` is there twice"))?;
                refuse_repeated_keys(item)?;
            }
            Ok(())
        }
        Value::Bare(_) | Value::Quoted(_) => Ok(()),
    }
}

fn text_of_path(value: &Value) -> Option<&str> {
    let path = text(value)?;
    let sound = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
    };
    (path.len() <= 200 && path.split('/').all(sound)).then_some(path)
}

fn field(name: &str, raw: &Value, place: &str) -> Result<Field, AnswersError> {
    let (kind, pairs) = kind_of(Some(raw), &KINDS, place)?;
    let (shape, shown) = if SCALARS.contains(&kind) {
        let key = if kind == "text" { "accept" } else { "value" };
        let mut scalar = scalar(Some(raw), place, &["weight", key], name)?;
        let Some(value) = get(pairs, key) else {
            return Err(AnswersError::at(place, &format!("needs `{key}`")));
        };
        let (want, shown) = scalar.wanted(value, place)?;
        (Shape::One { scalar, want }, shown)
    } else {
        only(pairs, &[&["type", "meaning", "weight"], own_keys(kind)].concat(), place)?;
        if kind == "list" { list(pairs, place, name)? } else { table(pairs, place)? }
    };
    let weight = get(pairs, "weight").map_or(Some(1.0), |weight| number(weight).map(|number| number.value));
    let Some(weight) = weight.filter(|weight| *weight > 0.0 && *weight <= 1_000_000.0) else {
        return Err(AnswersError::at(place, "`weight` must be above 0, at most 1000000"));
    };
    let meaning = get(pairs, "meaning").and_then(text).unwrap_or_default().to_owned();
    Ok(Field { name: name.to_owned(), weight, meaning, shown, shape })
}

fn list(pairs: &[(String, Value)], place: &str, name: &str) -> Result<(Shape, String), AnswersError> {
    let items = match get(pairs, "items") {
        Some(Value::List(items)) if items.len() <= MAX_ITEMS => items,
        _ => return Err(AnswersError::at(place, "`items` must be a list of at most 200 values")),
    };
    let mut item = scalar(get(pairs, "item"), &format!("{place}.item"), &[], name)?;
    let ordered = flag(pairs, "ordered", place)?;
    let (mut wants, mut shown) = (Vec::new(), Vec::new());
    for value in items {
        let (want, text) = item.wanted(value, place)?;
        wants.push(want);
        shown.push(text);
    }
    Ok((Shape::List { item, wants, ordered }, format!("[{}]", shown.join(", "))))
}

fn table(pairs: &[(String, Value)], place: &str) -> Result<(Shape, String), AnswersError> {
    let raw = match get(pairs, "columns") {
        Some(Value::Object(columns)) if (2..=50).contains(&columns.len()) => columns,
        _ => return Err(AnswersError::at(place, "`columns` must name 2 to 50 columns")),
    };
    let key = get(pairs, "key").and_then(text).filter(|key| get(raw, key).is_some());
    let key = key.ok_or_else(|| AnswersError::at(place, "`key` must name a column"))?;
    let (first, others): (Vec<_>, Vec<_>) = raw.iter().partition(|(name, _)| name == key);
    let mut columns: Vec<Column> = Vec::new();
    for (name, value) in first.into_iter().chain(others) {
        let folded = compact(name);
        let fresh = !folded.is_empty() && columns.iter().all(|column| column.folded != folded);
        need(fresh, place, &format!("column `{name}` is empty or there twice"))?;
        let scalar = scalar(Some(value), &format!("{place}.columns.{name}"), &[], name)?;
        columns.push(Column { name: name.clone(), folded, scalar });
    }
    let exact = matches!(columns[0].scalar.kind, Kind::Integer | Kind::Choice { .. } | Kind::Text);
    need(exact, place, "the key column must be an integer, a choice or a text")?;
    let raw_rows = match get(pairs, "rows") {
        Some(Value::List(rows)) if (1..=MAX_ITEMS).contains(&rows.len()) => rows,
        _ => return Err(AnswersError::at(place, "`rows` must be a list of 1 to 200 objects")),
    };
    let names: Vec<&str> = raw.iter().map(|(name, _)| name.as_str()).collect();
    let mut rows: Vec<Vec<Want>> = Vec::new();
    for (at, row) in raw_rows.iter().enumerate() {
        let here = format!("{place}.rows[{at}]");
        let Value::Object(row) = row else { return Err(AnswersError::at(&here, "must be an object")) };
        only(row, &names, &here)?;
        let mut cells = Vec::new();
        for column in &mut columns {
            let Some(value) = get(row, &column.name) else {
                return Err(AnswersError::at(&here, &format!("needs `{}`", column.name)));
            };
            cells.push(column.scalar.wanted(value, &here)?.0);
        }
        let fresh = rows.iter().all(|other| !same_key(&other[0], &cells[0]));
        need(fresh, &here, "the key is there twice")?;
        rows.push(cells);
    }
    let shown = format!("{} {}", rows.len(), if rows.len() == 1 { "row" } else { "rows" });
    let bases = Bases::new(columns.iter().map(|column| (column.name.as_str(), Some(&column.scalar))));
    Ok((Shape::Table { columns, bases, rows }, shown))
}

fn same_key(one: &Want, other: &Want) -> bool {
    match (one, other) {
        (Want::Texts(one), Want::Texts(other)) => one.iter().any(|text| other.contains(text)),
        _ => one == other,
    }
}

pub(super) fn need(condition: bool, place: &str, text: &str) -> Result<(), AnswersError> {
    if condition { Ok(()) } else { Err(AnswersError::at(place, text)) }
}

pub(super) fn only(pairs: &[(String, Value)], allowed: &[&str], place: &str) -> Result<(), AnswersError> {
    match pairs.iter().find(|(key, _)| !allowed.contains(&key.as_str())) {
        Some((key, _)) => Err(AnswersError::at(place, &format!("unknown key `{key}`"))),
        None => Ok(()),
    }
}

pub(super) fn get<'v>(pairs: &'v [(String, Value)], key: &str) -> Option<&'v Value> {
    pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value)
}

pub(super) fn text(value: &Value) -> Option<&str> {
    if let Value::Quoted(text) = value { Some(text) } else { None }
}

pub(super) fn flag(pairs: &[(String, Value)], key: &str, place: &str) -> Result<bool, AnswersError> {
    match get(pairs, key) {
        None => Ok(false),
        Some(Value::Bare(word)) if word == "true" || word == "false" => Ok(word == "true"),
        Some(_) => Err(AnswersError::at(place, &format!("`{key}` must be true or false"))),
    }
}

/// A list of texts that are distinct even when folded.
pub(super) fn texts<'v>(
    pairs: &'v [(String, Value)],
    key: &str,
    place: &str,
) -> Result<Vec<&'v str>, AnswersError> {
    let found: Option<Vec<&str>> = match get(pairs, key) {
        None => Some(Vec::new()),
        Some(Value::List(items)) => items.iter().map(text).collect(),
        Some(_) => None,
    };
    let found = found.ok_or_else(|| AnswersError::at(place, &format!("`{key}` must be a list of texts")))?;
    let mut seen = Vec::new();
    for item in &found {
        let folded = compact(item);
        let fresh = !folded.is_empty() && !seen.contains(&folded);
        need(fresh, place, &format!("`{key}` has an empty text or one twice"))?;
        seen.push(folded);
    }
    Ok(found)
}

/// A finite number of the answers file.
pub(super) struct Number {
    /// As Python would print it.
    pub(super) text: String,
    pub(super) value: f64,
    /// Written without fraction and exponent.
    pub(super) whole: bool,
}

pub(super) fn number(value: &Value) -> Option<Number> {
    let Value::Bare(token) = value else { return None };
    let value: f64 = token.parse().ok().filter(|value: &f64| value.is_finite())?;
    let whole = token.bytes().all(|b| b == b'-' || b.is_ascii_digit());
    let text = match token.as_str() {
        "-0" => "0".to_owned(),
        _ if whole => token.clone(),
        _ => float_text(value),
    };
    Some(Number { text, value, whole })
}
