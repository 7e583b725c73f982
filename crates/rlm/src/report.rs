//! A report in progress: which sections are filled, which can be, and which are missing at the end.

use std::collections::BTreeMap;

use aec_base::text::near_or;
use aec_task::long_documents::settings::Tier;
use aec_task::long_documents::template::{GenerationMode, ReportTemplate, Section};
use serde::Serialize;

/// A template and what was written so far.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportState {
    template: ReportTemplate,
    filled: BTreeMap<String, String>,
}

/// Why a section was not filled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    #[error("there is no section `{id}`; {fix}")]
    Unknown { id: String, fix: String },
    #[error("the section `{id}` is external: somebody else writes it")]
    External { id: String },
    #[error("the section `{id}` is locked: fill {} first", waits_for.join(", "))]
    Locked {
        id: String,
        /// Sections that must be filled first.
        waits_for: Vec<String>,
    },
    #[error("the text for the section `{id}` is empty")]
    Empty { id: String },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LockedSection {
    pub id: String,
    /// Sections that must be filled first.
    pub waits_for: Vec<String>,
}

/// The progress of a report. Lists are in the order of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Number of sections to fill, including filled ones.
    pub total: usize,
    pub completed: Vec<String>,
    pub unlocked: Vec<String>,
    pub locked: Vec<LockedSection>,
    /// Sections that are not written by this harness.
    pub external: Vec<String>,
}

/// A section that is missing at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    pub id: String,
    pub title: String,
    /// Sections that must be filled before it.
    pub waits_for: Vec<String>,
}

/// The finished report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Submission {
    /// Whether nothing is missing.
    pub complete: bool,
    pub sections: BTreeMap<String, String>,
    pub gaps: Vec<Gap>,
}

impl ReportState {
    /// An empty report.
    pub fn new(template: ReportTemplate) -> Self {
        Self { template, filled: BTreeMap::new() }
    }

    pub fn template(&self) -> &ReportTemplate {
        &self.template
    }

    pub fn content(&self, id: &str) -> Option<&str> {
        self.filled.get(id).map(String::as_str)
    }

    /// Writes or rewrites a section.
    pub fn fill(&mut self, id: &str, content: impl Into<String>) -> Result<(), FillError> {
        let Some(section) = self.template.section(id) else { return Err(self.unknown(id)) };
        if section.generation_mode == GenerationMode::External {
            return Err(FillError::External { id: id.to_owned() });
        }
        let waits_for = self.waits_for(section);
        if !waits_for.is_empty() {
            return Err(FillError::Locked { id: id.to_owned(), waits_for });
        }
        let content = content.into();
        if content.trim().is_empty() {
            return Err(FillError::Empty { id: id.to_owned() });
        }
        self.filled.insert(id.to_owned(), content);
        Ok(())
    }

    fn unknown(&self, id: &str) -> FillError {
        let ids: Vec<String> = self.template.sections().iter().map(|section| section.id.clone()).collect();
        let fix = near_or(id, &ids, &format!("the sections are {}", ids.join(", ")));
        FillError::Unknown { id: id.to_owned(), fix }
    }

    /// What a section still waits for. External sections are never filled here, so no section waits for them.
    fn waits_for(&self, section: &Section) -> Vec<String> {
        if self.template.tier == Tier::Flat {
            return Vec::new();
        }
        let missing = |id: &&String| {
            let external = |needed: &Section| needed.generation_mode == GenerationMode::External;
            !self.filled.contains_key(*id) && !self.template.section(id).is_some_and(external)
        };
        section.depends_on.iter().filter(missing).cloned().collect()
    }

    pub fn status(&self) -> Status {
        let mut status = Status {
            total: 0,
            completed: Vec::new(),
            unlocked: Vec::new(),
            locked: Vec::new(),
            external: Vec::new(),
        };
        for section in self.template.sections() {
            let id = section.id.clone();
            if section.generation_mode == GenerationMode::External {
                status.external.push(id);
                continue;
            }
            status.total += 1;
            let waits_for = self.waits_for(section);
            if self.filled.contains_key(&id) {
                status.completed.push(id);
            } else if waits_for.is_empty() {
                status.unlocked.push(id);
            } else {
                status.locked.push(LockedSection { id, waits_for });
            }
        }
        status
    }

    /// All sections in the order of work.
    pub fn order(&self) -> Vec<&Section> {
        self.template.order().collect()
    }

