//! Decodes a chat-completions body. Streams are first assembled into such a body, so this serves both.

use serde_json::{Map, Value};

use super::node::{Node, Object};
use super::reasoning::{self, DETAILS_KEY, TEXT_KEYS};
use super::{malformed, usage};
use crate::dialect::refusal::refused_within;
use crate::failure::{Failure, FailureKind};
use crate::message::{Part, Reply, Stop, ToolCall};

/// Decodes a complete body. What a [`Reply`] cannot hold goes to its `extra`: keys of the body unchanged, those of the
/// choice, the message and the counts under `choice`, `message` and `usage`.
pub(super) fn reply(mut body: Object<'_>) -> Result<Reply, Failure> {
    check_error(&body)?;
    // vLLM's older form.
    if body.get("object").and_then(Node::as_text) == Some("error") {
        return Err(refused_within(&Value::from(Node::Object(body))));
    }
    let id = text(body.take("id"), || "id".to_owned())?;
    let model = text(body.take("model"), || "model".to_owned())?;
    body.take("object");
    let (usage, usage_rest) = usage::read(body.take("usage"));

    let mut choice = only_choice(body.take("choices"))?;
    check_error(&choice)?;
    choice.take("index");
    let finish = text(choice.take("finish_reason"), || "choices[0].finish_reason".to_owned())?
        .ok_or_else(|| malformed("choices[0].finish_reason", "given"))?;
    let Node::Object(mut message) = choice.take("message") else {
        return Err(malformed("choices[0].message", "an object"));
    };
    message.take("role");
    let mut message_rest = Map::new();
    let (parts, refused) = parts(&mut message, &mut message_rest)?;
    let stop = stop(finish, &parts, refused, &choice)?;

    let mut extra = body.rest();
    message_rest.append(&mut message.rest());
    for (key, rest) in [("choice", choice.rest()), ("message", message_rest)] {
        if !rest.is_empty() {
            extra.insert(key.to_owned(), Value::Object(rest));
        }
    }
    if let Some(rest) = usage_rest {
        extra.insert("usage".to_owned(), rest);
    }
    Ok(Reply { parts, stop, usage, model, id, extra })
}

/// A body or a choice may contain an error instead of an answer.
pub(super) fn check_error(object: &Object<'_>) -> Result<(), Failure> {
    object.get("error").map_or(Ok(()), |error| Err(refused_within(&Value::from(error.clone()))))
}

/// A text; an empty one counts as absent.
pub(super) fn text(value: Node<'_>, field: impl FnOnce() -> String) -> Result<Option<String>, Failure> {
    match value {
        Node::Null => Ok(None),
        Node::Text(text) => Ok((!text.is_empty()).then(|| text.into_owned())),
        _ => Err(malformed(&field(), "a text")),
    }
}

