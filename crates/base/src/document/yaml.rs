//! Parses YAML text into a [`Node`] tree.
//!
//! Manifests are plain data. Tags are refused, aliases and nesting are bounded, duplicate keys and non-finite numbers
//! are errors, and only `true` and `false` are booleans: `yes`, `on` and `no` stay text, so that a country code or an
//! answer never silently becomes a boolean.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, NonFiniteFloatPolicy, Options, Spanned};

use super::{Entry, Node, SyntaxError, Value};

/// No manifest has this many nodes; an alias bomb reaches the limit at once.
const NODE_BUDGET: usize = 50_000;

pub(super) fn parse(text: &str) -> Result<Node, SyntaxError> {
    let tree: Spanned<Tree> =
        serde_saphyr::from_str_with_options(text, options()).map_err(|error| SyntaxError {
            message: first_line(&error.to_string()),
            offset: error.location().map(|location| offset_of(text, location.line(), location.column())),
        })?;
    let offset = byte_offset(text, &tree.referenced);
    match tree.value.into_node(text, offset) {
        // An empty file is an empty table: every key is absent.
        Node { value: Value::Null, offset } => Ok(Node { value: Value::Table(Vec::new()), offset }),
        node => Ok(node),
    }
}

fn options() -> Options {
    let mut options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::Error,
        strict_booleans: true,
        reject_unsupported_tags: true,
        non_finite_float_policy: NonFiniteFloatPolicy::Reject,
        with_snippet: false,
    };
    options.budget = serde_saphyr::budget! {
        max_nodes: NODE_BUDGET,
        max_events: 4 * NODE_BUDGET,
        max_depth: 64,
    };
    options
}

/// `error: line 2 column 1: duplicate mapping key` without the position, which is reported separately.
fn first_line(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    match line.split_once(": ") {
        Some((position, rest)) if position.starts_with("line ") => rest.to_owned(),
        _ => line.to_owned(),
    }
}

fn offset_of(text: &str, line: u64, column: u64) -> usize {
    let line = usize::try_from(line).unwrap_or(1).saturating_sub(1);
    let column = usize::try_from(column).unwrap_or(1).saturating_sub(1);
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    text[start..].char_indices().nth(column).map_or(text.len(), |(offset, _)| start + offset)
}

fn byte_offset(text: &str, location: &serde_saphyr::Location) -> usize {
    match location.span().byte_offset() {
        Some(offset) => usize::try_from(offset).unwrap_or(0),
        None => offset_of(text, location.line(), location.column()),
    }
}

/// The values as the parser delivers them, with its locations.
enum Tree {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    String(String),
    List(Vec<Spanned<Self>>),
    Table(Vec<(Spanned<String>, Spanned<Self>)>),
}

impl Tree {
    fn into_node(self, text: &str, offset: usize) -> Node {
        let child = |tree: Spanned<Self>| {
            let offset = byte_offset(text, &tree.referenced);
            tree.value.into_node(text, offset)
        };
        let value = match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Integer(value) => Value::Integer(value),
            Self::Float(value) => Value::Float(value),
            Self::String(value) => Value::String(value),
            Self::List(items) => Value::List(items.into_iter().map(child).collect()),
            Self::Table(entries) => Value::Table(
                entries
                    .into_iter()
                    .map(|(key, value)| Entry {
                        offset: byte_offset(text, &key.referenced),
                        key: key.value,
                        value: child(value),
                    })
                    .collect(),
            ),
        };
        Node { value, offset }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("plain data")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        Tree::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Integer(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Tree, E> {
        i64::try_from(value).map(Tree::Integer).map_err(|_| E::custom("the whole number is out of range"))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Tree, E> {
        Ok(Tree::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut entries: Vec<(Spanned<String>, Spanned<Tree>)> = Vec::new();
        let mut known = HashSet::new();
        while let Some(key) = access.next_key::<Spanned<String>>()? {
            if !known.insert(key.value.clone()) {
                return Err(A::Error::custom(format!("duplicate key: {}", key.value)));
            }
            entries.push((key, access.next_value()?));
        }
        Ok(Tree::Table(entries))
    }
}
