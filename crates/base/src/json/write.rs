//! Writes JSON straight into bytes, for rows that never become a tree of values.

/// How a byte of text is escaped: 0 for no escape, `u` for `\u00XX`, else the letter after the backslash.
const fn escapes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = b'u';
        byte += 1;
    }
    table[0x08] = b'b';
    table[0x09] = b't';
    table[0x0a] = b'n';
    table[0x0c] = b'f';
    table[0x0d] = b'r';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table
}

static ESCAPES: [u8; 256] = escapes();

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Bytes that are checked together: most blocks need no escape, and the processor sees that in one step.
const BLOCK: usize = 32;

/// Appends a JSON string.
pub fn push_text(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    for block in text.as_bytes().chunks(BLOCK) {
        // Integers instead of booleans, so that the check of one byte does not depend on the one before.
        let escapes = block.iter().fold(0, |found, byte| {
            found | u8::from(*byte < 0x20) | u8::from(*byte == b'"') | u8::from(*byte == b'\\')
        });
        if escapes != 0 {
            push_escaped(out, block);
        } else {
            out.extend_from_slice(block);
        }
    }
    out.push(b'"');
}

fn push_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        match ESCAPES[usize::from(*byte)] {
            0 => out.push(*byte),
            b'u' => push_unit(out, u16::from(*byte)),
            letter => out.extend_from_slice(&[b'\\', letter]),
        }
    }
}

/// Appends a JSON string in ASCII, as Python writes it by default.
pub fn push_ascii(out: &mut Vec<u8>, text: &str) {
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return push_text(out, text);
    }
    out.push(b'"');
    for character in text.chars() {
        match u8::try_from(character) {
            Ok(byte) if byte < 0x80 => push_escaped(out, &[byte]),
            _ => character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| push_unit(out, *unit)),
        }
    }
    out.push(b'"');
}

fn push_unit(out: &mut Vec<u8>, unit: u16) {
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        out.push(DIGITS[usize::from(unit >> shift & 15)]);
    }
}

/// Appends JSON as one line. Line breaks in JSON occur only between tokens, so blanks can replace them.
pub fn push_line(out: &mut Vec<u8>, json: &str) {
    let begin = out.len();
    out.extend_from_slice(json.as_bytes());
    for byte in &mut out[begin..] {
        *byte = if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte };
    }
}

#[cfg(test)]
mod tests {

    use proptest::prelude::*;

    use super::*;

    fn written(push: impl Fn(&mut Vec<u8>, &str), text: &str) -> String {
        let mut out = Vec::new();
        push(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #[test]
        fn texts_are_read_back(text in prop_oneof![any::<String>(), "[\\x00-\\x7f\"\\\\]{0,80}"]) {
            prop_assert_eq!(written(push_text, &text), serde_json::to_string(&text).unwrap());
            let ascii = written(push_ascii, &text);
            prop_assert!(ascii.bytes().all(|byte| (0x20..0x80).contains(&byte)));
            prop_assert_eq!(serde_json::from_str::<String>(&ascii).unwrap(), text);
        }

        #[test]
        fn values_fit_on_a_line(value in crate::json::tests::value()) {
            let line = written(push_line, &serde_json::to_string_pretty(&value).unwrap());
            prop_assert!(!line.contains('\n'));
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), value);
        }
    }
}
