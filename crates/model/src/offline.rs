//! Models inside this program: no key, no network, the same answer every time.

use std::path::Path;
use std::sync::Arc;

use crate::failure::{Failure, FailureKind};
use crate::message::{Message, Part, Reply, Request, Role, Stop, ToolCall, Usage, join_text};
use crate::routing::RouteError;
use crate::script::{Ending, Script};

/// A model inside this program.
#[derive(Clone, Debug)]
pub enum Offline {
    /// Repeats the last user text.
    Echo,
    /// Plays a script.
    Scripted(Arc<Script>),
}

fn recite(script: &Script, request: &Request) -> Result<Reply, Failure> {
    let first = request.messages.iter().find(|message| message.role == Role::User);
    let first = first.map(Message::joined_text).unwrap_or_default();
    let turns = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
    let Some(scripted) = script.reply(&first, turns) else {
        let message = "the script has no conversation for this request";
        return Err(Failure::lasting(FailureKind::Request, message));
    };
    let mut parts = Vec::new();
    parts.extend(scripted.reasoning.clone().map(|text| Part::Reasoning { text, opaque: None }));
    parts.extend(scripted.text.clone().map(|text| Part::Text { text }));
    parts.extend(scripted.tool_calls.iter().enumerate().map(|(index, call)| {
        let id = format!("call_{}_{}", turns + 1, index + 1);
        Part::ToolCall(ToolCall { id, name: call.name.clone(), arguments: call.arguments_text() })
    }));
    let stop = match scripted.ending() {
        Ending::End => Stop::End,
        Ending::ToolCalls => Stop::ToolCalls,
        Ending::Length => Stop::Length,
        Ending::StopText => Stop::StopText,
        Ending::ContentFilter => Stop::ContentFilter,
    };
    Ok(reply(parts, stop, request))
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

    pub fn answer(&self, request: &Request) -> Result<Reply, Failure> {
        match self {
            Self::Echo => {
                let last = request.messages.iter().rev().find(|message| message.role == Role::User);
                let text = last.map(echo_text).unwrap_or_default();
                Ok(reply(vec![Part::Text { text }], Stop::End, request))
            }
            Self::Scripted(script) => recite(script, request),
        }
    }
}

/// The text of a message, including results of tools.
fn echo_text(message: &Message) -> String {
    let texts: Vec<String> = message
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(text.clone()),
            Part::ToolResult { parts, .. } => Some(join_text(parts).into_owned()),
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
