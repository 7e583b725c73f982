//! A report template as users write it: several keys have a short and a long form.

use std::fmt;

use indexmap::IndexMap;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Field, Guidance, Meta};

#[derive(serde::Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenTemplate {
    pub(super) meta: Meta,
    pub(super) sections: Vec<WrittenSection>,
    pub(super) rubric: Option<IgnoredAny>,
    pub(super) boilerplate: Option<IgnoredAny>,
}

#[derive(serde::Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenSection {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) fields: WrittenFields,
    pub(super) depends_on: Vec<String>,
    pub(super) generation_mode: Option<String>,
    pub(super) per_discipline: bool,
    pub(super) writing_guidance: WrittenGuidance,
    pub(super) input_mapping: WrittenSources,
    pub(super) blocks: Option<IgnoredAny>,
}

#[derive(serde::Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenMapping {
    pub(super) sections: IndexMap<String, MappedSection>,
}

#[derive(serde::Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MappedSection {
    pub(super) sources: Vec<String>,
}

/// A list of tables, or a table of names with a type or a table each.
#[derive(Default)]
pub(super) struct WrittenFields(pub(super) Vec<Field>);

/// A list of rules, or a table of a summary and rules.
#[derive(Default)]
pub(super) struct WrittenGuidance(pub(super) Guidance);

/// A list of labels, or a table of labels and priorities.
#[derive(Default)]
pub(super) struct WrittenSources {
    pub(super) sources: Vec<String>,
    pub(super) priority: IndexMap<String, i64>,
}

impl<'de> Deserialize<'de> for WrittenFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = WrittenFields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of fields, or a table of names and types")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<WrittenFields, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = list.next_element()? {
            fields.push(field);
        }
        Ok(WrittenFields(fields))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<WrittenFields, A::Error> {
        let mut fields = Vec::new();
        while let Some(name) = table.next_key::<String>()? {
            let NamedField(field) = table.next_value()?;
            fields.push(Field { name, ..field });
        }
        Ok(WrittenFields(fields))
    }
}

/// The value after a field's name: its type, or a table.
struct NamedField(Field);

#[derive(serde::Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct FieldTable {
    dtype: String,
    description: String,
    tolerance: Option<f64>,
    unit: Option<String>,
    required: bool,
}

impl<'de> Deserialize<'de> for NamedField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NamedFieldVisitor)
    }
}

struct NamedFieldVisitor;

impl<'de> Visitor<'de> for NamedFieldVisitor {
    type Value = NamedField;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a type in quotes, or a table")
    }

    fn visit_str<E>(self, dtype: &str) -> Result<NamedField, E> {
        Ok(NamedField(Field { dtype: dtype.to_owned(), ..Field::default() }))
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<NamedField, A::Error> {
        let table = FieldTable::deserialize(serde::de::value::MapAccessDeserializer::new(table))?;
        Ok(NamedField(Field {
            name: String::new(),
            dtype: table.dtype,
            description: table.description,
            tolerance: table.tolerance,
            unit: table.unit,
            required: table.required,
        }))
    }
}

impl<'de> Deserialize<'de> for WrittenGuidance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GuidanceVisitor)
    }
}

struct GuidanceVisitor;

#[derive(serde::Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct GuidanceTable {
    summary: Option<String>,
    rules: Vec<String>,
}

impl<'de> Visitor<'de> for GuidanceVisitor {
    type Value = WrittenGuidance;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of rules, or a table of a summary and rules")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<WrittenGuidance, A::Error> {
        Ok(WrittenGuidance(Guidance { summary: None, rules: texts(list)? }))
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<WrittenGuidance, A::Error> {
        let table = GuidanceTable::deserialize(serde::de::value::MapAccessDeserializer::new(table))?;
        Ok(WrittenGuidance(Guidance { summary: table.summary, rules: table.rules }))
    }
}

impl<'de> Deserialize<'de> for WrittenSources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SourcesVisitor)
    }
}

struct SourcesVisitor;

#[derive(serde::Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct SourcesTable {
    sources: Vec<String>,
    priority: IndexMap<String, i64>,
}

impl<'de> Visitor<'de> for SourcesVisitor {
    type Value = WrittenSources;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of sources, or a table of sources and priorities")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<WrittenSources, A::Error> {
        Ok(WrittenSources { sources: texts(list)?, priority: IndexMap::new() })
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<WrittenSources, A::Error> {
        let table = SourcesTable::deserialize(serde::de::value::MapAccessDeserializer::new(table))?;
        Ok(WrittenSources { sources: table.sources, priority: table.priority })
    }
}

fn texts<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Vec<String>, A::Error> {
    let mut texts = Vec::new();
    while let Some(text) = list.next_element()? {
        texts.push(text);
    }
    Ok(texts)
}
