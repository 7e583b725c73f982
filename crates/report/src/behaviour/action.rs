//! Interprets a tool call: which files it reads and writes, what it runs, looks up, tests and submits.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use aec_ledger::transcript::turns::Call;
use serde_json::{Map, Value};

use super::paths::{base_name, resolve};
use super::program::asks_for_help;
use super::shell::{self, Word};
use super::trace::TaskFacts;

/// Most programs of the agent that are remembered, and the longest one.
const MOST_SCRIPTS: usize = 256;
const LONGEST_SCRIPT: usize = 256 * 1024;
/// Most remembered programs that one call may run: they may run each other.
const MOST_RUNS: usize = 16;

/// An effect of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Reads a file, or the files that match a pattern.
    Read {
        path: String,
        pattern: bool,
        how: &'static str,
    },
    Write {
        path: String,
        how: &'static str,
        bytes: Option<u64>,
        appends: bool,
    },
    List,
    Search,
    /// Queries the machine.
    Look,
    /// Asks how a program is used.
    Help,
    /// Runs a test, or a program whose name suggests one.
    Test,
    Compare,
    Assert,
    Compute,
    /// Uses a tool of the task.
    Declared(usize),
    /// Runs an unknown program.
    Run,
    /// Makes directories, removes or unpacks files.
    Tidy,
    /// Downloads or installs something.
    Install,
    /// Prints its arguments.
    Say,
    /// Thinks with the help of a tool.
    Think,
    /// Submits an answer.
    Submit {
        bytes: Option<u64>,
    },
}

/// The kind of an action. A later success of the same kind counts as recovery from an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Read,
    List,
    Write,
    /// Running the agent's own code.
    Code,
    Test,
    /// A tool of the task.
    Declared(usize),
    Submit,
    /// Any other program or tool, by its name.
    Named(String),
}

/// Everything that a call does.
#[derive(Debug, Default)]
pub(crate) struct Deed {
    /// In order.
    pub(crate) acts: Vec<Act>,
    /// The kinds of its actions, by program; the last one determines the exit code of a shell.
    pub(crate) families: Vec<(String, Family)>,
    /// Whether all programs only show files, so that their output may contain anything.
    pub(crate) only_shows: bool,
    /// Whether the last command is a question that exit code 1 answers with no.
    pub(crate) may_say_no: bool,
}

impl Deed {
    pub(crate) fn family(&mut self, program: &str, family: Family) {
        self.families.push((program.to_owned(), family));
    }
}

/// The kind of a tool, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    Shell,
    Code,
    Read,
    List,
    Search,
    Write,
    Edit,
    Editor,
    Patch,
    Submit,
    Think,
    Unknown,
}

/// Follows the calls of one trace.
pub(crate) struct Interpreter<'t> {
    task: &'t TaskFacts,
    /// The paths of declared tools.
    places: Vec<Option<String>>,
    /// The path of the answer.
    pub(crate) output: String,
    /// The file names of assigned files and of the output.
    known: HashSet<&'t str>,
    scripts: HashMap<String, String>,
    pub(crate) runs_left: usize,
}

impl<'t> Interpreter<'t> {
    pub(crate) fn new(task: &'t TaskFacts) -> Self {
        let root = task.root.as_deref();
        let place = |path: &Option<String>| path.as_deref().map(|path| resolve(root, "", path));
        Self {
            task,
            places: task.declared_tools.iter().map(|tool| place(&tool.path)).collect(),
            output: resolve(root, "", &task.output_path),
            known: task.input_files.iter().chain([&task.output_path]).map(|path| base_name(path)).collect(),
            scripts: HashMap::new(),
            runs_left: 0,
        }
    }

    /// A path in the normal form of this trace.
    pub(crate) fn path(&self, current: &str, path: &str) -> String {
        resolve(self.task.root.as_deref(), current, path)
    }

    /// The declared tool whose program is at a path.
    pub(crate) fn declared_at(&self, path: &str) -> Option<usize> {
        let same = |place: &String| place == path || base_name(place) == base_name(path);
        self.places.iter().position(|place| place.as_ref().is_some_and(same))
    }

    /// The program that the agent wrote to a path, if this call may still run it.
    pub(crate) fn script(&mut self, path: &str) -> Option<String> {
        let text = self.scripts.get(path)?;
        self.runs_left = self.runs_left.checked_sub(1)?;
        Some(text.clone())
    }

    /// Remembers a written text, in case it is run. Without a text, the content of the file is no longer known.
    pub(crate) fn remember(&mut self, path: &str, text: Option<&str>, appends: bool) {
        let known = self.scripts.remove(path).filter(|_| appends);
        let Some(text) = text else { return };
        let whole = known.unwrap_or_default() + text;
        if whole.len() <= LONGEST_SCRIPT && self.scripts.len() < MOST_SCRIPTS {
            self.scripts.insert(path.to_owned(), whole);
        }
    }

