//! Makes mistakes in an answer: by field in JSON, by number in text.

use std::ops::Range;

use serde_json::{Map, Value};

use super::chance::Chance;
use super::fault::{wrong_number, wrong_value};

/// How often the worst agent spoils the whole answer.
const WHOLE: f64 = 0.05;
/// How often a wrong field is left out.
const MISSING: f64 = 0.1;
/// How often a wrong field is swapped with another wrong one.
const SWAPPED: f64 = 0.15;

/// The field, if it concerns one, and the mistake.
pub(crate) type Mistake = (Option<String>, &'static str);

/// An answer with mistakes.
pub(crate) struct Spoiled {
    /// The text; absent when there is no file at all.
    pub(crate) text: Option<String>,
    /// The mistakes that were made.
    pub(crate) faults: Vec<Mistake>,
}

/// Makes mistakes. Over many draws the share of right fields equals the skill.
pub(crate) fn spoil(right: &str, skill: f64, chance: &mut Chance) -> Spoiled {
    let whole = WHOLE * (1.0 - skill);
    if chance.happens(whole) {
        return spoil_whole(right, chance);
    }
    // Compensates for whole answers that are spoiled, so that the share stays the skill.
    let skill = skill / (1.0 - whole);
    let objects = objects_in(right);
    if objects.is_empty() {
        let (text, faults) = wrong_numbers(right, 1.0 - skill, chance);
        return Spoiled { text: Some(text), faults };
    }
    let mut text = String::new();
    let mut faults = Vec::new();
    let mut at = 0;
    for (range, mut fields) in objects {
        let made = spoil_fields(&mut fields, skill, chance);
        text.push_str(&right[at..range.start]);
        let original = &right[range.clone()];
        if made.is_empty() {
            text.push_str(original);
        } else {
            text.push_str(&written_like(original, &Value::Object(fields)));
        }
        faults.extend(made);
        at = range.end;
    }
    text.push_str(&right[at..]);
    Spoiled { text: Some(text), faults }
}

fn spoil_whole(right: &str, chance: &mut Chance) -> Spoiled {
    let (text, fault) = match chance.below(3) {
        0 => (None, "no_file"),
        1 => {
            let text = format!(
                "Based on my calculations the answer should be about this:\n\n{right}\nPlease verify.\n"
            );
            (Some(text), "prose_around")
        }
        _ => {
            let half = right.len() / 2;
            let end = (0..=half).rev().find(|&index| right.is_char_boundary(index)).unwrap_or(0);
            (Some(right[..end].to_owned()), "cut_off")
        }
    };
    Spoiled { text, faults: vec![(None, fault)] }
}

/// Makes mistakes in the fields of an object.
fn spoil_fields(fields: &mut Map<String, Value>, skill: f64, chance: &mut Chance) -> Vec<Mistake> {
    let names: Vec<String> = fields.keys().cloned().collect();
    let mut wrong: Vec<String> = names.into_iter().filter(|_| !chance.happens(skill)).collect();
    let mut faults = Vec::new();
    while let Some(name) = wrong.pop() {
        let Some(right) = fields.get(&name).cloned() else { continue };
        if chance.happens(MISSING) {
            fields.shift_remove(&name);
            faults.push((Some(name), "field_missing"));
            continue;
        }
        // Only with another field that is to be wrong, or a right one would be spoiled.
        let other = wrong.iter().position(|other| differ(fields.get(other), &right));
        if let Some(other) = other
            && chance.happens(SWAPPED)
        {
            let other = wrong.remove(other);
            if let Some(value) = fields.insert(other.clone(), right) {
                fields.insert(name.clone(), value);
            }
            faults.push((Some(name), "swapped"));
            faults.push((Some(other), "swapped"));
            continue;
        }
        match wrong_value(&right, chance) {
            Some((value, kind)) => {
                fields.insert(name.clone(), value);
                faults.push((Some(name), kind));
            }
            None => {
                fields.shift_remove(&name);
                faults.push((Some(name), "field_missing"));
            }
        }
    }
    faults.reverse();
    faults
}

/// Whether two numbers differ enough to be distinguished.
fn differ(one: Option<&Value>, other: &Value) -> bool {
    match (one.and_then(Value::as_f64), other.as_f64()) {
        (Some(one), Some(other)) => (one - other).abs() > 0.1 * one.abs().max(other.abs()),
        _ => false,
    }
}

/// Formatted like the original: on one line, or indented.
fn written_like(original: &str, value: &Value) -> String {
    let text = if original.contains('\n') {
        serde_json::to_string_pretty(value)
    } else {
        serde_json::to_string(value)
    };
    text.unwrap_or_default()
}

/// The JSON objects of an answer: all of it, fenced blocks of Markdown, or lines.
fn objects_in(text: &str) -> Vec<(Range<usize>, Map<String, Value>)> {
    let whole = trimmed(text, 0..text.len());
    let candidates: [Vec<Range<usize>>; 3] = [vec![whole], fences(text), lines(text)];
    for ranges in candidates {
        let objects: Vec<_> = ranges
            .into_iter()
            .filter_map(|range| {
                let fields = aec_base::json::from_str::<Map<String, Value>>(&text[range.clone()]).ok()?;
                Some((range, fields))
            })
            .collect();
        if !objects.is_empty() {
            return objects;
        }
    }
    Vec::new()
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let piece = &text[range.clone()];
    let start = range.start + (piece.len() - piece.trim_start().len());
    start..start + piece.trim().len()
}

fn lines(text: &str) -> Vec<Range<usize>> {
    let mut at = 0;
    let mut ranges = Vec::new();
    for line in text.split_inclusive('\n') {
        ranges.push(trimmed(text, at..at + line.len()));
        at += line.len();
    }
    ranges
}

/// The contents of fenced blocks.
fn fences(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut at = 0;
    let mut open: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            match open.take() {
                Some(start) => ranges.push(trimmed(text, start..at)),
                None => open = Some(at + line.len()),
            }
        }
        at += line.len();
    }
    ranges
}

