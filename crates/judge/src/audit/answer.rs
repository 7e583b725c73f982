//! Splits a golden answer into its JSON object and the text around it, so that variants with one change can be made.

use serde_json::{Map, Value};

/// A JSON object, alone or inside other text.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    before: String,
    pub(crate) object: Map<String, Value>,
    after: String,
}

impl Answer {
    /// Finds the object: the whole text, or the last object in it.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        if let Ok(Value::Object(object)) = aec_base::json::from_str(text) {
            return Some(Self { before: String::new(), object, after: String::new() });
        }
        text.match_indices('{')
            .filter_map(|(start, _)| parse_at(text, start))
            .max_by_key(|answer| answer.1)
            .map(|(answer, _)| answer)
    }

    /// The answer with another object.
    pub(crate) fn with(&self, object: &Map<String, Value>) -> Vec<u8> {
        self.with_text(&serde_json::to_string_pretty(object).unwrap_or_default())
    }

    /// The answer with a text in place of the object.
    pub(crate) fn with_text(&self, object: &str) -> Vec<u8> {
        format!("{}{object}{}", self.before, self.after).into_bytes()
    }

    /// Whether the object is inside other text.
    pub(crate) fn is_embedded(&self) -> bool {
        !self.before.trim().is_empty()
    }
}

/// The object that begins at `start`, and its end; an object inside an earlier one ends no later than the earlier
/// one.
fn parse_at(text: &str, start: usize) -> Option<(Answer, (usize, usize))> {
    let mut stream = aec_base::json::values::<Map<String, Value>>(&text[start..]);
    let object = stream.next()?.ok()?;
    let end = start + stream.byte_offset();
    let answer = Answer { before: text[..start].to_owned(), object, after: text[end..].to_owned() };
    // The last object wins; of objects with the same end, the outermost.
    Some((answer, (end, usize::MAX - start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_is_found_and_put_back() {
        for (text, keys) in [
            ("{\"a\": 1}", "a"),
            ("# Report\n\n```json\n{\"a\": {\"b\": 2}}\n```\nend\n", "a"),
            ("{\"x\": 1}\nfinal:\n{\"y\": 2, \"z\": 3}", "y z"),
        ] {
            let answer = Answer::parse(text.as_bytes()).unwrap();
            assert_eq!(answer.object.keys().cloned().collect::<Vec<_>>().join(" "), keys);
            let again = Answer::parse(&answer.with(&answer.object)).unwrap();
            assert_eq!(again.object, answer.object);
        }
        assert!(Answer::parse(b"no object").is_none());
        assert!(Answer::parse(b"[1]").is_none());
        assert!(Answer::parse(b"\xff").is_none());
    }
}
