//! Models that are part of this program: no key, no network, the same answer every time.

use std::path::Path;
use std::sync::Arc;

use aec_base::document::{Document, Family, Shared, Syntax};
use aec_base::problem::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, FailureKind};
use crate::message::{Part, Reply, Request, Role, Stop, ToolCall, Usage};
use crate::routing::RouteError;

/// Problems of scripts are `Q…`.
pub const FAMILY: Family = Family('Q');

/// A model inside this program.
#[derive(Clone, Debug)]
pub enum Offline {
    /// Says what the user said last.
    Echo,
    /// Plays a script.
    Scripted(Arc<Script>),
}

/// A file with the answers of `offline/scripted:FILE`. The answer depends only on the request: its first user
/// message chooses the conversation, the number of answers it already holds chooses the next one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// Answers of a conversation that no other entry claims.
    pub replies: Vec<ScriptReply>,
    /// Conversations; the first whose `when` occurs in the first user message is played.
    pub conversations: Vec<ScriptConversation>,
}

/// One conversation of a script.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptConversation {
    /// Text that must occur in the first user message.
    pub when: String,
    /// Its answers, in order.
    pub replies: Vec<ScriptReply>,
}

/// One answer of a script.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptReply {
    /// What it thinks first.
    pub reasoning: Option<String>,
    /// What it says.
    pub text: Option<String>,
    /// Tools it calls.
    pub tool_calls: Vec<ScriptCall>,
    /// Why it ends; `tool_calls` when there are some, `end` otherwise.
    pub stop: Option<Stop>,
    /// What it takes; a quarter of the bytes when absent.
    pub usage: Option<Usage>,
    /// It does not answer but fails like this.
    pub failure: Option<FailureKind>,
}

/// A tool call of a script.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptCall {
    /// Which tool.
    pub name: String,
    /// Its arguments: an object, or a text to be sent as it is.
    pub arguments: serde_json::Value,
}

impl Script {
    /// Reads a script: JSON, TOML or YAML by its ending.
    pub fn read(path: &Path) -> Result<Self, Vec<Problem>> {
        let syntax = match path.extension().and_then(|ending| ending.to_str()) {
            Some("json") => Syntax::Json,
            Some("toml") => Syntax::Toml,
            _ => Syntax::Yaml,
        };
        let document = Document::read(path, syntax, FAMILY)?;
        let mut decoded = document.decode::<Self>();
        let mut problems = std::mem::take(&mut decoded.problems);
        if let Some(script) = &decoded.value
            && problems.is_empty()
            && script.replies.is_empty()
            && script.conversations.iter().all(|conversation| conversation.replies.is_empty())
        {
            let problem = document.problem(Shared::MissingKey, "replies", "the script has no replies");
            problems.push(problem.fix("add `replies` with at least one text"));
        }
        match decoded.value {
            Some(script) if problems.is_empty() => Ok(script),
            _ => Err(problems),
        }
    }

    /// The answer to a request.
    pub fn answer(&self, request: &Request) -> Result<Reply, Failure> {
        let first = request.messages.iter().find(|message| message.role == Role::User);
        let first = first.map(crate::message::Message::joined_text).unwrap_or_default();
        let claimed = self.conversations.iter().find(|conversation| first.contains(&conversation.when));
        let replies = claimed.map_or(&self.replies, |conversation| &conversation.replies);
        let turn = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
        let Some(reply) = replies.get(turn) else {
            let message = match replies.len() {
                0 => "the script has no conversation for this request".to_owned(),
                count => format!(
                    "the script ends after {}",
                    aec_base::text::count(count, "reply").replace("replys", "replies")
                ),
            };
            return Err(Failure::lasting(FailureKind::Request, message));
        };
        if let Some(kind) = reply.failure {
            return Err(Failure::lasting(kind, "as the script says"));
        }
        Ok(reply.play(request, turn))
    }
}

impl ScriptReply {
    fn play(&self, request: &Request, turn: usize) -> Reply {
        let mut parts = Vec::new();
        parts.extend(self.reasoning.clone().map(|text| Part::Reasoning { text, opaque: None }));
        parts.extend(self.text.clone().map(|text| Part::Text { text }));
        parts.extend(self.tool_calls.iter().enumerate().map(|(index, call)| {
            Part::ToolCall(ToolCall {
                id: format!("call_{}_{}", turn + 1, index + 1),
                name: call.name.clone(),
                arguments: match &call.arguments {
                    serde_json::Value::Null => "{}".to_owned(),
                    serde_json::Value::String(text) => text.clone(),
                    other => other.to_string(),
                },
            })
        }));
        let default = if self.tool_calls.is_empty() { Stop::End } else { Stop::ToolCalls };
        let mut reply = reply(parts, self.stop.clone().unwrap_or(default), request);
        if let Some(usage) = self.usage {
            reply.usage = Some(usage);
        }
        reply
    }
}

impl Offline {
    /// The model behind `offline/NAME`.
    pub fn open(name: &str, directory: &Path) -> Result<Self, RouteError> {
        if name == "echo" {
            return Ok(Self::Echo);
        }
        let Some(file) = name.strip_prefix("scripted:").filter(|file| !file.is_empty()) else {
            return Err(RouteError {
                what: format!("there is no offline model `{name}`"),
                fix: "write offline/echo or offline/scripted:FILE".to_owned(),
            });
        };
        match Script::read(&directory.join(file)) {
            Ok(script) => Ok(Self::Scripted(Arc::new(script))),
            Err(problems) => {
                let first = problems.first();
                Err(RouteError {
                    what: first.map_or_else(|| format!("{file} cannot be read"), ToString::to_string),
                    fix: first
                        .and_then(|problem| problem.fix.clone())
                        .unwrap_or_else(|| "correct the script".to_owned()),
                })
            }
        }
    }

    /// The answer to a request.
    pub fn answer(&self, request: &Request) -> Result<Reply, Failure> {
        match self {
            Self::Echo => {
                let last = request.messages.iter().rev().find(|message| message.role == Role::User);
                let text = last.map(echo_text).unwrap_or_default();
                Ok(reply(vec![Part::Text { text }], Stop::End, request))
            }
            Self::Scripted(script) => script.answer(request),
        }
    }
}

/// The text of a message, results of tools included.
fn echo_text(message: &crate::message::Message) -> String {
    let texts: Vec<String> = message
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(text.clone()),
            Part::ToolResult { parts, .. } => Some(crate::message::join_text(parts)),
            _ => None,
        })
        .collect();
    texts.join("\n")
}

fn reply(parts: Vec<Part>, stop: Stop, request: &Request) -> Reply {
    let quarter = |bytes: usize| (bytes as u64).div_ceil(4);
    let asked: usize = request.messages.iter().map(|message| echo_text(message).len()).sum();
    let said: usize = parts
        .iter()
        .map(|part| match part {
            Part::Text { text } | Part::Reasoning { text, .. } => text.len(),
            Part::ToolCall(call) => call.name.len() + call.arguments.len(),
            _ => 0,
        })
        .sum();
    Reply {
        parts,
        stop,
        usage: Some(Usage { input: quarter(asked), output: quarter(said), ..Usage::default() }),
        model: None,
        id: None,
        extra: serde_json::Map::new(),
    }
}
