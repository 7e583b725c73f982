//! What an analysis reads: the turns of an agent, and what its task asked for. A trace without results, exit codes,
//! ids or times is still a trace; what is not known stays unknown.

use aec_ledger::transcript::turns::Turn;
use serde::{Deserialize, Serialize};

/// One attempt at a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trace {
    /// The agent's turns, in order. Prompts and notes are none.
    pub turns: Vec<Turn>,
    /// What the task asked for.
    pub task: TaskFacts,
    /// What the verifier said.
    pub reward: Option<f64>,
    /// Whether an answer was handed in, when whoever ran the trial knows; otherwise the calls decide.
    pub submitted: Option<bool>,
    /// Whether the output file was there in the end, when that is known. It counts before what commands suggest.
    pub output_present: Option<bool>,
    /// Answers without content that are not among the turns, such as those that a provider reported as an error.
    pub empty_replies: usize,
}

/// What a task gives and asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskFacts {
    /// The assigned files, below the workspace.
    pub input_files: Vec<String>,
    /// The task's own tools.
    pub declared_tools: Vec<DeclaredTool>,
    /// Where the answer belongs, below the workspace or absolute.
    pub output_path: String,
    /// Where the workspace was, if not at `/workspace`.
    pub root: Option<String>,
}

/// A tool that a task brings along.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeclaredTool {
    /// The name under which it is offered.
    pub name: String,
    /// Its program in the workspace, which an agent may also run through a shell.
    pub path: Option<String>,
}
