//! What an analysis reads: the turns of an agent, and what its task asked for. A trace without results, exit codes,
//! ids or times is still a trace; what is not known stays unknown.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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

/// One answer of the model, the calls in it, and what came of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Turn {
    /// The number under which reports name the turn.
    pub index: u32,
    /// What the model said.
    pub text: String,
    /// What it thought, as far as that is known.
    pub reasoning: String,
    /// What it called.
    pub calls: Vec<Call>,
    /// What the calls returned. One without a known id belongs to the first call that has no result yet.
    pub results: Vec<CallResult>,
    /// When the answer came, in milliseconds from the start.
    pub offset_ms: Option<u64>,
}

/// A call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Call {
    /// Which tool.
    pub name: String,
    /// Which call.
    pub id: String,
    /// Its arguments: an object, the text of one, or nothing.
    pub arguments: Value,
    /// Its command line, if it is known apart from the arguments.
    pub command: Option<String>,
}

/// What a call returned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallResult {
    /// Which call.
    pub call_id: String,
    /// What it printed, or all that is known of its result.
    pub stdout: String,
    /// What it complained of.
    pub stderr: String,
    /// Exit code. Leave it out where a source writes 0 for everything.
    pub exit_code: Option<i32>,
    /// Whether the source calls it an error.
    pub is_error: Option<bool>,
    /// How long it took.
    pub duration_ms: Option<u64>,
}

impl Turn {
    /// Whether the model neither said nor called anything.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.text.trim().is_empty()
    }

    /// The results in the order of the calls.
    pub(crate) fn results_in_order(&self) -> Vec<Option<&CallResult>> {
        let mut found: Vec<Option<&CallResult>> = vec![None; self.calls.len()];
        let mut stray = Vec::new();
        let mut first = 0;
        for result in &self.results {
            // Results come in the order of their calls as a rule, so the search begins after the last one.
            let place = (first..self.calls.len())
                .chain(0..first)
                .take(MOST_SEARCHED)
                .find(|&at| found[at].is_none() && self.calls[at].id == result.call_id);
            match place {
                Some(at) if !result.call_id.is_empty() => {
                    found[at] = Some(result);
                    first = at + 1;
                }
                _ => stray.push(result),
            }
        }
        let mut stray = stray.into_iter();
        for place in found.iter_mut().filter(|place| place.is_none()) {
            *place = stray.next();
        }
        found
    }
}

/// A turn with more calls than this whose results are out of order is matched by place.
const MOST_SEARCHED: usize = 4_096;

impl Call {
    /// The arguments as an object, when they are one or the text of one.
    pub(crate) fn object(&self) -> Option<Cow<'_, Map<String, Value>>> {
        match &self.arguments {
            Value::Object(object) => Some(Cow::Borrowed(object)),
            Value::String(text) => match serde_json::from_str(text) {
                Ok(Value::Object(object)) => Some(Cow::Owned(object)),
                _ => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(calls: &[&str], results: &[&str]) -> Turn {
        Turn {
            calls: calls.iter().map(|id| Call { id: (*id).into(), ..Call::default() }).collect(),
            results: results
                .iter()
                .map(|id| CallResult {
                    call_id: (*id).into(),
                    stdout: format!("of {id}"),
                    ..CallResult::default()
                })
                .collect(),
            ..Turn::default()
        }
    }

    fn order(turn: &Turn) -> Vec<Option<&str>> {
        turn.results_in_order()
            .into_iter()
            .map(|result| result.map(|result| result.stdout.as_str()))
            .collect()
    }

    #[test]
    fn results_find_their_calls() {
        assert_eq!(order(&turn(&["a", "b"], &["b", "a"])), [Some("of a"), Some("of b")]);
        assert_eq!(order(&turn(&["a", "b", "c"], &["c"])), [None, None, Some("of c")]);
        assert_eq!(order(&turn(&["", ""], &["", ""])), [Some("of "), Some("of ")]);
        assert_eq!(order(&turn(&["a", "b"], &["x", "a"])), [Some("of a"), Some("of x")]);
        assert_eq!(order(&turn(&["a", "a"], &["a", "a"])), [Some("of a"), Some("of a")]);
        assert_eq!(order(&turn(&[], &["a"])), [] as [Option<&str>; 0]);
    }

    #[test]
    fn arguments_may_be_text() {
        let call = Call { arguments: Value::from(r#"{"path": "a"}"#), ..Call::default() };
        assert_eq!(call.object().unwrap()["path"], "a");
        assert!(Call { arguments: Value::from("{"), ..Call::default() }.object().is_none());
        assert!(Call::default().object().is_none());
    }
}
