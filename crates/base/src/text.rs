//! Small helpers for text that people read: counts with nouns, nearest names, and foreign text made safe to print.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Makes foreign text safe for a terminal: control characters, including the escape that starts colour and
/// cursor commands, and characters that reorder text become visible `\u{..}` escapes. Line breaks and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    fn harmful(c: char) -> bool {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    }
    if !text.chars().any(harmful) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if harmful(c) {
            // Writing to a String cannot fail.
            let _ = write!(safe, "\\u{{{:x}}}", u32::from(c));
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// Escapes a text as one segment of a URL: all but unreserved characters.
pub fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// `1 task`, `2 tasks`: the plural adds an `s`.
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// The candidate that the user most likely meant, if one is close enough.
pub fn nearest<'a, S: AsRef<str> + ?Sized + 'a>(
    typed: &str,
    candidates: impl IntoIterator<Item = &'a S>,
) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            (strsim::jaro_winkler(&typed, &candidate.as_ref().to_lowercase()), candidate.as_ref())
        })
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// `did you mean …?`, or `otherwise` if no candidate is near.
pub fn near_or<'a, S: AsRef<str> + ?Sized + 'a>(
    typed: &str,
    known: impl IntoIterator<Item = &'a S>,
    otherwise: &str,
) -> String {
    match nearest(typed, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => otherwise.to_owned(),
    }
}

/// A list for a sentence: `a, b or c`.
pub fn one_of(items: &[&str]) -> String {
    match items {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_bidi_characters_become_visible() {
        assert_eq!(printable("plain\ttext\n"), "plain\ttext\n");
        assert_eq!(printable("\x1b[31mred\x07\0"), "\\u{1b}[31mred\\u{7}\\u{0}");
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(printable("\u{9b}31m"), "\\u{9b}31m");
    }

    #[test]
    fn nearest_proposes_typos_and_not_strangers() {
        let keys = ["timeout_sec", "outputs"];
        assert_eq!(nearest("timeout_secs", &keys), Some("timeout_sec"));
        assert_eq!(nearest("TIMEOUT_SEC", &keys), Some("timeout_sec"));
        assert_eq!(nearest("colour", &keys), None);
        assert_eq!(nearest("", &keys), None);
    }

    #[test]
    fn segments_of_addresses() {
        assert_eq!(percent_encoded("a-Z_0.~"), "a-Z_0.~");
        assert_eq!(percent_encoded("v1:0/ü %"), "v1%3A0%2F%C3%BC%20%25");
    }

    #[test]
    fn counting() {
        assert_eq!(count(0, "task"), "0 tasks");
        assert_eq!(count(1, "task"), "1 task");
        assert_eq!(one_of(&["a", "b", "c"]), "a, b or c");
    }
}