    /// Unfilled sections that can be filled now, in the order of work.
    pub fn unlocked(&self) -> Vec<&Section> {
        let open = |section: &&Section| {
            section.generation_mode != GenerationMode::External
                && !self.filled.contains_key(&section.id)
                && self.waits_for(section).is_empty()
        };
        self.template.order().filter(open).collect()
    }

    /// The sections written so far, and those missing.
    pub fn submit(&self) -> Submission {
        let missing = |section: &&Section| {
            section.generation_mode != GenerationMode::External && !self.filled.contains_key(&section.id)
        };
        let gap = |section: &Section| Gap {
            id: section.id.clone(),
            title: section.title.clone(),
            waits_for: self.waits_for(section),
        };
        let gaps: Vec<Gap> = self.template.sections().iter().filter(missing).map(gap).collect();
        Submission { complete: gaps.is_empty(), sections: self.filled.clone(), gaps }
    }

    /// The report as markdown. A missing section is noted in its place.
    pub fn assemble(&self) -> String {
        let mut report = String::new();
        for (index, section) in self.template.sections().iter().enumerate() {
            if index > 0 {
                report.push('\n');
            }
            report.push_str(&format!("# {}. {}\n\n", index + 1, section.title.trim()));
            match self.filled.get(&section.id) {
                Some(content) => report.push_str(without_heading(content, &section.title).trim()),
                None if section.generation_mode == GenerationMode::External => {
                    report.push_str("_External: this section is supplied separately._");
                }
                None => report.push_str("_No data: this section was not written._"),
            }
            report.push('\n');
        }
        report
    }
}

/// The text without a leading top heading that repeats the title.
fn without_heading<'a>(content: &'a str, title: &str) -> &'a str {
    let content = content.trim_start();
    let (first, rest) = content.split_once('\n').unwrap_or((content, ""));
    if let Some(heading) = first.strip_prefix("# ") {
        return if is_title(heading.trim().trim_end_matches('#'), title) { rest } else { content };
    }
    let (second, after) = rest.split_once('\n').unwrap_or((rest, ""));
    let underline = second.trim_end();
    let underlined = !underline.is_empty() && underline.bytes().all(|byte| byte == b'=');
    if underlined && is_title(first, title) { after } else { content }
}

/// Whether a heading is the title, with or without a number before it.
fn is_title(heading: &str, title: &str) -> bool {
    let folded = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let number = |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | ')' | ' ');
    let (heading, title) = (folded(heading), folded(title));
    heading == title || heading.trim_start_matches(number) == title
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const TEMPLATE: &str = r#"
[[sections]]
id = "summary"
title = "Summary"
depends_on = ["loads", "site"]

[[sections]]
id = "site"
title = "Site"

[[sections]]
id = "loads"
title = "Loads"
depends_on = ["site"]

[[sections]]
id = "drawings"
title = "Drawings"
generation_mode = "external"
"#;

    #[test]
    fn a_report_is_filled_in_order() {
        let (template, _) = ReportTemplate::read(Path::new("t.toml"), TEMPLATE, Tier::DependencyTree, None);
        let mut state = ReportState::new(template.unwrap());
        assert_eq!(state.unlocked().iter().map(|section| section.id.as_str()).collect::<Vec<_>>(), ["site"]);
        assert!(
            matches!(state.fill("summary", "x"), Err(FillError::Locked { waits_for, .. }) if waits_for == ["loads", "site"])
        );
        assert_eq!(state.order().len(), 4);
        assert!(state.fill("sites", "x").unwrap_err().to_string().contains("did you mean `site`?"));
        assert!(matches!(state.fill("drawings", "x"), Err(FillError::External { .. })));
        assert!(matches!(state.fill("site", " \n"), Err(FillError::Empty { .. })));
        state.fill("site", "# 2. SITE\n\nFlat.\n").unwrap();
        state.fill("loads", "# Other\n\nHeavy.").unwrap();
        let status = state.status();
        assert_eq!(
            (status.total, status.completed.len(), status.unlocked),
            (3, 2, vec!["summary".to_owned()])
        );
        let submission = state.submit();
        assert!(!submission.complete);
        assert_eq!(submission.gaps[0].id, "summary");
        assert_eq!(
            state.assemble(),
            "# 1. Summary\n\n_No data: this section was not written._\n\n# 2. Site\n\nFlat.\n\n\
             # 3. Loads\n\n# Other\n\nHeavy.\n\n# 4. Drawings\n\n_External: this section is supplied separately._\n"
        );
        state.fill("summary", "Summary\n=======\nAll is well.").unwrap();
        assert!(state.submit().complete);
        assert!(state.assemble().starts_with("# 1. Summary\n\nAll is well.\n"));
    }
}
