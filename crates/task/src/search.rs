//! Searches tasks and templates by words, best match first.

use std::path::PathBuf;

use aec_base::parallel;
use serde::Serialize;

use crate::catalogue::SMALL_TASKS;
use crate::task::Task;

#[derive(Clone, Debug, Default)]
pub struct TemplateSummary {
    /// `discipline/name`.
    pub name: String,
    /// One line.
    pub description: String,
    /// A paragraph.
    pub long_description: String,
    pub discipline: String,
    /// Kind of calculation.
    pub category: String,
    /// Standards it follows.
    pub standards: Vec<String>,
    pub tags: Vec<String>,
    /// The template's directory; empty for a built-in one.
    pub path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HitKind {
    Task,
    Template,
}

/// One result.
#[derive(Clone, Debug, Serialize)]
pub struct Hit {
    pub kind: HitKind,
    /// Task id or template name.
    pub name: String,
    pub domain: String,
    /// The first words of the text.
    pub summary: String,
    pub path: PathBuf,
    /// How well it matches; only comparisons are meaningful.
    pub score: u32,
}

/// A text and the weight of a word in it.
struct Field<'a> {
    text: &'a str,
    weight: u32,
}

/// Finds every task and template that contains all words of the query. A word counts more in a name than in a text,
/// more as a whole word than as part of one, and the whole query in a row counts most.
pub fn search(query: &str, tasks: &[Task], templates: &[TemplateSummary]) -> Vec<Hit> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    if words.is_empty() {
        return Vec::new();
    }
    let from_tasks = parallel::map(tasks, SMALL_TASKS, |task| task_hit(task, &words));
    let mut hits: Vec<Hit> = from_tasks
        .into_iter()
        .chain(templates.iter().map(|template| template_hit(template, &words)))
        .flatten()
        .collect();
    hits.sort_by(|a, b| b.score.cmp(&a.score).then_with(|| a.name.cmp(&b.name)));
    hits
}

fn task_hit(task: &Task, words: &[String]) -> Option<Hit> {
    // A task with an unreadable prompt can still be found by name.
    let instruction = task.instruction().unwrap_or_default();
    let tags = task.tags.join(" ");
    let fields = [
        Field { text: task.id.as_str(), weight: 8 },
        Field { text: heading(&instruction), weight: 5 },
        Field { text: &tags, weight: 4 },
        Field { text: task.category.as_deref().unwrap_or_default(), weight: 2 },
        Field { text: task.standard.as_deref().unwrap_or_default(), weight: 4 },
        Field { text: &task.domain, weight: 2 },
        Field { text: &instruction, weight: 1 },
    ];
    Some(Hit {
        kind: HitKind::Task,
        name: task.id.as_str().to_owned(),
        domain: task.domain.clone(),
        summary: heading(&instruction).to_owned(),
        path: task.path.clone(),
        score: score(words, &fields)?,
    })
}

fn template_hit(template: &TemplateSummary, words: &[String]) -> Option<Hit> {
    let (tags, standards) = (template.tags.join(" "), template.standards.join(" "));
    let fields = [
        Field { text: &template.name, weight: 8 },
        Field { text: &template.description, weight: 5 },
        Field { text: &tags, weight: 4 },
        Field { text: &standards, weight: 4 },
        Field { text: &template.category, weight: 2 },
        Field { text: &template.discipline, weight: 2 },
        Field { text: &template.long_description, weight: 1 },
    ];
    Some(Hit {
        kind: HitKind::Template,
        name: template.name.clone(),
        domain: template.discipline.clone(),
        summary: template.description.clone(),
        path: template.path.clone(),
        score: score(words, &fields)?,
    })
}

/// The first line that has words, without Markdown marks.
fn heading(markdown: &str) -> &str {
    markdown
        .lines()
        .map(|line| line.trim_start_matches(['#', ' ', '*', '>']).trim())
        .find(|line| !line.is_empty())
        .unwrap_or("")
}

fn score(words: &[String], fields: &[Field<'_>]) -> Option<u32> {
    let texts: Vec<(Vec<String>, u32)> = fields
        .iter()
        .map(|field| {
            let tokens = field
                .text
                .to_lowercase()
                .split(|c: char| !c.is_alphanumeric())
                .filter(|token| !token.is_empty())
                .map(str::to_owned)
                .collect();
            (tokens, field.weight)
        })
        .collect();
    let query: Vec<String> = words
        .iter()
        .flat_map(|word| {
            word.split(|c: char| !c.is_alphanumeric()).filter(|t| !t.is_empty()).map(str::to_owned)
        })
        .collect();
    if query.is_empty() {
        return None;
    }
    let mut total = 0;
    for word in &query {
        let best = texts.iter().map(|(tokens, weight)| weight * closeness(word, tokens)).max().unwrap_or(0);
        if best == 0 {
            return None;
        }
        total += best;
    }
    let in_a_row = texts
        .iter()
        .filter(|(tokens, _)| tokens.windows(query.len()).any(|window| window == query))
        .map(|(_, weight)| weight * 4)
        .max()
        .unwrap_or(0);
    Some(total + in_a_row)
}

/// 4 for the word itself, 2 for a word that begins with it, 1 for a word that contains it.
fn closeness(word: &str, tokens: &[String]) -> u32 {
    tokens
        .iter()
        .map(|token| {
            if token == word {
                4
            } else if token.starts_with(word) {
                2
            } else {
                u32::from(token.contains(word))
            }
        })
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(query: &str, names: &[(&str, &str)]) -> Vec<String> {
        let templates: Vec<TemplateSummary> = names
            .iter()
            .map(|(name, description)| TemplateSummary {
                name: (*name).to_owned(),
                description: (*description).to_owned(),
                ..TemplateSummary::default()
            })
            .collect();
        search(query, &[], &templates).into_iter().map(|hit| hit.name).collect()
    }

    #[test]
    fn relevance_decides_the_order() {
        let names = [
            ("coastal-flood", "Flood level with a drop in voltage mentioned far away"),
            ("voltage-drop", "Cable voltage drop"),
            ("cable-sizing", "Choose a cable by voltage drop"),
            ("beam", "Bending of a beam"),
        ];
        assert_eq!(rank("voltage drop", &names), ["voltage-drop", "cable-sizing", "coastal-flood"]);
        assert_eq!(rank("BEAM", &names), ["beam"]);
        assert_eq!(rank("volt", &names).len(), 3);
        assert!(rank("voltage beam", &names).is_empty());
        assert!(rank("  ", &names).is_empty());
        assert!(rank("///", &names).is_empty());
    }
}