/// Makes mistakes in the numbers of a text, each with this probability.
pub(crate) fn wrong_numbers(text: &str, probability: f64, chance: &mut Chance) -> (String, Vec<Mistake>) {
    let mut changed = String::with_capacity(text.len());
    let mut faults = Vec::new();
    let mut at = 0;
    for range in numbers_in(text) {
        changed.push_str(&text[at..range.start]);
        at = range.end;
        let word = &text[range];
        match word.parse::<f64>() {
            Ok(right) if right.is_finite() && chance.happens(probability) => {
                let (wrong, kind) = wrong_number(right, chance);
                changed.push_str(&wrong.to_string());
                faults.push((Some(word.to_owned()), kind));
            }
            _ => changed.push_str(word),
        }
    }
    changed.push_str(&text[at..]);
    (changed, faults)
}

/// Separate numbers, not those in names such as `mm2` or `AS3600`.
fn numbers_in(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len()
            && (bytes[at].is_ascii_digit()
                || bytes[at] == b'.' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit))
        {
            at += 1;
        }
        let in_word = start > 0 && is_word(bytes[start - 1]);
        if !in_word {
            ranges.push(start..at);
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: &str = "{\n  \"flow\": 1.448,\n  \"size\": 25,\n  \"ok\": true,\n  \"grade\": \"C32\",\n  \"v\": [1, 2]\n}\n";

    fn draw(right: &str, skill: f64, seed: i64) -> Spoiled {
        spoil(right, skill, &mut Chance::new(&[9; 32], seed, skill))
    }

    fn right_share(skill: f64, draws: i64) -> f64 {
        let expected: Map<String, Value> = serde_json::from_str(RIGHT).unwrap();
        let mut right = 0_u32;
        for seed in 0..draws {
            let Spoiled { text, faults } = draw(RIGHT, skill, seed);
            let given = text.and_then(|text| serde_json::from_str::<Map<String, Value>>(&text).ok());
            let Some(given) = given else { continue };
            let same = expected.iter().filter(|(key, value)| given.get(*key) == Some(value)).count();
            assert_eq!(same + faults.len(), expected.len(), "{faults:?}");
            right += u32::try_from(same).unwrap();
        }
        f64::from(right) / (5.0 * f64::from(u32::try_from(draws).unwrap()))
    }

    #[test]
    fn the_share_of_right_fields_is_the_skill() {
        for skill in [0.0, 0.1, 0.5, 0.8, 0.95] {
            let share = right_share(skill, 4000);
            assert!((share - skill).abs() < 0.02, "{skill}: {share}");
        }
        assert!(right_share(0.0, 500) < 1e-9);
    }

    #[test]
    fn the_same_trial_makes_the_same_mistakes() {
        for seed in 0..50 {
            assert_eq!(draw(RIGHT, 0.5, seed).text, draw(RIGHT, 0.5, seed).text);
        }
        let texts: std::collections::HashSet<_> = (0..50).map(|seed| draw(RIGHT, 0.5, seed).text).collect();
        assert!(texts.len() > 20);
    }

    #[test]
    fn every_mistake_is_made_sometime() {
        let seen: std::collections::BTreeSet<&str> =
            (0..4000).flat_map(|seed| draw(RIGHT, 0.2, seed).faults).map(|(_, fault)| fault).collect();
        let expected = [
            "cut_off",
            "factor_forgotten",
            "field_missing",
            "no_file",
            "prose_around",
            "rounded_too_early",
            "sign",
            "stale_value",
            "swapped",
            "unit_slip",
        ];
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn answers_in_markdown_lines_and_plain_text_can_be_wrong_too() {
        let markdown = "# Report for AS3600\n\n```json\n{\"a\": 4}\n```\n\nDone at 10 am.\n";
        let seed = (0..100).find(|seed| draw(markdown, 0.0, *seed).faults[0].0.is_some()).unwrap();
        let text = draw(markdown, 0.0, seed).text.unwrap();
        assert!(
            text.starts_with("# Report for AS3600\n\n```json\n{") && text.ends_with("Done at 10 am.\n"),
            "{text}"
        );
        assert!(!text.contains("\"a\": 4}") && !text.contains("\"a\":4}"));
        assert_eq!(objects_in("{\"a\": 1}\n{\"a\": 2}\n").len(), 2);
        let (text, faults) = wrong_numbers("v = 12.5 m/s, C32, 3.", 1.0, &mut Chance::new(&[0; 32], 1, 0.0));
        assert!(text.contains("C32") && !text.contains("12.5 "), "{text}");
        assert_eq!(faults.len(), 2);
    }

    #[test]
    fn nothing_makes_it_stumble() {
        for odd in ["", "\u{feff}", "[]", "{}", "null", "ü→😀 9", "```\n", "{\"a\": null}", "1e400 -5 .5 5."]
        {
            for seed in 0..40 {
                draw(odd, 0.0, seed);
            }
        }
    }
}
