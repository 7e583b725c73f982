//! Report templates: the sections of a report, their sources, and their dependencies.
//!
//! Reading checks the whole template. A template that was read can be executed: every id is known, no section waits
//! for itself, and the order of work is fixed. With [`Tier::Flat`] all sections are independent, and dependencies are
//! refused rather than ignored; with [`Tier::DependencyTree`] a section is unlocked when the sections it depends on
//! are filled.
//!
//! Sections of blocks (`compose`), repetition per discipline and boilerplate tables are not supported and refused. A
//! rubric is meant for judges; it is ignored here, with a note.

mod order;
mod written;

use std::fmt;
use std::path::Path;

use aec_base::document::Shared;
use aec_base::problem::Problem;
use aec_base::text;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::long_documents::settings::Tier;
use crate::long_documents::source_file::{self, Checker, shown};
use crate::long_documents::{FAMILY, number_of};
use written::{WrittenMapping, WrittenSection, WrittenTemplate};

/// A checked report template.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportTemplate {
    pub tier: Tier,
    /// Remarks on the whole report.
    pub meta: Meta,
    /// Sections in the order of the report.
    sections: Vec<Section>,
    /// Indices of sections in an order that respects dependencies.
    #[serde(skip)]
    order: Vec<usize>,
}

/// `[meta]`: remarks on the whole report for the authors of prompts.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Meta {
    /// The tone of the report.
    pub voice: Option<String>,
    /// The subject area.
    pub domain: Option<String>,
    /// Advice for planning it.
    pub planning_guidance: Option<String>,
}

/// One section of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Section {
    pub id: String,
    /// Its heading, without a number.
    pub title: String,
    /// What it must or may contain.
    pub fields: Vec<Field>,
    /// Sections that must be filled first.
    pub depends_on: Vec<String>,
    pub generation_mode: GenerationMode,
    /// Instructions for its writer.
    pub writing_guidance: Guidance,
    /// Its sources.
    pub input_mapping: InputMapping,
}

/// How the text of a section is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GenerationMode {
    /// From the facts of the sources, put into words.
    #[default]
    Transform,
    /// Like `transform`, with the writing guidance as the outline.
    Guided,
    /// Conclusions may be drawn from the facts.
    Creative,
    /// By copying the sources unchanged, without a model.
    Boilerplate,
    /// Written outside this run: it counts neither as filled nor as missing.
    External,
}

/// Something that a section must or may state.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Field {
    pub name: String,
    /// Its type, as the template names it.
    pub dtype: String,
    pub description: String,
    /// How far a number may deviate.
    pub tolerance: Option<f64>,
    /// The unit of a number.
    pub unit: Option<String>,
    /// Whether a section without it is incomplete.
    pub required: bool,
}

/// Instructions for the writer of a section.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
pub struct Guidance {
    /// In one sentence.
    pub summary: Option<String>,
    pub rules: Vec<String>,
}

/// Sources of a section, each with its authority.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
pub struct InputMapping {
    /// Labels and priorities in the order of the template; lower numbers have more authority.
    pub sources: IndexMap<String, i64>,
    /// Priorities that the template states.
    #[serde(skip)]
    given: IndexMap<String, i64>,
}

impl InputMapping {
    /// Sources without a stated priority come after all others.
    fn new(sources: &[String], given: IndexMap<String, i64>) -> Self {
        let rest = given.values().max().map_or(0, |most| most.saturating_add(1));
        let rank = |label: &String| given.get(label).copied().unwrap_or(rest);
        Self { sources: sources.iter().map(|label| (label.clone(), rank(label))).collect(), given }
    }
}

/// `source_mapping.toml` beside a template, which sets the sources of its sections.
#[derive(Clone, Copy, Debug)]
pub struct SourceMapping<'a> {
    pub path: &'a Path,
    pub text: &'a str,
}

