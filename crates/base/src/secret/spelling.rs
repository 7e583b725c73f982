//! The spellings in which a known secret is looked for, and texts with their escapes resolved, in which it is looked for
//! as well.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Shorter encodings would be found in ordinary text.
const SHORTEST_ENCODING: usize = 8;

/// What a value becomes in other encodings. Upper and lower case do not matter: the search ignores them.
pub(super) fn encodings(value: &str) -> Vec<String> {
    let bytes = value.as_bytes();
    let mut found = vec![hex(bytes, ""), hex(bytes, " "), hex(bytes, ":"), value.chars().rev().collect()];
    // In a longer text the value begins at any of three places of a group, and shares its outer characters.
    for lead in 0..3_usize {
        let mut padded = vec![0_u8; lead];
        padded.extend_from_slice(bytes);
        let (from, to) = ((lead * 8).div_ceil(6), padded.len() * 8 / 6);
        for encoded in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            found.extend(encoded.get(from..to).map(str::to_owned));
        }
    }
    // Without the breaks of its lines, as the search sees texts.
    found.push(value.replace(['\n', '\r'], ""));
    found.retain(|spelling| spelling.len() >= SHORTEST_ENCODING && spelling != value);
    found.sort_unstable();
    found.dedup();
    found
}

fn hex(bytes: &[u8], between: &str) -> String {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.join(between)
}

/// A text whose escapes are resolved (`\u0041`, `\x41`, `\"`, `%41`) and whose line breaks are left out, so that a secret in
/// mixed spelling or on several lines stands there as it is. It knows where everything was.
#[derive(Debug, Default)]
pub(super) struct Plain {
    pub(super) bytes: Vec<u8>,
    /// Where the two texts stop being parallel.
    breaks: Vec<Break>,
}

#[derive(Clone, Copy, Debug)]
struct Break {
    /// Offset in the plain text.
    plain: usize,
    /// Offset in the source.
    source: usize,
    /// Where in the source the part before it ended.
    ended: usize,
}

impl Plain {
    /// `None` if the text has nothing to resolve.
    pub(super) fn of(source: &[u8]) -> Option<Self> {
        let mut plain = Self::default();
        let mut at = 0;
        while let Some(found) = next_special(source, at) {
            let Some((length, byte)) = resolved(&source[found..]) else {
                // An ordinary backslash or percent sign.
                plain.copy(source, at..found + 1);
                at = found + 1;
                continue;
            };
            plain.copy(source, at..found);
            let ended = found;
            if let Some(bytes) = byte {
                plain.mark(found, ended);
                plain.bytes.extend_from_slice(bytes.as_slice());
                plain.mark(found + length, found + length);
            } else {
                plain.mark(found + length, ended);
            }
            at = found + length;
        }
        if plain.breaks.is_empty() {
            return None;
        }
        plain.copy(source, at..source.len());
        Some(plain)
    }

    fn copy(&mut self, source: &[u8], range: Range<usize>) {
        self.bytes.extend_from_slice(&source[range]);
    }

    fn mark(&mut self, source: usize, ended: usize) {
        let plain = self.bytes.len();
        match self.breaks.last_mut() {
            // Several at one place: what was there before ended where the first says.
            Some(last) if last.plain == plain => last.source = source,
            _ => self.breaks.push(Break { plain, source, ended }),
        }
    }

    /// The place in the source of a range of the plain text.
    pub(super) fn source_of(&self, range: &Range<usize>) -> Range<usize> {
        self.place(range.start, false)..self.place(range.end, true)
    }

    fn place(&self, plain: usize, is_end: bool) -> usize {
        let index = self.breaks.partition_point(|known| known.plain <= plain);
        let Some(last) = index.checked_sub(1).map(|index| self.breaks[index]) else { return plain };
        if is_end && last.plain == plain { last.ended } else { last.source + (plain - last.plain) }
    }
}

fn next_special(source: &[u8], at: usize) -> Option<usize> {
    let rest = source.get(at..)?;
    let first = memchr::memchr3(b'\\', b'%', b'\n', rest);
    let carriage = memchr::memchr(b'\r', &rest[..first.unwrap_or(rest.len())]);
    carriage.or(first).map(|found| at + found)
}

/// A few bytes that an escape stands for.
struct Few {
    bytes: [u8; 4],
    length: usize,
}

