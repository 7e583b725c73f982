//! `skills/NAME/SKILL.md`: a piece of knowledge with a name and a description, for every task that needs it.

use std::path::Path;

use aec_base::document::{Document, Shared, Syntax};
use aec_base::problem::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::FAMILY;

/// In letters.
const LONGEST_NAME: usize = 64;

/// The head of `SKILL.md`, between two lines of three hyphens.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SkillHead {
    /// The skill's name, which is also that of its directory.
    pub name: Option<String>,
    /// When the skill is useful, in one line.
    pub description: Option<String>,
    /// The discipline that it belongs to.
    pub discipline: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// When the skill is useful, in one line.
    pub description: String,
    pub discipline: Option<String>,
    pub body: String,
}

/// Whether a text can be a skill's name: lower-case letters, digits and hyphens. Nothing else may become part of a
/// path.
pub fn is_skill_name(name: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.bytes().all(|byte| inside(byte) || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
}

impl Skill {
    /// The path of a skill in its workspace.
    pub fn path(name: &str) -> String {
        format!("skills/{name}/SKILL.md")
    }

    pub fn parse(path: &Path, name: &str, text: &str) -> Result<Self, Vec<Problem>> {
        let text = text.replace("\r\n", "\n");
        let head = text.strip_prefix("---\n").and_then(|rest| {
            let end = if rest.starts_with("---\n") { 0 } else { rest.find("\n---\n")? + 1 };
            Some((&rest[..end], &rest[end + 4..]))
        });
        let Some((head, body)) = head else {
            let problem = Problem::error("the skill has no head").id(FAMILY.id(Shared::Syntax));
            let fix = "begin the file with `---`, `name: …`, `description: …`, `---`";
            return Err(vec![problem.fix(fix).in_file(path)]);
        };
        // A blank line before the head keeps the line numbers of the file.
        let document = Document::parse(path, format!("\n{head}"), Syntax::Yaml, FAMILY)?;
        let decoded = document.decode::<SkillHead>();
        let mut problems = decoded.problems;
        let head = decoded.value.unwrap_or_default();
        if problems.is_empty() {
            if head.name.as_deref().is_some_and(|said| said != name) {
                let what = format!("the skill in `{name}` has another name in its head");
                problems.push(
                    document.problem(Shared::Conflict, "name", what).fix("use the name of its directory"),
                );
            }
            for (key, missing) in [
                ("name", head.name.is_none()),
                ("description", head.description.as_deref().is_none_or(|text| text.trim().is_empty())),
            ] {
                if missing {
                    let what = format!("`{key}` of the skill is missing");
                    problems.push(document.problem(Shared::MissingKey, key, what).fix("add it to the head"));
                }
            }
            if body.trim().is_empty() {
                let problem = Problem::error("the skill has no text").id(FAMILY.id(Shared::BadValue));
                problems.push(problem.fix("write its text below the head").in_file(path));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self {
            description: head.description.unwrap_or_default().trim().to_owned(),
            discipline: head.discipline,
            body: body.trim().to_owned(),
        })
    }

    pub fn to_text(&self, name: &str) -> String {
        // A JSON string is always a valid YAML string.
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut text = format!("---\nname: {name}\ndescription: {}\n", quoted(&self.description));
        if let Some(discipline) = &self.discipline {
            text.push_str(&format!("discipline: {}\n", quoted(discipline)));
        }
        text.push_str(&format!("---\n\n{}\n", self.body.trim()));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Skill, Vec<Problem>> {
        Skill::parse(Path::new("SKILL.md"), "units", text)
    }

    #[test]
    fn a_skill_is_what_it_was_written_as() {
        for (description, body) in [
            ("Check units: always", "# Units\n\n- kPa, not Pa\n---\nnot a head"),
            ("\"quoted\" # no comment", "a: b"),
            ("ü → 😀", "x"),
        ] {
            let skill = Skill {
                description: description.to_owned(),
                discipline: Some("civil".to_owned()),
                body: body.to_owned(),
            };
            assert_eq!(parse(&skill.to_text("units")).unwrap(), skill);
        }
        assert_eq!(parse("---\r\nname: units\r\ndescription: d\r\n---\r\nbody\r\n").unwrap().body, "body");
    }

    #[test]
    fn mistakes_are_named_with_their_lines() {
        let first = |text: &str| {
            let problem = parse(text).unwrap_err().remove(0);
            (problem.id.unwrap(), problem.line)
        };
        assert_eq!(first("").0, "X002");
        assert_eq!(first("---\nname: units\n").0, "X002");
        assert_eq!(
            first("---\nname: units\ndescription: d\ncolour: red\n---\nb"),
            ("X003".to_owned(), Some(4))
        );
        assert_eq!(first("---\nname: other\ndescription: d\n---\nb").0, "X007");
        assert_eq!(first("---\nname: units\ndescription: ' '\n---\nb").0, "X006");
        assert_eq!(first("---\nname: units\ndescription: d\n---\n \n").0, "X005");
    }

    #[test]
    fn names_are_no_paths() {
        for name in ["units", "as-nzs-3008", "a", "7"] {
            assert!(is_skill_name(name), "{name}");
        }
        let long = "a".repeat(65);
        for name in ["", "..", "../x", "a/b", "A", "ü", "-a", "a-", "a b", "a\0", ".hidden", &long] {
            assert!(!is_skill_name(name), "{name}");
        }
    }
}
