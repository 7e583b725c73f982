//! Finds answers of tasks in the prompts and files of agents.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use aec_base::file::{Links, open_regular};
use aec_base::name::Name;
use aec_base::parallel;
use aec_base::problem::Problem;
use aec_base::text;
use aec_judge::audit::{answers_in, telling_answers};
use aec_task::task::Task;

use crate::experiment::{FAMILY, Harness};
use crate::plan::{Conditions, PlannedAgent};
use crate::planning::AGENT_FILE_LIMIT;

/// Number of tasks that one thread takes at a time.
const CHUNK: usize = 8;

/// A prompt or file of an agent, and its place.
struct Said {
    agent: Option<Name>,
    /// Its description for the user.
    what: String,
    file: Option<PathBuf>,
    text: String,
}

/// Everything of a plan that could hide answers. Agents that are answers by nature are not checked.
fn said(root: &Path, agents: &[PlannedAgent], conditions: &Conditions) -> Vec<Said> {
    let mut said = Vec::new();
    if let Some(instruction) = &conditions.instruction {
        let what = "the prompt of AGENT_INSTRUCTION".to_owned();
        said.push(Said { agent: None, what, file: None, text: instruction.clone() });
    }
    for agent in agents {
        let name = Some(agent.name.clone());
        let of = |what: &str| format!("`{what}` of agent `{}`", agent.name);
        if let (Some(prompt), Some(file)) = (&agent.system_prompt, &agent.system_prompt_file) {
            let path = Some(root.join(file));
            said.push(Said { agent: name.clone(), what: of(file), file: path, text: prompt.clone() });
        }
        if agent.harness != Harness::Command {
            continue;
        }
        for file in &agent.files {
            let path = root.join(&file.path);
            if let Ok((opened, _)) = open_regular(&path, AGENT_FILE_LIMIT, Links::Follow) {
                let mut bytes = Vec::new();
                // A file that cannot be read to its end is refused when the trial begins.
                if opened.take(AGENT_FILE_LIMIT).read_to_end(&mut bytes).is_err() {
                    continue;
                }
                let text = String::from_utf8_lossy(&bytes).into_owned();
                said.push(Said { agent: name.clone(), what: of(&file.path), file: Some(path), text });
            }
        }
        for key in ["command", "env"] {
            if let Some(value) = agent.parameters.get(key) {
                said.push(Said { agent: name.clone(), what: of(key), file: None, text: value.to_string() });
            }
        }
    }
    said
}

/// Answers of tasks in the prompts and files of agents: errors, or warnings if they are allowed.
pub(crate) fn leaks(
    root: &Path,
    tasks: &[Task],
    agents: &[PlannedAgent],
    conditions: &Conditions,
) -> Vec<Problem> {
    let said = said(root, agents, conditions);
    if said.is_empty() {
        return Vec::new();
    }
    let answers = parallel::map(tasks, CHUNK, telling_answers);
    let mut problems = Vec::new();
    for Said { agent, what, file, text } in said {
        let told: Vec<&str> = tasks
            .iter()
            .zip(&answers)
            .filter(|(_, answers)| answers_in(answers, &text).is_some())
            .map(|(task, _)| task.id.as_str())
            .collect();
        if told.is_empty() {
            continue;
        }
        let what = format!("{what} holds the expected values of {}", text::count(told.len(), "task"));
        let first: Vec<&str> = told.iter().take(5).copied().collect();
        let problem = if conditions.allow_leaks { Problem::warning(what) } else { Problem::error(what) };
        let mut problem = problem
            .id(FAMILY.number(32))
            .why(format!("they are those of {}", first.join(", ")))
            .fix("take them out, or pass --allow-leaks, which every record of the run then notes");
        if let Some(agent) = agent {
            problem = problem.about(agent.as_str());
        }
        problems.push(match file {
            Some(file) => problem.in_file(file),
            None => problem,
        });
    }
    problems
}
