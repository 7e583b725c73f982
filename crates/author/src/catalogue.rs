//! `library export`: every template and seed as one JSON document, for sites and other tools.

use aec_task::seed::Seed;
use serde::Serialize;

use crate::floor::relative;
use crate::params::{OutputKind, ParamKind};
use crate::template::Template;

/// The document. The same templates and seeds give the same bytes.
#[derive(Debug, Serialize)]
pub struct Catalogue<'a> {
    /// Version of this format.
    pub schema_version: u32,
    /// Templates by discipline and name.
    pub templates: Vec<TemplateEntry<'a>>,
    /// Seeds that no template covers yet, by discipline and id.
    pub seeds: Vec<SeedEntry<'a>>,
}

#[derive(Debug, Serialize)]
pub struct TemplateEntry<'a> {
    pub task_id: &'a str,
    /// Its readable name.
    pub task_name: String,
    /// `built`.
    pub status: &'static str,
    pub discipline: &'a str,
    /// Kind of calculation.
    pub category: &'a str,
    /// The category's readable name.
    pub category_label: String,
    pub version: String,
    /// Hash of all its files.
    pub content_hash: String,
    /// One line.
    pub description: &'a str,
    /// A paragraph.
    pub long_description: &'a str,
    pub standards: &'a [String],
    /// Words for searching.
    pub tags: &'a [String],
    /// `with-tool`, `no-tool` or `both`.
    pub tool_mode: &'static str,
    /// The engine's parameters.
    pub inputs: Vec<InputEntry<'a>>,
    pub outputs: Vec<OutputEntry<'a>>,
    /// Tiers, easiest first.
    pub difficulty_tiers: Vec<&'a str>,
    /// Number of archetypes.
    pub archetype_count: usize,
    /// Sources of its worked examples.
    pub examples: Vec<&'a str>,
}

#[derive(Debug, Serialize)]
pub struct InputEntry<'a> {
    name: &'a str,
    description: &'a str,
    unit: Option<&'a str>,
    #[serde(rename = "type")]
    kind: ParamKind,
}

#[derive(Debug, Serialize)]
pub struct OutputEntry<'a> {
    name: &'a str,
    description: &'a str,
    unit: Option<&'a str>,
    #[serde(rename = "type")]
    kind: OutputKind,
    tolerance: Option<f64>,
}

#[derive(Debug, Serialize)]
pub struct SeedEntry<'a> {
    task_id: &'a str,
    task_name: &'a str,
    /// `proposed`.
    status: &'static str,
    discipline: &'a str,
    description: &'a str,
    standards: &'a [String],
    inputs: &'a [String],
    outputs: &'a [String],
    complexity: Option<&'a str>,
}

/// Makes the document from templates and seeds. Leaves out seeds that have the discipline and name of a template.
pub fn catalogue<'a>(templates: &'a [Template], seeds: &'a [Seed]) -> Catalogue<'a> {
    let mut entries: Vec<TemplateEntry<'a>> = templates.iter().map(entry).collect();
    entries.sort_by(|a, b| (a.discipline, a.task_id).cmp(&(b.discipline, b.task_id)));
    let built = |seed: &Seed| {
        entries.iter().any(|entry| entry.discipline == seed.discipline && entry.task_id == seed.id)
    };
    let mut proposed: Vec<SeedEntry<'a>> = seeds
        .iter()
        .filter(|seed| !built(seed))
        .map(|seed| SeedEntry {
            task_id: &seed.id,
            task_name: &seed.title,
            status: "proposed",
            discipline: &seed.discipline,
            description: &seed.description,
            standards: &seed.standards,
            inputs: &seed.inputs,
            outputs: &seed.outputs,
            complexity: seed.complexity.as_deref(),
        })
        .collect();
    proposed.sort_by(|a, b| (a.discipline, a.task_id).cmp(&(b.discipline, b.task_id)));
    Catalogue { schema_version: 1, templates: entries, seeds: proposed }
}

fn entry(template: &Template) -> TemplateEntry<'_> {
    let mut tiers: Vec<&str> = template.tiers.keys().map(String::as_str).collect();
    // The usual three first, in their order; others in the order of the template.
    let rank = |name: &&str| {
        aec_task::file::Difficulty::NAMES.iter().position(|known| known == name).unwrap_or(usize::MAX)
    };
    tiers.sort_by_key(rank);
    TemplateEntry {
        task_id: &template.name,
        task_name: words(&template.name),
        status: "built",
        discipline: &template.discipline,
        category: &template.category,
        category_label: words(&template.category),
        version: template.version.to_string(),
        content_hash: template.digest.to_string(),
        description: &template.description,
        long_description: &template.long_description,
        standards: &template.standards,
        tags: &template.tags,
        tool_mode: template.tool_modes.name(),
        inputs: template
            .params
            .iter()
            .map(|(name, quantity)| InputEntry {
                name,
                description: &quantity.description,
                unit: quantity.unit.as_deref(),
                kind: quantity.kind,
            })
            .collect(),
        outputs: template
            .outputs
            .iter()
            .map(|(name, output)| {
                let kind = output.kind.unwrap_or_default();
                OutputEntry {
                    name,
                    description: &output.description,
                    unit: output.unit.as_deref(),
                    kind,
                    tolerance: (kind == OutputKind::Number).then(|| relative(output)).flatten(),
                }
            })
            .collect(),
        difficulty_tiers: tiers,
        archetype_count: template.archetypes.len(),
        examples: template.examples.iter().map(|example| example.source.as_str()).collect(),
    }
}

fn words(name: &str) -> String {
    let words = name.replace(['-', '_'], " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
