//! Remarks in brackets behind a value, and which of them leave the value as it is.

use super::marks::{has_digit, is_tick};
use super::numeral::digits_end;
use super::reading::Meanings;
use super::text::{fold, is_punctuation, is_space, join, joined};
use super::units::{PLAIN, unit_of};
use super::words::{has, words};

/// Most words of an option that is looked for in a remark.
const MAX_SAID: usize = 5;

/// The words of a remark without punctuation around them.
fn said(remark: &str) -> Vec<&str> {
    remark
        .split(|c| is_space(c) || matches!(c, ',' | ';' | ':'))
        .map(|part| part.trim_matches(is_punctuation))
        .filter(|part| !part.is_empty())
        .collect()
}

fn folded(part: &str) -> String {
    fold(part).trim_matches(is_punctuation).to_owned()
}

/// Whether a folded word of a remark offers a second answer, doubts the first one or takes it back.
fn is_hedge(part: &str) -> bool {
    has(&words().hedges, part) || part.ends_with("n't")
}

/// Latin, Greek and Cyrillic letters and punctuation: no digit or sign of another kind.
fn is_letterlike(c: char) -> bool {
    (c < '\u{600}' && !matches!(c, '\u{bc}'..='\u{be}'))
        || ('\u{2010}'..='\u{2027}').contains(&c)
        || is_space(c)
}

/// Whether a remark in words gives no other value: no doubt, no second number, no unit, no condition.
pub(super) fn is_harmless(remark: &str) -> bool {
    let said = said(remark);
    let odd =
        |c: char| matches!(c, '?' | '!' | '\u{b1}' | '|' | '~' | '<' | '>' | '=' | '/') || !is_letterlike(c);
    if said.is_empty() || remark.contains(odd) || unit_of(remark, false).is_some() {
        return false;
    }
    let lists = words();
    let small: Vec<String> = said.iter().map(|part| folded(part)).collect();
    for (at, part) in said.iter().enumerate() {
        if is_hedge(&small[at]) || has(&lists.multipliers, &small[at]) {
            return false;
        }
        let characters: Vec<char> = part.chars().collect();
        if has_digit(&characters) {
            let referred = at > 0 && is_reference(said[at - 1]);
            let rounds = small.get(at + 1).is_some_and(|behind| has(&lists.rounding, behind))
                && digits_end(&characters, 0) == characters.len();
            // M20 is a bolt, but E3 and X3 may be factors.
            let code = (2..8).contains(&characters.len())
                && characters[0].is_ascii_uppercase()
                && !matches!(characters[0], 'E' | 'X')
                && digits_end(&characters, 1) == characters.len();
            if !referred && !code && !rounds {
                return false;
            }
        } else if characters.len() > 1 && !matches!(*part, "in" | "min") && !is_reference(part) {
            let unit = unit_of(part, false);
            if unit.is_some_and(|unit| unit.dimension != PLAIN.dimension) {
                return false;
            }
        }
    }
    true
}

/// Whether a number behind this word is that of a standard, clause, table and the like; `as` is a word, AS is not.
fn is_reference(part: &str) -> bool {
    !matches!(part, "as" | "is") && has(&words().references, &fold(part))
}

/// Whether a harmless remark behind a number without a unit cannot be an unknown unit.
pub(super) fn is_clear(remark: &str, nouns: &[String]) -> bool {
    let small: Vec<String> = said(remark).into_iter().map(folded).collect();
    let lists = words();
    match small.as_slice() {
        [] => false,
        [first, rest @ ..] if first == "in" => rest.first().is_some_and(|next| has(&lists.remarks, next)),
        [only] => {
            let characters: Vec<char> = only.chars().collect();
            has(&lists.remarks, only) || has(nouns, only) || has_digit(&characters)
        }
        _ => true,
    }
}

/// Whether a remark neither casts doubt nor names another option than `found`, by itself or together with the word
/// before it.
pub(super) fn is_silent<T: PartialEq>(
    bare: &str,
    remark: &str,
    meanings: &Meanings<'_, T>,
    found: &T,
) -> bool {
    if said(remark).is_empty() || remark.contains(|c| matches!(c, '?' | '!' | '|') || is_tick(c)) {
        return false;
    }
    let spaced = remark.replace('/', " ");
    let texts: &[&str] = if spaced == remark { &[remark] } else { &[remark, &spaced] };
    let before: Vec<String> = said(bare).into_iter().map(folded).collect();
    texts.iter().all(|text| {
        let behind: Vec<String> = said(text).into_iter().map(folded).collect();
        if behind.iter().any(|part| is_hedge(part) || meanings.contradicts(found, part)) {
            return false;
        }
        let parts: Vec<String> = before.iter().chain(&behind).map(|part| joined(part)).collect();
        (0..parts.len()).all(|at| {
            let mut name = String::new();
            (at..(at + MAX_SAID).min(parts.len())).all(|end| {
                let behind = !name.is_empty();
                join(&mut name, if behind { parts[end].trim_start_matches('-') } else { &parts[end] });
                end < before.len() || meanings.get(&name).is_none_or(|named| named == found)
            })
        })
    })
}
