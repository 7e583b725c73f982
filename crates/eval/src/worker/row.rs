//! A row in the format in which the library writes it to `results.jsonl`.

use serde_json::Value;

/// One line of Python's JSON, which may contain `NaN` and lone surrogates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Without the end of the line.
    pub text: String,
}

impl Row {
    /// The row as a value. Numbers that JSON does not have become null, lone surrogates become `U+FFFD`.
    pub fn value(&self) -> Result<Value, serde_json::Error> {
        aec_base::json::from_str(&self.text).or_else(|_| aec_base::json::from_str(&strict(&self.text)))
    }
}

/// The text with every `NaN`, `Infinity`, `-Infinity` and lone surrogate replaced.
fn strict(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('"') {
        numbers(&rest[..start], &mut kept);
        let end = string_end(&rest[start..]).map_or(rest.len(), |length| start + length);
        surrogates(&rest[start..end], &mut kept);
        rest = &rest[end..];
    }
    numbers(rest, &mut kept);
    kept
}

/// The length of the string at the start of the text, including its quotes.
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes()
        .enumerate()
        .skip(1)
        .find(|(_, byte)| {
            let ends = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            ends
        })
        .map(|(at, _)| at + 1)
}

fn numbers(between: &str, kept: &mut String) {
    if between.contains(['N', 'I']) {
        kept.push_str(
            &between.replace("-Infinity", "null").replace("Infinity", "null").replace("NaN", "null"),
        );
    } else {
        kept.push_str(between);
    }
}

fn surrogates(string: &str, kept: &mut String) {
    let mut rest = string;
    while let Some(at) = rest.find('\\') {
        kept.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = match half(rest) {
            Some(0xD800..=0xDBFF) if matches!(rest.get(6..).and_then(half), Some(0xDC00..=0xDFFF)) => {
                kept.push_str(&rest[..12]);
                12
            }
            Some(0xD800..=0xDFFF) => {
                kept.push_str("\\ufffd");
                6
            }
            _ => {
                let taken = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                kept.push_str(&rest[..taken]);
                taken
            }
        };
        rest = &rest[taken..];
    }
    kept.push_str(rest);
}

/// The code of the `\uXXXX` at the start of the text.
fn half(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn value(text: &str) -> Value {
        Row { text: text.to_owned() }.value().unwrap()
    }

    #[test]
    fn what_python_writes_is_read() {
        assert_eq!(
            value(r#"{"reward": NaN, "a": [Infinity, -Infinity], "NaN \" I": "NaN"}"#),
            json!({"reward": null, "a": [null, null], "NaN \" I": "NaN"})
        );
        assert_eq!(
            value(r#"["\ud800", "\ud83d\ude00", "\udc00x\ud83d", "\\ud800", "é\u00e9"]"#),
            json!(["\u{fffd}", "😀", "\u{fffd}x\u{fffd}", "\\ud800", "éé"])
        );
    }

    #[test]
    fn what_is_no_row_is_refused() {
        for text in ["", "{", "{\"a\": \"", "\"\\u12", "\"\\", "nope", "{\"a\": NaN"] {
            assert!(Row { text: text.to_owned() }.value().is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn valid_json_stays_what_it_is(text in ".*", number in -1e9f64..1e9) {
            let held = json!({"text": text, "list": [number, null, true], "nested": {"NaN": text}});
            proptest::prop_assert_eq!(&value(&held.to_string()), &held);
            proptest::prop_assert_eq!(&serde_json::from_str::<Value>(&strict(&held.to_string())).unwrap(), &held);
        }

        #[test]
        fn any_text_is_survived(text in ".*") {
            let row = Row { text };
            assert!(row.value().is_ok() || row.value().is_err());
        }
    }
}
