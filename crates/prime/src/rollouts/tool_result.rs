//! What a tool's result says: whether the tool failed, and how a command ended.
//!
//! Writers keep only the text that the model saw. A failure is counted only where that text leaves no doubt, so the
//! number of failures is a lower bound.

use serde_json::Value;

use crate::rollouts::message::{Message, ToolCall};
use crate::rollouts::python;
use crate::rollouts::value::Object;

/// What a tool's result says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolResult {
    /// What the tool printed; the whole text unless it tells what was printed from what was complained of.
    pub stdout: String,
    /// What the tool complained of.
    pub stderr: String,
    /// How a command ended.
    pub exit_code: Option<i32>,
    /// Whether the tool failed beyond doubt.
    pub is_failed: bool,
}

impl ToolResult {
    /// What a result says; `call` is the call that it answers.
    pub fn read(message: &Message, call: Option<&ToolCall>) -> Self {
        let whole = || Self { stdout: message.text.clone(), is_failed: message.is_error, ..Self::default() };
        let Some(object) = object_in(&message.text) else {
            let mut result = whole();
            if let Some(call) = call {
                result.exit_code = is_command(call).then(|| exit_code_in(&message.text)).flatten();
                result.is_failed |=
                    result.exit_code.is_some_and(|code| code != 0) || is_complaint(&message.text, call);
            }
            return result;
        };
        let code = object.get("exit_code").or_else(|| object.get("returncode")).and_then(Value::as_i64);
        let exit_code = code.and_then(|code| i32::try_from(code).ok());
        let says_error = object.get("error").and_then(Value::as_str).is_some_and(|error| !error.is_empty())
            || object.get("is_error").and_then(Value::as_bool) == Some(true);
        let is_failed = message.is_error || says_error || exit_code.is_some_and(|code| code != 0);
        let text = |key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned);
        let is_outcome = exit_code.is_some()
            && object
                .keys()
                .all(|key| matches!(key.as_str(), "exit_code" | "returncode" | "stdout" | "stderr"));
        if is_outcome {
            let (stdout, stderr) = (text("stdout").unwrap_or_default(), text("stderr").unwrap_or_default());
            return Self { stdout, stderr, exit_code, is_failed };
        }
        Self { exit_code, is_failed, ..whole() }
    }
}

/// Whether a call runs a command. Other tools return what is in files, which may say anything.
fn is_command(call: &ToolCall) -> bool {
    ["run_command", "bash", "shell"].into_iter().any(|tool| call.is_of(tool))
}

/// The exit code in the last line of a command's output, as our own tools put it: `[exit code 2]`.
fn exit_code_in(text: &str) -> Option<i32> {
    let said = text.lines().next_back()?.strip_prefix("[exit code")?.strip_suffix(']')?;
    let said = said.strip_prefix(':').unwrap_or(said).trim_start();
    said.split(',').next()?.parse().ok()
}

/// The object that a result is, in JSON or as Python shows it.
fn object_in(text: &str) -> Option<Object> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    serde_json::from_str(text).ok().or_else(|| python::dictionary(text))
}

/// Whether a text is what Python or verifiers say when a call goes wrong.
fn is_complaint(text: &str, call: &ToolCall) -> bool {
    let text = text.trim();
    // An unknown tool: the text of a KeyError is the name in quotes.
    if text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) == Some(call.name.as_str()) {
        return true;
    }
    if call.object().is_none() {
        // Arguments that are no object never reach the tool: the decoder or the environment says why.
        let is_decoder = text.contains(": line ") && text.contains("(char ");
        if is_decoder || text.starts_with("Expected tool arguments to be a dict") {
            return true;
        }
    }
    // A function that was called with the wrong arguments; Python names it, with its class before it if it has one.
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
        let call = ToolCall::new("c", "run_command", arguments);
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
        let call = ToolCall::new("c", "read_file", "{}");
        let message = Message { text: "[exit code 2]".to_owned(), ..Message::default() };
        assert!(!ToolResult::read(&message, Some(&call)).is_failed);
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
            (r#"{"error": "no such file"}"#, "{}", true),
            (r#"{"error": null}"#, "{}", false),
            (r#"{"error": ""}"#, "{}", false),
            ("{not json", "{}", false),
            ("", "{}", false),
        ] {
            let result = read(text, arguments);
            assert_eq!(result.is_failed, failed, "{text} {arguments}");
            assert_eq!(result.stdout, text);
        }
    }
}
