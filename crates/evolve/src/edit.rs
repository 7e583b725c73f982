//! Changes that a model proposes: a few kinds, each checked by itself. A change that breaks a rule is dropped with a
//! reason; no text is cut to fit, and only the prompt and skills can be changed.

use std::collections::BTreeMap;

use aec_base::text;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::guard::Guard;
use crate::workspace::candidate::Candidate;
use crate::workspace::manifest::Layer;
use crate::workspace::skill::{Skill, is_skill_name};

/// In letters.
pub const LONGEST_PROMPT: usize = 8_000;
/// In letters.
pub const LONGEST_SKILL: usize = 4_000;
/// In letters.
pub const LONGEST_DESCRIPTION: usize = 200;
/// A text with fewer letters is useless.
const SHORTEST: usize = 20;
/// Further actions of one reply are ignored.
const MOST_LOOKED_AT: usize = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Minimal,
    Targeted,
    Comprehensive,
}

impl Scope {
    pub fn actions(self) -> usize {
        match self {
            Self::Minimal => 1,
            Self::Targeted => 3,
            Self::Comprehensive => 5,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Targeted => "targeted",
            Self::Comprehensive => "comprehensive",
        }
    }

    /// The scope for a mean reward: a candidate that works well is changed with care.
    pub fn for_score(mean: f64) -> Self {
        match mean {
            mean if mean >= 0.9 => Self::Minimal,
            mean if mean >= 0.8 => Self::Targeted,
            _ => Self::Comprehensive,
        }
    }
}

/// A change, as a model proposes it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Action {
    WriteSkill {
        name: String,
        description: String,
        body: String,
        #[serde(default)]
        discipline: Option<String>,
    },
    ModifySkill {
        name: String,
        #[serde(default)]
        description: Option<String>,
        body: String,
        #[serde(default)]
        discipline: Option<String>,
    },
    DeleteSkill {
        name: String,
    },
    ModifyPrompt {
        content: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    pub kind: EditKind,
    /// Absent for the prompt.
    pub skill: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditKind {
    SkillAdded,
    SkillChanged,
    SkillRemoved,
    PromptChanged,
}

impl Edit {
    pub fn words(&self) -> String {
        let skill = self.skill.as_deref().unwrap_or_default();
        match self.kind {
            EditKind::SkillAdded => format!("adds skill {skill}"),
            EditKind::SkillChanged => format!("changes skill {skill}"),
            EditKind::SkillRemoved => format!("removes skill {skill}"),
            EditKind::PromptChanged => "changes the prompt".to_owned(),
        }
    }
}

/// A proposed change that was not made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// A short description of the proposal.
    pub what: String,
    /// The rule that it breaks.
    pub why: String,
}

#[derive(Clone, Debug)]
pub struct Applied {
    pub candidate: Candidate,
    pub edits: Vec<Edit>,
    pub dropped: Vec<Dropped>,
}

/// Makes changes, one after the other.
pub fn apply(parent: &Candidate, actions: &[Value], scope: Scope, guard: &Guard) -> Applied {
    let mut prompt = parent.prompt.clone();
    let mut skills = parent.skills.clone();
    let mut edits: Vec<Edit> = Vec::new();
    let mut dropped = Vec::new();
    for value in actions.iter().take(MOST_LOOKED_AT) {
        let made = if edits.len() >= scope.actions() {
            Err(format!("only {} may be made at once", text::count(scope.actions(), "change")))
        } else {
            read(value).and_then(|action| one(parent, action, &mut prompt, &mut skills, guard))
        };
        match made {
            Ok(edit) => edits.push(edit),
            Err(why) => dropped.push(Dropped { what: said(value), why }),
        }
    }
    if actions.len() > MOST_LOOKED_AT {
        let what = text::count(actions.len() - MOST_LOOKED_AT, "further action");
        dropped.push(Dropped { what, why: format!("only {MOST_LOOKED_AT} are looked at") });
    }
    Applied { candidate: parent.with(&prompt, &skills), edits, dropped }
}

