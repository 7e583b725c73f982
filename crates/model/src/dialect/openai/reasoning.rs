//! Thoughts in chat-completions messages. The format has no field for them, so vendors invented three, and most expect
//! back exactly what they sent; a reasoning part therefore remembers its field.

use serde_json::{Map, Value, json};

use crate::message::Part;

/// Keys for a thought as plain text, in the order of preference.
pub(crate) const TEXT_KEYS: [&str; 2] = ["reasoning", "reasoning_content"];

/// Key for a thought as a list of pieces, some of them signed or encrypted.
pub(crate) const DETAILS_KEY: &str = "reasoning_details";

/// The `dialect` in the opaque data of a part from this format.
const DIALECT: &str = "openai_chat";

/// Removes the thought from a message, or names the invalid field. A second, different plain text is left in the
/// message.
pub(crate) fn take(message: &mut Map<String, Value>) -> Result<Option<Part>, &'static str> {
    let mut found: Option<(&str, String)> = None;
    for key in TEXT_KEYS {
        match message.get(key) {
            None => continue,
            Some(Value::Null) => {}
            Some(Value::String(text)) => match &found {
                _ if text.is_empty() => {}
                None => found = Some((key, text.clone())),
                Some((_, first)) if first == text => {}
                Some(_) => continue,
            },
            Some(_) => return Err(key),
        }
        message.shift_remove(key);
    }
    let details = match message.shift_remove(DETAILS_KEY) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(details)) if details.iter().all(Value::is_object) => details,
        Some(_) => return Err(DETAILS_KEY),
    };
    if found.is_none() && details.is_empty() {
        return Ok(None);
    }
    let mut opaque = Map::new();
    opaque.insert("dialect".to_owned(), json!(DIALECT));
    let text = match found {
        Some((key, text)) => {
            opaque.insert("text_key".to_owned(), json!(key));
            text
        }
        None => shown_text(&details),
    };
    if !details.is_empty() {
        opaque.insert(DETAILS_KEY.to_owned(), Value::Array(details));
    }
    Ok(Some(Part::Reasoning { text, opaque: Some(Value::Object(opaque)) }))
}

/// The visible text of a thought's pieces.
fn shown_text(details: &[Value]) -> String {
    let texts: Vec<&str> = details
        .iter()
        .filter_map(|detail| detail.get("text").or_else(|| detail.get("summary"))?.as_str())
        .filter(|text| !text.is_empty())
        .collect();
    texts.join("\n")
}

/// The data that a reasoning part keeps from this format.
pub(crate) struct Origin<'a> {
    /// The key of its text.
    pub(crate) text_key: Option<&'static str>,
    pub(crate) details: Option<&'a Vec<Value>>,
}

/// The original fields of a thought, if it comes from this format.
pub(crate) fn origin(opaque: Option<&Value>) -> Option<Origin<'_>> {
    let opaque = opaque?;
    (opaque.get("dialect")?.as_str()? == DIALECT).then(|| Origin {
        text_key: opaque
            .get("text_key")
            .and_then(Value::as_str)
            .and_then(|name| TEXT_KEYS.into_iter().find(|key| *key == name)),
        details: opaque.get(DETAILS_KEY).and_then(Value::as_array),
    })
}

/// The thoughts among some parts, as keys of a message, in their original fields. If there are pieces, only they are
/// sent; thoughts of another format are left out.
pub(super) fn put_back(parts: &[Part]) -> Map<String, Value> {
    let mut message = Map::new();
    for part in parts {
        let Part::Reasoning { text, opaque } = part else { continue };
        let Some(origin) = origin(opaque.as_ref()) else { continue };
        if let Some(details) = origin.details {
            let all = message.entry(DETAILS_KEY).or_insert_with(|| json!([]));
            if let Value::Array(all) = all {
                all.extend_from_slice(details);
            }
        } else if let Some(key) = origin.text_key {
            match message.get_mut(key) {
                Some(Value::String(before)) => {
                    before.push('\n');
                    before.push_str(text);
                }
                _ => {
                    message.insert(key.to_owned(), json!(text));
                }
            }
        }
    }
    message
}