    pub(crate) fn deed(&mut self, call: &Call) -> Deed {
        self.runs_left = MOST_RUNS;
        let mut deed = Deed::default();
        let object = call.object();
        let none = Map::new();
        let arguments = object.as_deref().unwrap_or(&none);
        if let Some(number) = self.task.declared_tools.iter().position(|tool| tool.name == call.name) {
            self.declared(number, call, arguments, &mut deed);
            return deed;
        }
        let line = line(call, arguments);
        let path = || text(arguments, &["path", "file_path", "filepath", "file", "filename", "target_file"]);
        match tool(&call.name) {
            Tool::Shell => self.line(line.as_deref(), arguments, &mut deed),
            Tool::Code => {
                let code = text(arguments, &["code", "source", "input", "script"]).or(line.as_deref());
                self.code(code.unwrap_or_default(), "", &mut deed);
                deed.family("python", Family::Code);
            }
            Tool::Read => self.read(path(), &mut deed),
            Tool::List => {
                deed.acts.push(Act::List);
                deed.family("", Family::List);
            }
            Tool::Search => {
                deed.acts.push(Act::Search);
                deed.only_shows = true;
                deed.family("", Family::Read);
            }
            Tool::Write => self.write(path(), arguments, &mut deed),
            Tool::Edit => self.edit(path(), arguments, &mut deed),
            Tool::Editor => match text(arguments, &["command", "action"]) {
                Some("view") => self.read(path(), &mut deed),
                Some("create") => self.write(path(), arguments, &mut deed),
                _ => self.edit(path(), arguments, &mut deed),
            },
            Tool::Patch => {
                let patch = text(arguments, &["patch", "input", "diff"]).or(line.as_deref());
                self.patch(patch, &mut deed);
            }
            Tool::Submit => {
                let bytes = text(arguments, &["answer", "content", "text"]).map(|text| text.len() as u64);
                deed.acts.push(Act::Submit { bytes });
                deed.family("", Family::Submit);
            }
            Tool::Think => deed.acts.push(Act::Think),
            Tool::Unknown if line.is_some() => self.line(line.as_deref(), arguments, &mut deed),
            Tool::Unknown => {
                deed.acts.push(Act::Run);
                deed.family("", Family::Named(call.name.clone()));
            }
        }
        deed
    }

    fn declared(&self, number: usize, call: &Call, arguments: &Map<String, Value>, deed: &mut Deed) {
        let line = line(call, arguments).unwrap_or_default();
        let script = shell::parse(&line);
        let words: Vec<Word> = script.commands.into_iter().flat_map(|command| command.words).collect();
        if asks_for_help(&words) {
            deed.acts.push(Act::Help);
        } else {
            deed.acts.push(Act::Declared(number));
            self.handed(&words, "", deed);
        }
        deed.family("", Family::Declared(number));
    }

    /// Files that a program gets as arguments.
    pub(crate) fn handed(&self, words: &[Word], current: &str, deed: &mut Deed) {
        for word in words {
            let value =
                word.text.split_once('=').filter(|_| word.text.starts_with('-')).map(|(_, value)| value);
            let path = value.unwrap_or(&word.text);
            // Most arguments are not files of the task, whatever directory they are relative to.
            if word.pattern || self.known.contains(base_name(path)) {
                let path = self.path(current, path);
                deed.acts.push(Act::Read { path, pattern: word.pattern, how: "argument" });
            }
        }
    }

    fn line(&mut self, line: Option<&str>, arguments: &Map<String, Value>, deed: &mut Deed) {
        // Most calls have only a command.
        let start = match arguments.len() {
            0 | 1 => None,
            _ => text(arguments, &["cwd", "workdir", "working_directory"]),
        };
        let start = start.unwrap_or_default();
        let start = self.path("", start);
        self.shell(line.unwrap_or_default(), &start, 0, deed);
    }

    fn read(&self, path: Option<&str>, deed: &mut Deed) {
        let path = self.path("", path.unwrap_or_default());
        // An editor that views a directory lists it.
        if path.is_empty() {
            deed.acts.push(Act::List);
        } else {
            deed.acts.push(Act::Read { path, pattern: false, how: "read_file" });
        }
        deed.only_shows = true;
        deed.family("", Family::Read);
    }

