//! The tools that agents have: a shell, files, the task's own programs, and a way to hand in an answer. What goes
//! wrong with a call is told to whoever made it and never ends a trial.

mod arguments;
mod declared;
mod files;
mod images;
mod output;
mod result;
mod shell;

use aec_model::message::{Tool, ToolCall};
use serde_json::{Value, json};

use self::arguments::Given;
pub(crate) use self::declared::Declared;
pub(crate) use self::output::{cut_text, kept, show};
pub(crate) use self::result::Ran;
use super::{End, TrialContext};

/// Keys and kinds of a tool's arguments; a kind that ends with a question mark may be absent.
type Keys = &'static [(&'static str, &'static str)];

/// Hands in an answer.
pub(crate) const SUBMIT: &str = "submit_answer";

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
        "Hand in the final answer: the whole content of the output file. The work ends after this turn. A file that \
         you wrote there yourself counts before it.",
        &[("answer", "string")],
    ),
];

/// The arguments of a task's own tool.
const DECLARED: Keys = &[("command", "string")];

/// The tools of one agent at one task.
#[derive(Debug)]
pub(crate) struct Toolbox {
    declared: Vec<Declared>,
    /// Calls so far; outputs are numbered by it.
    calls: u32,
}

/// The names of the tools that are always there.
pub(crate) fn built_in_names() -> [&'static str; 6] {
    BUILT_IN.map(|(name, ..)| name)
}

impl Toolbox {
    /// The built-in tools and those of the task.
    pub(crate) fn new(tools: &[aec_task::task::Tool]) -> Self {
        Self { declared: Declared::all(tools, &built_in_names()), calls: 0 }
    }

    /// Their names.
    pub(crate) fn names(&self) -> Vec<&str> {
        built_in_names().into_iter().chain(self.declared.iter().map(|tool| tool.name.as_str())).collect()
    }

    /// How they are offered to a model.
    pub(crate) fn offers(&self) -> Vec<Tool> {
        let own = BUILT_IN.iter().map(|(name, description, keys)| offer(name, description, keys));
        let declared = self.declared.iter().map(|tool| {
            let description = format!(
                "{}\n`command` is the line of arguments for the program, as in a shell.",
                tool.description.trim_end()
            );
            offer(&tool.name, &description, DECLARED)
        });
        own.chain(declared).collect()
    }

    /// Calls a tool. Only a room that is gone is an error.
    pub(crate) async fn call(&mut self, call: &ToolCall, context: &mut TrialContext) -> Result<Ran, End> {
        self.calls += 1;
        let started = std::time::Instant::now();
        let mut ran = match self.dispatch(call, context).await? {
            Ok(ran) => ran,
            Err(complaint) => Ran::refused(complaint),
        };
        if ran.duration.is_zero() {
            ran.duration = started.elapsed();
        }
        Ok(ran)
    }

    async fn dispatch(
        &self,
        call: &ToolCall,
        context: &mut TrialContext,
    ) -> Result<Result<Ran, String>, End> {
        if let Some(tool) = self.declared.iter().find(|tool| tool.name == call.name) {
            let given = Given::read(call, DECLARED);
            let arguments = match given.as_ref().map_err(Clone::clone).and_then(|given| given.text("command"))
            {
                Ok(arguments) => arguments,
                Err(complaint) => return Ok(Err(complaint)),
            };
            let workspace = context.workspace().await?;
            let line = tool.line(workspace.root(), arguments);
            return shell::run(context, &workspace, self.calls, line, tool.returns_image).await;
        }
        let Some((name, _, keys)) = BUILT_IN.iter().find(|(name, ..)| *name == call.name) else {
            let known = self.names().join(", ");
            let name = aec_base::text::printable(&call.name);
            return Ok(Err(format!("there is no tool `{name}`; the tools are {known}")));
        };
        let given = match Given::read(call, keys) {
            Ok(given) => given,
            Err(complaint) => return Ok(Err(complaint)),
        };
        if *name == SUBMIT {
            return Ok(given.text("answer").map(Ran::submission));
        }
        let budget = context.agent.parameters.tool_output as usize;
        let workspace = context.workspace().await?;
        let text = match *name {
            "bash" => {
                let command = match given.text("command") {
                    Ok(command) => command.to_owned(),
                    Err(complaint) => return Ok(Err(complaint)),
                };
                return shell::run(context, &workspace, self.calls, command, false).await;
            }
            "read_file" => files::read(&given, &workspace, budget).await,
            "write_file" => files::write(&given, &workspace).await,
            "edit_file" => files::edit(&given, &workspace).await,
            _ => files::list(&given, &workspace, budget).await,
        };
        Ok(text.map(Ran::said))
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