impl ReportTemplate {
    /// Parses a `report_template.toml` and applies a source mapping. Returns a template only if no problem is an
    /// error.
    pub fn read(
        path: &Path,
        text: &str,
        tier: Tier,
        mapping: Option<SourceMapping<'_>>,
    ) -> (Option<Self>, Vec<Problem>) {
        let document = match source_file::parse(path, text.to_owned()) {
            Ok(document) => document,
            Err(problems) => return (None, problems),
        };
        let mut checker = Checker::new(&document);
        let Some(written) = checker.decode::<WrittenTemplate>() else { return checker.finish(None) };
        check_whole(&written, &mut checker);
        let mut sections = Vec::with_capacity(written.sections.len());
        for (index, section) in written.sections.into_iter().enumerate() {
            sections.push(build_section(section, index, &mut checker));
        }
        let order = order::check(&sections, tier, &mut checker);
        let template = Self { tier, meta: written.meta, sections, order: order.unwrap_or_default() };
        let (template, mut problems) = checker.finish(Some(template));
        match (template, mapping) {
            (Some(mut template), Some(mapping)) => {
                let (mapped, more) = template.map_sources(mapping);
                problems.extend(more);
                (mapped.map(|()| template), problems)
            }
            (template, _) => (template, problems),
        }
    }

    /// Sections in the order of the report.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    pub fn section(&self, id: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.id == id)
    }

    /// Sections in the order of work: each after those it depends on, otherwise as in the report.
    pub fn order(&self) -> impl Iterator<Item = &Section> {
        self.order.iter().filter_map(|index| self.sections.get(*index))
    }

    /// Applies a `source_mapping.toml`: its sources replace those of a section; sources that stay keep their
    /// priorities.
    fn map_sources(&mut self, mapping: SourceMapping<'_>) -> (Option<()>, Vec<Problem>) {
        let document = match source_file::parse(mapping.path, mapping.text.to_owned()) {
            Ok(document) => document,
            Err(problems) => return (None, problems),
        };
        let mut checker = Checker::new(&document);
        let Some(written) = checker.decode::<WrittenMapping>() else { return checker.finish(None) };
        for (id, mapped) in written.sections {
            let key = format!("sections.{id}");
            let ids: Vec<String> = self.sections.iter().map(|section| section.id.clone()).collect();
            let Some(section) = self.sections.iter_mut().find(|section| section.id == id) else {
                let what = format!("the template has no section \"{}\"", shown(&id));
                checker.own(
                    number_of::MAPPING,
                    &key,
                    what,
                    text::near_or(&id, &ids, "use an id of the template"),
                );
                continue;
            };
            for fault in label_faults(&mapped.sources) {
                checker.own(number_of::MAPPING, &key, format!("`{key}.sources` {fault}"), "correct the list");
            }
            if mapped.sources.is_empty() && section.generation_mode == GenerationMode::Boilerplate {
                let what = format!("`{key}.sources` is empty, and the section copies its sources");
                checker.own(number_of::MAPPING, &key, what, "name what is to be copied");
            }
            let given = std::mem::take(&mut section.input_mapping.given);
            section.input_mapping = InputMapping::new(&mapped.sources, given);
        }
        checker.finish(Some(()))
    }
}

fn label_faults(labels: &[String]) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    let mut faults = Vec::new();
    for label in labels {
        if label.trim().is_empty() {
            faults.push("has an empty entry".to_owned());
        } else if !seen.insert(label) {
            faults.push(format!("names \"{}\" twice", shown(label)));
        }
    }
    faults
}

fn check_whole(written: &WrittenTemplate, checker: &mut Checker<'_>) {
    if written.sections.is_empty() && checker.problems.is_empty() {
        let what = "the template has no sections".to_owned();
        checker.shared(Shared::MissingKey, "sections", what, "add a [[sections]] with an id and a title");
    }
    if written.boilerplate.is_some() {
        let what = "`[boilerplate]` is not supported".to_owned();
        let fix = "put each text into a document, and copy it with generation_mode = \"boilerplate\"";
        checker.own(number_of::UNSUPPORTED, "boilerplate", what, fix);
    }
    if written.rubric.is_some() {
        let note = Problem::note("`[rubric]` is ignored here")
            .id(FAMILY.number(number_of::IGNORED))
            .why("a rubric is for judges; the writer of the report must not see it")
            .fix("keep it in the task's own rubric if a judge should use it");
        checker.push("rubric", note);
    }
}

/// Records problems at one section, or at the list that contains it.
struct SectionChecker<'a, 'b> {
    checker: &'a mut Checker<'b>,
    index: usize,
    about: String,
}

impl SectionChecker<'_, '_> {
    fn note(&mut self, id: String, what: impl fmt::Display, fix: impl Into<String>) {
        let place = self.checker.place_in_list("sections", self.index);
        let problem = Problem::error(format!("{}: {what}", self.about)).id(id).fix(fix).at(place);
        self.checker.problems.push(problem);
    }
}

