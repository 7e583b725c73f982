//! A candidate: the files of a workspace at one moment, identified by their content, and their meaning for an agent.

use std::collections::BTreeMap;
use std::path::Path;

use aec_base::digest::{Digest, Hasher};
use aec_base::document::Shared;
use aec_base::name::Name;
use aec_base::problem::Problem;

use crate::FAMILY;
use crate::workspace::manifest::{MANIFEST_FILE, Manifest};
use crate::workspace::skill::{Skill, is_skill_name};

pub const PROMPT_FILE: &str = "prompts/system.md";
/// Instructions for the evolver that replace those of this program.
pub const PROGRAM_FILE: &str = "program.md";

/// Files by path. Files that are not text are kept but not interpreted.
pub type Files = BTreeMap<String, Vec<u8>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Digest of all paths and contents.
    pub id: Digest,
    pub files: Files,
    pub manifest: Manifest,
    pub prompt: String,
    pub skills: BTreeMap<String, Skill>,
    /// Instructions for the evolver that replace those of this program.
    pub program: Option<String>,
}

impl Candidate {
    /// Interprets files. `place` is their location, for problems.
    pub fn read(files: Files, place: &Path) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let text = |path: &str| files.get(path).map(|bytes| String::from_utf8(bytes.clone()));
        let mut need = |path: &str| match text(path) {
            Some(Ok(text)) if !text.trim().is_empty() => Some(text),
            found => {
                let what = match found {
                    None => format!("the workspace has no {path}"),
                    Some(Ok(_)) => format!("{path} is empty"),
                    Some(Err(_)) => format!("{path} is not text"),
                };
                let problem = Problem::error(what).id(FAMILY.id(Shared::Unreadable));
                problems
                    .push(problem.fix("`aec-bench evolve init` makes a workspace").in_file(place.join(path)));
                None
            }
        };
        let (manifest, prompt) = (need(MANIFEST_FILE), need(PROMPT_FILE));
        let manifest = manifest.and_then(|text| {
            Manifest::parse(&place.join(MANIFEST_FILE), &text).map_err(|found| problems.extend(found)).ok()
        });
        let mut skills = BTreeMap::new();
        for path in files.keys().filter(|path| path.starts_with("skills/") && path.ends_with("/SKILL.md")) {
            let name = path.trim_start_matches("skills/").trim_end_matches("/SKILL.md");
            let read = match text(path) {
                _ if !is_skill_name(name) => {
                    let what = format!("`{}` cannot be a skill's name", aec_base::text::printable(name));
                    let problem = Problem::error(what).id(FAMILY.id(Shared::BadValue));
                    let fix = "name its directory with small letters, digits and hyphens";
                    Err(vec![problem.fix(fix).in_file(place.join(path))])
                }
                Some(Ok(text)) => Skill::parse(&place.join(path), name, &text),
                _ => {
                    let problem = Problem::error(format!("{path} is not text"));
                    Err(vec![problem.id(FAMILY.id(Shared::Unreadable)).in_file(place.join(path))])
                }
            };
            match read {
                Ok(skill) => drop(skills.insert(name.to_owned(), skill)),
                Err(found) => problems.extend(found),
            }
        }
        let program = text(PROGRAM_FILE).and_then(Result::ok).filter(|text| !text.trim().is_empty());
        match (manifest, prompt) {
            (Some(manifest), Some(prompt)) if problems.is_empty() => {
                Ok(Self { id: digest(&files), files, manifest, prompt, skills, program })
            }
            _ => Err(problems),
        }
    }

    /// The same workspace with another prompt and other skills; every other file stays.
    #[must_use]
    pub fn with(&self, prompt: &str, skills: &BTreeMap<String, Skill>) -> Self {
        let mut files = self.files.clone();
        for name in self.skills.keys().filter(|name| !skills.contains_key(*name)) {
            let directory = format!("skills/{name}/");
            files.retain(|path, _| !path.starts_with(&directory));
        }
        for (name, skill) in skills {
            if self.skills.get(name) != Some(skill) {
                files.insert(Skill::path(name), skill.to_text(name).into_bytes());
            }
        }
        if prompt != self.prompt {
            files.insert(PROMPT_FILE.to_owned(), prompt.as_bytes().to_vec());
        }
        Self {
            id: digest(&files),
            files,
            manifest: self.manifest.clone(),
            prompt: prompt.to_owned(),
            skills: skills.clone(),
            program: self.program.clone(),
        }
    }

    /// The prompt, then every skill.
    pub fn system_prompt(&self) -> String {
        let mut text = self.prompt.trim().to_owned();
        if self.skills.is_empty() {
            return text;
        }
        text.push_str("\n\n# Domain knowledge\n\nUse what applies to the task at hand.\n");
        for (name, skill) in &self.skills {
            text.push_str(&format!("\n## {name}\n\n*{}*\n\n{}\n", skill.description, skill.body));
        }
        text
    }

    pub fn name(&self) -> Name {
        name(self.id)
    }
}

