//! Checks that tool calls and results match: providers refuse a conversation in which they do not.

use serde_json::Value;

use crate::ask::{Invalid, role};
use crate::route::Form;

/// Whether every call has its result where the provider expects it, and every result its call.
pub(crate) fn check(form: Form, messages: &[Value]) -> Result<(), Invalid> {
    match form {
        Form::OpenAi | Form::Azure => check_tool_messages(messages),
        Form::Anthropic | Form::Invoke => check_blocks(messages, anthropic_ids, &anthropic_words),
        Form::Converse => check_blocks(messages, converse_ids, &converse_words),
    }
}

/// Checks formats in which results are separate messages directly after the calls.
fn check_tool_messages(messages: &[Value]) -> Result<(), Invalid> {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        if role(message) == "tool" {
            let id = message.get("tool_call_id").and_then(Value::as_str).unwrap_or_default();
            let Some(at) = open.iter().position(|call| *call == id) else {
                return Err(Invalid::new(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
                ));
            };
            open.swap_remove(at);
            continue;
        }
        unanswered(&open)?;
        let calls = message.get("tool_calls").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        open = calls.iter().filter_map(|call| call.get("id").and_then(Value::as_str)).collect();
    }
    unanswered(&open)
}

fn unanswered(open: &[&str]) -> Result<(), Invalid> {
    if open.is_empty() {
        return Ok(());
    }
    Err(Invalid::new(format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    )))
}

/// The ids of the calls and results in a message.
type Ids<'a> = (Vec<&'a str>, Vec<&'a str>);

enum Mismatch<'a> {
    /// Calls of a message without results in the next message.
    Unanswered(usize, Vec<&'a str>),
    /// A result in a message whose call is not in the previous message.
    Uncalled(usize, &'a str),
}

/// Checks formats in which results are blocks of the message after the calls.
fn check_blocks(
    messages: &[Value],
    ids: fn(&Value) -> Ids<'_>,
    words: &dyn Fn(&Mismatch<'_>) -> String,
) -> Result<(), Invalid> {
    let mut called: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let (calls, results) = ids(message);
        if let Some(id) = results.iter().find(|id| !called.contains(id)) {
            return Err(Invalid::new(words(&Mismatch::Uncalled(index, id))));
        }
        called.retain(|id| !results.contains(id));
        if !called.is_empty() {
            return Err(Invalid::new(words(&Mismatch::Unanswered(index - 1, called))));
        }
        called = calls;
    }
    if called.is_empty() {
        return Ok(());
    }
    Err(Invalid::new(words(&Mismatch::Unanswered(messages.len() - 1, called))))
}

fn blocks(message: &Value) -> &[Value] {
    message.get("content").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn anthropic_ids(message: &Value) -> Ids<'_> {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for block in blocks(message) {
        let id = |key: &str| block.get(key).and_then(Value::as_str);
        match block.get("type").and_then(Value::as_str) {
            Some("tool_use") => calls.extend(id("id")),
            Some("tool_result") => results.extend(id("tool_use_id")),
            _ => {}
        }
    }
    (calls, results)
}

fn converse_ids(message: &Value) -> Ids<'_> {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for block in blocks(message) {
        calls.extend(block.pointer("/toolUse/toolUseId").and_then(Value::as_str));
        results.extend(block.pointer("/toolResult/toolUseId").and_then(Value::as_str));
    }
    (calls, results)
}

fn anthropic_words(mismatch: &Mismatch<'_>) -> String {
    match mismatch {
        Mismatch::Unanswered(index, ids) => format!(
            "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
            ids.join(", ")
        ),
        Mismatch::Uncalled(index, id) => format!(
            "messages.{index}.content: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
        ),
    }
}

fn converse_words(mismatch: &Mismatch<'_>) -> String {
    match mismatch {
        Mismatch::Unanswered(index, ids) => format!(
            "Expected toolResult blocks at messages.{}.content for the following Ids: {}",
            index + 1,
            ids.join(", ")
        ),
        Mismatch::Uncalled(index, _) => format!(
            "The number of toolResult blocks at messages.{index}.content exceeds the number of toolUse blocks of previous turn."
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(form: Form, messages: &Value) -> Option<String> {
        check(form, messages.as_array().unwrap()).err().map(|invalid| invalid.message)
    }

    #[test]
    fn openai_results_follow_their_calls() {
        let calls = json!({"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b"}]});
        let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": ""});
        let user = json!({"role": "user", "content": ""});
        assert_eq!(refused(Form::OpenAi, &json!([user, calls, result("b"), result("a"), user])), None);
        let half = refused(Form::OpenAi, &json!([user, calls, result("a")])).unwrap();
        assert!(half.ends_with("response messages: b"), "{half}");
        assert!(refused(Form::OpenAi, &json!([calls, user])).unwrap().ends_with("a, b"));
        for stray in [json!([user, result("a")]), json!([calls, result("a"), result("a")])] {
            assert!(refused(Form::OpenAi, &stray).unwrap().contains("preceeding message"));
        }
    }

    #[test]
    fn blocks_follow_their_calls() {
        let anthropic_call = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]});
        let anthropic_result =
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]});
        let converse_call = json!({"role": "assistant", "content": [{"toolUse": {"toolUseId": "a"}}]});
        let converse_result = json!({"role": "user", "content": [{"toolResult": {"toolUseId": "a"}}]});
        let user = json!({"role": "user", "content": "x"});
        for (form, call, result) in [
            (Form::Anthropic, anthropic_call, anthropic_result),
            (Form::Converse, converse_call, converse_result),
        ] {
            assert_eq!(refused(form, &json!([user, call, result])), None);
            assert!(refused(form, &json!([user, call])).is_some());
            assert!(refused(form, &json!([user, call, user])).is_some());
            assert!(refused(form, &json!([user, result])).is_some());
        }
    }
}
