//! Interprets a tool's result: whether the tool failed, and how a command ended.
//!
//! Writers keep only the text that the model saw. A failure is counted only if that text leaves no doubt, so the number
//! of failures is a lower bound.

use aec_ledger::transcript::chat::Message;
use aec_model::message::ToolCall;

use crate::rollouts::message::{is_of, object};
use crate::rollouts::python;
use crate::rollouts::value::Object;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolResult {
    /// The tool's output; the whole text unless it separates output and errors.
    pub stdout: String,
    pub stderr: String,
    /// The exit code of a command.
    pub exit_code: Option<i32>,
    /// Whether the tool certainly failed.
    pub is_failed: bool,
}

impl ToolResult {
    /// Interprets a result; `call` is the call that it answers.
    pub fn read(message: &Message, call: Option<&ToolCall>) -> Self {
        let mut result =
            Self { stdout: message.text.clone(), is_failed: message.is_error, ..Self::default() };
        let Some(call) = call else { return result };
        // Other tools return the content of files, which may look like anything.
        if ["run_command", "bash", "shell"].into_iter().any(|tool| is_of(call, tool)) {
            match Ended::read(&message.text) {
                Some(Ended { stdout, stderr, exit_code }) => {
                    result = Self { stdout, stderr, exit_code: Some(exit_code), ..result };
                }
                None => result.exit_code = exit_code_in(&message.text),
            }
        }
        result.is_failed |=
            result.exit_code.is_some_and(|code| code != 0) || is_complaint(&message.text, call);
        result
    }
}

/// The end of a command, from an object in JSON or in Python's representation.
struct Ended {
    stdout: String,
    stderr: String,
    exit_code: i32,
}

impl Ended {
    fn read(text: &str) -> Option<Self> {
        if !text.starts_with('{') {
            return None;
        }
        let object: Object = aec_base::json::from_str(text).ok().or_else(|| python::dictionary(text))?;
        let keys = ["exit_code", "stdout", "stderr"];
        if !object.keys().all(|key| keys.contains(&key.as_str())) {
            return None;
        }
        let said = |key: &str| object.get(key)?.as_str().map(str::to_owned);
        Some(Self {
            stdout: said("stdout")?,
            stderr: said("stderr")?,
            exit_code: i32::try_from(object.get("exit_code")?.as_i64()?).ok()?,
        })
    }
}

/// The exit code in the last line of a command's output, in the format of our own tools: `[exit code 2]`.
fn exit_code_in(text: &str) -> Option<i32> {
    let said = text.lines().next_back()?.strip_prefix("[exit code")?.strip_suffix(']')?;
    let said = said.strip_prefix(':').unwrap_or(said).trim_start();
    said.split(',').next()?.parse().ok()
}

/// Whether a text is an error message of Python or verifiers about a failed call.
fn is_complaint(text: &str, call: &ToolCall) -> bool {
    let text = text.trim();
    // An unknown tool: the text of a KeyError is the name in quotes.
    if text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) == Some(call.name.as_str()) {
        return true;
    }
    // Arguments that are not an object never reach the tool: the decoder or the environment reports why.
    let is_about_arguments = text.starts_with("Expected tool arguments to be a dict")
        || (text.ends_with(')') && text.contains(": line ") && text.contains("(char "));
    if is_about_arguments && object(call).is_none() {
        return true;
    }
    // A function that was called with wrong arguments; Python names it, with its class before it if it has one.
    let first_line = text.lines().next().unwrap_or_default();
    let wrong_arguments = first_line.split_once("() ").is_some_and(|(function, said)| {
        let name = function.rsplit('.').next().unwrap_or(function);
        let is_python = ["missing ", "got an unexpected ", "got multiple ", "takes "];
        name == call.name && is_python.iter().any(|word| said.starts_with(word)) && said.contains("argument")
    });
    wrong_arguments
        || ["Error: ", "error: ", "[Errno ", "Traceback (most recent call last):"]
            .iter()
            .any(|beginning| text.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, arguments: &str) -> ToolResult {
        let call = ToolCall { id: "c".into(), name: "run_command".into(), arguments: arguments.into() };
        let message = Message { text: text.to_owned(), ..Message::default() };
        ToolResult::read(&message, Some(&call))
    }

    #[test]
    fn a_command_is_read_in_json_and_as_python_shows_it() {
        for text in [
            r#"{"exit_code": 2, "stdout": "a\n", "stderr": "b"}"#,
            r"{'exit_code': 2, 'stdout': 'a\n', 'stderr': 'b'}",
        ] {
            let expected = ToolResult {
                stdout: "a\n".to_owned(),
                stderr: "b".to_owned(),
                exit_code: Some(2),
                is_failed: true,
            };
            assert_eq!(read(text, "{}"), expected);
        }
        let fine = read("{'exit_code': 0, 'stdout': '', 'stderr': 'warning'}", "{}");
        assert!(!fine.is_failed);
    }

    #[test]
    fn our_own_tools_put_the_exit_code_last() {
        for (text, code) in [
            ("ls: no such file\n[exit code 2]", Some(2)),
            ("[exit code 0, no output]", Some(0)),
            ("out\n[exit code: 1]", Some(1)),
            ("[exit code 2]\nmore", None),
            ("[exit code x]", None),
            ("[exit code", None),
        ] {
            let result = read(text, "{}");
            assert_eq!(
                (result.exit_code, result.is_failed),
                (code, code.is_some_and(|code| code > 0)),
                "{text}"
            );
        }
        for text in ["[exit code 2]", "{'exit_code': 2, 'stdout': '', 'stderr': ''}"] {
            let call = ToolCall { id: "c".into(), name: "read_file".into(), arguments: "{}".into() };
            let message = Message { text: text.to_owned(), ..Message::default() };
            assert!(!ToolResult::read(&message, Some(&call)).is_failed);
            assert!(!ToolResult::read(&message, None).is_failed);
            assert!(ToolResult::read(&Message { is_error: true, ..message }, None).is_failed);
        }
    }

    #[test]
    fn failures_are_counted_only_beyond_doubt() {
        for (text, arguments, failed) in [
            ("'run_command'", "{}", true),
            ("'another'", "{}", false),
            ("run_command() missing 1 required positional argument: 'command'", "{}", true),
            ("Tools.run_command() got an unexpected keyword argument 'x'", "{}", true),
            ("other() missing 1 required positional argument: 'x'", "{}", false),
            ("Expecting value: line 1 column 1 (char 0)", "{oops", true),
            ("Expecting value: line 1 column 1 (char 0)", "{}", false),
            ("Expected tool arguments to be a dict, got list: []", "[]", true),
            ("Error: no such file", "{}", true),
            ("Traceback (most recent call last):\n  x", "{}", true),
            ("the error: none", "{}", false),
            ("[Errno 2] No such file or directory: 'x'", "{}", true),
            ("no such file: x", "{}", false),
            (r#"{"error": "a file may say this"}"#, "{}", false),
            (r#"{"exit_code": 1}"#, "{}", false),
            (r#"{"exit_code": 1, "stdout": "", "stderr": "", "more": 1}"#, "{}", false),
            ("{not json", "{}", false),
            ("", "{}", false),
        ] {
            let result = read(text, arguments);
            assert_eq!(result.is_failed, failed, "{text} {arguments}");
            assert_eq!(result.stdout, text);
        }
    }
}