fn only_choice(choices: Node<'_>) -> Result<Object<'_>, Failure> {
    let Node::List(choices) = choices else { return Err(malformed("choices", "a list")) };
    match <[Node<'_>; 1]>::try_from(choices) {
        Ok([Node::Object(choice)]) => Ok(choice),
        Ok(_) => Err(malformed("choices[0]", "an object")),
        Err(choices) => Err(malformed("choices", &format!("one choice but {}", choices.len()))),
    }
}

/// Thoughts, text and calls of a message, and whether it has the format's own refusal field. Further data of a thought
/// goes to `rest`.
fn parts(message: &mut Object<'_>, rest: &mut Map<String, Value>) -> Result<(Vec<Part>, bool), Failure> {
    let mut parts = Vec::new();
    for key in TEXT_KEYS.into_iter().chain([DETAILS_KEY]) {
        let value = message.take(key);
        if !value.is_null() {
            rest.insert(key.to_owned(), value.into());
        }
    }
    if !rest.is_empty() {
        let thought = reasoning::take(rest)
            .map_err(|key| malformed(&format!("choices[0].message.{key}"), "of the known form"))?;
        parts.extend(thought);
    }
    let text = content_text(message.take("content"), "choices[0].message.content")?;
    if !text.is_empty() {
        parts.push(Part::Text { text });
    }
    let refusal = self::text(message.take("refusal"), || "choices[0].message.refusal".to_owned())?;
    let refused = refusal.is_some();
    parts.extend(refusal.map(|text| Part::Text { text }));
    parts.extend(tool_calls(message)?.into_iter().map(Part::ToolCall));
    Ok((parts, refused))
}

/// The text of a content: a string, a list of consecutive texts, or nothing.
pub(super) fn content_text(content: Node<'_>, field: &str) -> Result<String, Failure> {
    match content {
        Node::Null => Ok(String::new()),
        Node::Text(text) => Ok(text.into_owned()),
        Node::List(items) => {
            let mut all = String::new();
            for item in &items {
                let part = |key: &str| match item {
                    Node::Object(item) => item.get(key).and_then(Node::as_text),
                    _ => None,
                };
                match part("text") {
                    Some(text) if matches!(part("type"), Some("text") | None) => all.push_str(text),
                    _ => return Err(malformed(field, "a text or a list of texts")),
                }
            }
            Ok(all)
        }
        _ => Err(malformed(field, "a text or a list of texts")),
    }
}

fn tool_calls(message: &mut Object<'_>) -> Result<Vec<ToolCall>, Failure> {
    // The older form has no ids; servers use it only for requests in that form, which this program never sends.
    if !message.take("function_call").is_null() {
        return Err(malformed("choices[0].message.function_call", "absent"));
    }
    let items = match message.take("tool_calls") {
        Node::Null => return Ok(Vec::new()),
        Node::List(items) => items,
        _ => return Err(malformed("choices[0].message.tool_calls", "a list")),
    };
    items.into_iter().enumerate().map(|(index, item)| tool_call(index, item)).collect()
}

fn tool_call(index: usize, item: Node<'_>) -> Result<ToolCall, Failure> {
    let at = |key: &str| format!("choices[0].message.tool_calls[{index}]{key}");
    let Node::Object(mut item) = item else { return Err(malformed(&at(""), "an object")) };
    let kind = text(item.take("type"), || at(".type"))?;
    if kind.is_some_and(|kind| kind != "function") {
        return Err(malformed(&at(".type"), "`function`"));
    }
    let id = text(item.take("id"), || at(".id"))?;
    let Node::Object(mut function) = item.take("function") else {
        return Err(malformed(&at(".function"), "an object"));
    };
    let name = text(function.take("name"), || at(".function.name"))?
        .ok_or_else(|| malformed(&at(".function.name"), "given"))?;
    let arguments = arguments_text(function.take("arguments"))
        .ok_or_else(|| malformed(&at(".function.arguments"), "a text"))?;
    Ok(ToolCall { id: id.unwrap_or_else(|| format!("call_{index}")), name, arguments })
}

/// Arguments as text. Sloppy servers send the object itself.
pub(super) fn arguments_text(arguments: Node<'_>) -> Option<String> {
    match arguments {
        Node::Null => Some(String::new()),
        Node::Text(text) => Some(text.into_owned()),
        Node::Object(_) => Some(Value::from(arguments).to_string()),
        _ => None,
    }
}

fn stop(finish: String, parts: &[Part], refused: bool, choice: &Object<'_>) -> Result<Stop, Failure> {
    if refused {
        return Ok(Stop::ContentFilter);
    }
    let calls = parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
    Ok(match finish.as_str() {
        "stop" | "eos" | "tool_calls" | "function_call" if calls => Stop::ToolCalls,
        // vLLM names the stop text.
        "stop" if choice.get("stop_reason").and_then(Node::as_text).is_some() => Stop::StopText,
        "stop" | "eos" => Stop::End,
        "length" => Stop::Length,
        "content_filter" => Stop::ContentFilter,
        "insufficient_system_resource" | "error" => {
            return Err(Failure::passing(
                FailureKind::Server,
                format!("the provider broke off the answer ({finish})"),
            ));
        }
        _ => Stop::Other(finish),
    })
}
