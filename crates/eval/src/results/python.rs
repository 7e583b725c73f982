//! JSON as Python writes it: with `NaN`, `Infinity` and halves of surrogate pairs, which JSON does not have.

use std::borrow::Cow;

/// The same text as JSON: numbers that are none become null, halves of surrogate pairs U+FFFD. Borrowed when there
/// was nothing to put right.
pub(crate) fn to_json(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut json = String::new();
    let (mut at, mut kept, mut in_text) = (0, 0, false);
    while at < bytes.len() {
        let (length, replacement) = match bytes[at] {
            b'"' => {
                in_text = !in_text;
                (1, None)
            }
            b'\\' if in_text => escape(&bytes[at..]),
            b'-' | b'N' | b'I' if !in_text => no_number(&bytes[at..]),
            _ => (1, None),
        };
        if let Some(replacement) = replacement {
            json.push_str(&text[kept..at]);
            json.push_str(replacement);
            kept = at + length;
        }
        at += length;
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    json.push_str(&text[kept..]);
    Cow::Owned(json)
}

/// How long an escape is, and what stands for it when it is half of a pair.
fn escape(bytes: &[u8]) -> (usize, Option<&'static str>) {
    match (unit(bytes), bytes.get(6..).and_then(unit)) {
        (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (12, None),
        (Some(0xd800..=0xdfff), _) => (6, Some("\\ufffd")),
        // Two bytes are passed, the second of which may be a quotation mark. A character after a backslash may be
        // longer, but its other bytes are no marks.
        _ => (2, None),
    }
}

fn unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0_u16, |unit, digit| {
        let digit = char::from(*digit).to_digit(16).and_then(|digit| u16::try_from(digit).ok())?;
        Some(unit << 4 | digit)
    })
}

fn no_number(bytes: &[u8]) -> (usize, Option<&'static str>) {
    let words: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];
    match words.into_iter().find(|word| bytes.starts_with(word)) {
        Some(word) => (word.len(), Some("null")),
        None => (1, None),
    }
}

#[cfg(test)]
mod tests {
    use super::to_json;

    #[test]
    fn only_what_json_lacks_is_replaced() {
        for (python, json) in [
            (r#"{"a": NaN, "b": [-Infinity, Infinity, -1]}"#, r#"{"a": null, "b": [null, null, -1]}"#),
            (r#"{"NaN": "Infinity \" NaN"}"#, r#"{"NaN": "Infinity \" NaN"}"#),
            (r#""\ud83d\ude00 \ud83d \ude00""#, r#""\ud83d\ude00 \ufffd \ufffd""#),
            (r#""\\ud83d" NaN"#, r#""\\ud83d" null"#),
            ("\"\\ü\\", "\"\\ü\\"),
        ] {
            assert_eq!(to_json(python), json);
        }
    }
}
