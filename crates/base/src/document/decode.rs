//! Fills a serde type from a [`Node`] tree and reports every mistake.
//!
//! Serde gives one error per attempt. So this module notes the offending node, cuts it out and tries the rest again
//! until it fits. The fields of a format's type therefore need defaults.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer as _,
    MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};

use super::{Document, Entry, Node, Part, Shared, Value};
use crate::problem::Problem;
use crate::text;

/// A file with more mistakes than this is not the file its author thinks it is.
const MOST_PROBLEMS: usize = 50;

/// The parts that could be decoded, and every mistake.
#[derive(Debug)]
pub struct Decoded<T> {
    /// The value without its faulty parts; absent when the document is not even a table.
    pub value: Option<T>,
    pub problems: Vec<Problem>,
    /// The dotted keys that were cut out because of a problem.
    faulty: Vec<String>,
}

impl<T> Decoded<T> {
    /// Whether something at or below this dotted key was cut out, so that its absence means nothing.
    pub fn is_faulty(&self, key: &str) -> bool {
        self.faulty.iter().any(|faulty| {
            faulty.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }
}

impl Document {
    /// Fills a `T` from the document.
    pub fn decode<T: DeserializeOwned>(&self) -> Decoded<T> {
        self.whole().decode()
    }
}

impl Part<'_> {
    pub fn decode<T: DeserializeOwned>(&self) -> Decoded<T> {
        let mut decoded = Decoded { value: None, problems: Vec::new(), faulty: Vec::new() };
        let mut pruned: Option<Node> = None;
        loop {
            let error = match T::deserialize(pruned.as_ref().unwrap_or(&self.node)) {
                Ok(value) => {
                    decoded.value = Some(value);
                    break;
                }
                Err(error) => error,
            };
            // A required key that was cut out because its value was wrong is not missing.
            if !error.missing_key().is_some_and(|key| decoded.is_faulty(&key)) {
                decoded.problems.push(self.describe(&error));
            }
            decoded.faulty.push(dotted("", &error.path));
            let root = pruned.get_or_insert_with(|| Node::clone(&self.node));
            if decoded.problems.len() == MOST_PROBLEMS || !cut(root, &error.path) {
                break;
            }
        }
        decoded.problems.sort_by_key(|problem| (problem.line, problem.column));
        decoded
    }

    fn describe(&self, error: &DecodeError) -> Problem {
        let path = if self.is_wrapped { error.path.get(1..).unwrap_or_default() } else { &error.path[..] };
        let key = dotted(&self.name, path);
        let parent = dotted(&self.name, &path[..path.len().saturating_sub(1)]);
        let document = self.document;
        let place = document.place_at(error.offset.unwrap_or(self.node.offset));
        let (shared, problem) = match &error.kind {
            Kind::UnknownKey { key, known } => {
                let table = if parent.is_empty() { "here".to_owned() } else { format!("in `{parent}`") };
                let further = if path.len() == 1 { self.further } else { &[] };
                let known: Vec<&str> = known.iter().chain(further).copied().collect();
                let problem = Problem::error(format!("unknown key `{}` {table}", text::printable(key)))
                    .why(format!("the keys known {table} are {}", known.join(", ")));
                (Shared::UnknownKey, problem.fix(text::near_or(key, known, "remove the key")))
            }
            Kind::UnknownValue { found, allowed } => {
                let problem = Problem::error(format!("`{key}` cannot be \"{found}\""))
                    .why(format!("it can be {}", text::one_of(allowed)));
                let fix = match text::nearest(found, *allowed) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => format!("use {}", text::one_of(allowed)),
                };
                (Shared::BadValue, problem.fix(fix))
            }
            Kind::WrongType { found, is_text, expected } => {
                let found = if *is_text && self.is_discreet { "text" } else { found };
                let name = if key.is_empty() { "the file".to_owned() } else { format!("`{key}`") };
                let problem = Problem::error(format!("{name} must be {expected}, not {found}"))
                    .fix(format!("write {expected} there"));
                (Shared::WrongType, problem)
            }
            Kind::BadValue(message) => {
                (Shared::BadValue, Problem::error(format!("`{key}` {message}")).fix("correct the value"))
            }
            Kind::Missing(_) => {
                let name = error.missing_key().unwrap_or_default();
                (Shared::MissingKey, Problem::error(format!("`{name}` is missing")).fix("add the key"))
            }
        };
        problem.id(document.family.id(shared)).at(place)
    }
}

