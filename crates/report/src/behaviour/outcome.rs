//! Decides whether a call worked. Exit codes decide if there are any; text is evidence only in the typical form of
//! error messages, never because a shown file contains the word.

use aec_ledger::transcript::turns::CallResult;
use serde::Serialize;
use serde_json::Value;

use super::action::Deed;

/// Longer results are not searched for JSON.
const LONGEST_JSON: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The result is unknown.
    Unknown,
    Worked,
    Failed(Fault),
}

/// Why a call counts as an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    ExitCode,
    /// There is no such tool, or the call was not carried out.
    Refused,
    /// It was stopped.
    TimedOut,
    /// The source of the trace calls it an error.
    Reported,
    /// Its text is an error message, and there was no exit code.
    Text,
}

pub(crate) fn outcome(deed: &Deed, result: Option<&CallResult>) -> Outcome {
    let Some(result) = result else { return Outcome::Unknown };
    if result.exit_code == Some(0) && result.is_error != Some(true) {
        return Outcome::Worked;
    }
    let complaint = if result.stderr.trim().is_empty() { &result.stdout } else { &result.stderr };
    if is_refusal(complaint) {
        return Outcome::Failed(Fault::Refused);
    }
    match (result.exit_code, result.is_error) {
        (Some(code), error) if code != 0 => by_code(code, error, &result.stderr, deed),
        (_, Some(true)) => Outcome::Failed(Fault::Reported),
        _ if last_line(&result.stderr).starts_with("[timed out after ")
            || last_line(&result.stdout).starts_with("[timed out after ") =>
        {
            Outcome::Failed(Fault::TimedOut)
        }
        (_, Some(false)) => Outcome::Worked,
        _ => by_text(deed, result),
    }
}

fn by_code(code: i32, error: Option<bool>, stderr: &str, deed: &Deed) -> Outcome {
    let says_no = code == 1 && deed.may_say_no && stderr.trim().is_empty() && error != Some(true);
    if code == 0 || says_no { Outcome::Worked } else { Outcome::Failed(Fault::ExitCode) }
}

fn is_refusal(text: &str) -> bool {
    let text = text.trim_start();
    let text = text.strip_prefix("error: ").or_else(|| text.strip_prefix("Error: ")).unwrap_or(text);
    ["there is no tool `", "unknown tool", "Unknown tool", "no such tool", "Tool not found", "tool not found"]
        .iter()
        .any(|start| text.starts_with(start))
        || text.starts_with("your time is up; this call was not carried out")
        || text.starts_with("this call was not carried out")
        || (text.starts_with("Tool '") && text.contains("not found"))
}

fn last_line(text: &str) -> &str {
    text.trim_end().rsplit('\n').next().unwrap_or_default()
}

fn by_text(deed: &Deed, result: &CallResult) -> Outcome {
    let stdout = result.stdout.trim();
    if stdout.starts_with('{')
        && stdout.len() <= LONGEST_JSON
        && let Ok(Value::Object(object)) = aec_base::json::from_str(stdout)
    {
        let code =
            ["exit_code", "returncode", "exit_status"].iter().find_map(|key| object.get(*key)?.as_i64());
        let stderr = object.get("stderr").and_then(Value::as_str).unwrap_or_default();
        if let Some(code) = code {
            return by_code(i32::try_from(code).unwrap_or(i32::MAX), None, stderr, deed);
        }
        if object.len() <= 2
            && object.get("error").and_then(Value::as_str).is_some_and(|error| !error.is_empty())
        {
            return Outcome::Failed(Fault::Text);
        }
    }
    let code =
        last_line(stdout).strip_prefix("[exit code: ").and_then(|rest| rest.strip_suffix(']')?.parse().ok());
    if let Some(code) = code {
        return by_code(code, None, &result.stderr, deed);
    }
    let is_tool = deed.families.first().is_none_or(|(program, _)| program.is_empty());
    let first = stdout.lines().next().unwrap_or_default();
    let begins = first.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("error:"));
    if (begins && (is_tool || !deed.only_shows)) || complains(deed, stdout) || complains(deed, &result.stderr)
    {
        Outcome::Failed(Fault::Text)
    } else {
        Outcome::Worked
    }
}

/// Whether the text contains an error message. If the call only shows files, only messages with the name of one of its
/// programs count.
fn complains(deed: &Deed, text: &str) -> bool {
    let mut usage = false;
    let mut last = "";
    for line in text.lines() {
        let line = line.trim().trim_start_matches("STDERR: ");
        if line.is_empty() {
            continue;
        }
        last = line;
        if shell_complains(line)
            || deed.families.iter().take(16).any(|(program, _)| program_complains(program, line))
        {
            return true;
        }
        if !deed.only_shows {
            usage |= line.starts_with("usage: ");
            if line.starts_with("Traceback (most recent call last):") || (usage && line.contains(": error: "))
            {
                return true;
            }
        }
    }
    !deed.only_shows && is_exception(last)
}

const REASONS: [&str; 6] = [
    "No such file or directory",
    "Permission denied",
    "Is a directory",
    "Not a directory",
    "command not found",
    "not found",
];

