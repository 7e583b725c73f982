//! One attempt of a model at one task, independent of the format it was written in. Missing values are absent.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use aec_ledger::transcript::chat::{Message, Role};
use aec_model::message::Tool;

use crate::rollouts::problem::Note;
use crate::rollouts::stop::Stop;
pub use crate::rollouts::task::{IdSource, Package, Task};

/// The file of an answer whose call does not name one.
pub const ANSWER_FILE: &str = "output.md";

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rollout {
    pub sample_id: Option<String>,
    pub example_id: Option<String>,
    /// Which attempt at the example, as the writer counts them.
    pub rollout_number: Option<u64>,
    /// Which try at the same attempt, from 1: an evaluation repeats rollouts that ended with an error.
    pub attempt: Option<u64>,
    pub task: Task,
    /// Present if the row names it.
    pub model: Option<String>,
    /// The version of verifiers that made it, if the row names it.
    pub verifiers: Option<String>,
    /// The whole conversation: the prompt, then what followed.
    pub messages: Vec<Message>,
    /// How many of the messages are the prompt.
    pub prompt_messages: usize,
    /// How often the conversation was restarted from some point; 1 if it never was.
    pub branches: usize,
    pub tools: Vec<Tool>,
    /// Only a finite number is a reward; nothing else replaces it.
    pub reward: Option<f64>,
    pub metrics: BTreeMap<String, f64>,
    pub stop: Stop,
    pub is_completed: Option<bool>,
    pub is_truncated: Option<bool>,
    pub error: Option<RolloutError>,
    /// Whether the model's last answer was empty.
    pub is_empty_response: bool,
    pub timing: Timing,
    pub tokens_in: Option<u64>,
    pub tokens_out: Option<u64>,
    pub cost_usd: Option<f64>,
    /// As the writer put it.
    pub created_at: Option<String>,
    pub turns: usize,
    pub tool_calls: usize,
    pub calls_by_name: BTreeMap<String, usize>,
    /// Calls that certainly failed: a lower bound.
    pub tool_errors: usize,
    /// Calls that submit an answer, in order.
    pub submissions: Vec<Submission>,
    /// Whether the environment accepted an answer and that ended the work. Later messages of the model without tool
    /// calls do not matter: not every harness stops it.
    pub final_environment_response: bool,
    /// The last text of the model.
    pub final_text: Option<String>,
    /// What was read differently from how it was written.
    pub notes: Vec<Note>,
}

impl Rollout {
    /// The messages after the prompt.
    pub fn completion(&self) -> &[Message] {
        self.messages.get(self.prompt_messages..).unwrap_or_default()
    }

    pub fn prompt(&self) -> &[Message] {
        self.messages.get(..self.prompt_messages).unwrap_or(&self.messages)
    }

    /// The submitted answer: the last one that the environment accepted, else the last one. A call on the last allowed
    /// turn is never executed. In a rollout that ended with an error, an answer that the environment did not accept
    /// does not count as submitted.
    pub fn submitted(&self) -> Option<&Submission> {
        self.submissions
            .iter()
            .rev()
            .find(|submission| submission.is_accepted)
            .or_else(|| self.submissions.last().filter(|_| self.error.is_none()))
    }

    pub fn unscored(&self) -> String {
        let instead = self.notes.iter().find_map(|note| match note {
            Note::PassedOver { key, found } if key.starts_with("reward") => Some((key, found)),
            _ => None,
        });
        match instead {
            Some((key, found)) => format!("its `{key}` is {found} where a number was expected"),
            None => "it has no reward".to_owned(),
        }
    }

    /// The instruction of the task, else the first user message of the prompt.
    pub fn instruction(&self) -> Option<&str> {
        let first =
            || self.prompt().iter().find(|message| message.role == Role::User).map(|message| &*message.text);
        self.task.instruction.as_deref().or_else(first)
    }
}

/// A call that submits an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Submission {
    /// The arguments as the model wrote them.
    pub arguments: String,
    pub text: Option<String>,
    /// The path that the model gave.
    pub path: Option<String>,
    /// Whether the environment accepted it: it answered the call, and not with an error.
    pub is_accepted: bool,
}

impl Submission {
    /// The path of the answer below the workspace; absent if the model named a place outside it.
    pub fn file(&self) -> Option<PathBuf> {
        let path = self.path.as_deref().unwrap_or(ANSWER_FILE);
        let below = path.strip_prefix("/workspace/").unwrap_or(path);
        let is_plain = |component| matches!(component, Component::Normal(_) | Component::CurDir);
        if below.contains(['\0', '\\']) || !Path::new(below).components().all(is_plain) {
            return None;
        }
        let file: PathBuf = Path::new(below).components().filter(|part| *part != Component::CurDir).collect();
        (!file.as_os_str().is_empty()).then_some(file)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RolloutError {
    /// The kind, as the writer names it: `EmptyModelResponseError`.
    pub kind: String,
    pub message: Option<String>,
    /// The kinds of all its causes, the last effect first.
    pub chain: Vec<String>,
    pub status_code: Option<u16>,
}

impl RolloutError {
    /// Whether it or one of its causes is of some kind.
    pub fn is(&self, kind: &str) -> bool {
        self.kind == kind || self.chain.iter().any(|link| link == kind)
    }
}

/// In seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timing {
    /// In seconds since the beginning of 1970.
    pub started: Option<f64>,
    /// From start to end.
    pub total: Option<f64>,
    /// The model and its tools.
    pub generation: Option<f64>,
    /// The judge.
    pub scoring: Option<f64>,
}
