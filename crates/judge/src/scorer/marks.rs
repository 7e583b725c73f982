//! Marks that models put around a value: emphasis, code marks, LaTeX, ticks, words for about, places to fill.
//!
//! A mark is removed only where this cannot put two numbers together or hide one of them: a value with two candidates
//! stays unreadable. The functions are those of `python/verify.py`.

use std::borrow::Cow;

use super::MAX_FORM;
use super::numeral::lowered;
use super::relaxed::{Value, trim, trim_start};
use super::text::{compact, is_space};
use super::words::{has, words};

/// Longest remark behind a value, in characters.
const MAX_REMARK: usize = 120;

/// Marks that come in pairs, longer ones first.
const PAIRED: [&str; 7] = ["***", "**", "__", "``", "`", "$$", "$"];

/// What JSON makes of a careless `\times`, `\text` and `\boxed`, and what was meant.
const ESCAPED: [(&str, &str); 3] = [("\times", "\\times"), ("\text", "\\text"), ("\u{8}oxed", "\\boxed")];

const GOOD: &str = "\u{2705}\u{2714}\u{2713}\u{2611}\u{1f44d}";
const BAD: &str = "\u{274c}\u{2717}\u{2718}\u{2716}\u{1f44e}";

/// Whether a character is a tick or a cross.
pub(super) fn is_tick(c: char) -> bool {
    GOOD.contains(c) || BAD.contains(c)
}

/// Whether a text has a digit, also a raised one.
pub(super) fn has_digit(text: &[char]) -> bool {
    text.iter().any(|c| c.is_ascii_digit() || lowered(*c).is_some())
}

/// The same for text that is not split into characters.
pub(super) fn has_digit_in(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit() || lowered(c).is_some())
}

fn ends_spaced(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Removes emphasis, code marks, LaTeX and one leading `=`.
pub(super) fn unmarked(text: &str) -> Cow<'_, str> {
    let text = ends_spaced(text);
    let marked = |b: &u8| matches!(*b, b'\\' | b'$' | b'`' | b'*' | b'_' | b'=' | b'\t' | 8);
    if !text.as_bytes().iter().any(marked) || text.chars().count() > MAX_FORM {
        return Cow::Borrowed(text);
    }
    let mut text: Vec<char> = text.chars().collect();
    let mut equals = true;
    for _ in 0..3 {
        let before = text.clone();
        text = unpaired(&unlatexed(text));
        if let [first @ ('*' | '_'), inner @ .., last] = text.as_slice()
            && first == last
            && !inner.is_empty()
            && !inner.contains(first)
        {
            text = inner.to_vec();
        }
        if equals && text.first() == Some(&'=') && !matches!(text.get(1), Some('=' | '<' | '>')) {
            text.remove(0);
            equals = false;
        }
        text = trim(&text).to_vec();
        if text == before {
            break;
        }
    }
    Cow::Owned(text.into_iter().collect())
}

/// Removes marks that come in pairs, where it is clear what they enclose.
fn unpaired(text: &[char]) -> Vec<char> {
    let mut kept = Vec::with_capacity(text.len());
    let mut i = 0;
    while i < text.len() {
        let Some(mark) = PAIRED.into_iter().find(|mark| starts(text, i, mark)) else {
            kept.push(text[i]);
            i += 1;
            continue;
        };
        let start = i + mark.len();
        let end = (start..text.len()).find(|at| starts(text, *at, mark)).filter(|end| *end > start);
        match end {
            Some(end) if encloses(mark, &kept, &text[start..end], &text[end + mark.len()..]) => {
                kept.extend_from_slice(&text[start..end]);
                i = end + mark.len();
            }
            _ => {
                kept.extend(mark.chars());
                i = start;
            }
        }
    }
    kept
}

/// Whether a mark stands at `at`.
fn starts(text: &[char], at: usize, mark: &str) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    rest.len() >= mark.len() && rest.iter().zip(mark.chars()).all(|(one, other)| *one == other)
}

/// Whether a pair of marks can go: it must not stand between digits, nor begin a second number.
fn encloses(mark: &str, before: &[char], inner: &[char], behind: &[char]) -> bool {
    let alphanumeric = |c: Option<&char>| c.is_some_and(char::is_ascii_alphanumeric);
    if mark.starts_with(['*', '_']) && (alphanumeric(before.last()) || alphanumeric(behind.first())) {
        return false;
    }
    let Some(begin) = trim(inner).first() else { return false };
    if has_digit(before) && (begin.is_ascii_digit() || *begin == '.') {
        return false;
    }
    match trim(behind) {
        ['0'..='9', ..] => false,
        ['.' | ',' | '_', next, ..] => !has_digit(&[*next]),
        _ => true,
    }
}