fn shell_complains(line: &str) -> bool {
    let shells = ["bash: ", "sh: ", "/bin/sh: ", "/bin/bash: ", "zsh: ", "dash: "];
    let Some(rest) = shells.iter().find_map(|shell| line.strip_prefix(shell)) else { return false };
    REASONS.iter().any(|reason| rest.ends_with(reason)) || rest.contains("syntax error")
}

fn program_complains(program: &str, line: &str) -> bool {
    if program.is_empty() {
        return false;
    }
    let Some(rest) = line.strip_prefix(program).and_then(|rest| rest.strip_prefix(": ")) else {
        return false;
    };
    let starts = ["cannot ", "can't ", "invalid option", "unrecognized option", "error: ", "illegal option"];
    REASONS.iter().any(|reason| rest.ends_with(reason)) || starts.iter().any(|start| rest.starts_with(start))
}

/// `NameError: …` and the like.
fn is_exception(line: &str) -> bool {
    let Some((name, _)) = line.split_once(": ") else { return false };
    let name = name.rsplit('.').next().unwrap_or(name);
    name.len() > 5
        && (name.ends_with("Error") || name.ends_with("Exception"))
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use aec_ledger::transcript::turns::Call;

    use super::super::action::Interpreter;
    use super::super::trace::TaskFacts;
    use super::*;

    fn of(command: &str, stdout: &str, stderr: &str, exit_code: Option<i32>) -> Outcome {
        let call = Call { name: "bash".into(), command: Some(command.into()), ..Call::default() };
        let task = TaskFacts::default();
        let deed = Interpreter::new(&task).deed(&call);
        let result =
            CallResult { stdout: stdout.into(), stderr: stderr.into(), exit_code, ..CallResult::default() };
        outcome(&deed, Some(&result))
    }

    #[test]
    fn codes_decide() {
        let traceback = "Traceback (most recent call last):\n  x\nValueError: no";
        assert_eq!(of("python3 a.py || true", traceback, "", Some(0)), Outcome::Worked);
        assert_eq!(of("python3 a.py", "", "", Some(2)), Outcome::Failed(Fault::ExitCode));
        assert_eq!(of("sleep 99", "", "\n[timed out after 3 s]", None), Outcome::Failed(Fault::TimedOut));
        assert_eq!(
            of("x", "", "there is no tool `x`; the tools are bash", Some(1)),
            Outcome::Failed(Fault::Refused)
        );
    }

    #[test]
    fn an_answer_of_no_is_no_error() {
        assert_eq!(of("grep -c zinc a.csv", "0\n", "", Some(1)), Outcome::Worked);
        assert_eq!(of("diff a b", "1c1", "", Some(1)), Outcome::Worked);
        assert_eq!(of("[ -f x ]", "", "", Some(1)), Outcome::Worked);
        assert_eq!(
            of("grep x nowhere", "", "grep: nowhere: No such file", Some(2)),
            Outcome::Failed(Fault::ExitCode)
        );
        assert_eq!(of("cat a | python3 x.py", "", "", Some(1)), Outcome::Failed(Fault::ExitCode));
    }

    #[test]
    fn text_is_evidence_only_in_the_form_of_a_complaint() {
        let traceback = "Traceback (most recent call last):\n  x\nValueError: no";
        let failed = Outcome::Failed(Fault::Text);
        for (command, text, expected) in [
            ("python3 a.py", traceback, failed),
            ("cat service.log", traceback, Outcome::Worked),
            ("cat service.log", "Error: pump 3 tripped\n", Outcome::Worked),
            ("cat nowhere", "cat: nowhere: No such file or directory", failed),
            ("cat notes", "the survey says: No such file or directory", Outcome::Worked),
            ("foo", "bash: line 1: foo: command not found", failed),
            ("python3 a.py", "Relative Error: 0.02", Outcome::Worked),
            ("python3 a.py", "error: 0 mm\nall fine", failed),
            ("python3 a.py", "mean squared error: 0.1", Outcome::Worked),
            ("python3 calc.py --x", "usage: calc.py [-h]\ncalc.py: error: missing --y", failed),
            ("ls", r#"{"exit_code": 0, "stdout": "Error:", "stderr": ""}"#, Outcome::Worked),
            ("ls x", r#"{"exit_code": 2, "stdout": "", "stderr": "no"}"#, failed_by_code()),
            ("ls x", "out\n[exit code: 2]", failed_by_code()),
            ("cat a", "[exit code: 2] is what the manual calls it", Outcome::Worked),
            ("python3 a.py", "json.decoder.JSONDecodeError: Expecting value", failed),
        ] {
            assert_eq!(of(command, text, "", None), expected, "{command}: {text}");
        }
    }

    fn failed_by_code() -> Outcome {
        Outcome::Failed(Fault::ExitCode)
    }

    #[test]
    fn file_tools_complain_by_themselves() {
        let call = Call { name: "read_file".into(), ..Call::default() };
        let task = TaskFacts::default();
        let deed = Interpreter::new(&task).deed(&call);
        let result = |text: &str| CallResult { stdout: text.into(), ..CallResult::default() };
        assert_eq!(outcome(&deed, Some(&result("error: cannot read `x`"))), Outcome::Failed(Fault::Text));
        assert_eq!(outcome(&deed, Some(&result("a log with an Error: inside"))), Outcome::Worked);
        assert_eq!(outcome(&deed, None), Outcome::Unknown);
    }
}