/// The name of the candidate with a digest: `c-` and twelve digits.
pub fn name(id: Digest) -> Name {
    // Hexadecimal digits and a hyphen form a valid name.
    Name::nearest(&format!("c-{}", &id.hex()[..12]))
}

/// The digest of files, over their paths and contents in order.
pub fn digest(files: &Files) -> Digest {
    let mut hasher = Hasher::default();
    for (path, content) in files {
        hasher.part(path.as_bytes());
        hasher.part(content);
    }
    hasher.finish()
}

#[cfg(test)]
pub(crate) mod tests {
    use aec_run::experiment::Harness;

    use super::*;

    pub(crate) fn candidate(prompt: &str, skills: &[(&str, &str)]) -> Candidate {
        let name = Name::parse("test").unwrap();
        let mut files: Files = [
            (MANIFEST_FILE.to_owned(), Manifest::new_text(&name, Harness::Sim).into_bytes()),
            (PROMPT_FILE.to_owned(), prompt.as_bytes().to_vec()),
        ]
        .into();
        for (name, body) in skills {
            let skill =
                Skill { description: format!("About {name}"), discipline: None, body: (*body).into() };
            files.insert(Skill::path(name), skill.to_text(name).into_bytes());
        }
        Candidate::read(files, Path::new("w")).unwrap()
    }

    #[test]
    fn the_same_files_are_the_same_candidate() {
        let one = candidate("Solve it.", &[("units", "Check units.")]);
        assert_eq!(one.id, candidate("Solve it.", &[("units", "Check units.")]).id);
        assert_ne!(one.id, candidate("Solve it!", &[("units", "Check units.")]).id);
        assert_eq!(one.with("Solve it.", &one.skills).id, one.id);
        let other = one.with("Solve it well.", &BTreeMap::new());
        assert_ne!(other.id, one.id);
        assert!(!other.files.contains_key("skills/units/SKILL.md"));
        assert_eq!(Candidate::read(other.files.clone(), Path::new("w")).unwrap(), other);
        assert_eq!(one.name().as_str().len(), 14);
    }

    #[test]
    fn agents_hear_the_prompt_and_every_skill() {
        let text = candidate("Solve it.\n", &[("b", "Second."), ("a", "First.")]).system_prompt();
        assert!(text.starts_with("Solve it.\n\n# Domain knowledge"), "{text}");
        assert!(text.find("First.").unwrap() < text.find("Second.").unwrap());
        assert_eq!(candidate("Solve it.\n", &[]).system_prompt(), "Solve it.");
    }

    #[test]
    fn what_is_missing_or_broken_is_named() {
        let base = candidate("p", &[]).files;
        let problems = |change: &dyn Fn(&mut Files)| {
            let mut files = base.clone();
            change(&mut files);
            Candidate::read(files, Path::new("w")).unwrap_err().remove(0).what
        };
        assert!(problems(&|files| drop(files.remove(PROMPT_FILE))).contains("no prompts/system.md"));
        assert!(problems(&|files| drop(files.insert(PROMPT_FILE.into(), b" \n".to_vec()))).contains("empty"));
        assert!(problems(&|files| drop(files.insert(PROMPT_FILE.into(), vec![0xff]))).contains("not text"));
        assert!(
            problems(&|files| drop(files.insert("skills/a/SKILL.md".into(), b"x".to_vec()))).contains("head")
        );
        assert!(
            problems(&|files| drop(files.insert("skills/A b/SKILL.md".into(), b"x".to_vec())))
                .contains("skill's name")
        );
    }
}
