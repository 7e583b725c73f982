//! The prompts on the way from sources to a report.

use aec_model::message::{Message, Request, Role, Sampling};
use aec_rlm::merge::{Fact, MergedFact};
use aec_task::long_documents::template::{GenerationMode, Meta, Section};
use serde_json::{Value, json};

const LEAF: &str = "You read one part of a source and give back what it states for one section of a report. Reply with one JSON \
                    object: a key in snake_case for each statement, its value with numbers as numbers and units in the key or \
                    the text, and `__confidence__` from 0 to 1. Give nothing that the part does not state; `{}` if it states \
                    nothing of use.";

const REDUCE: &str = "You merge what several readers found. Each finding has a number. Reply with one JSON object: \
                      `findings`, a list of objects with `key`, `value` and `from`, the numbers of the findings it rests on. Join \
                      findings that say the same, keep different values apart, invent nothing.";

const REVIEW: &str = "You check whether what was found suffices for a section of a report. Reply with one JSON object: `status` \
                      (`pass`, `reextract` or `supplement`), `sources` (those to be read again), `guidance` (what to look for), \
                      `gaps` (what is missing, one sentence each).";

const WRITE: &str = "You write one section of an engineering report in Markdown from the data you are given, without a heading. \
                     State only what the data state, with their numbers and units unchanged. What is required and missing is \
                     written as `[missing: …]`. No remarks about the data or yourself.";

/// Characters of the longest of these roles and of the words around a text.
pub(super) const LONGEST_FRAME: usize = 800;

/// The purpose of the report and the requirements of the section.
pub(super) fn brief(instruction: &str, report: &Meta, section: &Section) -> String {
    let mut text = format!("<task>\n{}\n</task>\n", instruction.trim());
    let about = [
        ("field", &report.domain),
        ("voice", &report.voice),
        ("advice for the whole report", &report.planning_guidance),
    ];
    for (name, value) in about {
        if let Some(value) = value {
            text.push_str(&format!("{name}: {value}\n"));
        }
    }
    text.push_str(&format!("<section>\n{}\n", section.title));
    if let Some(summary) = &section.writing_guidance.summary {
        text.push_str(&format!("{summary}\n"));
    }
    for rule in &section.writing_guidance.rules {
        text.push_str(&format!("- {rule}\n"));
    }
    for field in &section.fields {
        let unit = field.unit.as_deref().map(|unit| format!(" in {unit}")).unwrap_or_default();
        let within = field.tolerance.map(|tolerance| format!(", within {tolerance}")).unwrap_or_default();
        let need = if field.required { ", required" } else { "" };
        text.push_str(&format!(
            "field `{}` ({}{unit}{within}{need}): {}\n",
            field.name, field.dtype, field.description
        ));
    }
    text.push_str("</section>\n");
    text
}

/// What all requests of an agent have in common.
pub(super) struct Manner<'a> {
    /// The experiment's system prompt. It comes before the role of each call.
    pub(super) own: Option<&'a str>,
    pub(super) sampling: Sampling,
}

impl Manner<'_> {
    fn ask(self, role: &str, text: String) -> Request {
        let system = format!("{}{role}", before_role(self.own));
        Request {
            messages: vec![Message::text(Role::System, system), Message::text(Role::User, text)],
            sampling: self.sampling,
            ..Request::default()
        }
    }
}

/// The text before the role of every call.
pub(super) fn before_role(own: Option<&str>) -> String {
    own.map(|own| format!("{}\n\n", own.trim_end())).unwrap_or_default()
}

/// The request to read one part. `header` is the header row of a table that was cut.
pub(super) fn leaf(
    brief: &str,
    label: &str,
    header: Option<&str>,
    part: &str,
    guidance: Option<&str>,
    manner: Manner<'_>,
) -> Request {
    let mut text = brief.to_owned();
    if let Some(guidance) = guidance {
        text.push_str(&format!("<look_for>\n{guidance}\n</look_for>\n"));
    }
    if let Some(header) = header {
        text.push_str(&format!("<header>\n{header}\n</header>\n"));
    }
    text.push_str(&format!("<source path=\"{label}\">\n{part}\n</source>\n"));
    manner.ask(LEAF, text)
}

/// The request to merge the facts of several parts.
pub(super) fn reduce(brief: &str, facts: &[Fact], manner: Manner<'_>) -> Request {
    let mut text = brief.to_owned();
    for (number, fact) in facts.iter().enumerate() {
        text.push_str(&format!("{}\n", json!({"number": number, "key": fact.key, "value": fact.value})));
    }
    manner.ask(REDUCE, text)
}

/// The request to review the facts.
pub(super) fn review(brief: &str, facts: &[MergedFact], sources: &[&str], manner: Manner<'_>) -> Request {
    let text = format!("{brief}<sources>\n{}\n</sources>\n{}", sources.join("\n"), data(facts));
    manner.ask(REVIEW, text)
}

/// The request to write a section that depends on `before`. `unsupported` are statements of an earlier text.
pub(super) fn write(
    brief: &str,
    section: &Section,
    facts: &[MergedFact],
    before: &[(String, String)],
    gaps: &[String],
    unsupported: &[String],
    manner: Manner<'_>,
) -> Request {
    let mut text = brief.to_owned();
    for (title, content) in before {
        text.push_str(&format!("<written title=\"{title}\">\n{content}\n</written>\n"));
    }
    text.push_str(&data(facts));
    for gap in gaps {
        text.push_str(&format!("missing: {gap}\n"));
    }
    for statement in unsupported {
        text.push_str(&format!("no data support this statement, leave it out: {statement}\n"));
    }
    if section.generation_mode == GenerationMode::Creative {
        text.push_str("You may draw conclusions from the data and say that they are conclusions.\n");
    }
    manner.ask(WRITE, text)
}

fn data(facts: &[MergedFact]) -> String {
    let mut text = String::from("<data>\n");
    for fact in facts {
        let from: Vec<&str> = fact.provenance.iter().map(|place| place.source.as_str()).collect();
        let mut line = json!({"key": fact.key, "value": fact.value, "from": from});
        if !fact.conflicts.is_empty() {
            let others: Vec<&Value> = fact.conflicts.iter().map(|conflict| &conflict.value).collect();
            line["less_trusted_sources_say"] = json!(others);
        }
        text.push_str(&format!("{line}\n"));
    }
    text.push_str("</data>\n");
    text
}
