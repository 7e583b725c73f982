//! JSON as Python writes it: floats in Python's spelling, and `NaN`, `Infinity` and unpaired surrogates, which JSON
//! does not have.

use std::borrow::Cow;

/// A text in which everything that is not JSON was replaced, and the number of replacements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired<'a> {
    /// The text; borrowed if nothing was replaced.
    pub text: Cow<'a, str>,
    /// `NaN` and infinities, which became null.
    pub numbers: usize,
    /// Unpaired surrogates, which became U+FFFD.
    pub surrogates: usize,
}

/// Replaces `NaN` and infinities by null, and unpaired surrogates by U+FFFD.
pub fn repaired(text: &str) -> Repaired<'_> {
    let bytes = text.as_bytes();
    let (mut json, mut numbers, mut surrogates) = (String::new(), 0, 0);
    let (mut at, mut kept, mut in_text) = (0, 0, false);
    while let Some(byte) = bytes.get(at) {
        let (length, replacement) = match byte {
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
            *(if in_text { &mut surrogates } else { &mut numbers }) += 1;
        }
        at += length;
    }
    let text = if kept == 0 { Cow::Borrowed(text) } else { Cow::Owned(json + &text[kept..]) };
    Repaired { text, numbers, surrogates }
}

/// The length of an escape, and its replacement if it is an unpaired surrogate.
fn escape(bytes: &[u8]) -> (usize, Option<&'static str>) {
    match (unit(bytes), bytes.get(6..).and_then(unit)) {
        (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (12, None),
        (Some(0xd800..=0xdfff), _) => (6, Some("\\ufffd")),
        // Skips two bytes, the second of which may be a quotation mark. The character after the backslash may be
        // longer, but its further bytes are never quotation marks.
        _ => (2, None),
    }
}

/// The code unit of an escape `\uXXXX`.
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

/// The shortest text that reads back as the same number, spelled like Python's `repr`.
pub fn float_text(number: f64) -> String {
    let text = format!("{number:?}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    match exponent.strip_prefix('-') {
        Some(digits) => format!("{mantissa}e-{digits:0>2}"),
        None => format!("{mantissa}e+{exponent:0>2}"),
    }
}

#[cfg(test)]
mod tests {

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn only_what_json_lacks_is_replaced() {
        for (python, json, counts) in [
            (
                r#"{"a": NaN, "b": [-Infinity, Infinity, -1]}"#,
                r#"{"a": null, "b": [null, null, -1]}"#,
                (3, 0),
            ),
            (r#"{"NaN": "Infinity \" NaN"}"#, r#"{"NaN": "Infinity \" NaN"}"#, (0, 0)),
            (r#""\ud83d\ude00 \ud83d \ude00""#, r#""\ud83d\ude00 \ufffd \ufffd""#, (0, 2)),
            (r#""\\ud83d" NaN"#, r#""\\ud83d" null"#, (1, 0)),
            ("\"\\ü\\", "\"\\ü\\", (0, 0)),
        ] {
            let Repaired { text, numbers, surrogates } = repaired(python);
            assert_eq!((&*text, (numbers, surrogates)), (json, counts));
            assert_eq!(matches!(text, Cow::Borrowed(_)), counts == (0, 0));
        }
    }

    #[test]
    fn floats_are_spelled_like_python() {
        for (number, text) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
        ] {
            assert_eq!(float_text(number), text);
        }
    }

    proptest! {
        #[test]
        fn sound_json_stays_as_it_is(value in crate::json::tests::value()) {
            let text = value.to_string();
            prop_assert_eq!(repaired(&text).text, Cow::Borrowed(text.as_str()));
        }

        #[test]
        fn a_repair_is_whole_and_final(text in "[NanInfity\\-\"\\\\ud8c0ü ]{0,40}") {
            let once = repaired(&text).text.into_owned();
            prop_assert_eq!(&repaired(&once).text, &once);
        }

        #[test]
        fn numbers_that_are_none_become_null(numbers in proptest::collection::vec(any::<f64>(), 0..5)) {
            let spelled = |number: &f64| match number {
                number if number.is_nan() => "NaN".to_owned(),
                number if number.is_infinite() => format!("{}Infinity", if *number < 0.0 { "-" } else { "" }),
                number => float_text(*number),
            };
            let python = format!("[{}]", numbers.iter().map(spelled).collect::<Vec<_>>().join(", "));
            let read: Value = serde_json::from_str(&repaired(&python).text).unwrap();
            // serde writes a number that JSON lacks as null too.
            prop_assert_eq!(read, Value::from(numbers));
        }
    }
}