    fn write(&mut self, path: Option<&str>, arguments: &Map<String, Value>, deed: &mut Deed) {
        let content = text(arguments, &["content", "file_text", "contents", "text"]);
        let path = self.path("", path.unwrap_or_default());
        self.remember(&path, content, false);
        let bytes = content.map(|content| content.len() as u64);
        deed.acts.push(Act::Write { path, how: "write_file", bytes, appends: false });
        deed.family("", Family::Write);
    }

    fn edit(&mut self, path: Option<&str>, arguments: &Map<String, Value>, deed: &mut Deed) {
        let old = text(arguments, &["old", "old_str", "old_string", "search"]);
        let new = text(arguments, &["new", "new_str", "new_string", "replace", "insert_text"]);
        let path = self.path("", path.unwrap_or_default());
        if let (Some(old), Some(new), Some(known)) = (old, new, self.scripts.get(&path))
            && !old.is_empty()
        {
            let changed = known.replacen(old, new, 1);
            self.remember(&path, Some(&changed), false);
        }
        let bytes = new.map(|new| new.len() as u64);
        deed.acts.push(Act::Write { path, how: "edit_file", bytes, appends: false });
        deed.family("", Family::Write);
    }

    fn patch(&self, patch: Option<&str>, deed: &mut Deed) {
        let marks = ["*** Update File: ", "*** Add File: ", "+++ b/", "+++ "];
        let paths = patch.unwrap_or_default().lines().filter_map(|line| {
            marks.iter().find_map(|mark| line.strip_prefix(mark)).filter(|path| *path != "/dev/null")
        });
        for path in paths.take(MOST_SCRIPTS) {
            let path = self.path("", path.trim());
            deed.acts.push(Act::Write { path, how: "patch", bytes: None, appends: false });
        }
        deed.family("", Family::Write);
    }
}

/// The command line of a call. The words of a list are quoted.
fn line<'c>(call: &'c Call, arguments: &'c Map<String, Value>) -> Option<Cow<'c, str>> {
    if let Some(command) = &call.command {
        return Some(Cow::Borrowed(command));
    }
    let keys = ["command", "cmd", "commands", "script"];
    match keys.iter().find_map(|key| arguments.get(*key)) {
        Some(Value::String(line)) => Some(Cow::Borrowed(line)),
        Some(Value::Array(words)) => {
            let words = words.iter().filter_map(Value::as_str);
            let quoted: Vec<String> =
                words.map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
            Some(Cow::Owned(quoted.join(" ")))
        }
        _ => match &call.arguments {
            Value::String(text) if arguments.is_empty() && !text.trim_start().starts_with('{') => {
                Some(Cow::Borrowed(text))
            }
            _ => None,
        },
    }
}

fn text<'c>(arguments: &'c Map<String, Value>, keys: &[&str]) -> Option<&'c str> {
    keys.iter().find_map(|key| arguments.get(*key)?.as_str())
}

fn tool(name: &str) -> Tool {
    let last = name.rsplit(['.', ':', '/']).next().unwrap_or(name);
    let last = last.rfind("__").map_or(last, |at| &last[at + 2..]);
    let last = if last.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(last.to_ascii_lowercase())
    } else {
        Cow::Borrowed(last)
    };
    match last.as_ref() {
        "bash" | "shell" | "sh" | "run_command" | "execute_command" | "terminal" | "exec" | "run"
        | "command" | "run_bash" | "run_shell" | "execute" | "execute_bash" | "local_shell"
        | "shell_command" | "cmd" | "run_terminal_cmd" => Tool::Shell,
        "python"
        | "ipython"
        | "execute_python"
        | "run_python"
        | "python_repl"
        | "repl"
        | "code_interpreter"
        | "jupyter"
        | "run_code"
        | "execute_code"
        | "execute_ipython_cell" => Tool::Code,
        "read_file" | "view_file" | "open_file" | "read" | "get_file" | "view" | "load_file"
        | "view_image" | "read_pdf" | "read_document" => Tool::Read,
        "list_files" | "list_dir" | "list_directory" | "ls" | "glob" | "find_files" | "list" => Tool::List,
        "grep" | "search" | "search_files" | "search_file" | "find_in_files" | "grep_search"
        | "web_search" => Tool::Search,
        "write_file" | "create_file" | "save_file" | "write" | "put_file" | "write_to_file" => Tool::Write,
        "edit_file" | "str_replace" | "replace_in_file" | "edit" | "insert" | "apply_edit"
        | "append_file" => Tool::Edit,
        "str_replace_editor" | "str_replace_based_edit_tool" | "editor" | "text_editor" => Tool::Editor,
        "apply_patch" => Tool::Patch,
        "submit_answer" | "submit" | "submit_final_answer" | "final_answer" => Tool::Submit,
        "think" | "plan" | "update_plan" | "scratchpad" => Tool::Think,
        _ => Tool::Unknown,
    }
}