fn build_section(written: WrittenSection, index: usize, checker: &mut Checker<'_>) -> Section {
    let about = match written.id.as_str() {
        "" => format!("section {}", index + 1),
        id => format!("section \"{}\"", shown(id)),
    };
    let mut at = SectionChecker { checker, index, about };
    check_names(&written, &mut at);
    let mode = check_mode(&written, &mut at);
    let fields = written.fields.0;
    let mut names = std::collections::HashSet::new();
    for field in &fields {
        if field.name.trim().is_empty() {
            at.note(FAMILY.id(Shared::MissingKey), "a field has no name", "name it");
        } else if !names.insert(field.name.as_str()) {
            let what = format!("the field \"{}\" is there twice", shown(&field.name));
            at.note(FAMILY.number(number_of::TWICE), what, "keep one of them");
        }
        if field.tolerance.is_some_and(|tolerance| !tolerance.is_finite() || tolerance < 0.0) {
            let what = format!("the tolerance of \"{}\" is not a number of 0 or more", shown(&field.name));
            at.note(FAMILY.id(Shared::BadValue), what, "write a number such as 0.01");
        }
    }
    let mapping = written.input_mapping;
    for fault in label_faults(&mapping.sources) {
        at.note(FAMILY.number(number_of::MAPPING), format!("`input_mapping` {fault}"), "correct the list");
    }
    for label in mapping.priority.keys().filter(|label| !mapping.sources.contains(label)) {
        let what = format!("`input_mapping.priority` names \"{}\", which is no source of it", shown(label));
        let fix = text::near_or(label, &mapping.sources, "add it to `sources`, or remove it");
        at.note(FAMILY.number(number_of::MAPPING), what, fix);
    }
    Section {
        input_mapping: InputMapping::new(&mapping.sources, mapping.priority),
        id: written.id,
        title: written.title,
        fields,
        depends_on: written.depends_on,
        generation_mode: mode,
        writing_guidance: written.writing_guidance.0,
    }
}

fn check_names(written: &WrittenSection, at: &mut SectionChecker<'_, '_>) {
    const LONGEST: usize = 128;
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    if written.id.is_empty() {
        at.note(FAMILY.id(Shared::MissingKey), "`id` is missing or empty", "give it a name");
    } else if written.id.len() > LONGEST || !written.id.chars().all(is_letter) {
        let what = "`id` has other characters than letters, digits, `_`, `-` and `.`, or too many";
        at.note(FAMILY.id(Shared::BadValue), what, "use a short name such as site_conditions");
    }
    if written.title.trim().is_empty() {
        at.note(FAMILY.id(Shared::MissingKey), "`title` is missing or empty", "give it a heading");
    } else if written.title.contains(['\n', '\r']) {
        at.note(FAMILY.id(Shared::BadValue), "`title` has several lines", "use one line");
    }
}

const MODES: [(&str, GenerationMode); 5] = [
    ("transform", GenerationMode::Transform),
    ("guided", GenerationMode::Guided),
    ("creative", GenerationMode::Creative),
    ("boilerplate", GenerationMode::Boilerplate),
    ("external", GenerationMode::External),
];

fn check_mode(written: &WrittenSection, at: &mut SectionChecker<'_, '_>) -> GenerationMode {
    let unsupported = FAMILY.number(number_of::UNSUPPORTED);
    if written.blocks.is_some() || written.generation_mode.as_deref() == Some("compose") {
        let what = "sections of blocks (`compose`) are not supported";
        at.note(unsupported, what, "use `guided` with writing_guidance, and a section per block");
        return GenerationMode::default();
    }
    if written.per_discipline {
        let what = "`per_discipline` is not supported";
        at.note(unsupported, what, "write one section for each discipline");
    }
    let Some(name) = &written.generation_mode else { return GenerationMode::default() };
    let Some((_, mode)) = MODES.into_iter().find(|(known, _)| known == name) else {
        let names = MODES.map(|(name, _)| name);
        let what = format!("`generation_mode` cannot be \"{}\"", shown(name));
        let fix = match text::nearest(name, &names) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("use {}", text::one_of(&names)),
        };
        at.note(FAMILY.id(Shared::BadValue), what, fix);
        return GenerationMode::default();
    };
    if mode == GenerationMode::Boilerplate && written.input_mapping.sources.is_empty() {
        let what = "it copies its sources, and has none";
        at.note(FAMILY.number(number_of::MAPPING), what, "name what is to be copied in `input_mapping`");
    }
    mode
}

#[cfg(test)]
mod tests;
