//! Values of a file in the types that options have. What does not fit is noted with its place, and reading goes on.

use std::path::Path;

use aec_base::document::{Shared, place};
use aec_base::problem::Problem;
use serde_json::{Map, Number, Value as Json};

use super::tree::{Node, Value};
use crate::config::options::{Headers, Workers};
use crate::config::{FAMILY, check, headers, number};

/// A file with more problems than this is not the file its author thinks it is.
const MOST_PROBLEMS: usize = 50;

/// A file that is being read, and the problems found so far.
pub(super) struct Reader<'a> {
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
    found: Vec<Problem>,
    further: usize,
}

/// A value together with the name it has in sentences, such as `temperature` or `sweep.temperature[1]`.
#[derive(Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) name: &'a str,
    pub(super) node: &'a Node,
}

impl<'a> Reader<'a> {
    pub(super) fn new(path: &'a Path, text: &'a str) -> Self {
        Self { path, text, found: Vec::new(), further: 0 }
    }

    pub(super) fn has_problems(&self) -> bool {
        !self.found.is_empty()
    }

    /// All problems in the order of the file.
    pub(super) fn into_problems(mut self) -> Vec<Problem> {
        self.found.sort_by_key(|problem| (problem.line, problem.column));
        if self.further > 0 {
            let what = format!("{} more problems are not shown", self.further);
            let more = Problem::error(what).id(FAMILY.number(number::MORE_PROBLEMS));
            self.found.push(more.fix("correct those above first").in_file(self.path));
        }
        self.found
    }

    /// Notes a problem at a place of the file.
    pub(super) fn push(&mut self, offset: usize, problem: Problem) {
        if self.found.len() < MOST_PROBLEMS {
            self.found.push(problem.at(place(self.path, self.text, offset)));
        } else {
            self.further += 1;
        }
    }

    pub(super) fn error(&mut self, offset: usize, shared: Shared, what: String, fix: &str) {
        self.push(offset, Problem::error(what).id(FAMILY.id(shared)).fix(fix));
    }

    pub(super) fn wrong_type<T>(&mut self, item: Item<'_>, expected: &str) -> Option<T> {
        let what = format!("`{}` must be {expected}, not {}", item.name, item.node.value.describe());
        self.error(item.node.offset, Shared::WrongType, what, &format!("write {expected} there"));
        None
    }

    /// A value that passed its check, or nothing and the problem.
    pub(super) fn passed<T>(&mut self, item: Item<'_>, checked: Result<T, Problem>) -> Option<T> {
        checked.map_err(|problem| self.push(item.node.offset, problem)).ok()
    }

    pub(super) fn flag(&mut self, item: Item<'_>) -> Option<bool> {
        match item.node.value {
            Value::Bool(flag) => Some(flag),
            _ => self.wrong_type(item, "true or false"),
        }
    }

    /// `resume`, for which people write the path that `resume_path` takes.
    pub(super) fn resume(&mut self, item: Item<'_>) -> Option<bool> {
        if let Value::Text(_) = item.node.value {
            let what = format!("`{}` must be true or false, not text", item.name);
            self.error(item.node.offset, Shared::WrongType, what, "name the run in `resume_path`");
            return None;
        }
        self.flag(item)
    }

    pub(super) fn integer(&mut self, item: Item<'_>) -> Option<i64> {
        match item.node.value {
            Value::Integer(number) => Some(number),
            _ => self.wrong_type(item, "a whole number"),
        }
    }

    /// A whole number that is not negative.
    pub(super) fn count(&mut self, item: Item<'_>) -> Option<u32> {
        let number = self.integer(item)?;
        let fits = u32::try_from(number).map_err(|_| {
            let what = format!("`{}` must be from 0 to {}, not {number}", item.name, u32::MAX);
            check::bad_value(what, "correct the number")
        });
        self.passed(item, fits)
    }

    /// A whole number of at least one.
    pub(super) fn positive(&mut self, item: Item<'_>) -> Option<u32> {
        let number = self.count(item)?;
        self.passed(item, check::positive(item.name, number).map(|()| number))
    }

    pub(super) fn number(&mut self, item: Item<'_>) -> Option<f64> {
        match item.node.value {
            Value::Float(number) => Some(number),
            #[expect(clippy::cast_precision_loss, reason = "numbers that large are no settings")]
            Value::Integer(number) => Some(number as f64),
            _ => self.wrong_type(item, "a number"),
        }
    }

    pub(super) fn text(&mut self, item: Item<'_>) -> Option<String> {
        match &item.node.value {
            Value::Text(text) => self.passed(item, check::not_empty(item.name, text).map(|()| text.clone())),
            _ => self.wrong_type(item, "text in quotes"),
        }
    }

    /// Text that also passes a check of its own.
    pub(super) fn checked_text(
        &mut self,
        item: Item<'_>,
        check: impl FnOnce(&str, &str) -> Result<(), Problem>,
    ) -> Option<String> {
        let text = self.text(item)?;
        self.passed(item, check(item.name, &text).map(|()| text))
    }