impl Few {
    fn of(letter: char) -> Self {
        let mut bytes = [0; 4];
        let length = letter.encode_utf8(&mut bytes).len();
        Self { bytes, length }
    }

    fn byte(byte: u8) -> Self {
        Self { bytes: [byte, 0, 0, 0], length: 1 }
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The length of what stands at the beginning, and what it means: nothing for a line break. `None` for ordinary text.
fn resolved(bytes: &[u8]) -> Option<(usize, Option<Few>)> {
    match bytes {
        [b'\n' | b'\r', ..] => Some((1, None)),
        [b'%', ..] => digits(bytes, 1, 2)
            .and_then(|code| u8::try_from(code).ok())
            .map(|byte| (3, Some(Few::byte(byte)))),
        [b'\\', b'u', ..] => {
            let first = digits(bytes, 2, 4)?;
            let second = (bytes.get(6..8) == Some(b"\\u")).then(|| digits(bytes, 8, 4)).flatten();
            match (first, second) {
                (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) => {
                    let code = 0x1_0000 + ((first - 0xd800) << 10) + (low - 0xdc00);
                    char::from_u32(code).map(|letter| (12, Some(Few::of(letter))))
                }
                _ => match char::from_u32(first)? {
                    '\n' | '\r' => Some((6, None)),
                    letter => Some((6, Some(Few::of(letter)))),
                },
            }
        }
        [b'\\', b'x', ..] => {
            let byte = digits(bytes, 2, 2).and_then(|code| u8::try_from(code).ok())?;
            Some((4, Some(Few::byte(byte))))
        }
        // The end of a line that a shell continues, as JSON writes it.
        [b'\\', b'\\', b'\\', b'n' | b'r', ..] => Some((4, None)),
        // A line break as JSON writes it, or the end of a line that a shell continues.
        [b'\\', b'n' | b'r' | b'\n', ..] => Some((2, None)),
        [b'\\', quoted @ (b'"' | b'\'' | b'\\' | b'/' | b'$' | b'`'), ..] => {
            Some((2, Some(Few::byte(*quoted))))
        }
        _ => None,
    }
}

fn digits(bytes: &[u8], from: usize, count: usize) -> Option<u32> {
    let text = bytes.get(from..from + count)?;
    text.iter().try_fold(0_u32, |code, digit| Some(code * 16 + char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        Plain::of(text.as_bytes())
            .map_or_else(|| text.to_owned(), |plain| String::from_utf8_lossy(&plain.bytes).into_owned())
    }

    #[test]
    fn escapes_are_resolved_and_lines_joined() {
        for (text, expected) in [
            ("nothing here", "nothing here"),
            ("a\\u0062c\\x64%65 \\\"f\\\" \\/", "abcde \"f\" /"),
            ("one\ntwo\r\nthree\\nfour \\\nfive", "onetwothreefour five"),
            ("\\ud83d\\ude00 \\ud83d 100% %zz \\q \\", "😀 \\ud83d 100% %zz \\q \\"),
        ] {
            assert_eq!(plain(text), expected, "{text}");
        }
    }

    #[test]
    fn places_are_those_of_the_source() {
        let text = "x\\u0061bc\nd%65 rest";
        let plain = Plain::of(text.as_bytes()).unwrap();
        assert_eq!(plain.bytes, b"xabcde rest");
        let at = |from: usize, to: usize| &text[plain.source_of(&(from..to))];
        assert_eq!(at(1, 6), "\\u0061bc\nd%65");
        assert_eq!(at(0, 1), "x");
        assert_eq!(at(1, 4), "\\u0061bc");
        assert_eq!(at(4, 5), "d");
        assert_eq!(at(6, 11), " rest");
    }

    #[test]
    fn a_value_is_found_in_base64_wherever_it_begins() {
        let value = "sk-12345-abcdefgh";
        for lead in 0..7 {
            let text = format!("{}{value}tail", "p".repeat(lead));
            for encoded in [STANDARD_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                assert!(
                    encodings(value).iter().any(|spelling| encoded.contains(spelling)),
                    "{lead}: {encoded}"
                );
            }
        }
        assert!(encodings("123456").iter().all(|spelling| spelling.len() >= SHORTEST_ENCODING));
    }
}
