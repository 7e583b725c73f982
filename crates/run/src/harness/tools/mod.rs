//! The tools of agents: a shell, files, the task's own programs, and a way to submit an answer. This is the only table
//! of them: `tool_loop`, the native executor of evaluations and exported packages offer these names, arguments, limits
//! and texts. A failed call is reported to its caller and never ends a trial.

mod action;
mod arguments;
mod declared;
mod files;
mod images;
mod output;
mod result;
mod shell;

use std::time::Duration;

use aec_base::text::printable;
use aec_model::message::{Tool, ToolCall, Tools};
use aec_sandbox::SandboxError;
use serde_json::{Value, json};

pub use self::action::Action;
use self::arguments::Given;
pub use self::declared::Declared;
pub(crate) use self::output::{cut_text, kept, show};
pub use self::result::Ran;
use crate::parameters::DEFAULT_TOOL_OUTPUT;

/// Keys and types of a tool's arguments; a type that ends with a question mark is optional.
type Keys = &'static [(&'static str, &'static str)];

/// Submits an answer.
pub const SUBMIT: &str = "submit_answer";

/// Most bytes of a file that a tool reads or writes. A larger file must be read in pieces, through the shell.
pub const LARGEST_FILE: usize = 10 * 1024 * 1024;

/// Longest line that the kernel accepts as one argument, with a margin.
pub const LONGEST_COMMAND: usize = 120_000;

/// Name, description and arguments of the built-in tools.
const BUILT_IN: [(&str, &str, Keys); 6] = [
    (
        "bash",
        "Run a command with bash in the workspace. Each call is a shell of its own; files stay, variables do not.",
        &[("command", "string")],
    ),
    (
        "read_file",
        "Read a text file of the workspace: all of it, or `limit` lines from line `offset`, counted from 1.",
        &[("path", "string"), ("offset", "integer?"), ("limit", "integer?")],
    ),
    (
        "write_file",
        "Write a file of the workspace, with the directories above it. What it held before is replaced.",
        &[("path", "string"), ("content", "string")],
    ),
    (
        "edit_file",
        "Replace `old` by `new` in a text file. `old` must occur exactly once in the file, to the letter.",
        &[("path", "string"), ("old", "string"), ("new", "string")],
    ),
    (
        "list_files",
        "List the files of the workspace, or of a directory in it, with their sizes in bytes.",
        &[("path", "string?")],
    ),
    (
        SUBMIT,
        "Hand in the final answer: its whole `content`, which is also written to `path` if there is one; or with `path` \
         alone the file at that path. What you hand in last counts before any file. The work ends after this turn.",
        &[("content", "string?"), ("path", "string?")],
    ),
];

const DECLARED: Keys = &[("command", "string")];

pub(crate) fn built_in_names() -> [&'static str; 6] {
    BUILT_IN.map(|(name, ..)| name)
}

/// The table in exported packages: how the tools are offered, the arguments of tasks' tools, and the limits.
pub fn table() -> Value {
    let tools: Vec<Value> = BUILT_IN.iter().map(|(name, about, keys)| described(name, about, keys)).collect();
    json!({
        "tools": tools,
        "declared": described("", declared::ARGUMENTS, DECLARED),
        "limits": {
            "output": DEFAULT_TOOL_OUTPUT,
            "kept_output": output::KEPT,
            "file": LARGEST_FILE,
            "command": LONGEST_COMMAND,
        },
    })
}

/// A tool's description, with its keys in short form: `[["path", "string"], ["offset", "integer?"]]`.
fn described(name: &str, description: &str, keys: Keys) -> Value {
    let Tool { name, description, parameters } = offer(name, description, keys);
    json!({ "name": name, "description": description, "parameters": parameters, "keys": keys })
}

#[derive(Debug)]
pub struct Toolset {
    declared: Vec<Declared>,
    offers: Tools,
}

/// The limits of a call.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// Bytes of a tool's output that the model sees.
    pub output: usize,
    pub time: Duration,
}

impl Toolset {
    pub fn new(tools: &[aec_task::task::Tool]) -> Self {
        let declared = Declared::all(tools, &built_in_names());
        let own = BUILT_IN.iter().map(|(name, about, keys)| offer(name, about, keys));
        let offers: Vec<Tool> =
            own.chain(declared.iter().map(|tool| offer(&tool.name, &tool.offered(), DECLARED))).collect();
        Self { offers: offers.into(), declared }
    }

    pub fn names(&self) -> Vec<&str> {
        self.offers.iter().map(|tool| tool.name.as_str()).collect()
    }

    /// The task's own tools.
    pub fn declared(&self) -> &[Declared] {
        &self.declared
    }

    /// The tools in the form that a model receives.
    pub fn offers(&self) -> &Tools {
        &self.offers
    }

    /// The description of the environment for the model. The experiment's own prompt comes first.
    pub fn system_prompt(&self, own: Option<&str>, output_path: &str) -> String {
        let note = format!(
            "You work in /workspace, where the files of the task are. Your answer belongs into {output_path}: hand it in \
             with {SUBMIT}, or write that file. What you hand in counts first, then the file; your last message is taken \
             as the content of the file only if there is neither.\n\nTools: {}. Several calls in one turn are \
             carried out in order. Commands have no terminal and end after a while. The number of turns is limited, so \
             write the answer before you polish it.",
            self.names().join(", ")
        );
        match own {
            Some(own) => format!("{}\n\n{note}", own.trim_end()),
            None => note,
        }
    }

    /// The action of a call, or what is wrong with it.
    pub fn read(&self, call: &ToolCall) -> Result<Action, String> {
        if let Some(tool) = self.declared.iter().find(|tool| tool.name == call.name) {
            let arguments = Given::read(call, DECLARED)?.text("command")?;
            return Ok(Action::Program { tool: tool.clone(), arguments });
        }
        match BUILT_IN.iter().find(|(name, ..)| *name == call.name) {
            Some((name, _, keys)) => Action::of(name, Given::read(call, keys)?),
            None => {
                let known = self.names().join(", ");
                Err(format!("there is no tool `{}`; the tools are {known}", printable(&call.name)))
            }
        }
    }
}

/// Why a tool failed.
#[derive(Debug)]
enum Trouble {
    /// The caller's mistake, in a message for the caller.
    Told(String),
    /// The sandbox failed.
    Room(SandboxError),
}

impl From<String> for Trouble {
    fn from(complaint: String) -> Self {
        Self::Told(complaint)
    }
}

impl From<SandboxError> for Trouble {
    fn from(error: SandboxError) -> Self {
        Self::Room(error)
    }
}

fn offer(name: &str, description: &str, keys: Keys) -> Tool {
    let kind = |kind: &str| json!({ "type": kind.trim_end_matches('?') });
    let properties: serde_json::Map<String, Value> =
        keys.iter().map(|(key, of)| ((*key).to_owned(), kind(of))).collect();
    let required: Vec<&str> =
        keys.iter().filter(|(_, kind)| !kind.ends_with('?')).map(|(key, _)| *key).collect();
    let parameters = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    Tool { name: name.to_owned(), description: description.to_owned(), parameters }
}
