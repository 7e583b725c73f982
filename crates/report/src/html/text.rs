//! Makes untrusted text safe to show: escapes HTML, and makes characters visible that hide or reorder text.

use std::borrow::Cow;

/// Whether a character is shown as its number: controls, direction marks, and zero-width characters.
///
/// Line breaks and tabs are text. `dom.js` has the same list.
fn is_hidden(character: char) -> bool {
    matches!(character,
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Escapes text for element content and quoted attributes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 8);
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            hidden if is_hidden(hidden) => escaped.push_str(&format!("⟨U+{:04X}⟩", u32::from(hidden))),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Head and tail of a text of more than `limit` characters, with a line between them that tells how much is missing.
pub fn clip(text: &str, limit: usize) -> Cow<'_, str> {
    // A text has at least as many bytes as characters.
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    let length = text.chars().count();
    if length <= limit {
        return Cow::Borrowed(text);
    }
    let tail = limit / 3;
    let head = limit - tail;
    let at = |position: usize| text.char_indices().nth(position).map_or(text.len(), |(offset, _)| offset);
    let missing = thousands((length - limit) as u64);
    Cow::Owned(format!(
        "{}\n… {missing} characters left out …\n{}",
        &text[..at(head)],
        &text[at(length - tail)..]
    ))
}

/// A count with a comma between thousands.
pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// In megabytes of a million bytes.
pub(super) fn megabytes(bytes: usize) -> String {
    let hundredths = bytes.div_ceil(10_000);
    format!("{}.{:02} MB", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_hidden_characters_are_inert() {
        assert_eq!(
            escape("<img src=x onerror='a()'>&\""),
            "&lt;img src=x onerror=&#39;a()&#39;&gt;&amp;&quot;"
        );
        assert_eq!(escape("a\u{202e}b\u{0}\u{200b}"), "a⟨U+202E⟩b⟨U+0000⟩⟨U+200B⟩");
        assert_eq!(escape("\u{e0041}"), "⟨U+E0041⟩");
        assert_eq!(escape("line\n\tnext é 漢"), "line\n\tnext é 漢");
    }

    #[test]
    fn long_text_keeps_head_and_tail() {
        assert_eq!(clip("ééééé", 5), "ééééé");
        assert_eq!(clip("abcdefghi", 6), "abcd\n… 3 characters left out …\nhi");
        assert_eq!(clip("abc", 0), "\n… 3 characters left out …\n");
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(megabytes(4_999_999), "5.00 MB");
        assert_eq!(megabytes(12_345), "0.02 MB");
    }
}
