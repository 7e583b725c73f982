//! How the scorer compares text: folding that does not depend on a Unicode version, and canonical floats.

/// Longest text of a value in the details, in characters.
const MAX_SHOWN: usize = 200;

/// White space, listed explicitly so that it is the same in every language and version.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, '\t'..='\r' | ' ' | '\u{85}' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{2028}'
        | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

/// Characters that mean minus.
pub(super) fn is_minus(c: char) -> bool {
    matches!(c, '-' | '\u{2212}' | '\u{2013}' | '\u{2011}')
}

pub(super) fn is_punctuation(c: char) -> bool {
    " .,;:!?'\"`*()[]{}".contains(c)
}

/// Converts Latin, Greek and Cyrillic to lower case, unifies quotes, dashes and spaces, and drops invisible
/// characters.
fn fold_into(c: char, folded: &mut String) {
    let code = u32::from(c);
    let moved = match code {
        0x41..=0x5a | 0xc0..=0xd6 | 0xd8..=0xde | 0x391..=0x3a1 | 0x3a3..=0x3a9 | 0x410..=0x42f => code + 32,
        0x400..=0x40f => code + 80,
        0x100..=0x12e | 0x132..=0x136 | 0x14a..=0x176 if code % 2 == 0 => code + 1,
        0x139..=0x147 | 0x179..=0x17d if code % 2 == 1 => code + 1,
        0x178 => 0xff,
        0x3c2 => 0x3c3,
        0xb5 => 0x3bc,
        0x2018 | 0x2019 | 0x201b | 0x2032 => 0x27,
        0x201c | 0x201d | 0x2033 => 0x22,
        0x2010..=0x2015 | 0x2212 => 0x2d,
        0x2080..=0x2089 => code - 0x2080 + 0x30,
        0xdf => {
            folded.push_str("ss");
            return;
        }
        0xad | 0x200b..=0x200d | 0x2060 | 0xfeff => return,
        _ if is_space(c) => 0x20,
        _ => code,
    };
    folded.push(char::from_u32(moved).unwrap_or(c));
}

/// The text in lower case, with one kind of quotes, dashes and spaces.
pub(super) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        fold_into(c, &mut folded);
    }
    folded
}

/// Normalises a text for comparison: folded, single spaces, no punctuation around it; the point of `.5` stays.
pub(super) fn squeeze(text: &str) -> String {
    squeezed(text, is_punctuation, is_punctuation)
}

/// Normalises a value. `!` before it negates and `?` casts doubt, so these stay: "pass?" is not "pass".
pub(super) fn stated(text: &str) -> String {
    squeezed(text, |c| is_punctuation(c) && !matches!(c, '!' | '?'), |c| is_punctuation(c) && c != '?')
}

fn squeezed(text: &str, before: impl Fn(char) -> bool, behind: impl Fn(char) -> bool) -> String {
    let folded = fold(text);
    let mut single = String::with_capacity(folded.len());
    for part in folded.split(' ').filter(|part| !part.is_empty()) {
        if !single.is_empty() {
            single.push(' ');
        }
        single.push_str(part);
    }
    let bare = single.trim_start_matches(before);
    let cut = &single[..single.len() - bare.len()];
    let point = bare.starts_with(|c: char| c.is_ascii_digit()) && cut.ends_with('.');
    format!("{}{}", if point { "." } else { "" }, bare.trim_end_matches(behind))
}

/// Normalises keys for comparison: squeezed, then without spaces, hyphens and underscores. A leading hyphen stays and
/// so does a gap between digits: -5 is not 5 and 1-2 is not 12.
pub(super) fn compact(text: &str) -> String {
    plain_word(text).unwrap_or_else(|| joined(&squeeze(text)))
}

/// Normalises choices and other words: a stated value without spaces, hyphens and underscores.
pub(super) fn word(text: &str) -> String {
    plain_word(text).unwrap_or_else(|| joined(&stated(text)))
}

/// A fast path for most keys and words, with the same result.
fn plain_word(text: &str) -> Option<String> {
    let plain = text.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_');
    plain.then(|| text.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect())
}

pub(super) fn joined(squeezed: &str) -> String {
    let mut whole = String::with_capacity(squeezed.len());
    whole.push_str(if squeezed.starts_with('-') { "-" } else { "" });
    for part in squeezed.split([' ', '-', '_']).filter(|part| !part.is_empty()) {
        join(&mut whole, part);
    }
    whole
}

/// Appends a part to a joined text.
pub(super) fn join(front: &mut String, part: &str) {
    let digit = |c: char| c.is_ascii_digit();
    if front.ends_with(digit) && part.starts_with(digit) {
        front.push('-');
    }
    front.push_str(part);
}

/// Shortens text for the details.
pub(super) fn shorten(text: String) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fold() {
        for (text, squeezed, compacted) in [
            ("  Steel\u{a0}\u{2009} Beam. ", "steel beam", "steelbeam"),
            ("\u{201c}Non\u{2011}Compliant\u{201d}", "non-compliant", "noncompliant"),
            ("MOMENT_kNm", "moment_knm", "momentknm"),
            ("GRÖSSE ΔΣ ЖЁ Ž", "grösse δσ жё ž", "grösseδσжёž"),
            ("straße", "strasse", "strasse"),
            ("H₂O", "h2o", "h2o"),
            ("a\u{200b}b\u{ad}c", "abc", "abc"),
            ("**pass**", "pass", "pass"),
            (" - ", "-", "-"),
            ("-5", "-5", "-5"),
            ("1-2 m", "1-2 m", "1-2m"),
            ("level_1_2", "level_1_2", "level1-2"),
            ("(.5)", ".5", ".5"),
            ("...", "", ""),
        ] {
            assert_eq!(squeeze(text), squeezed, "{text:?}");
            assert_eq!(compact(text), compacted, "{text:?}");
        }
    }

    #[test]
    fn doubt_and_negation_stay_in_values() {
        for (text, key, value) in [
            ("Pass?", "pass", "pass?"),
            ("!pass", "pass", "!pass"),
            ("Pass!", "pass", "pass"),
            ("(pass?!)", "pass", "pass?"),
            ("[ok]", "ok", "ok"),
        ] {
            assert_eq!((compact(text), word(text)), (key.to_owned(), value.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(shorten("é".repeat(200)), "é".repeat(200));
        assert_eq!(shorten("é".repeat(201)), format!("{}…", "é".repeat(200)));
    }

    proptest::proptest! {
        #[test]
        fn the_short_way_is_the_general_way(text in "[A-Za-z_]{0,12}") {
            let mut general = squeeze(&text);
            general.retain(|c| c != '_');
            proptest::prop_assert_eq!(compact(&text), general);
        }
    }
}