/// Gives a candidate the skills of another, up to the allowed number, in the order of their names.
pub fn cross(parent: &Candidate, partner: &Candidate) -> Applied {
    let mut skills = parent.skills.clone();
    let (mut edits, mut dropped) = (Vec::new(), Vec::new());
    if parent.manifest.allows(Layer::Skills) {
        for (name, skill) in &partner.skills {
            let kind = match skills.get(name) {
                Some(known) if known == skill => continue,
                Some(_) => EditKind::SkillChanged,
                None if skills.len() >= parent.manifest.skill_budget => {
                    let why = format!("there may be {}", text::count(parent.manifest.skill_budget, "skill"));
                    dropped.push(Dropped { what: format!("skill {name}"), why });
                    continue;
                }
                None => EditKind::SkillAdded,
            };
            skills.insert(name.clone(), skill.clone());
            edits.push(Edit { kind, skill: Some(name.clone()) });
        }
    }
    Applied { candidate: parent.with(&parent.prompt, &skills), edits, dropped }
}

fn read(value: &Value) -> Result<Action, String> {
    serde_json::from_value(value.clone())
        .map_err(|error| format!("it is no action that exists: {}", text::printable(&error.to_string())))
}

fn one(
    parent: &Candidate,
    action: Action,
    prompt: &mut String,
    skills: &mut BTreeMap<String, Skill>,
    guard: &Guard,
) -> Result<Edit, String> {
    let manifest = &parent.manifest;
    let layer = if matches!(action, Action::ModifyPrompt { .. }) { Layer::Prompts } else { Layer::Skills };
    if !manifest.allows(layer) {
        return Err(format!("the manifest does not let {} be changed", layer.name()));
    }
    match action {
        Action::ModifyPrompt { content } => {
            let content = content.trim();
            check_text("the prompt", content, LONGEST_PROMPT)?;
            check_new("the prompt", content, prompt, guard)?;
            if content == prompt.trim() {
                return Err("it changes nothing".to_owned());
            }
            *prompt = format!("{content}\n");
            Ok(Edit { kind: EditKind::PromptChanged, skill: None })
        }
        Action::DeleteSkill { name } => match skills.remove(&name) {
            Some(_) => Ok(Edit { kind: EditKind::SkillRemoved, skill: Some(name) }),
            None => Err("there is no such skill".to_owned()),
        },
        Action::WriteSkill { name, description, body, discipline } => {
            write(skills, manifest.skill_budget, name, Some(description), &body, discipline, guard)
        }
        Action::ModifySkill { name, description, body, discipline } => {
            write(skills, manifest.skill_budget, name, description, &body, discipline, guard)
        }
    }
}

fn write(
    skills: &mut BTreeMap<String, Skill>,
    budget: usize,
    name: String,
    description: Option<String>,
    body: &str,
    discipline: Option<String>,
    guard: &Guard,
) -> Result<Edit, String> {
    if !is_skill_name(&name) {
        return Err("a skill's name has small letters, digits and hyphens".to_owned());
    }
    let known = skills.get(&name);
    if known.is_none() && skills.len() >= budget {
        return Err(format!("there may be {}; remove or change one", text::count(budget, "skill")));
    }
    let description = match (description, known) {
        (Some(description), _) => description,
        (None, Some(known)) => known.description.clone(),
        (None, None) => return Err("a new skill needs a description".to_owned()),
    };
    let description = description.trim();
    if description.is_empty() || description.contains('\n') {
        return Err("the description must be one line that is not empty".to_owned());
    }
    if description.chars().count() > LONGEST_DESCRIPTION {
        return Err(format!("the description is longer than {LONGEST_DESCRIPTION} letters"));
    }
    let body = body.trim();
    check_text("the skill", body, LONGEST_SKILL)?;
    let before = known.map(|known| known.body.as_str()).unwrap_or_default();
    check_new("the skill", body, before, guard)?;
    check_new("the description", description, before, guard)?;
    let skill = Skill {
        description: description.to_owned(),
        discipline: discipline.or_else(|| known.and_then(|known| known.discipline.clone())),
        body: body.to_owned(),
    };
    if known == Some(&skill) {
        return Err("it changes nothing".to_owned());
    }
    let kind = if known.is_some() { EditKind::SkillChanged } else { EditKind::SkillAdded };
    skills.insert(name.clone(), skill);
    Ok(Edit { kind, skill: Some(name) })
}

