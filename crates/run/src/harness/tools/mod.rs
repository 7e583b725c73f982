//! The tools that agents have: a shell, files, the task's own programs, and a way to hand in an answer. This is the one
//! table of them: `tool_loop`, the native lane of evaluations and exported packages offer these names, arguments,
//! limits and words. What goes wrong with a call is told to whoever made it and never ends a trial.

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

/// Keys and kinds of a tool's arguments; a kind that ends with a question mark may be absent.
type Keys = &'static [(&'static str, &'static str)];

/// Hands in an answer.
pub const SUBMIT: &str = "submit_answer";

/// Bytes of a file that a tool reads or writes at most. A larger one is read in pieces, through the shell.
pub const LARGEST_FILE: usize = 10 * 1024 * 1024;

/// Longest line that the kernel takes as one argument, with some room.
pub const LONGEST_COMMAND: usize = 120_000;

/// Name, description and arguments of the tools that are always there.
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

/// The arguments of a task's own tool.
const DECLARED: Keys = &[("command", "string")];

/// The names of the tools that are always there.
pub(crate) fn built_in_names() -> [&'static str; 6] {
    BUILT_IN.map(|(name, ..)| name)
}

/// The table as exported packages carry it: how the tools are offered, what those of tasks take, and the limits.
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

/// A tool as models are offered it, with its keys in short: `[["path", "string"], ["offset", "integer?"]]`.
fn described(name: &str, description: &str, keys: Keys) -> Value {
    let Tool { name, description, parameters } = offer(name, description, keys);
    json!({ "name": name, "description": description, "parameters": parameters, "keys": keys })
}

/// The tools of one task.
#[derive(Debug)]
pub struct Toolset {
    declared: Vec<Declared>,
    offers: Tools,
}

/// What a call may take.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// Bytes of what a tool says that the model sees.
    pub output: usize,
    /// How long a command may take.
    pub time: Duration,
}

impl Toolset {
    /// The built-in tools and those of a task.
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

    /// Those of the task.
    pub fn declared(&self) -> &[Declared] {
        &self.declared
    }

    /// How they are offered to a model.
    pub fn offers(&self) -> &Tools {
        &self.offers
    }

    /// What the model is told of its surroundings. The experiment's own prompt comes first.
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

    /// What a call asks for, or what is wrong with it.
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

/// What keeps a tool from doing what it was asked for.
#[derive(Debug)]
enum Trouble {
    /// The caller's own mistake, in words for it.
    Told(String),
    /// The room failed.
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
