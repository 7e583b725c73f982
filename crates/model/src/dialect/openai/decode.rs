//! A chat-completions body as a reply. Streams are put together to such a body first, so both are read here.

use serde_json::{Map, Value};

use super::{malformed, reasoning, usage};
use crate::dialect::refusal::refused_within;
use crate::failure::{Failure, FailureKind};
use crate::message::{Part, Reply, Stop, ToolCall};

/// The reply in a complete body. What has no place in a [`Reply`] goes to its `extra`: keys of the body as they are,
/// those of the choice, the message and the counts under `choice`, `message` and `usage`.
pub(super) fn reply(mut body: Map<String, Value>) -> Result<Reply, Failure> {
    if let Some(error) = error_in(&body) {
        return Err(refused_within(error));
    }
    // vLLM's older form.
    if body.get("object").is_some_and(|object| object == "error") {
        return Err(refused_within(&Value::Object(body)));
    }
    let id = take_text(&mut body, "id", "id")?;
    let model = take_text(&mut body, "model", "model")?;
    body.shift_remove("object");
    let (usage, usage_rest) = body.shift_remove("usage").map_or((None, None), usage::read);

    let mut choice = only_choice(body.shift_remove("choices"))?;
    if let Some(error) = error_in(&choice) {
        return Err(refused_within(error));
    }
    choice.shift_remove("index");
    let finish = take_text(&mut choice, "finish_reason", "choices[0].finish_reason")?
        .ok_or_else(|| malformed("choices[0].finish_reason", "given"))?;
    let Some(Value::Object(mut message)) = choice.shift_remove("message") else {
        return Err(malformed("choices[0].message", "an object"));
    };
    message.shift_remove("role");
    let (parts, refused) = parts(&mut message)?;
    let stop = stop(&finish, &parts, refused, &choice)?;

    let mut extra = body;
    for (key, rest) in [("choice", choice), ("message", message)] {
        let rest = without_nulls(rest);
        if !rest.is_empty() {
            extra.insert(key.to_owned(), Value::Object(rest));
        }
    }
    if let Some(rest) = usage_rest {
        extra.insert("usage".to_owned(), rest);
    }
    Ok(Reply { parts, stop, usage, model, id, extra: without_nulls(extra) })
}

/// The error that a body or a choice carries in place of an answer.
pub(super) fn error_in(object: &Map<String, Value>) -> Option<&Value> {
    object.get("error").filter(|error| !error.is_null())
}

/// A null says nothing.
fn without_nulls(mut object: Map<String, Value>) -> Map<String, Value> {
    object.retain(|_, value| !value.is_null());
    object
}

/// The text under a key; an empty one is none.
pub(super) fn take_text(
    object: &mut Map<String, Value>,
    key: &str,
    field: &str,
) -> Result<Option<String>, Failure> {
    match object.shift_remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok((!text.is_empty()).then_some(text)),
        Some(_) => Err(malformed(field, "a text")),
    }
}

fn only_choice(choices: Option<Value>) -> Result<Map<String, Value>, Failure> {
    let Some(Value::Array(choices)) = choices else { return Err(malformed("choices", "a list")) };
    match <[Value; 1]>::try_from(choices) {
        Ok([Value::Object(choice)]) => Ok(choice),
        Ok(_) => Err(malformed("choices[0]", "an object")),
        Err(choices) => Err(malformed("choices", &format!("one choice but {}", choices.len()))),
    }
}

/// Thoughts, text and calls of a message, and whether the model refused in the form that the format has for it.
fn parts(message: &mut Map<String, Value>) -> Result<(Vec<Part>, bool), Failure> {
    let mut parts = Vec::new();
    let thought = reasoning::take(message)
        .map_err(|key| malformed(&format!("choices[0].message.{key}"), "of the known form"))?;
    parts.extend(thought);
    let content = message.shift_remove("content").unwrap_or_default();
    let text = content_text(content, "choices[0].message.content")?;
    if !text.is_empty() {
        parts.push(Part::Text { text });
    }
    let refusal = take_text(message, "refusal", "choices[0].message.refusal")?;
    let refused = refusal.is_some();
    parts.extend(refusal.map(|text| Part::Text { text }));
    parts.extend(tool_calls(message)?.into_iter().map(Part::ToolCall));
    Ok((parts, refused))
}

/// The text of a content: a string, a list of texts that follow each other, or nothing.
pub(super) fn content_text(content: Value, field: &str) -> Result<String, Failure> {
    match content {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text),
        Value::Array(items) => {
            let mut all = String::new();
            for item in &items {
                let kind = item.get("type").and_then(Value::as_str);
                match item.get("text").and_then(Value::as_str) {
                    Some(text) if matches!(kind, Some("text") | None) => all.push_str(text),
                    _ => return Err(malformed(field, "a text or a list of texts")),
                }
            }
            Ok(all)
        }
        _ => Err(malformed(field, "a text or a list of texts")),
    }
}

fn tool_calls(message: &mut Map<String, Value>) -> Result<Vec<ToolCall>, Failure> {
    // The older form has no ids and is only used by those who are asked in it, which nobody is.
    if message.shift_remove("function_call").is_some_and(|call| !call.is_null()) {
        return Err(malformed("choices[0].message.function_call", "absent"));
    }
    let field = "choices[0].message.tool_calls";
    let items = match message.shift_remove("tool_calls") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(_) => return Err(malformed(field, "a list")),
    };
    let call = |(index, item): (usize, Value)| {
        let field = format!("{field}[{index}]");
        let Value::Object(mut item) = item else { return Err(malformed(&field, "an object")) };
        let kind = take_text(&mut item, "type", &format!("{field}.type"))?;
        if kind.is_some_and(|kind| kind != "function") {
            return Err(malformed(&format!("{field}.type"), "`function`"));
        }
        let id = take_text(&mut item, "id", &format!("{field}.id"))?;
        let Some(Value::Object(mut function)) = item.shift_remove("function") else {
            return Err(malformed(&format!("{field}.function"), "an object"));
        };
        let name = take_text(&mut function, "name", &format!("{field}.function.name"))?
            .ok_or_else(|| malformed(&format!("{field}.function.name"), "given"))?;
        let arguments = function.shift_remove("arguments").unwrap_or_default();
        let arguments = arguments_text(arguments)
            .ok_or_else(|| malformed(&format!("{field}.function.arguments"), "a text"))?;
        Ok(ToolCall { id: id.unwrap_or_else(|| format!("call_{index}")), name, arguments })
    };
    items.into_iter().enumerate().map(call).collect()
}

/// Arguments as text. Sloppy servers send the object itself.
pub(super) fn arguments_text(arguments: Value) -> Option<String> {
    match arguments {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text),
        Value::Object(_) => Some(arguments.to_string()),
        _ => None,
    }
}

fn stop(finish: &str, parts: &[Part], refused: bool, choice: &Map<String, Value>) -> Result<Stop, Failure> {
    if refused {
        return Ok(Stop::ContentFilter);
    }
    let calls = parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
    Ok(match finish {
        "stop" | "eos" | "tool_calls" | "function_call" if calls => Stop::ToolCalls,
        // vLLM names the text that ended the answer.
        "stop" if choice.get("stop_reason").is_some_and(Value::is_string) => Stop::StopText,
        "stop" | "eos" => Stop::End,
        "length" => Stop::Length,
        "content_filter" => Stop::ContentFilter,
        "insufficient_system_resource" | "error" => {
            return Err(Failure::passing(
                FailureKind::Server,
                format!("the provider broke off the answer ({finish})"),
            ));
        }
        other => Stop::Other(other.to_owned()),
    })
}
