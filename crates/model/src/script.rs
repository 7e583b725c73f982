//! A file of scripted replies, turn by turn. The offline model and the test server read the same format.

use std::path::Path;

use aec_base::document::{Document, Family, Shared, Syntax};
use aec_base::problem::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Problems of scripts are `Q…`.
pub const FAMILY: Family = Family('Q');

/// Scripted replies of a model. The request alone determines the reply: its first user message selects the
/// conversation, the number of assistant turns selects the reply. The last reply answers all further turns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// Replies for conversations that match no other entry.
    pub replies: Vec<ScriptedReply>,
    /// Conversations; the first whose `when` occurs in the first user message is played.
    pub conversations: Vec<ScriptedConversation>,
}

/// One conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptedConversation {
    /// Text that must occur in the first user message.
    pub when: String,
    /// Its replies, in order.
    pub replies: Vec<ScriptedReply>,
}

/// One reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptedReply {
    /// The model's thoughts.
    pub reasoning: Option<String>,
    /// The text.
    pub text: Option<String>,
    /// The tool calls.
    pub tool_calls: Vec<ScriptedCall>,
    /// Why it ends; by default for its tools, or because the model is done.
    pub stop: Option<Ending>,
}

/// One call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// The tool.
    pub name: String,
    /// Its arguments; a text is sent unchanged, so that arguments can be invalid.
    #[serde(default)]
    pub arguments: Value,
}

/// Why a reply ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The model is done.
    End,
    /// The model waits for its tools.
    ToolCalls,
    /// The token limit is reached.
    Length,
    /// A stop text occurred.
    StopText,
    /// The filter intervened.
    ContentFilter,
}

impl Script {
    /// Reads a script: YAML, TOML or JSON by its extension.
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
        if problems.is_empty() {
            let nothing = script.replies.is_empty() && script.conversations.is_empty();
            let silent = script.conversations.iter().position(|conversation| conversation.replies.is_empty());
            if nothing {
                let problem = document.problem(Shared::MissingKey, "replies", "the script has no replies");
                problems.push(problem.fix("add a list `replies` with at least one reply"));
            }
            if let Some(index) = silent {
                let problem = Problem::error("a conversation of the script has no replies");
                let problem = problem.id(FAMILY.id(Shared::MissingKey)).fix("add a list `replies` to it");
                problems.push(problem.at(document.place_in_list("conversations", index)));
            }
        }
        if problems.is_empty() { Ok(script) } else { Err(problems) }
    }

    /// The reply to a request with this first user message and this many assistant turns.
    pub fn reply(&self, first_message: &str, turns: usize) -> Option<&ScriptedReply> {
        let claimed =
            self.conversations.iter().find(|conversation| first_message.contains(&conversation.when));
        let replies = claimed.map_or(&self.replies, |conversation| &conversation.replies);
        replies.get(turns).or_else(|| replies.last())
    }
}

impl ScriptedCall {
    /// The arguments as sent: a text unchanged, everything else as JSON.
    pub fn arguments_text(&self) -> String {
        match &self.arguments {
            Value::String(raw) => raw.clone(),
            Value::Null => "{}".to_owned(),
            value => value.to_string(),
        }
    }
}

impl ScriptedReply {
    pub fn ending(&self) -> Ending {
        let natural = if self.tool_calls.is_empty() { Ending::End } else { Ending::ToolCalls };
        self.stop.unwrap_or(natural)
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
        assert_eq!(script.reply("x", 0).unwrap().tool_calls[0].arguments["command"], "ls");
        assert_eq!(script.reply("x", 1), script.reply("y", 99));
        assert_eq!(script.reply("x", 1).unwrap().stop, Some(Ending::Length));
    }

    #[test]
    fn the_first_message_chooses_the_conversation() {
        let text = "replies:\n- text: else\nconversations:\n- when: beam\n  replies: [{text: bending}]\n- when: pump\n  replies: [{text: head}]\n";
        let script = read("a.yaml", text).unwrap();
        let said = |message: &str| script.reply(message, 0).unwrap().text.clone().unwrap();
        assert_eq!(
            [said("a beam"), said("a pump"), said("a pump on a beam"), said("a road")],
            ["bending", "head", "bending", "else"]
        );
        let script = read("a.yaml", "conversations:\n- when: beam\n  replies: [{text: bending}]\n").unwrap();
        assert_eq!(script.reply("a road", 0), None);
    }

    #[test]
    fn mistakes_are_named() {
        let what = |text| read("a.yaml", text).unwrap_err().remove(0).what;
        assert!(what("replies: []").contains("no replies"));
        assert!(what("conversations: [{when: x}]").contains("no replies"));
        assert!(what("replies:\n- txt: a\n").contains("txt"));
        assert!(what("replies:\n- stop: never\n").contains("never"));
        assert!(what("replies:\n- tool_calls: [{arguments: {}}]\n").contains("name"));
        assert!(read("a.json", "{").is_err());
    }
}
