//! The tools of an environment with a workspace: what the model is told of them, and carrying out what it calls.

use std::sync::LazyLock;
use std::time::Duration;

use aec_model::message::{ToolCall, Tools};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::workspace::{Trouble, Workspace};
use crate::results::ToolDefs;

/// The tools as `verifiers` describes those of an exported package; a test holds the two against each other.
const DEFINITIONS: &str = include_str!("tools.json");

/// The names of the tools, in their order.
pub(super) const NAMES: [&str; 5] = ["read_file", "write_file", "list_files", "run_command", "submit_answer"];

/// The tools as a model is offered them.
pub(super) static OFFERS: LazyLock<Tools> =
    LazyLock::new(|| serde_json::from_str(DEFINITIONS).unwrap_or_default());

/// The same as rows have them, in one line.
pub(super) static IN_ROWS: LazyLock<ToolDefs> = LazyLock::new(|| {
    let line = serde_json::to_string(&*OFFERS).unwrap_or_else(|_| "[]".to_owned());
    ToolDefs::new(RawValue::from_string(line).unwrap_or_default().into())
});

/// No tools, as rows have them.
pub(super) static NONE: LazyLock<ToolDefs> =
    LazyLock::new(|| ToolDefs::new(RawValue::from_string("[]".to_owned()).unwrap_or_default().into()));

/// The arguments of a tool: those it needs, then those it takes.
fn arguments_of(name: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match name {
        "read_file" => (&["path"], &["path"]),
        "write_file" => (&["path", "content"], &["path", "content"]),
        "list_files" => (&[], &["path"]),
        "run_command" => (&["command"], &["command"]),
        _ => (&["content"], &["content", "path"]),
    }
}

/// Carries out one call. The model's own mistakes are results too.
pub(super) async fn carry_out(
    workspace: &mut Workspace,
    call: &ToolCall,
    time_left: Duration,
) -> Result<String, String> {
    match attempt(workspace, call, time_left).await {
        Ok(text) => Ok(text),
        Err(Trouble::Told(mistake)) => Ok(format!("Error: {mistake}")),
        Err(Trouble::Machine(fault)) => Err(format!("{}: {fault}", call.name)),
    }
}

async fn attempt(workspace: &mut Workspace, call: &ToolCall, time_left: Duration) -> Result<String, Trouble> {
    let name = call.name.as_str();
    if !NAMES.contains(&name) {
        let what = format!("there is no tool `{name}`; the tools are {}", NAMES.join(", "));
        return Err(Trouble::Told(what));
    }
    let given = given(call)?;
    let text = |key: &str| match given.get(key) {
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        None | Some(Value::Null) => Ok(None),
        Some(_) if key == "command" => {
            Err(Trouble::Told("`command` must be a text that is not empty".to_owned()))
        }
        Some(_) => Err(Trouble::Told("the path is not a text without NUL".to_owned())),
    };
    match name {
        "read_file" => workspace.read_file(text("path")?.unwrap_or_default()).await,
        "write_file" => {
            let content = content(&given);
            workspace.write_file(text("path")?.unwrap_or_default(), &content).await
        }
        "list_files" => workspace.list_files(text("path")?).await,
        "run_command" => workspace.run_command(text("command")?.unwrap_or_default(), time_left).await,
        _ => {
            let content = content(&given);
            workspace.submit_answer(&content, text("path")?).await
        }
    }
}

/// The content that a model gives; an object instead of its text is taken as its JSON.
fn content(given: &Map<String, Value>) -> String {
    match given.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(other) => serde_json::to_string_pretty(other).unwrap_or_default(),
        None => String::new(),
    }
}

fn given(call: &ToolCall) -> Result<Map<String, Value>, Trouble> {
    let name = &call.name;
    let text = if call.arguments.is_empty() { "{}" } else { &call.arguments };
    let value: Value = serde_json::from_str(text)
        .map_err(|error| Trouble::Told(format!("the arguments of {name} are not valid JSON: {error}")))?;
    let Value::Object(given) = value else {
        return Err(Trouble::Told(format!("the arguments of {name} are not a JSON object")));
    };
    let (needed, taken) = arguments_of(name);
    let unknown = given.keys().find(|key| !taken.contains(&key.as_str()));
    let missing = needed.iter().find(|key| !given.contains_key(**key));
    let what = match (unknown, missing) {
        (Some(unknown), _) => format!("has no argument `{unknown}`"),
        (None, Some(missing)) => format!("needs the argument `{missing}`"),
        (None, None) => return Ok(given),
    };
    Err(Trouble::Told(format!("{name} {what}; its arguments are {}", taken.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_described() {
        let names: Vec<&str> = OFFERS.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, NAMES);
        assert_eq!(IN_ROWS.names().len(), NAMES.len());
    }

    #[test]
    fn arguments_are_checked() {
        let call = |name: &str, arguments: &str| ToolCall {
            id: "c".to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        };
        let refusal = |name: &str, arguments: &str| match given(&call(name, arguments)) {
            Err(Trouble::Told(what)) => what,
            other => panic!("{other:?}"),
        };
        assert!(given(&call("list_files", "")).unwrap().is_empty());
        assert_eq!(refusal("read_file", "[]"), "the arguments of read_file are not a JSON object");
        assert_eq!(refusal("read_file", "{}"), "read_file needs the argument `path`; its arguments are path");
        assert_eq!(
            refusal("submit_answer", r#"{"content": "", "x": 1}"#),
            "submit_answer has no argument `x`; its arguments are content, path"
        );
    }
}
