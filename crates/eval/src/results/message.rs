//! Writes the messages of a completion directly into bytes, in the format of rows.

use aec_base::json::{push_ascii, push_text};
use aec_ledger::transcript::chat::Message;
use aec_model::message::ToolCall;

use crate::results::json::push_key;

pub(crate) fn write(message: &Message, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"role\":");
    push_text(out, message.role.name());
    if let Some(id) = &message.tool_call_id {
        push_key(out, "tool_call_id");
        push_text(out, id);
    }
    push_key(out, "content");
    push_text(out, &message.text);
    if let Some(reasoning) = &message.reasoning {
        push_key(out, "reasoning_content");
        push_text(out, reasoning);
    }
    if !message.tool_calls.is_empty() {
        push_key(out, "tool_calls");
        write_calls(out, &message.tool_calls);
    }
    out.push(b'}');
}

/// A call is a JSON object inside a string, with Python's spaces and in ASCII, because readers may compare the strings.
fn write_calls(out: &mut Vec<u8>, calls: &[ToolCall]) {
    let mut object = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        out.push(if index == 0 { b'[' } else { b',' });
        object.clear();
        object.extend_from_slice(b"{\"id\": ");
        push_ascii(&mut object, &call.id);
        object.extend_from_slice(b", \"name\": ");
        push_ascii(&mut object, &call.name);
        object.extend_from_slice(b", \"arguments\": ");
        push_ascii(&mut object, &call.arguments);
        object.push(b'}');
        // It is ASCII, so no character is replaced.
        push_text(out, &String::from_utf8_lossy(&object));
    }
    out.push(b']');
}
