//! Thoughts in chat-completions messages. The format has no place for them, so vendors made three, and most want
//! back exactly what they sent; a reasoning part therefore remembers where it was found.

use serde_json::{Map, Value, json};

use crate::message::Part;

/// Where a thought stands as plain text, in the order of preference.
pub(crate) const TEXT_KEYS: [&str; 2] = ["reasoning", "reasoning_content"];

/// Where it stands as a list of pieces, signed or encrypted ones among them.
pub(crate) const DETAILS_KEY: &str = "reasoning_details";

/// Value of `dialect` in the opaque half of a part that was found in this format.
const DIALECT: &str = "openai_chat";

/// Takes the thought out of a message, or names the field that is not as it should be. A second plain text that
/// differs from the first is left where it is.
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

/// What the pieces of a thought show.
fn shown_text(details: &[Value]) -> String {
    let texts: Vec<&str> = details
        .iter()
        .filter_map(|detail| detail.get("text").or_else(|| detail.get("summary"))?.as_str())
        .filter(|text| !text.is_empty())
        .collect();
    texts.join("\n")
}

/// What a reasoning part remembers of this format.
pub(crate) struct Origin<'a> {
    /// The key under which its text stood.
    pub(crate) text_key: Option<&'static str>,
    /// Its pieces, if it came in pieces.
    pub(crate) details: Option<&'a Vec<Value>>,
}

/// Where the thought was found, if it was found in this format.
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

/// The thoughts among some parts, as keys of a message, where they were found. Pieces alone suffice where there are pieces, and
/// thoughts of another format mean nothing here.
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
