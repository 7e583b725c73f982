//! The brief for a model that proposes a change: how good the candidate is, how it fails, what was tried, and what may
//! be changed. Numbers in tasks are masked, and right answers are left out.

use std::collections::BTreeMap;

use aec_base::decimal::rounded;
use aec_base::text::{self, printable};
use aec_task::task::Task;

use crate::analyse::{Looked, Tally};
use crate::edit::{LONGEST_DESCRIPTION, LONGEST_PROMPT, LONGEST_SKILL, Scope};
use crate::event::Phase;
use crate::workspace::candidate::Candidate;
use crate::workspace::manifest::Layer;

/// Instructions for evolvers, unless the workspace has its own in `program.md`.
pub const PROGRAM: &str = include_str!("../assets/program.md");

/// Failed tasks whose prompts are shown, and letters of each.
const SHOWN_TASKS: usize = 2;
const SHOWN_LETTERS: usize = 1_500;
const ROWS: usize = 12;
/// Most failed changes, notes and turns that are listed.
const TOLD: usize = 5;

#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    pub summary: String,
    pub outcome: String,
}

pub struct Brief<'a> {
    /// The number of the cycle, and of all cycles.
    pub cycle: (u32, u32),
    /// The candidate to change.
    pub parent: &'a Candidate,
    /// The trials of the parent on the current tasks.
    pub batch: &'a [Looked],
    /// The current tasks.
    pub tasks: &'a [Task],
    /// The sums over all its trials so far.
    pub all: &'a Tally,
    /// Kinds of the turns of failed trials, according to the classifier.
    pub kinds: &'a [String],
    pub scope: Scope,
    /// The failed candidate to reconsider, with its outcome.
    pub rescued: Option<(&'a Candidate, String)>,
    pub failures: &'a [Failure],
    /// Notes of other agents.
    pub notes: &'a [String],
    /// The user's hint to this agent.
    pub nudge: Option<&'a str>,
    pub stuck: bool,
    /// The phase of the budget.
    pub phase: Phase,
}

