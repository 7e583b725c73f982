//! One attempt of a model at one task, free of any writer's spelling. What a writer does not say is absent.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use aec_ledger::transcript::chat::{Message, Role};
use aec_model::message::Tool;

use crate::rollouts::problem::Note;
use crate::rollouts::stop::Stop;
pub use crate::rollouts::task::{IdSource, Package, Task};

/// Where an answer goes when the call that hands it in does not say.
pub const ANSWER_FILE: &str = "output.md";

/// One attempt of a model at one task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rollout {
    /// The writer's id of it.
    pub sample_id: Option<String>,
    /// Which example of the dataset.
    pub example_id: Option<String>,
    /// Which attempt at the example, as the writer counts.
    pub rollout_number: Option<u64>,
    /// Which try at the same attempt, from 1: an evaluation runs rollouts again that ended with an error.
    pub attempt: Option<u64>,
    pub task: Task,
    /// The model, where a row says it.
    pub model: Option<String>,
    /// The version of verifiers that made it, where a row says it.
    pub verifiers: Option<String>,
    /// The whole conversation: the prompt, then what followed.
    pub messages: Vec<Message>,
    /// How many of the messages are the prompt.
    pub prompt_messages: usize,
    /// How often the conversation was begun anew from some point of it; 1 when it went straight on.
    pub branches: usize,
    /// The tools that the model might call.
    pub tools: Vec<Tool>,
    /// The reward, if there is one. Nothing but a finite number is a reward, and nothing else takes its place.
    pub reward: Option<f64>,
    /// What the environment measured.
    pub metrics: BTreeMap<String, f64>,
    /// What ended it.
    pub stop: Stop,
    /// Whether the writer calls it complete.
    pub is_completed: Option<bool>,
    /// Whether something was cut off.
    pub is_truncated: Option<bool>,
    /// What went wrong.
    pub error: Option<RolloutError>,
    /// Whether the model's last answer had nothing in it.
    pub is_empty_response: bool,
    /// How long it took.
    pub timing: Timing,
    /// Tokens read.
    pub tokens_in: Option<u64>,
    /// Tokens written.
    pub tokens_out: Option<u64>,
    /// Dollars.
    pub cost_usd: Option<f64>,
    /// When it was made, as the writer put it.
    pub created_at: Option<String>,
    /// Answers of the model.
    pub turns: usize,
    pub tool_calls: usize,
    /// Calls of tools, by name.
    pub calls_by_name: BTreeMap<String, usize>,
    /// Calls that failed beyond doubt: a lower bound.
    pub tool_errors: usize,
    /// Calls that hand in an answer, in order.
    pub submissions: Vec<Submission>,
    /// Whether the environment took an answer and that ended the work. What the model says after it without calling a
    /// tool does not matter: not every harness stops it.
    pub final_environment_response: bool,
    /// The last thing that the model said in words.
    pub final_text: Option<String>,
    /// What was read otherwise than it was written.
    pub notes: Vec<Note>,
}

impl Rollout {
    /// What followed the prompt.
    pub fn completion(&self) -> &[Message] {
        self.messages.get(self.prompt_messages..).unwrap_or_default()
    }

    pub fn prompt(&self) -> &[Message] {
        self.messages.get(..self.prompt_messages).unwrap_or(&self.messages)
    }

    /// The answer that was handed in: of those that the environment took the last one, else the last one. A call on
    /// the last turn that a rollout may take is never executed. In a rollout that an error ended, what the environment
    /// did not take was not handed in.
    pub fn submitted(&self) -> Option<&Submission> {
        self.submissions
            .iter()
            .rev()
            .find(|submission| submission.is_accepted)
            .or_else(|| self.submissions.last().filter(|_| self.error.is_none()))
    }

    /// Why there is no reward.
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

    /// What the agent was asked: what the task says, else the first thing that the prompt's user says.
    pub fn instruction(&self) -> Option<&str> {
        let first =
            || self.prompt().iter().find(|message| message.role == Role::User).map(|message| &*message.text);
        self.task.instruction.as_deref().or_else(first)
    }
}

/// A call that hands in an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Submission {
    /// The arguments as the model wrote them.
    pub arguments: String,
    /// The answer.
    pub text: Option<String>,
    /// Where it should go, as the model put it.
    pub path: Option<String>,
    /// Whether the environment took it: it answered the call, and not with a complaint.
    pub is_accepted: bool,
}

impl Submission {
    /// Where the answer goes below the workspace; absent when the model named a place outside it.
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

/// What went wrong in a rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RolloutError {
    /// The kind, as the writer names it: `EmptyModelResponseError`.
    pub kind: String,
    /// What was said about it.
    pub message: Option<String>,
    /// The kinds of everything that led to it, the last effect first.
    pub chain: Vec<String>,
    /// The status of a provider's answer.
    pub status_code: Option<u16>,
}

impl RolloutError {
    /// Whether it, or something that led to it, is of some kind.
    pub fn is(&self, kind: &str) -> bool {
        self.kind == kind || self.chain.iter().any(|link| link == kind)
    }
}

/// How long a rollout took, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timing {
    /// When it began, in seconds since the beginning of 1970.
    pub started: Option<f64>,
    /// From start to end.
    pub total: Option<f64>,
    /// The model and its tools.
    pub generation: Option<f64>,
    /// The judge.
    pub scoring: Option<f64>,
}