/// Replaces LaTeX commands by plain characters; changes nothing if one is not known or a bracket does not close.
fn unlatexed(given: Vec<char>) -> Vec<char> {
    if !given.iter().any(|c| matches!(c, '\\' | '\t' | '\u{8}' | '{')) {
        return given;
    }
    let mut text: String = given.iter().collect();
    for (careless, meant) in ESCAPED {
        if text.contains(careless) {
            text = text.replace(careless, meant);
        }
    }
    if !text.contains('\\') && !text.contains("{,}") {
        return given;
    }
    let text: Vec<char> = text.chars().collect();
    plain_of(&text).unwrap_or(given)
}

fn plain_of(text: &[char]) -> Option<Vec<char>> {
    let mut plain = String::with_capacity(text.len());
    // What each open bracket is closed with; nothing, if it belongs to a command.
    let mut braces = Vec::new();
    let mut i = 0;
    while let Some(&c) = text.get(i) {
        if c == '\\' {
            let mut end = i + 1;
            while text.get(end).is_some_and(char::is_ascii_alphabetic) {
                end += 1;
            }
            end = end.max(i + 2);
            let name: String = text.get(i + 1..end)?.iter().collect();
            if has(&words().wrappers, &name) && text.get(end) == Some(&'{') {
                end += 1;
                let begin = trim_start(&text[end..]).first();
                if begin.is_some_and(|c| c.is_ascii_digit() || *c == '.') && has_digit_in(&plain) {
                    return None;
                }
                braces.push(None);
            } else {
                plain.push_str(symbol(&name)?);
            }
            i = end;
            continue;
        }
        match c {
            '{' => {
                braces.push(Some('}'));
                plain.push(c);
            }
            '}' => plain.extend(braces.pop()?),
            '~' if !plain.is_empty() => plain.push(' '),
            _ => plain.push(c),
        }
        i += 1;
    }
    let closed = braces.is_empty();
    closed.then(|| plain.replace("{,}", ",").replace("^{°}", "°").replace("^°", "°").chars().collect())
}

/// The characters that a LaTeX command stands for.
fn symbol(name: &str) -> Option<&'static str> {
    Some(match name {
        "times" => "×",
        "cdot" => "·",
        "approx" | "sim" | "simeq" => "≈",
        "pm" => "±",
        "circ" | "degree" | "textdegree" => "°",
        "mu" => "\u{b5}",
        "Omega" => "\u{3a9}",
        "quad" | ";" | ":" | " " | "left" | "right" => " ",
        "checkmark" => "✓",
        "," => "\u{2009}",
        "%" => "%",
        "_" => "_",
        "(" | ")" => "$",
        "[" | "]" => "$$",
        _ => return None,
    })
}

/// Removes a word for about at one of the ends of a number.
pub(super) fn approximated(text: &str) -> &str {
    if !text.bytes().any(|b| b.is_ascii_alphabetic()) {
        return text;
    }
    let small = text.to_ascii_lowercase();
    for said in &words().approximately {
        if small.starts_with(said.as_str()) {
            let behind = &text[said.len()..];
            let behind = behind.strip_prefix('.').unwrap_or(behind);
            if behind.starts_with(is_space) {
                return ends_spaced(behind);
            }
        }
    }
    let bare = small.strip_suffix('.').unwrap_or(&small);
    for said in &words().nearly {
        if let Some(front) = bare.strip_suffix(said.as_str())
            && front.ends_with(is_space)
        {
            return ends_spaced(&text[..front.len()]);
        }
    }
    text
}

/// Splits a value from a remark in brackets behind it.
pub(super) fn split_remark(text: &str) -> Option<(String, String)> {
    if !text.ends_with([')', ']', '.']) {
        return None;
    }
    let characters: Vec<char> = text.chars().collect();
    if characters.len() > MAX_FORM {
        return None;
    }
    let whole = match characters.as_slice() {
        [front @ .., ')' | ']', '.'] => &characters[..=front.len()],
        all => all,
    };
    let close = *whole.last()?;
    let open = match close {
        ')' => '(',
        ']' => '[',
        _ => return None,
    };
    let mut depth = 0_i32;
    for i in (1..whole.len()).rev() {
        depth += i32::from(whole[i] == close) - i32::from(whole[i] == open);
        if depth == 0 {
            let value = trim_end(&whole[..i]);
            let remark = &whole[i + 1..whole.len() - 1];
            let apart = !value.is_empty() && value.len() < i && remark.len() <= MAX_REMARK;
            return apart.then(|| (value.iter().collect(), remark.iter().collect()));
        }
    }
    None
}

