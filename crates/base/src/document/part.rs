//! Parts of a document that are decoded separately: one table of a list, a table without some of its keys, one
//! element of a list as the value of a key. Each part knows its position, so its mistakes are reported like those of
//! the whole document.

use std::borrow::Cow;

use super::{Document, Entry, Node, Shared, Value};
use crate::problem::{Place, Problem};

#[derive(Clone, Debug)]
pub struct Part<'a> {
    pub(super) document: &'a Document,
    pub(super) node: Cow<'a, Node>,
    /// Its dotted key, as messages name it.
    pub(super) name: String,
    /// Whether [`Part::under`] made `node` as a table around the value that `name` names.
    pub(super) is_wrapped: bool,
    /// Whether problems omit the texts they complain about.
    pub(super) is_discreet: bool,
    /// Keys that are valid here although the decoded type lacks them: they are decoded separately.
    pub(super) further: &'static [&'static str],
}

impl Document {
    /// The whole document as a part.
    pub fn whole(&self) -> Part<'_> {
        Part::new(self, Cow::Borrowed(&self.root), String::new())
    }
}

impl<'a> Part<'a> {
    fn new(document: &'a Document, node: Cow<'a, Node>, name: String) -> Self {
        Self { document, node, name, is_wrapped: false, is_discreet: false, further: &[] }
    }

    /// The same part, but its problems do not repeat texts, because a text may be a misplaced secret.
    #[must_use]
    pub fn discreet(self) -> Self {
        Self { is_discreet: true, ..self }
    }

    /// The dotted key of this part.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn place(&self) -> Place {
        self.document.place_at(self.node.offset)
    }

    /// The position of one of its keys, or of the part itself if the key is absent.
    pub fn place_of_key(&self, key: &str) -> Place {
        let offset = self.node.get(key).map_or(self.node.offset, |entry| entry.offset);
        self.document.place_at(offset)
    }

    /// The keys and values in their order; `None` unless this is a table.
    pub fn entries(&self) -> Option<Vec<(String, Self)>> {
        let Value::Table(entries) = &self.node.value else { return None };
        Some(entries.iter().map(|entry| (entry.key.clone(), self.below(entry))).collect())
    }

    pub fn get(&self, key: &str) -> Option<Self> {
        self.node.get(key).map(|entry| self.below(entry))
    }

    fn below(&self, entry: &Entry) -> Self {
        let dot = if self.name.is_empty() { "" } else { "." };
        let name = format!("{}{dot}{}", self.name, entry.key);
        Self {
            is_discreet: self.is_discreet,
            ..Self::new(self.document, Cow::Owned(entry.value.clone()), name)
        }
    }

    /// The elements; `None` unless this is a list.
    pub fn items(&self) -> Option<Vec<Self>> {
        let Value::List(items) = &self.node.value else { return None };
        let item = |(index, node): (usize, &Node)| {
            let name = format!("{}[{index}]", self.name);
            Self { is_discreet: self.is_discreet, ..Self::new(self.document, Cow::Owned(node.clone()), name) }
        };
        Some(items.iter().enumerate().map(item).collect())
    }

    /// The element or value at `index` of a list or table.
    pub fn nth(&self, index: usize) -> Option<Self> {
        let values = self.entries().map(|entries| entries.into_iter().map(|(_, value)| value).collect());
        self.items().or(values)?.into_iter().nth(index)
    }

    #[must_use]
    pub fn without(mut self, keys: &[&str]) -> Self {
        if let Value::Table(entries) = &mut self.node.to_mut().value {
            entries.retain(|entry| !keys.contains(&entry.key.as_str()));
        }
        self
    }

    /// The same part, but its problems also list `further` among the known keys.
    #[must_use]
    pub fn knowing(self, further: &'static [&'static str]) -> Self {
        Self { further, ..self }
    }

    /// A table that has this value under `key` and nothing else.
    #[must_use]
    pub fn under(self, key: &str) -> Self {
        let offset = self.node.offset;
        let entry = Entry { key: key.to_owned(), offset, value: self.node.into_owned() };
        let node = Node { value: Value::Table(vec![entry]), offset };
        Self { node: Cow::Owned(node), is_wrapped: true, ..self }
    }

    /// The problem of a value that is not of the expected type.
    pub fn wrong_type(&self, expected: &str) -> Problem {
        let found = self.node.value.describe();
        Problem::error(format!("`{}` must be {expected}, not {found}", self.name))
            .id(self.document.family.id(Shared::WrongType))
            .fix(format!("write {expected} there"))
            .at(self.place())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde::Deserialize;

    use super::*;
    use crate::document::{Family, Syntax};

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields, default)]
    struct Row {
        count: Option<u32>,
        name: Option<String>,
    }

    fn parse(text: &str) -> Document {
        Document::parse(Path::new("f"), text.to_owned(), Syntax::Toml, Family('X')).unwrap()
    }

    fn told(part: &Part<'_>) -> Vec<String> {
        part.decode::<Row>().problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn parts_are_decoded_by_themselves_and_know_their_place() {
        let document = parse("count = 1\n[[row]]\nname = 'a'\n[[row]]\ncount = 'secret'\nconut = 2\n");
        let top = document.whole();
        assert_eq!(told(&top), ["f:2:3: unknown key `row` here"]);
        let top = top.without(&["row"]);
        assert_eq!(top.decode::<Row>().value, Some(Row { count: Some(1), name: None }));
        let rows = document.whole().get("row").unwrap().items().unwrap();
        assert_eq!(rows[0].decode::<Row>().value, Some(Row { count: None, name: Some("a".into()) }));
        let said = told(&rows[1]);
        assert_eq!(said[1], "f:6:1: unknown key `conut` in `row[1]`");
        assert!(
            said[0].starts_with("f:5:9: `row[1].count` must be ") && said[0].contains("secret"),
            "{said:?}"
        );
        let discreet = document.whole().discreet().get("row").and_then(|rows| rows.nth(1)).unwrap();
        assert!(!told(&discreet)[0].contains("secret"), "{:?}", told(&discreet));
    }

    #[test]
    fn one_value_of_a_list_is_read_as_if_it_stood_under_its_key() {
        let document = parse("count = [1, 'x', 3]\n");
        let values = document.whole().get("count").unwrap().items().unwrap();
        let read = |index: usize| values[index].clone().under("count");
        assert_eq!(read(2).decode::<Row>().value.unwrap().count, Some(3));
        assert!(told(&read(1))[0].starts_with("f:1:13: `count[1]` must be "), "{:?}", told(&read(1)));
        assert_eq!(values[0].wrong_type("a table").to_string(), "f:1:10: `count[0]` must be a table, not 1");
        assert!(values[0].entries().is_none() && values[0].nth(0).is_none());
    }

    #[test]
    fn further_keys_are_known() {
        let document = parse("rows = 1\n");
        let problem = document.whole().knowing(&["row"]).decode::<Row>().problems.remove(0);
        assert_eq!(problem.fix.as_deref(), Some("did you mean `row`?"));
        assert_eq!(problem.why.as_deref(), Some("the keys known here are count, name, row"));
    }
}