/// Removes the node at `path`; false when there is nothing to remove.
fn cut(root: &mut Node, path: &[Step]) -> bool {
    let Some((last, parents)) = path.split_last() else { return false };
    let mut node = root;
    for step in parents {
        let next = match (step, &mut node.value) {
            (Step::Key(key), Value::Table(entries)) => {
                entries.iter_mut().find(|entry| entry.key == *key).map(|entry| &mut entry.value)
            }
            (Step::Index(index), Value::List(items)) => items.get_mut(*index),
            _ => None,
        };
        let Some(next) = next else { return false };
        node = next;
    }
    match (last, &mut node.value) {
        (Step::Key(key), Value::Table(entries)) => {
            let before = entries.len();
            entries.retain(|entry| entry.key != *key);
            entries.len() < before
        }
        (Step::Index(index), Value::List(items)) if *index < items.len() => {
            items.remove(*index);
            true
        }
        _ => false,
    }
}

#[derive(Clone, Debug)]
enum Step {
    Key(String),
    Index(usize),
}

/// The dotted key of a path; `name` is the dotted key of the part that the path starts from.
fn dotted(name: &str, path: &[Step]) -> String {
    let mut text = name.to_owned();
    for step in path {
        match step {
            Step::Key(key) if text.is_empty() => text.push_str(key),
            Step::Key(key) => {
                text.push('.');
                text.push_str(key);
            }
            Step::Index(index) => {
                text.push('[');
                text.push_str(&index.to_string());
                text.push(']');
            }
        }
    }
    text
}

/// One reason why a value does not fit, with the path to it.
#[derive(Debug)]
pub(super) struct DecodeError {
    kind: Kind,
    path: Vec<Step>,
    offset: Option<usize>,
}

#[derive(Debug)]
enum Kind {
    UnknownKey { key: String, known: &'static [&'static str] },
    UnknownValue { found: String, allowed: &'static [&'static str] },
    WrongType { found: String, is_text: bool, expected: String },
    BadValue(String),
    Missing(&'static str),
}

impl DecodeError {
    fn new(kind: Kind) -> Self {
        Self { kind, path: Vec::new(), offset: None }
    }

    /// The dotted key that is missing, if that is the error.
    fn missing_key(&self) -> Option<String> {
        let Kind::Missing(field) = self.kind else { return None };
        let table = dotted("", &self.path);
        Some(if table.is_empty() { field.to_owned() } else { format!("{table}.{field}") })
    }

    /// Called while the decoder returns from each level, so the path grows from its end.
    fn below(mut self, step: Step, offset: usize) -> Self {
        self.path.insert(0, step);
        self.offset.get_or_insert(offset);
        self
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", dotted("", &self.path), self.kind)
    }
}

impl std::error::Error for DecodeError {}

impl de::Error for DecodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Kind::BadValue(message.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(Kind::WrongType {
            found: describe_found(&found),
            is_text: matches!(found, Unexpected::Str(_)),
            expected: describe_expected(expected),
        })
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(Kind::UnknownKey { key: field.to_owned(), known: expected })
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(Kind::UnknownValue { found: variant.to_owned(), allowed: expected })
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(Kind::Missing(field))
    }
}

fn describe_found(found: &Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Signed(value) => value.to_string(),
        Unexpected::Unsigned(value) => value.to_string(),
        Unexpected::Float(value) => format!("{value:?}"),
        Unexpected::Str(value) => {
            let short: String = value.chars().take(40).collect();
            let more = if short.len() < value.len() { "…" } else { "" };
            format!("the text \"{short}{more}\"")
        }
        Unexpected::Unit | Unexpected::Option => "empty".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}