fn check_text(what: &str, content: &str, longest: usize) -> Result<(), String> {
    let letters = content.chars().count();
    if letters < SHORTEST {
        return Err(format!("{what} says nothing: it has {}", text::count(letters, "letter")));
    }
    if letters > longest {
        return Err(format!("{what} has {letters} letters, more than {longest}; nothing is cut to fit"));
    }
    if content.contains('\0') {
        return Err(format!("{what} is not text"));
    }
    Ok(())
}

fn check_new(what: &str, content: &str, before: &str, guard: &Guard) -> Result<(), String> {
    match guard.repeats(content, before) {
        Some(words) => Err(format!("{what} repeats a task word by word: \"{words}\"")),
        None => Ok(()),
    }
}

/// A short description of an action, for the log.
fn said(value: &Value) -> String {
    const LONGEST: usize = 120;
    let word = |key: &str| value.get(key).and_then(Value::as_str);
    let short = match (word("type"), word("name")) {
        (Some(kind), Some(name)) => format!("{kind} {name}"),
        (Some(kind), None) => kind.to_owned(),
        _ => value.to_string(),
    };
    text::printable(&short).chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::workspace::candidate::tests::candidate;

    fn skill(name: &str, body: &str) -> Value {
        json!({ "type": "write_skill", "name": name, "description": "When units are mixed", "body": body })
    }

    const BODY: &str = "Convert everything to SI before the first formula.";

    fn made(actions: &[Value]) -> Applied {
        let parent = candidate("Solve the task with care.", &[("signs", "Mind the sign of loads.")]);
        apply(&parent, actions, Scope::Comprehensive, &Guard::default())
    }

    #[test]
    fn each_action_does_what_it_says() {
        let applied = made(&[
            skill("units", BODY),
            json!({ "type": "modify_skill", "name": "signs", "body": "Downward loads are positive here." }),
            json!({ "type": "modify_prompt", "content": "Solve the task with the greatest care." }),
        ]);
        assert!(applied.dropped.is_empty(), "{:?}", applied.dropped);
        let kinds: Vec<EditKind> = applied.edits.iter().map(|edit| edit.kind).collect();
        assert_eq!(kinds, [EditKind::SkillAdded, EditKind::SkillChanged, EditKind::PromptChanged]);
        let candidate = &applied.candidate;
        assert_eq!(candidate.skills["units"].body, BODY);
        assert_eq!(candidate.skills["signs"].description, "About signs", "what is not said stays");
        assert_eq!(candidate.prompt, "Solve the task with the greatest care.\n");
        let removed = made(&[json!({ "type": "delete_skill", "name": "signs" })]);
        assert!(removed.candidate.skills.is_empty() && removed.edits.len() == 1);
    }

    #[test]
    fn what_breaks_a_rule_is_dropped_and_the_rest_is_made() {
        let long = "x ".repeat(LONGEST_SKILL);
        for bad in [
            skill("../../etc/passwd", BODY),
            skill("a/b", BODY),
            skill("", BODY),
            skill("units", ""),
            skill("units", "   \n"),
            skill("units", "short"),
            skill("units", &long),
            skill("units", &format!("{BODY}\0")),
            json!({ "type": "write_skill", "name": "units", "description": " ", "body": BODY }),
            json!({ "type": "write_skill", "name": "units", "description": "a\nb", "body": BODY }),
            json!({ "type": "write_skill", "name": "units", "description": "d".repeat(201), "body": BODY }),
            json!({ "type": "write_skill", "name": "units", "body": BODY }),
            json!({ "type": "modify_skill", "name": "new", "body": BODY }),
            json!({ "type": "delete_skill", "name": "nobody" }),
            json!({ "type": "modify_prompt", "content": "y".repeat(LONGEST_PROMPT + 1) }),
            json!({ "type": "modify_prompt", "content": "" }),
            json!({ "type": "modify_prompt", "content": "Solve the task with care." }),
            json!({ "type": "write_file", "path": "/etc/passwd", "content": "x" }),
            json!({ "type": "modify_prompt", "content": BODY, "path": "/etc/passwd" }),
            json!({ "type": 7 }),
            json!("delete everything"),
            json!(null),
            json!([]),
        ] {
            let applied = made(&[bad.clone(), skill("good", BODY)]);
            assert_eq!(applied.dropped.len(), 1, "{bad}");
            assert_eq!(applied.edits.len(), 1, "{bad}");
            assert!(applied.candidate.files.keys().all(|path| !path.contains("..")));
        }
    }

    #[test]
    fn scope_budget_and_layers_are_kept() {
        let parent = candidate("Solve the task with care.", &[]);
        let many: Vec<Value> = (0..20).map(|at| skill(&format!("s{at}"), &format!("{BODY} {at}"))).collect();
        for (scope, count) in [(Scope::Minimal, 1), (Scope::Targeted, 3), (Scope::Comprehensive, 5)] {
            let applied = apply(&parent, &many, scope, &Guard::default());
            assert_eq!((applied.edits.len(), applied.dropped.len()), (count, 20 - count));
        }
        let full: Vec<(String, String)> = (0..10).map(|at| (format!("s{at}"), BODY.to_owned())).collect();
        let full: Vec<(&str, &str)> =
            full.iter().map(|(name, body)| (name.as_str(), body.as_str())).collect();
        let parent = candidate("Solve the task with care.", &full);
        let applied = apply(&parent, &[skill("one-more", BODY)], Scope::Minimal, &Guard::default());
        assert!(applied.dropped[0].why.contains("10 skills"), "{:?}", applied.dropped);
        let mut fixed = parent;
        fixed.manifest.layers = vec![Layer::Skills];
        let prompt = json!({ "type": "modify_prompt", "content": "Do something else altogether." });
        assert!(apply(&fixed, &[prompt], Scope::Minimal, &Guard::default()).edits.is_empty());
        assert_eq!(
            [0.95, 0.85, 0.2].map(Scope::for_score),
            [Scope::Minimal, Scope::Targeted, Scope::Comprehensive]
        );
    }

    #[test]
    fn skills_can_be_crossed() {
        let one = candidate("First prompt of all.", &[("a", "Alpha."), ("b", "Beta.")]);
        let other = candidate("Second prompt of all.", &[("b", "Another beta."), ("c", "Gamma.")]);
        let applied = cross(&one, &other);
        assert_eq!(applied.candidate.prompt, one.prompt);
        assert_eq!(applied.candidate.skills.len(), 3);
        assert_eq!(applied.candidate.skills["b"].body, "Another beta.");
        assert_eq!(applied.edits.len(), 2);
        assert!(cross(&one, &one).edits.is_empty());
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_a_model_says_reaches_another_file(
            kind in "(write_skill|modify_skill|delete_skill|modify_prompt|.{0,8})",
            name in ".{0,20}", body in ".{0,60}", description in ".{0,20}",
        ) {
            let action = json!({ "type": kind, "name": name, "body": body, "description": description });
            let applied = made(&[action]);
            for path in applied.candidate.files.keys() {
                let known = ["manifest.yaml", "prompts/system.md"].contains(&path.as_str());
                let skill = path.strip_prefix("skills/").and_then(|rest| rest.strip_suffix("/SKILL.md"));
                proptest::prop_assert!(known || skill.is_some_and(is_skill_name), "{}", path);
            }
        }
    }
}