impl Brief<'_> {
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let (cycle, of) = self.cycle;
        text.push_str(&format!("# Cycle {cycle} of {of}\n\n"));
        self.standing(&mut text);
        self.failing(&mut text);
        self.examples(&mut text);
        self.present(&mut text);
        self.past(&mut text);
        self.rules(&mut text);
        text
    }

    fn standing(&self, text: &mut String) {
        let mut batch = Tally::default();
        for looked in self.batch {
            batch.add(&looked.seen);
        }
        let mean = |tally: &Tally| tally.mean().map_or_else(|| "unknown".to_owned(), |mean| rounded(mean, 3));
        text.push_str(&format!(
            "Mean reward on this batch of {}: {}. On all {} so far: {}.\n",
            text::count(self.batch.len(), "task"),
            mean(&batch),
            text::count(self.all.rewards.len(), "trial"),
            mean(self.all),
        ));
        let mut disciplines: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (looked, task) in self.batch.iter().zip(self.tasks) {
            disciplines.entry(&task.domain).or_default().extend(looked.seen.reward);
        }
        if disciplines.len() > 1 {
            for (discipline, rewards) in disciplines {
                #[expect(clippy::cast_precision_loss, reason = "a batch is small")]
                let mean = rewards.iter().sum::<f64>() / rewards.len().max(1) as f64;
                text.push_str(&format!(
                    "- {discipline}: {} over {}\n",
                    rounded(mean, 3),
                    text::count(rewards.len(), "task")
                ));
            }
        }
        text.push('\n');
    }

    fn failing(&self, text: &mut String) {
        text.push_str("## How it fails\n\n");
        let mut wrong: Vec<_> = self.all.wrong.iter().collect();
        wrong.sort_by(|one, other| other.1.cmp(one.1).then_with(|| one.0.cmp(other.0)));
        let mut signs: Vec<_> = self.all.signs.iter().collect();
        signs.sort_by(|one, other| other.1.cmp(one.1).then_with(|| one.0.cmp(other.0)));
        if wrong.is_empty() && signs.is_empty() {
            text.push_str("Nothing that rules can see.\n");
        }
        for (field, count) in wrong.into_iter().take(ROWS) {
            text.push_str(&format!(
                "- `{}` {} in {}\n",
                printable(&field.name),
                field.how.words(),
                text::count(*count, "trial")
            ));
        }
        for (sign, count) in signs.into_iter().take(ROWS) {
            text.push_str(&format!("- the agent {} in {}\n", sign.words(), text::count(*count, "trial")));
        }
        for kinds in self.kinds.iter().take(TOLD) {
            text.push_str(&format!(
                "- turns of a failed trial: {kinds} (E executes, V verifies, D deliberates, X explores)\n"
            ));
        }
        text.push('\n');
    }

    fn examples(&self, text: &mut String) {
        let failed = self.batch.iter().zip(self.tasks).filter(|(looked, _)| {
            looked.seen.reward.is_some_and(|reward| !aec_report::selection::is_full(reward))
        });
        for (_, task) in failed.take(SHOWN_TASKS) {
            let shown: String =
                masked(&task.instruction().unwrap_or_default()).chars().take(SHOWN_LETTERS).collect();
            text.push_str(&format!(
                "## A task that it failed, numbers masked\n\n<task>\n{}\n</task>\n\n",
                printable(shown.trim())
            ));
        }
    }

    fn present(&self, text: &mut String) {
        text.push_str(&format!(
            "## The prompt now\n\n<prompt>\n{}\n</prompt>\n\n",
            self.parent.prompt.trim()
        ));
        text.push_str("## The skills now\n\n");
        if self.parent.skills.is_empty() {
            text.push_str("None.\n\n");
        }
        for (name, skill) in &self.parent.skills {
            text.push_str(&format!(
                "<skill name=\"{name}\" description={}>\n{}\n</skill>\n\n",
                serde_json::Value::from(skill.description.as_str()),
                skill.body
            ));
        }
    }

    fn past(&self, text: &mut String) {
        if let Some((candidate, outcome)) = &self.rescued {
            text.push_str(&format!("## A failed idea to be made something of\n\nIt came to: {outcome}\n\n"));
            let theirs = candidate.system_prompt();
            text.push_str(&format!("<failed>\n{}\n</failed>\n\n", theirs.trim()));
        }
        if !self.failures.is_empty() {
            text.push_str("## Changes that did not help\n\n");
            for failure in self.failures.iter().rev().take(TOLD) {
                text.push_str(&format!("- {}: {}\n", printable(&failure.summary), failure.outcome));
            }
            text.push('\n');
        }
        if !self.notes.is_empty() {
            text.push_str("## Notes of other agents\n\n");
            for note in self.notes.iter().rev().take(TOLD) {
                text.push_str(&format!("- {}\n", printable(note)));
            }
            text.push('\n');
        }
    }

    fn rules(&self, text: &mut String) {
        text.push_str("## What to do\n\n");
        if let Some(nudge) = self.nudge {
            text.push_str(&format!("Look at this in particular: {}\n", printable(nudge)));
        }
        if self.stuck {
            text.push_str(
                "Nothing helped for a while: do something fundamentally different from what was tried.\n",
            );
        }
        if self.phase >= Phase::WindingDown {
            text.push_str("The budget is nearly used up: propose the one change that you are surest of.\n");
        }
        let manifest = &self.parent.manifest;
        let layers: Vec<&str> = manifest.layers.iter().map(|layer| layer.name()).collect();
        text.push_str(&format!(
            "Make at most {} to {}. A skill has at most {LONGEST_SKILL} letters and a description of one line of at most {LONGEST_DESCRIPTION}; there may be {} in all; the prompt has at most {LONGEST_PROMPT} letters. What is longer is not taken. Repeat no task word by word.\n\n",
            text::count(self.scope.actions(), "change"),
            text::one_of(&layers),
            text::count(manifest.skill_budget, "skill"),
        ));
        text.push_str("Answer with one JSON object and nothing else:\n\n");
        text.push_str("{\"actions\": [\n");
        if manifest.allows(Layer::Skills) {
            text.push_str("  {\"type\": \"write_skill\", \"name\": \"small-letters\", \"description\": \"when to use it\", \"body\": \"markdown\"},\n");
            text.push_str(
                "  {\"type\": \"modify_skill\", \"name\": \"…\", \"body\": \"the whole new text\"},\n",
            );
            text.push_str("  {\"type\": \"delete_skill\", \"name\": \"…\"},\n");
        }
        if manifest.allows(Layer::Prompts) {
            text.push_str("  {\"type\": \"modify_prompt\", \"content\": \"the whole new prompt\"}\n");
        }
        text.push_str("], \"reasoning\": \"why this should help\", \"note\": \"what others should know, or leave it out\"}\n");
    }
}

/// A text with its numbers masked, so that it tells what a task is about but does not identify the instance.
pub fn masked(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut in_number = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let goes_on =
            in_number && matches!(letter, '.' | ',') && letters.peek().is_some_and(char::is_ascii_digit);
        if letter.is_ascii_digit() || goes_on {
            if !in_number {
                masked.push('#');
            }
            in_number = true;
        } else {
            in_number = false;
            masked.push(letter);
        }
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::candidate::tests::candidate;

    #[test]
    fn numbers_are_masked() {
        assert_eq!(masked("A 45.5 m cable of 25 mm2, 1,200 A."), "A # m cable of # mm#, # A.");
    }

    #[test]
    fn a_brief_says_where_things_stand_and_what_may_be_done() {
        let parent = candidate("Solve the task with care.", &[("units", "Convert everything first.")]);
        let all = Tally { rewards: vec![0.0, 0.5], ..Tally::default() };
        let failures =
            [Failure { summary: "adds skill signs".to_owned(), outcome: "nothing gained".to_owned() }];
        let brief = Brief {
            cycle: (3, 10),
            parent: &parent,
            batch: &[],
            tasks: &[],
            all: &all,
            kinds: &["E-E-V".to_owned()],
            scope: Scope::Targeted,
            rescued: None,
            failures: &failures,
            notes: &["watch the sign".to_owned()],
            nudge: Some("units"),
            stuck: true,
            phase: Phase::WindingDown,
        };
        let text = brief.to_text();
        for part in [
            "# Cycle 3 of 10",
            "so far: 0.250",
            "Solve the task with care.",
            "Convert everything first.",
            "adds skill signs: nothing gained",
            "watch the sign",
            "Look at this in particular: units",
            "fundamentally different",
            "at most 3 changes",
            "E-E-V",
            "modify_prompt",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
