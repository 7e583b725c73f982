//! Decides from the beginning of a file whether it has one row per line or is one document.

use std::io::BufRead;

/// How many bytes of a file are examined.
pub(crate) const PEEKED: usize = 64 * 1024;

/// The byte-order mark that some editors write.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Keys that only a row has.
const ROW_KEYS: [&[u8]; 6] = [b"prompt", b"completion", b"example_id", b"sample_id", b"traces", b"nodes"];

pub(crate) fn skip_mark(input: &mut impl BufRead) {
    if input.fill_buf().is_ok_and(|start| start.starts_with(MARK)) {
        input.consume(MARK.len());
    }
}

/// Whether each row is on its own line; absent if the beginning does not tell.
///
/// The first object is a row if a key that only rows have precedes one that only pages have. A row that spans several
/// lines is part of a document.
pub(crate) fn stands_on_lines(start: &[u8]) -> Option<bool> {
    let start = start.strip_prefix(MARK).unwrap_or(start).trim_ascii_start();
    let first = *start.first()?;
    if first != b'{' {
        return (first == b'[').then_some(false);
    }
    let (mut depth, mut at, mut is_row) = (0_usize, 0, false);
    while let Some(byte) = start.get(at) {
        at += 1;
        match byte {
            b'\n' => return Some(false),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let Some(length) = text_length(&start[at..]) else { break };
                let text = &start[at..at + length];
                at += length + 1;
                let is_key = depth == 1 && start[at..].trim_ascii_start().first() == Some(&b':');
                if is_key && !is_row && (text == b"samples" || text == b"data") {
                    return Some(false);
                }
                is_row |= is_key && ROW_KEYS.contains(&text);
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    is_row.then_some(true)
}

/// The bytes up to the quote that ends a string.
fn text_length(bytes: &[u8]) -> Option<usize> {
    let mut is_escaped = false;
    bytes.iter().position(|byte| match byte {
        _ if is_escaped => {
            is_escaped = false;
            false
        }
        b'\\' => {
            is_escaped = true;
            false
        }
        byte => *byte == b'"',
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_recognised_by_its_beginning() {
        for (start, expected) in [
            (r#"{"example_id": 0, "prompt": []"#, Some(true)),
            ("\u{feff}{\"example_id\": 0", Some(true)),
            (r#"{"id": "x", "env": {"samples": 1}, "traces": ["#, Some(true)),
            (r#"{"answer": "\"samples\":", "completion": ["#, Some(true)),
            (r#"{"samples": [{"prompt": 1"#, Some(false)),
            (r#"{"total": 1, "data": {"#, Some(false)),
            ("{\n  \"prompt\": []", Some(false)),
            ("{\"prompt\": [],\n \"completion\"", Some(false)),
            ("{\"prompt\": []}\n{", Some(true)),
            ("  [", Some(false)),
            (r#"{"a": 1}"#, None),
            ("", None),
            ("text", None),
            (r#"{"a"#, None),
            ("{]]]", None),
        ] {
            assert_eq!(stands_on_lines(start.as_bytes()), expected, "{start}");
        }
    }
}
