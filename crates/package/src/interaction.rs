//! How a model works on a task: one question and one answer, or several turns in a workspace.

use std::path::Path;

use aec_base::problem::Severity;
use aec_task::compose::COMPOSE_FILES;
use aec_task::long_documents::files::{LAMBDA_FILE, RLM_FILE};
use aec_task::long_documents::settings::{LambdaSettings, RlmSettings};
use aec_task::task::Task;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interaction {
    /// One prompt, one answer.
    SingleTurn,
    /// A workspace with files and commands, over several turns.
    Stateful,
}

impl Interaction {
    pub fn name(self) -> &'static str {
        match self {
            Self::SingleTurn => "single-turn",
            Self::Stateful => "stateful",
        }
    }
}

/// How an environment lets models work on its tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HarnessMode {
    /// A workspace for all tasks as soon as one needs it, because a package loads as one environment.
    #[default]
    Auto,
    /// One prompt, one answer; an error for a task that needs more.
    SingleTurn,
    /// A workspace for all tasks.
    Stateful,
}

impl HarnessMode {
    pub const ALL: [Self; 3] = [Self::Auto, Self::SingleTurn, Self::Stateful];

    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::SingleTurn => "single-turn",
            Self::Stateful => "stateful",
        }
    }
}

/// The least interaction that a task needs, and why.
pub fn lane(task: &Task, workspace: &[&str]) -> (Interaction, String) {
    let has = |name: &str| task.path.join(name).is_file();
    let reason = if let Some(file) = POLICIES.iter().find(|name| has(name)) {
        format!("{file} asks for a workspace and limits")
    } else if let Some(tool) = task.tools().first() {
        format!("it offers the tool `{}`", tool.name)
    } else if let Some(file) = workspace.first() {
        format!("the agent gets {file}")
    } else if let Some(file) = COMPOSE_FILES.iter().find(|name| has(&format!("environment/{name}"))) {
        format!("environment/{file} describes services")
    } else if task.agent.outputs.len() > 1 {
        format!("the answer is {} files", task.agent.outputs.len())
    } else {
        return (Interaction::SingleTurn, "a prompt and one file to write".to_owned());
    };
    (Interaction::Stateful, reason)
}

/// Files with the settings for long documents; the first one that exists counts.
const POLICIES: [&str; 2] = [LAMBDA_FILE, RLM_FILE];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guardrails {
    pub max_turns: Option<u32>,
    /// Over all turns.
    pub max_total_tokens: Option<u64>,
}

/// The limits in a task's policy file, or what is wrong with the file.
pub fn guardrails(task: &Path) -> Result<Guardrails, String> {
    let Some(name) = POLICIES.iter().find(|name| task.join(name).is_file()) else {
        return Ok(Guardrails::default());
    };
    let text = fs_err::read_to_string(task.join(name)).map_err(|error| error.to_string())?;
    let path = Path::new(name);
    let (limits, problems) = if *name == RLM_FILE {
        let (settings, problems) = RlmSettings::read(path, &text);
        let limits = settings.map(|settings| Guardrails {
            max_turns: Some(settings.guardrails.max_iterations),
            max_total_tokens: Some(settings.guardrails.token_budget),
        });
        (limits, problems)
    } else {
        let (settings, problems) = LambdaSettings::read(path, &text);
        let limits = settings.map(|settings| Guardrails {
            max_turns: None,
            max_total_tokens: Some(settings.guardrails.token_budget),
        });
        (limits, problems)
    };
    limits.ok_or_else(|| {
        let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
        errors.map(ToString::to_string).collect::<Vec<_>>().join("; ")
    })
}
