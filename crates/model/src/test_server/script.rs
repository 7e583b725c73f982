//! A file of replies: what the server says, turn by turn.

use std::path::Path;

use aec_base::document::{Document, Family, Shared, Syntax};
use aec_base::problem::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Problems of scripts are `W…`.
const FAMILY: Family = Family('W');

/// Replies in order: the first answers a request without turns of the assistant, the second one with one such
/// turn, and so on; the last one answers all that follow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// The replies; at least one.
    pub replies: Vec<ScriptedReply>,
}

/// One reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptedReply {
    /// What the model thinks before it speaks.
    pub reasoning: Option<String>,
    /// What it says.
    pub text: Option<String>,
    /// What it calls.
    pub tool_calls: Vec<ScriptedCall>,
    /// Why it ends; when absent, for its tools or because it is done.
    pub stop: Option<Ending>,
}

/// One call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// Which tool.
    pub name: String,
    /// Its arguments; a text is sent as it is, so that arguments can be wrong.
    #[serde(default)]
    pub arguments: Value,
}

/// Why a reply ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The model is done.
    End,
    /// It waits for its tools.
    ToolCalls,
    /// The limit of tokens is reached.
    Length,
    /// A text came that ends an answer.
    StopText,
    /// The filter stepped in.
    ContentFilter,
}

impl Script {
    /// Reads a script: YAML, TOML or JSON by the ending of its name.
    pub fn read(path: &Path) -> Result<Self, Vec<Problem>> {
        let syntax = match path.extension().and_then(|ending| ending.to_str()) {
            Some("toml") => Syntax::Toml,
            Some("yaml" | "yml") => Syntax::Yaml,
            _ => Syntax::Json,
        };
        let document = Document::read(path, syntax, FAMILY)?;
        let decoded = document.decode::<Self>();
        let mut problems = decoded.problems;
        let script = decoded.value.unwrap_or_default();
        if problems.is_empty() && script.replies.is_empty() {
            let problem = document.problem(Shared::MissingKey, "replies", "the script has no replies");
            problems.push(problem.fix("add a list `replies` with at least one reply"));
        }
        if problems.is_empty() { Ok(script) } else { Err(problems) }
    }

    /// The reply for a request with so many turns of the assistant.
    pub(super) fn reply(&self, turns: usize) -> Option<&ScriptedReply> {
        self.replies.get(turns).or_else(|| self.replies.last())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Result<Script, Vec<Problem>> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        Script::read(&path)
    }

    #[test]
    fn the_same_script_in_every_notation() {
        let json = r#"{"replies": [
            {"reasoning": "look", "tool_calls": [{"name": "bash", "arguments": {"command": "ls"}}]},
            {"text": "done", "stop": "length"}]}"#;
        let yaml = "replies:\n- reasoning: look\n  tool_calls:\n  - name: bash\n    arguments: {command: ls}\n- text: done\n  stop: length\n";
        let toml = "[[replies]]\nreasoning = 'look'\ntool_calls = [{name = 'bash', arguments = {command = 'ls'}}]\n[[replies]]\ntext = 'done'\nstop = 'length'\n";
        let script = read("a.json", json).unwrap();
        assert_eq!(read("a.yaml", yaml).unwrap(), script);
        assert_eq!(read("a.toml", toml).unwrap(), script);
        assert_eq!(script.reply(0).unwrap().tool_calls[0].arguments["command"], "ls");
        assert_eq!(script.reply(1), script.reply(99));
        assert_eq!(script.reply(1).unwrap().stop, Some(Ending::Length));
    }

    #[test]
    fn mistakes_are_named() {
        let what = |text| read("a.yaml", text).unwrap_err().remove(0).what;
        assert!(what("replies: []").contains("no replies"));
        assert!(what("replies:\n- txt: a\n").contains("txt"));
        assert!(what("replies:\n- stop: never\n").contains("never"));
        assert!(what("replies:\n- tool_calls: [{arguments: {}}]\n").contains("name"));
        assert!(read("a.json", "{").is_err());
    }
}
