//! The input of an analysis: the turns of an agent, and the facts of its task. Results, exit codes, ids and times may
//! be missing; unknown values stay unknown.

use aec_ledger::transcript::turns::Turn;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trace {
    /// The agent's turns, in order, without prompts and notes.
    pub turns: Vec<Turn>,
    pub task: TaskFacts,
    pub reward: Option<f64>,
    /// Whether an answer was submitted, if the runner of the trial knows; otherwise the calls decide.
    pub submitted: Option<bool>,
    /// Whether the output file existed at the end, if known. It takes precedence over what commands suggest.
    pub output_present: Option<bool>,
    /// Empty answers that are not among the turns, such as those that a provider reported as an error.
    pub empty_replies: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskFacts {
    /// The assigned files, below the workspace.
    pub input_files: Vec<String>,
    pub declared_tools: Vec<DeclaredTool>,
    /// Below the workspace or absolute.
    pub output_path: String,
    /// The path of the workspace, if not `/workspace`.
    pub root: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeclaredTool {
    /// The name under which it is offered.
    pub name: String,
    /// Its program in the workspace, which an agent may also run through a shell.
    pub path: Option<String>,
}
