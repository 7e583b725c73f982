//! Finds the facts that support a written section, and the numbers in it that no fact supports.
//!
//! A section is taken apart into statements: sentences, rows of tables, lines of code. A fact supports a statement
//! that contains a number of the fact with the same value and no other unit, or a text of the fact. Numbers in the
//! fact's key support names such as "borehole 2", but not quantities. Headings state nothing.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use aec_base::decimal::Decimal;
use aho_corasick::{AhoCorasick, MatchKind};
use serde::Serialize;
use serde_json::Value;

use crate::merge::{MergedFact, folded};
use crate::number::{self, Token};
use crate::sentence;

/// Shorter texts occur everywhere by chance.
const SHORTEST_TEXT: usize = 3;

/// The unit of numbers that are part of a key: no quantity has it.
const PART_OF_A_NAME: &str = "";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StatementKind {
    Sentence,
    /// A row of a table, or a line of code.
    Row,
}

/// A statement of a section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Statement {
    /// Byte range in the section.
    pub range: Range<usize>,
    pub kind: StatementKind,
    /// Indices of the supporting facts, in order.
    pub facts: Vec<usize>,
    /// Byte ranges of its numbers that no fact supports.
    pub unsupported: Vec<Range<usize>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trace {
    pub statements: Vec<Statement>,
}

impl Trace {
    /// Statements with numbers that no fact supports.
    pub fn unsupported(&self) -> impl Iterator<Item = &Statement> {
        self.statements.iter().filter(|statement| !statement.unsupported.is_empty())
    }
}

/// Traces the statements of a section to facts. Only chosen values count, not conflicting ones.
pub fn trace(section: &str, facts: &[MergedFact]) -> Trace {
    let evidence = Evidence::of(facts);
    let mut statements = statements(section);
    for statement in &mut statements {
        evidence.judge(section, statement);
    }
    Trace { statements }
}

/// Numbers and texts of facts, prepared for lookup.
struct Evidence {
    numbers: HashMap<Decimal, Vec<(usize, Option<&'static str>)>>,
    texts: Vec<usize>,
    /// Absent when there are no texts, or too many to search for.
    search: Option<AhoCorasick>,
}

impl Evidence {
    fn of(facts: &[MergedFact]) -> Self {
        let mut numbers: HashMap<Decimal, Vec<(usize, Option<&'static str>)>> = HashMap::new();
        let (mut texts, mut patterns) = (Vec::new(), Vec::new());
        for (index, fact) in facts.iter().enumerate() {
            let mut parts = Parts::default();
            parts.collect(&fact.value, number::unit_of_key(&fact.key));
            // Prose says "borehole 2" for the key `bh2`; a quantity would have a unit.
            let named =
                fact.key.split(|letter: char| !letter.is_ascii_digit()).filter(|digits| !digits.is_empty());
            parts.numbers.extend(named.filter_map(Decimal::parse).map(|value| (value, Some(PART_OF_A_NAME))));
            for (value, unit) in parts.numbers {
                numbers.entry(value).or_default().push((index, unit));
            }
            for text in parts.texts.into_iter().filter(|text| text.chars().count() >= SHORTEST_TEXT) {
                texts.push(index);
                patterns.push(text);
            }
        }
        let search = if patterns.is_empty() {
            None
        } else {
            AhoCorasick::builder().match_kind(MatchKind::Standard).build(&patterns).ok()
        };
        Self { numbers, texts, search }
    }

    fn judge(&self, section: &str, statement: &mut Statement) {
        let text = &section[statement.range.clone()];
        let mut found = BTreeSet::new();
        // Numbering is recognised at the start of lines, so each statement is scanned separately.
        for token in number::tokens(text) {
            let supporting = self.supporting(&token);
            if supporting.is_empty() {
                let start = statement.range.start;
                statement.unsupported.push(start + token.range.start..start + token.range.end);
            }
            found.extend(supporting);
        }
        if let Some(search) = &self.search {
            let folded = folded(text);
            for hit in search.find_overlapping_iter(&folded) {
                let index = self.texts[hit.pattern().as_usize()];
                if is_whole(&folded, hit.range()) {
                    found.insert(index);
                }
            }
        }
        statement.facts = found.into_iter().collect();
    }

    /// Facts with this number and no other unit.
    fn supporting(&self, token: &Token) -> Vec<usize> {
        let fits = |unit: Option<&str>| match (unit, token.unit) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        let candidates = self.numbers.get(&token.value).into_iter().flatten();
        candidates.filter(|(_, unit)| fits(*unit)).map(|(index, _)| *index).collect()
    }
}

/// Whether a hit neither begins nor ends inside a word.
fn is_whole(text: &str, hit: Range<usize>) -> bool {
    let touches = |outside: Option<char>, inside: Option<char>| {
        outside.is_some_and(char::is_alphanumeric) && inside.is_some_and(char::is_alphanumeric)
    };
    let word = &text[hit.clone()];
    !touches(text[..hit.start].chars().next_back(), word.chars().next())
        && !touches(text[hit.end..].chars().next(), word.chars().next_back())
}

/// Numbers and texts of one value.
#[derive(Default)]
struct Parts {
    numbers: Vec<(Decimal, Option<&'static str>)>,
    texts: Vec<String>,
}

impl Parts {
    fn collect(&mut self, value: &Value, unit: Option<&'static str>) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => self.number(Decimal::parse(&number.to_string()), unit),
            Value::String(text) => {
                for token in number::tokens(text) {
                    self.number(Some(token.value), token.unit.or(unit));
                }
                self.texts.push(folded(text));
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(item, unit)),
            Value::Object(entries) => {
                let own = entries.get("unit").or_else(|| entries.get("units")).and_then(Value::as_str);
                let unit = own.and_then(|own| number::unit(own.trim())).or(unit);
                for (key, value) in
                    entries.iter().filter(|(key, _)| !matches!(key.as_str(), "unit" | "units"))
                {
                    self.collect(value, number::unit_of_key(key).or(unit));
                }
            }
        }
    }