/// Serde names Rust types; authors of files do not know them.
fn describe_expected(expected: &dyn Expected) -> String {
    let name = expected.to_string();
    match name.as_str() {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, zero or more".to_owned(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" | "path string" => "text in quotes".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        other if other.starts_with("struct ") => "a table".to_owned(),
        other => other.to_owned(),
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let result = match &self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Integer(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::String(value) => visitor.visit_borrowed_str(value),
            Value::List(items) => visitor.visit_seq(List { items: items.iter().enumerate() }),
            Value::Table(entries) => visitor.visit_map(Table { entries: entries.iter(), current: None }),
        };
        result.map_err(|mut error| {
            error.offset.get_or_insert(self.offset);
            error
        })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_newtype_struct(self)
    }

    /// Serde would also fill a struct from a list, by position; no format allows that.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match &self.value {
            Value::List(_) => Err(de::Error::invalid_type(Unexpected::Seq, &"a table")),
            _ => self.deserialize_any(visitor),
        }
    }

    /// Enums in files are always names from a fixed set.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match &self.value {
            Value::String(name) => visitor.visit_enum(Name(name)),
            _ => self.deserialize_any(visitor),
        }
        .map_err(|mut error| {
            if let Kind::WrongType { expected, .. } = &mut error.kind {
                "a name in quotes".clone_into(expected);
            }
            error
        })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map identifier ignored_any
    }
}

struct Name<'de>(&'de str);

impl<'de> EnumAccess<'de> for Name<'de> {
    type Error = DecodeError;
    type Variant = NameOnly;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, NameOnly), DecodeError> {
        let name: StrDeserializer<'de, DecodeError> = self.0.into_deserializer();
        Ok((seed.deserialize(name)?, NameOnly))
    }
}

struct NameOnly;

impl<'de> VariantAccess<'de> for NameOnly {
    type Error = DecodeError;