    pub(super) fn workers(&mut self, item: Item<'_>) -> Option<Workers> {
        match &item.node.value {
            Value::Text(text) if text == "auto" => Some(Workers::Auto),
            Value::Integer(_) => self.positive(item).map(Workers::Count),
            _ => self.wrong_type(item, "a whole number or \"auto\""),
        }
    }

    pub(super) fn columns(&mut self, item: Item<'_>) -> Option<Vec<String>> {
        let columns = self.texts(item, "a list of texts")?;
        let columns: Vec<String> = columns.into_iter().map(|(column, _)| column).collect();
        let problems = check::columns(item.name, &columns);
        let is_right = problems.is_empty();
        for problem in problems {
            self.push(item.node.offset, problem);
        }
        is_right.then_some(columns)
    }

    /// A list of texts, each with its place.
    fn texts(&mut self, item: Item<'_>, expected: &str) -> Option<Vec<(String, usize)>> {
        let Value::List(nodes) = &item.node.value else { return self.wrong_type(item, expected) };
        let mut texts = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            match &node.value {
                Value::Text(text) => texts.push((text.clone(), node.offset)),
                _ => {
                    let name = format!("{}[{index}]", item.name);
                    return self.wrong_type(Item { name: &name, node }, "text in quotes");
                }
            }
        }
        Some(texts)
    }

    /// Headers as a list of `Name: Value`; `check` gets the key, the name and the value.
    pub(super) fn header_list(&mut self, item: Item<'_>, check: headers::Check) -> Option<Headers> {
        let lines = self.texts(item, "a list of texts such as \"X-Name: value\"")?;
        let mut list = Headers::new();
        for (line, offset) in lines {
            match headers::split(item.name, &line) {
                Ok(parts) => self.add_header(&mut list, item.name, parts, offset, check),
                Err(problem) => self.push(offset, problem),
            }
        }
        Some(list)
    }

    /// Headers as a table.
    pub(super) fn header_table(&mut self, item: Item<'_>, check: headers::Check) -> Option<Headers> {
        let Value::Table(entries) = &item.node.value else {
            return self.wrong_type(item, "a table of names and texts");
        };
        let mut table = Headers::new();
        for entry in entries {
            match &entry.node.value {
                Value::Text(value) => {
                    self.add_header(&mut table, item.name, (&entry.key, value), entry.offset, check);
                }
                _ => {
                    let name = format!("{}.{}", item.name, entry.key);
                    self.wrong_type::<()>(Item { name: &name, node: &entry.node }, "text in quotes");
                }
            }
        }
        Some(table)
    }

    fn add_header(
        &mut self,
        to: &mut Headers,
        key: &str,
        (name, value): (&str, &str),
        offset: usize,
        check: headers::Check,
    ) {
        if let Err(problem) = headers::add(to, key, (name, value), check) {
            self.push(offset, problem);
        }
    }

    /// A table of anything, as JSON.
    pub(super) fn object(&mut self, item: Item<'_>) -> Option<Map<String, Json>> {
        let Value::Table(entries) = &item.node.value else { return self.wrong_type(item, "a table") };
        let mut map = Map::new();
        for entry in entries {
            let name = format!("{}.{}", item.name, entry.key);
            if let Some(value) = self.json(Item { name: &name, node: &entry.node }) {
                map.insert(entry.key.clone(), value);
            }
        }
        self.passed(item, check::arguments(item.name, &map).map(|()| map))
    }

    /// Anything, as JSON. Numbers that JSON does not have are refused.
    pub(super) fn json(&mut self, item: Item<'_>) -> Option<Json> {
        Some(match &item.node.value {
            Value::Bool(flag) => Json::Bool(*flag),
            Value::Integer(number) => Json::Number((*number).into()),
            Value::Text(text) => Json::String(text.clone()),
            Value::Float(number) => {
                let finite = Number::from_f64(*number).map(Json::Number).ok_or_else(|| {
                    let what = format!("`{}` cannot be {number}", item.name);
                    check::bad_value(what, "write a finite number")
                });
                self.passed(item, finite)?
            }
            Value::List(nodes) => {
                let named = |(index, node)| (format!("{}[{index}]", item.name), node);
                Json::Array(
                    nodes
                        .iter()
                        .enumerate()
                        .map(named)
                        .filter_map(|(name, node)| self.json(Item { name: &name, node }))
                        .collect(),
                )
            }
            Value::Table(entries) => Json::Object(
                entries
                    .iter()
                    .map(|entry| (format!("{}.{}", item.name, entry.key), entry))
                    .filter_map(|(name, entry)| {
                        Some((entry.key.clone(), self.json(Item { name: &name, node: &entry.node })?))
                    })
                    .collect(),
            ),
        })
    }
}
