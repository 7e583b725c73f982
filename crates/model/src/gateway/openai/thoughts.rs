//! Passes thoughts through an agent. An agent that keeps the messages it receives sends them back with their thoughts,
//! so that the provider gets them again, whatever its format.

use serde_json::{Map, Value, json};

use crate::dialect::openai::reasoning::{self, DETAILS_KEY, TEXT_KEYS};
use crate::message::Part;

/// Type of a piece that carries a part of another format, or one of several, unchanged.
const CARRIED: &str = "aec.reasoning";

/// Puts the thoughts of a reply into a message. A single thought of this format goes into its provider's field.
pub(super) fn show(parts: &[Part], message: &mut Map<String, Value>) {
    let thoughts: Vec<(&String, Option<&Value>)> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Reasoning { text, opaque } => Some((text, opaque.as_ref())),
            _ => None,
        })
        .collect();
    let mut put = |key: &str, value: Value| {
        message.insert(key.to_owned(), value);
    };
    match thoughts.as_slice() {
        [] => {}
        [(text, opaque)] if opaque.is_none() || reasoning::origin(*opaque).is_some() => {
            let origin = reasoning::origin(*opaque);
            let details = origin.as_ref().and_then(|origin| origin.details);
            match origin.as_ref().and_then(|origin| origin.text_key) {
                Some(key) => put(key, json!(text)),
                // The pieces contain the text.
                None if details.is_some() => {}
                None => put(TEXT_KEYS[1], json!(text)),
            }
            if let Some(details) = details {
                put(DETAILS_KEY, json!(details));
            }
        }
        _ => {
            let texts: Vec<&str> =
                thoughts.iter().map(|(text, _)| text.as_str()).filter(|text| !text.is_empty()).collect();
            put(TEXT_KEYS[1], json!(texts.join("\n")));
            let carried = thoughts.iter().map(|(text, opaque)| {
                json!({"type": CARRIED, "text": text, "opaque": opaque.filter(|opaque| is_flat(opaque))})
            });
            put(DETAILS_KEY, carried.collect());
        }
    }
}

/// Removes the thoughts from a message that an agent sent back, or says what is wrong with them. Only flat values are
/// accepted: a provider looks for addresses to fetch in structures, not in lists of texts.
pub(super) fn take(message: &mut Map<String, Value>, place: &str) -> Result<Vec<Part>, String> {
    let carried = message.get(DETAILS_KEY).and_then(Value::as_array).is_some_and(|details| {
        details.iter().any(|detail| detail.get("type").is_some_and(|kind| kind == CARRIED))
    });
    if carried {
        for key in TEXT_KEYS {
            message.shift_remove(key);
        }
        let details = message.shift_remove(DETAILS_KEY);
        let details = details.as_ref().and_then(Value::as_array).into_iter().flatten();
        return details
            .map(|detail| {
                carried_part(detail).ok_or_else(|| format!("`{place}.{DETAILS_KEY}` is not as it was sent"))
            })
            .collect();
    }
    if let Some(Value::Array(details)) = message.get(DETAILS_KEY)
        && !details.iter().all(is_flat)
    {
        return Err(format!("`{place}.{DETAILS_KEY}` is not a list of flat objects"));
    }
    let part = reasoning::take(message).map_err(|key| format!("`{place}.{key}` is not of the known form"))?;
    // A second, different text is dropped.
    for key in TEXT_KEYS {
        message.shift_remove(key);
    }
    Ok(part.into_iter().collect())
}

fn carried_part(detail: &Value) -> Option<Part> {
    let detail =
        detail.as_object().filter(|detail| detail.get("type").is_some_and(|kind| kind == CARRIED))?;
    let text = detail.get("text")?.as_str()?.to_owned();
    let opaque = detail.get("opaque").filter(|opaque| !opaque.is_null());
    if opaque.is_some_and(|opaque| !is_flat(opaque)) {
        return None;
    }
    Some(Part::Reasoning { text, opaque: opaque.cloned() })
}

/// A text, or an object without nested objects and lists.
fn is_flat(value: &Value) -> bool {
    match value {
        Value::String(_) => true,
        Value::Object(object) => object.values().all(|value| !value.is_object() && !value.is_array()),
        _ => false,
    }
}