    fn number(&mut self, value: Option<Decimal>, unit: Option<&'static str>) {
        let Some(value) = value else { return };
        // Prose says "5 below" for -5, so a fact also supports the number without its sign.
        let absolute = value.absolute();
        if absolute != value {
            self.numbers.push((absolute, unit));
        }
        self.numbers.push((value, unit));
    }
}

/// Statements of markdown, without headings, rules and blank lines.
fn statements(section: &str) -> Vec<Statement> {
    let mut found = Vec::new();
    let mut paragraph: Option<Range<usize>> = None;
    let mut fenced = false;
    let mut at = 0;
    for line in section.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        let trimmed = line.trim();
        let is_fence = trimmed.starts_with("```") || trimmed.starts_with("~~~");
        let row = !is_fence && !trimmed.is_empty() && (fenced || trimmed.starts_with('|'));
        let is_rule = trimmed.bytes().all(|byte| matches!(byte, b'|' | b'-' | b':' | b' ' | b'='));
        if is_fence {
            fenced = !fenced;
        }
        let apart = is_fence || row || is_rule || trimmed.starts_with('#');
        if apart || is_item(trimmed) {
            close(section, &mut paragraph, &mut found);
        }
        if row && !is_rule {
            push(section, range.clone(), StatementKind::Row, &mut found);
        } else if !apart {
            let start = paragraph.as_ref().map_or(range.start, |paragraph| paragraph.start);
            paragraph = Some(start..range.end);
        }
    }
    close(section, &mut paragraph, &mut found);
    found
}

fn is_item(trimmed: &str) -> bool {
    let after = trimmed.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let numbered = (1..=2).contains(&(trimmed.len() - after.len()))
        && (after.starts_with(". ") || after.starts_with(") "));
    numbered || ["- ", "* ", "+ ", "• "].iter().any(|mark| trimmed.starts_with(mark))
}

/// Ends a paragraph: its sentences become statements.
fn close(section: &str, paragraph: &mut Option<Range<usize>>, found: &mut Vec<Statement>) {
    let Some(range) = paragraph.take() else { return };
    let text = &section[range.clone()];
    // `1. ` looks like the end of a sentence; an item's mark belongs to its first sentence.
    let lead = text.len() - text.trim_start().len();
    let mark =
        if is_item(text.trim()) { text[lead..].find(' ').map_or(lead, |blank| lead + blank + 1) } else { 0 };
    let mut start = 0;
    let ends = sentence::ends(&text[mark..]).map(|end| mark + end);
    for end in ends.chain([text.len()]) {
        push(section, range.start + start..range.start + end, StatementKind::Sentence, found);
        start = end;
    }
}

fn push(section: &str, range: Range<usize>, kind: StatementKind, found: &mut Vec<Statement>) {
    let text = &section[range.clone()];
    let trimmed = text.trim();
    if !trimmed.is_empty() {
        let start = range.start + (text.len() - text.trim_start().len());
        let range = start..start + trimmed.len();
        found.push(Statement { range, kind, facts: Vec::new(), unsupported: Vec::new() });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn fact(key: &str, value: Value) -> MergedFact {
        MergedFact { key: key.to_owned(), value, provenance: Vec::new(), conflicts: Vec::new() }
    }

    fn facts() -> Vec<MergedFact> {
        vec![
            fact("area", json!("1250 m2")),
            fact("span_mm", json!(3000)),
            fact("owner", json!("Acme  Holdings")),
            fact("load", json!({"value": 12.5, "unit": "kN"})),
            fact("standard", json!("AS/NZS 3008")),
            fact("level", json!(-7)),
        ]
    }

    fn traced(section: &str) -> Vec<(Vec<usize>, Vec<&str>)> {
        let trace = trace(section, &facts());
        let shown = |statement: Statement| {
            let numbers = statement.unsupported.iter().map(|range| &section[range.clone()]).collect();
            (statement.facts, numbers)
        };
        trace.statements.into_iter().map(shown).collect()
    }

    #[test]
    fn statements_rest_on_facts() {
        let section = "# 1. Site 2024\n\nThe area is 1,250.0 m² and owned by ACME\nHoldings. It spans 3000 mm. \
                       It spans 3000 m.\nThe water falls to 7 m below.\n\n| load | 12.50 kN |\n|---|---|\n| wind | 9 |\n\n\
                       1. Per AS/NZS 3008.\n2. Nothing.\n";
        assert_eq!(
            traced(section),
            [
                (vec![0, 2], vec![]),
                (vec![1], vec![]),
                (vec![], vec!["3000"]),
                (vec![5], vec![]),
                (vec![3], vec![]),
                (vec![], vec!["9"]),
                (vec![4], vec![]),
                (vec![], vec![]),
            ]
        );
        assert_eq!(trace(section, &facts()).unsupported().count(), 2);
        assert_eq!(trace(section, &[]).unsupported().count(), 7);
    }

    #[test]
    fn texts_are_found_as_words() {
        assert_eq!(traced("acme holdingsx."), [(vec![], vec![])]);
        assert_eq!(traced("By acme holdings, 12.5 kPa."), [(vec![2], vec!["12.5"])]);
        assert_eq!(traced(""), []);
        assert_eq!(traced("The area is\n1251. It is large."), [(vec![], vec!["1251"]), (vec![], vec![])]);
    }

    #[test]
    fn numbers_of_a_key_are_names_and_no_quantities() {
        let facts = [fact("bh2_rock_depth_m", json!(9.4))];
        let unsupported = |section: &str| trace(section, &facts).unsupported().count();
        assert_eq!(unsupported("In borehole 2 rock was met at 9.4 m."), 0);
        assert_eq!(unsupported("In borehole 3 rock was met at 9.4 m."), 1);
        assert_eq!(unsupported("Rock was met at 2 m."), 1);
    }

    proptest! {
        #[test]
        fn statements_are_in_order_and_inside(section in "(# a\n|\\| 1 \\|\n|```\n|---\n|Some 5 words. And 7 kN more!\n|1\\. x\n|\n|\\PC{0,6}){0,30}") {
            let trace = trace(&section, &facts());
            let mut last = 0;
            for statement in &trace.statements {
                prop_assert!(statement.range.start >= last && section.get(statement.range.clone()).is_some());
                last = statement.range.end;
                for number in &statement.unsupported {
                    prop_assert!(number.start >= statement.range.start && number.end <= statement.range.end);
                }
            }
        }

        #[test]
        fn a_number_of_a_fact_is_supported(number in -1_000_000i64..1_000_000, tenths in 0u8..10) {
            let text = format!("{number}.{tenths}");
            let facts = [fact("k", json!(text.parse::<f64>().unwrap()))];
            let section = format!("It is {text} of them.");
            prop_assert_eq!(trace(&section, &facts).unsupported().count(), 0);
        }
    }
}
