//! Conversations in formats that require alternating turns, with the results of tools first.

use serde_json::Value;

use crate::message::{Message, Part, Role};

/// One turn: consecutive messages of one role, as blocks of a wire format.
pub(crate) struct Turn {
    role: Role,
    results: Vec<Value>,
    others: Vec<Value>,
}

impl Turn {
    pub(crate) fn is_user(&self) -> bool {
        self.role != Role::Assistant
    }

    /// The role in the spelling of these formats.
    pub(crate) fn role(&self) -> &'static str {
        if self.is_user() { "user" } else { "assistant" }
    }

    /// The blocks in the order in which they are sent.
    pub(crate) fn into_blocks(self) -> Vec<Value> {
        let mut blocks = self.results;
        blocks.extend(self.others);
        blocks
    }
}

/// The turns of a conversation without its system messages. `block` returns the wire form of a part, or `None` to leave
/// it out; turns without blocks are left out too.
pub(crate) fn turns(messages: &[Message], block: impl Fn(&Part) -> Option<Value>) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for message in messages.iter().filter(|message| message.role != Role::System) {
        for part in &message.parts {
            let Some(block) = block(part) else { continue };
            let role = message.role;
            let turn = match turns.last_mut() {
                Some(turn) if turn.role == role => turn,
                _ => turns.push_mut(Turn { role, results: Vec::new(), others: Vec::new() }),
            };
            let is_result = matches!(part, Part::ToolResult { .. });
            if is_result { turn.results.push(block) } else { turn.others.push(block) }
        }
    }
    turns
}

/// The texts of all system messages, without blank ones, which servers reject.
pub(crate) fn system_texts(messages: &[Message]) -> impl Iterator<Item = &str> {
    messages
        .iter()
        .filter(|message| message.role == Role::System)
        .flat_map(|message| &message.parts)
        .filter_map(|part| match part {
            Part::Text { text } if !text.trim().is_empty() => Some(text.as_str()),
            _ => None,
        })
}
