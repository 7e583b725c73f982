//! Makes foreign text safe for a terminal: removes what a terminal would interpret, and cuts and wraps lines by the
//! width that they take.

use aec_base::secret::Redactor;
use aec_base::text::printable;
use unicode_width::UnicodeWidthChar as _;

/// A letter with more combining marks than this is not a letter but a drawing.
const MARKS: usize = 3;

/// Text that is safe to show: secrets are removed, nothing in it moves the cursor, and every character has its nominal
/// width. Line breaks stay.
pub(crate) fn clean(text: &str, redactor: &Redactor) -> String {
    // Secrets are removed first: after the other changes a secret might not be recognised.
    let scrubbed = redactor.scrub(text.to_owned());
    let text = scrubbed.replace("\r\n", "\n");
    let text = printable(&text);
    let mut safe = String::with_capacity(text.len());
    let mut marks = 0;
    for c in text.chars() {
        match c {
            '\n' => safe.push('\n'),
            '\t' => safe.push_str("    "),
            // Joiners and selectors combine several characters; terminals disagree on the width of the result.
            '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => continue,
            _ if is_hidden(c) => safe.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            _ if c.width() == Some(0) => {
                marks += 1;
                if marks <= MARKS {
                    safe.push(c);
                }
                continue;
            }
            _ => safe.push(c),
        }
        marks = 0;
    }
    safe
}

/// Like `clean`, on one line.
pub(crate) fn clean_line(text: &str, redactor: &Redactor) -> String {
    clean(text, redactor).replace('\n', " ").trim_end().to_owned()
}

/// Invisible characters other than combining marks.
fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180e}'
            | '\u{200b}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
    )
}

fn width_of(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// The number of cells that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

/// A line that takes at most `most` cells; an ellipsis replaces what does not fit.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let Some(most) = most.checked_sub(1) else { return String::new() };
    let mut short = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += width_of(c);
        if used > most {
            break;
        }
        short.push(c);
    }
    short.push('…');
    short
}

/// Like `cut`, with the ellipsis in front, for paths, whose ends differ.
pub(crate) fn cut_front(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let Some(most) = most.checked_sub(1) else { return String::new() };
    let mut used = 0;
    let fits = |(_, c): &(usize, char)| {
        used += width_of(*c);
        used <= most
    };
    let start = text.char_indices().rev().take_while(fits).last().map_or(text.len(), |(start, _)| start);
    format!("…{}", &text[start..])
}

/// A cell of a table: cut or filled to exactly this width.
pub(crate) fn fill(text: &str, cells: usize) -> String {
    let mut text = cut(text, cells);
    let missing = cells.saturating_sub(width(&text));
    text.extend(std::iter::repeat_n(' ', missing));
    text
}

/// The beginning of a text, at most `bytes` bytes long.
pub(crate) fn clip(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(bytes)])
}

/// Lines that take at most `most` cells. Words stay whole if they fit.
pub(crate) fn wrap(text: &str, most: usize) -> Vec<String> {
    let most = most.max(1);
    let mut lines = Vec::new();
    for line in text.lines() {
        wrap_line(line, most, &mut lines);
    }
    lines
}

fn wrap_line(line: &str, most: usize, lines: &mut Vec<String>) {
    let mut current = String::new();
    let mut used = 0;
    for word in line.split_inclusive(' ') {
        let needed = width(word.trim_end_matches(' '));
        if used > 0 && used + needed > most {
            lines.push(std::mem::take(&mut current).trim_end().to_owned());
            used = 0;
        }
        for c in word.chars() {
            if used + width_of(c) > most {
                if c == ' ' {
                    continue;
                }
                if used > 0 {
                    lines.push(std::mem::take(&mut current));
                    used = 0;
                }
            }
            current.push(c);
            used += width_of(c);
        }
    }
    lines.push(current.trim_end().to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        clean(text, &Redactor::default())
    }

    #[test]
    fn nothing_moves_the_cursor_and_nothing_hides() {
        assert_eq!(plain("\x1b[2J\x1b]0;title\x07a\rb"), "\\u{1b}[2J\\u{1b}]0;title\\u{7}a\\u{d}b");
        assert_eq!(plain("a\tb\r\nc"), "a    b\nc");
        assert_eq!(plain("a\u{200b}b\u{feff}\u{202e}"), "a\\u{200b}b\\u{feff}\\u{202e}");
        assert_eq!(plain("⚠\u{fe0f} 👩\u{200d}🔧"), "⚠ 👩🔧");
        assert_eq!(plain("e\u{301}"), "e\u{301}");
        assert_eq!(plain(&format!("e{}x", "\u{301}".repeat(40))), format!("e{}x", "\u{301}".repeat(3)));
    }

    #[test]
    fn secrets_are_scrubbed_before_anything_is_cut() {
        let redactor = Redactor::default().with([("MY_KEY", "secret-value")]);
        assert_eq!(clean_line("it is secret-value\nhere\n", &redactor), "it is [MY_KEY redacted] here");
    }

    #[test]
    fn widths_are_kept() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("abc", 1), "…");
        assert_eq!(cut("abc", 0), "");
        assert_eq!(cut_front("abcdef", 6), "abcdef");
        assert_eq!(cut_front("abcdef", 4), "…def");
        assert_eq!(cut_front("日本語", 4), "…語");
        assert_eq!([cut_front("abc", 1), cut_front("abc", 0)], ["…", ""]);
        assert_eq!(fill("日本語", 6), "日本語");
        assert_eq!(fill("日本語", 5), "日本…");
        assert_eq!(fill("日本語", 4), "日… ");
        assert_eq!(clip("äöü", 3), "ä…");
    }

    #[test]
    fn lines_wrap_at_words_and_inside_long_ones() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(wrap("日本語日本", 5), ["日本", "語日", "本"]);
        assert_eq!(wrap("a\n\nb", 5), ["a", "", "b"]);
        assert_eq!(wrap("  indented line", 10), ["  indented", "line"]);
        assert_eq!(wrap("日本", 1), ["日", "本"]);
        for most in 2..20 {
            for line in wrap("words of 日本語 and averyverylongword — some more, \u{e9}t\u{e9}", most) {
                assert!(width(&line) <= most, "{line:?} at {most}");
            }
        }
    }
}
