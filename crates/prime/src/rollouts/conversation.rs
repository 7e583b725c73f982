//! Converts a rollout to the events of a trajectory and to the lines of a conversation, always to the same bytes.

use aec_ledger::transcript::chat::{ChatMessage, Message, Role, Thoughts};
use aec_ledger::transcript::{Event, EventRole};
use aec_model::message::ToolCall;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::rollouts::message::{answered_calls, object};
use crate::rollouts::outcome;
use crate::rollouts::rollout::Rollout;
use crate::rollouts::tool_result::ToolResult;

pub fn events(rollout: &Rollout) -> Vec<Event> {
    let mut events = events_of(&rollout.messages, rollout.prompt_messages);
    if let Some(fault) = outcome::fault(rollout) {
        let step = events.last().map_or(0, |event| event.step);
        events.push(Event { step, ..Event::text(EventRole::Note, fault.message) });
    }
    events
}

/// The events of some messages, of which the first ones are the prompt.
pub fn events_of(messages: &[Message], prompt_messages: usize) -> Vec<Event> {
    let mut events = Vec::new();
    let mut step = 0;
    for (at, (message, call)) in messages.iter().zip(answered_calls(messages)).enumerate() {
        // Assistant messages in the prompt are not turns of the model.
        step += u32::from(message.role == Role::Assistant && at >= prompt_messages);
        let mut metadata = Map::new();
        if message.images > 0 {
            metadata.insert("images".to_owned(), message.images.into());
        }
        let role = match message.role {
            Role::System => EventRole::System,
            Role::User => EventRole::User,
            Role::Assistant => EventRole::Assistant,
            Role::Tool => {
                events.push(result(message, call, step, metadata));
                continue;
            }
        };
        events.push(Event {
            step,
            reasoning: message.reasoning.clone(),
            metadata,
            ..Event::text(role, message.text.clone())
        });
        let calls = message.tool_calls.iter();
        events.extend(calls.map(|call| Event { step, ..Event::tool_call(call, object(call)) }));
    }
    events
}

fn result(message: &Message, call: Option<&ToolCall>, step: u32, mut metadata: Map<String, Value>) -> Event {
    let ToolResult { stdout, stderr, exit_code, is_failed } = ToolResult::read(message, call);
    if is_failed && exit_code.is_none_or(|code| code == 0) {
        metadata.insert("is_error".to_owned(), true.into());
    }
    let event = Event {
        step,
        tool_name: call.map(|call| call.name.clone()),
        tool_call_id: message.tool_call_id.clone(),
        exit_code,
        metadata,
        ..Event::tool_result(stdout, stderr)
    };
    event.told(message.text.clone())
}

/// Messages as the lines of `conversation.jsonl`: `role`, `content`, `tool_calls` as objects, `tool_call_id`.
pub fn conversation_lines(messages: &[Message]) -> String {
    lines(&ChatMessage::all(messages, Thoughts::Kept))
}

pub(crate) fn lines<T: Serialize>(items: &[T]) -> String {
    // Serialising fails only for maps with keys that are not strings, and there are none.
    items
        .iter()
        .filter_map(|item| serde_json::to_string(item).ok())
        .flat_map(|line| [line, "\n".to_owned()])
        .collect()
}