fn trim_end(mut text: &[char]) -> &[char] {
    while let [rest @ .., c] = text
        && is_space(*c)
    {
        text = rest;
    }
    text
}

/// Removes ticks (true) or crosses (false) at the ends; `None` if there are none or both.
pub(super) fn without_ticks(text: &str) -> (&str, Option<bool>) {
    if text.is_ascii() {
        return (text, None);
    }
    let (good, bad) = (text.contains(|c| GOOD.contains(c)), text.contains(|c| BAD.contains(c)));
    if good == bad {
        return (text, None);
    }
    (text.trim_matches(|c| is_tick(c) || c == '\u{fe0f}' || is_space(c)), Some(good))
}

/// Whether a text only holds the place of a value: dots, `<number>`, `TBD`.
pub(super) fn is_placeholder(text: &str) -> bool {
    let text = ends_spaced(text);
    let length = text.chars().count();
    if length == 0 || length > MAX_FORM {
        return false;
    }
    if text.chars().all(|c| " .\u{2026}_-\u{2013}\u{2014}?*#xX".contains(c)) {
        return !matches!(text, "x" | "X");
    }
    let enclosed = [('<', '>'), ('{', '}'), ('[', ']')]
        .iter()
        .any(|(open, close)| text.starts_with(*open) && text.ends_with(*close));
    (enclosed && length > 2 && !has_digit_in(text))
        || has(&words().placeholders, text.to_ascii_lowercase().trim_matches('.'))
}

/// Whether there are only places to fill below a list or object, apart from its units and the values of `key`.
pub(super) fn holds_nothing(value: &Value, key: &str) -> bool {
    match value {
        Value::Bare(text) | Value::Quoted(text) => value.is_blank() || is_placeholder(text),
        Value::List(items) => !items.is_empty() && items.iter().all(|item| holds_nothing(item, key)),
        Value::Object(pairs) => {
            let mut some = false;
            for (name, item) in pairs {
                let name = compact(name);
                if name == key || name == "unit" || name == "units" {
                    continue;
                }
                if !holds_nothing(item, key) {
                    return false;
                }
                some = true;
            }
            some
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_go_where_they_enclose_one_value() {
        for (text, plain) in [
            (" **12.5** kN.m ", "12.5 kN.m"),
            ("12.5 **kN.m**", "12.5 kN.m"),
            ("1.2*10**-3", "1.2*10**-3"),
            ("`12.5`", "12.5"),
            ("= **12.5**", "12.5"),
            ("=> 12.5", "=> 12.5"),
            ("_12.5_", "12.5"),
            ("$1{,}234.5$ kN", "1,234.5 kN"),
            ("$12.5\\,\\mathrm{kN\\cdot m}$", "12.5\u{2009}kN· m"),
            ("1.2 \times 10^{3}", "1.2 × 10^{3}"),
            ("\u{8}oxed{12.5}", "12.5"),
            ("\\(20\\,^{\\circ}\\text{C}\\)", "20\u{2009}°C"),
            ("**12.5** **13**", "12.5 **13**"),
            ("1 $234.5$", "1 $234.5$"),
            ("$12.5$13", "$12.5$13"),
            ("12.5\\text{13}", "12.5\\text{13}"),
            ("\\frac{25}{2}", "\\frac{25}{2}"),
            ("\\", "\\"),
        ] {
            assert_eq!(unmarked(text), plain, "{text:?}");
        }
    }

    #[test]
    fn remarks_are_split_from_values() {
        let split = |text| split_remark(text);
        let parts = |value: &str, remark: &str| Some((value.to_owned(), remark.to_owned()));
        assert_eq!(split("12.5 kN.m (hogging)."), parts("12.5 kN.m", "hogging"));
        assert_eq!(split("12.5 (a (b) c)"), parts("12.5", "a (b) c"));
        assert_eq!(split("1 mV/(A.m)"), None);
        assert_eq!(split("(12.5)"), None);
        assert_eq!(split("12.5 hogging)"), None);
        assert_eq!(split(&format!("12.5 ({})", "a".repeat(121))), None);
    }

    #[test]
    fn ticks_and_places_to_fill_are_found() {
        assert_eq!(without_ticks("✅ Pass ✔\u{fe0f}"), ("Pass", Some(true)));
        assert_eq!(without_ticks("❌"), ("", Some(false)));
        assert_eq!(without_ticks("✅ Pass ❌").1, None);
        for text in ["...", "…", "XX.X", "<number>", "{moment}", "[value]", "TBD", "n/a", "___", "?"] {
            assert!(is_placeholder(text), "{text}");
        }
        for text in ["", "x", "<12.5>", "0", "unknown", "12.5", "pass"] {
            assert!(!is_placeholder(text), "{text}");
        }
    }
}
