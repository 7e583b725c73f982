//! Parses Python's representation of dictionaries that tools return: texts, integers, `None`, `True`, `False`.
//!
//! Verifiers converts a tool's return value to text with `str()`, so the result of a command arrives as
//! `{'exit_code': 0, 'stdout': '…', 'stderr': ''}`.

use serde_json::Value;

use crate::rollouts::value::Object;

/// The dictionary in a text, if the text contains nothing else.
pub(crate) fn dictionary(text: &str) -> Option<Object> {
    let mut rest = text.trim().strip_prefix('{')?;
    let mut object = Object::new();
    loop {
        rest = rest.trim_start();
        if let Some(end) = rest.strip_prefix('}') {
            return end.is_empty().then_some(object);
        }
        let (key, after) = string(rest)?;
        let (value, after) = scalar(after.trim_start().strip_prefix(':')?.trim_start())?;
        object.insert(key, value);
        rest = after.trim_start();
        rest = match rest.strip_prefix(',') {
            Some(after) => after,
            None if rest.starts_with('}') => rest,
            None => return None,
        };
    }
}

fn scalar(text: &str) -> Option<(Value, &str)> {
    for (word, value) in [("None", Value::Null), ("True", Value::Bool(true)), ("False", Value::Bool(false))] {
        if let Some(rest) = text.strip_prefix(word) {
            return Some((value, rest));
        }
    }
    if text.starts_with(['\'', '"']) {
        return string(text).map(|(text, rest)| (Value::String(text), rest));
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(text.len());
    let number: i64 = text[..end].parse().ok()?;
    Some((number.into(), &text[end..]))
}

/// A quoted text, and the rest after it.
fn string(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let mut shown = String::new();
    let mut chars = text[1..].char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            c if c == quote => return Some((shown, &text[at + 2..])),
            '\\' => {
                let digits = match chars.next()?.1 {
                    'n' => {
                        shown.push('\n');
                        continue;
                    }
                    't' => {
                        shown.push('\t');
                        continue;
                    }
                    'r' => {
                        shown.push('\r');
                        continue;
                    }
                    'x' => 2,
                    'u' => 4,
                    'U' => 8,
                    other => {
                        shown.push(other);
                        continue;
                    }
                };
                let code =
                    (0..digits).try_fold(0_u32, |code, _| Some(code * 16 + chars.next()?.1.to_digit(16)?))?;
                shown.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            c => shown.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn shows_what_python_shows() {
        let text = r#"{'exit_code': -1, 'stdout': 'it\'s\n\x1b[0m \u20ac', "stderr": "it's", 'ok': True, 'x': None}"#;
        let expected =
            json!({"exit_code": -1, "stdout": "it's\n\u{1b}[0m €", "stderr": "it's", "ok": true, "x": null});
        assert_eq!(dictionary(text).map(Value::Object), Some(expected));
        assert_eq!(dictionary("{}").map(|object| object.len()), Some(0));
    }

    #[test]
    fn anything_else_is_none() {
        for text in [
            "",
            "{",
            "{'a'",
            "{'a': }",
            "{'a': 1} b",
            "{'a': [1]}",
            "{'a' 1}",
            "{'a': '\\u12'}",
            "{'a': 1 'b': 2}",
            "[1]",
            "{'a': 99999999999999999999}",
            "{'a': 1",
            "{'é",
        ] {
            assert_eq!(dictionary(text), None, "{text}");
        }
    }
}