    fn unit_variant(self) -> Result<(), DecodeError> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, _: S) -> Result<S::Value, DecodeError> {
        Err(de::Error::custom("is a name where a table belongs"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, DecodeError> {
        Err(de::Error::custom("is a name where a list belongs"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, DecodeError> {
        Err(de::Error::custom("is a name where a table belongs"))
    }
}

struct List<'de> {
    items: std::iter::Enumerate<std::slice::Iter<'de, Node>>,
}

impl<'de> SeqAccess<'de> for List<'de> {
    type Error = DecodeError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, DecodeError> {
        let Some((index, item)) = self.items.next() else { return Ok(None) };
        seed.deserialize(item).map(Some).map_err(|error| error.below(Step::Index(index), item.offset))
    }
}

struct Table<'de> {
    entries: std::slice::Iter<'de, Entry>,
    current: Option<&'de Entry>,
}

impl<'de> MapAccess<'de> for Table<'de> {
    type Error = DecodeError;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, DecodeError> {
        let Some(entry) = self.entries.next() else { return Ok(None) };
        self.current = Some(entry);
        let key: StrDeserializer<'de, DecodeError> = entry.key.as_str().into_deserializer();
        seed.deserialize(key)
            .map(Some)
            .map_err(|error| error.below(Step::Key(entry.key.clone()), entry.offset))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, DecodeError> {
        let Some(entry) = self.current else {
            return Err(de::Error::custom("a value was asked for before its key"));
        };
        seed.deserialize(&entry.value)
            .map_err(|error| error.below(Step::Key(entry.key.clone()), entry.value.offset))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde::Deserialize;

    use super::super::{Family, Syntax};
    use super::*;

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields, default)]
    struct Sample {
        name: Option<String>,
        count: Option<u32>,
        level: Option<Level>,
        tags: Vec<String>,
        inner: Inner,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields, default)]
    struct Inner {
        seconds: Option<f64>,
        on: Option<bool>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Level {
        Easy,
        Hard,
    }

    fn decode(syntax: Syntax, text: &str) -> (Option<Sample>, Vec<String>) {
        match Document::parse(Path::new("f"), text.to_owned(), syntax, Family('X')) {
            Ok(document) => {
                let decoded = document.decode();
                (decoded.value, decoded.problems.iter().map(render).collect())
            }
            Err(problems) => (None, problems.iter().map(render).collect()),
        }
    }

    fn render(problem: &Problem) -> String {
        let fix = problem.fix.as_deref().unwrap_or_default();
        format!("{} {problem} ({fix})", problem.id.as_deref().unwrap_or_default())
    }

    #[test]
    fn a_required_key_is_reported_once() {
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "only its decoding is of interest")]
        struct Strict {
            name: String,
            list: Vec<Inner>,
        }
        let problems = |text: &str| -> Vec<String> {
            let document =
                Document::parse(Path::new("f"), text.to_owned(), Syntax::Json, Family('X')).unwrap();
            document.decode::<Strict>().problems.iter().map(render).collect()
        };
        assert_eq!(problems(r#"{"list": []}"#), ["X006 f:1:1: `name` is missing (add the key)"]);
        let wrong = problems(r#"{"name": 5, "list": []}"#);
        assert_eq!(wrong, ["X004 f:1:10: `name` must be text in quotes, not 5 (write text in quotes there)"]);
    }

    #[test]
    fn the_three_notations_give_the_same_value() {
        let expected = Sample {
            name: Some("a".into()),
            count: Some(2),
            level: Some(Level::Hard),
            tags: vec!["x".into(), "y".into()],
            inner: Inner { seconds: Some(3.0), on: Some(true) },
        };
        let texts = [
            (Syntax::Toml, "name='a'\ncount=2\nlevel='hard'\ntags=['x','y']\n[inner]\nseconds=3\non=true\n"),
            (
                Syntax::Yaml,
                "name: a\ncount: 2\nlevel: hard\ntags: [x, y]\ninner:\n  seconds: 3\n  on: true\n",
            ),
            (
                Syntax::Json,
                r#"{"name":"a","count":2,"level":"hard","tags":["x","y"],"inner":{"seconds":3,"on":true}}"#,
            ),
        ];
        for (syntax, text) in texts {
            assert_eq!(decode(syntax, text), (Some(Sample { ..clone(&expected) }), vec![]), "{syntax:?}");
        }
    }

    fn clone(sample: &Sample) -> Sample {
        Sample {
            name: sample.name.clone(),
            count: sample.count,
            level: Some(Level::Hard),
            tags: sample.tags.clone(),
            inner: Inner { seconds: sample.inner.seconds, on: sample.inner.on },
        }
    }

    #[test]
    fn every_mistake_is_reported_with_its_place_and_the_rest_is_kept() {
        let text = "name = 5\ncolour = 'red'\ncount = -1\nlevel = 'hrad'\ntags = ['x', 7]\n\n[inner]\nsecond = 1\non = 'yes'\n";
        let (value, problems) = decode(Syntax::Toml, text);
        let value = value.unwrap();
        assert_eq!((value.name, value.count, value.level), (None, None, None));
        assert_eq!(value.tags, ["x"]);
        assert_eq!(
            problems,
            [
                "X004 f:1:8: `name` must be text in quotes, not 5 (write text in quotes there)",
                "X003 f:2:1: unknown key `colour` here (remove the key)",
                "X004 f:3:9: `count` must be a whole number, zero or more, not -1 (write a whole number, zero or more there)",
                "X005 f:4:9: `level` cannot be \"hrad\" (did you mean \"hard\"?)",
                "X004 f:5:14: `tags[1]` must be text in quotes, not 7 (write text in quotes there)",
                "X003 f:8:1: unknown key `second` in `inner` (did you mean `seconds`?)",
                "X004 f:9:6: `inner.on` must be true or false, not the text \"yes\" (write true or false there)",
            ]
        );
    }

    #[test]
    fn duplicates_and_broken_syntax_name_their_place() {
        assert_eq!(
            decode(Syntax::Toml, "name='a'\nname='b'\n").1,
            [
                "X002 f:2:1: not valid TOML: duplicate key (correct the file at this place; nothing in it was used)"
            ]
        );
        assert!(
            decode(Syntax::Yaml, "name: a\nname: b\n").1[0]
                .starts_with("X002 f:2:1: not valid YAML: duplicate")
        );
        assert!(
            decode(Syntax::Json, "{\"name\":\"a\",\n \"name\":\"b\"}").1[0]
                .starts_with("X002 f:2:2: not valid JSON")
        );
        assert!(decode(Syntax::Json, "{\"name\":").1[0].starts_with("X002 f:1:"));
        assert!(decode(Syntax::Yaml, "name: [a\n").1[0].starts_with("X002 f:1:7: not valid YAML"));
        assert!(decode(Syntax::Toml, "a\0b").1[0].contains("NUL"));
    }

    #[test]
    fn hostile_documents_are_errors() {
        let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
        for i in 1..9 {
            let aliases = vec![format!("*a{}", i - 1); 9].join(",");
            bomb += &format!("a{i}: &a{i} [{aliases}]\n");
        }
        assert!(decode(Syntax::Yaml, &bomb).1[0].contains("not valid YAML"));
        assert!(decode(Syntax::Yaml, &"[".repeat(20_000)).1[0].contains("not valid YAML"));
        assert!(decode(Syntax::Json, &"[".repeat(20_000)).1[0].contains("not valid JSON"));
        assert!(decode(Syntax::Toml, &format!("a = {}", "[".repeat(20_000))).1[0].contains("not valid TOML"));
        assert!(decode(Syntax::Yaml, "name: !!python/object:os.system x\n").1[0].contains("not valid YAML"));
        assert!(decode(Syntax::Yaml, "inner: {seconds: .inf}\n").1[0].contains("not valid YAML"));
        assert!(decode(Syntax::Json, "{\"count\": 99999999999999999999}").1[0].starts_with("X004"));
        assert!(decode(Syntax::Toml, "count = 99999999999999999999").1[0].starts_with("X002"));
    }

    #[test]
    fn empty_documents_are_empty_tables() {
        for (syntax, text) in [(Syntax::Toml, ""), (Syntax::Yaml, ""), (Syntax::Json, "{}")] {
            assert_eq!(decode(syntax, text), (Some(Sample::default()), vec![]));
        }
        assert!(decode(Syntax::Json, "").1[0].starts_with("X002"));
        assert_eq!(
            decode(Syntax::Yaml, "- a\n").1,
            ["X004 f:1:1: the file must be a table, not a list (write a table there)"]
        );
    }

    #[test]
    fn yaml_words_are_text_not_booleans() {
        let (value, problems) = decode(Syntax::Yaml, "name: no\ninner: {on: yes}\n");
        assert_eq!(value.unwrap().name.as_deref(), Some("no"));
        assert_eq!(problems.len(), 1);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_a_reader_panic(text in "\\PC{0,200}") {
            for syntax in [Syntax::Toml, Syntax::Yaml, Syntax::Json] {
                decode(syntax, &text);
            }
        }

        #[test]
        fn what_json_writes_is_read_back_with_right_offsets(
            names in proptest::collection::btree_map("[a-z\"\\\\é]{1,8}", proptest::num::i64::ANY, 0..12),
        ) {
            let text = serde_json::to_string_pretty(&names).unwrap();
            let document =
                Document::parse(Path::new("f"), text.clone(), Syntax::Json, Family('X')).unwrap();
            let decoded: std::collections::BTreeMap<String, i64> = document.decode().value.unwrap();
            proptest::prop_assert_eq!(&decoded, &names);
            let Value::Table(entries) = &document.root.value else { panic!("not a table") };
            for entry in entries {
                let number = entry.value.offset;
                proptest::prop_assert!(text[number..].starts_with(&names[&entry.key].to_string()));
            }
        }
    }
}
