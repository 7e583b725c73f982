//! Numbers in running text, compared by value: `1,250.0`, `1250` and `1.25e3` are one number.

use std::ops::Range;

use aec_base::decimal::Decimal;

/// A number in a text, with the unit next to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// Byte range, without the unit.
    pub(crate) range: Range<usize>,
    pub(crate) value: Decimal,
    /// The unit after it, in its canonical spelling.
    pub(crate) unit: Option<&'static str>,
}

/// Characters between groups of three digits.
const SEPARATORS: [char; 7] = [',', '\'', '’', '_', '\u{a0}', '\u{202f}', '\u{2009}'];

/// Numbers of a text. Digits inside words (`M12`, `AS3008`), ordinals (`1st`) and the numbering of headings and lists
/// at the start of lines do not count.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find(|letter: char| letter.is_ascii_digit()).map(|offset| at + offset)
    {
        let end = end_of_number(text, start);
        at = end;
        let before = text[..start].chars().next_back();
        let in_word = before
            .is_some_and(|letter| (letter.is_alphabetic() && !matches!(letter, 'Ø' | 'ø')) || letter == '_');
        if in_word || is_numbering(text, start, end) || is_ordinal(&text[end..]) {
            at = end + text[end..].find(|letter: char| !letter.is_alphanumeric()).unwrap_or(text.len() - end);
            continue;
        }
        let plain: String = text[start..end].chars().filter(|letter| !SEPARATORS.contains(letter)).collect();
        let Some(mut value) = Decimal::parse(&plain) else { continue };
        let mut range = start..end;
        if let Some(sign) = before.filter(|letter| matches!(letter, '-' | '−')) {
            let earlier = &text[..start - sign.len_utf8()];
            let is_sign = earlier
                .chars()
                .next_back()
                .is_none_or(|letter| letter.is_whitespace() || "(=|".contains(letter));
            if is_sign && !value.is_zero() {
                value = value.negated();
                range.start = earlier.len();
            }
        }
        found.push(Token { range, value, unit: unit_after(&text[end..]) });
    }
    found
}

/// The end of the number that begins with a digit at `start`: groups of three, a fraction, an exponent.
fn end_of_number(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let digits_from = |at: usize| at + bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = digits_from(start);
    if end - start <= 3 {
        while let Some(separator) = text[end..].chars().next().filter(|letter| SEPARATORS.contains(letter)) {
            let group = end + separator.len_utf8();
            if digits_from(group) != group + 3 {
                break;
            }
            end = group + 3;
        }
    }
    if bytes.get(end) == Some(&b'.') && digits_from(end + 1) > end + 1 {
        end = digits_from(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = (end + 1 + sign).min(bytes.len());
        let after = digits_from(exponent);
        if after > exponent && after - exponent <= 4 {
            end = after;
        }
    }
    end
}

/// `1.`, `2)` and `3.1` where a line begins, before a blank: the numbers of lists and headings.
fn is_numbering(text: &str, start: usize, end: usize) -> bool {
    let is_lead = |letter: char| matches!(letter, '#' | '>' | ' ' | '\t' | '*');
    let before = text[..start].trim_end_matches(is_lead);
    let at_start = before.is_empty() || before.ends_with('\n');
    let heading = text[before.len()..start].contains('#');
    let mut after = text[end..].chars();
    let next = after.next();
    let marked = matches!(next, Some('.' | ')')) && after.next().is_some_and(char::is_whitespace);
    // A full stop after a longer number more likely ends a sentence.
    let short = end - start <= 2;
    at_start && ((marked && short) || (heading && next.is_some_and(char::is_whitespace)))
}

fn is_ordinal(after: &str) -> bool {
    ["st", "nd", "rd", "th"].iter().any(|ending| {
        after
            .strip_prefix(ending)
            .is_some_and(|rest| !rest.starts_with(|letter: char| letter.is_alphanumeric()))
    })
}

/// Canonical spellings of units, each with its other spellings. Case matters: `m` and `M`, `k` and `K` differ.
const UNITS: [(&str, &[&str]); 44] = [
    ("mm", &["millimetre", "millimetres"]),
    ("cm", &[]),
    ("m", &["metre", "metres", "meter", "meters"]),
    ("km", &["kilometre", "kilometres"]),
    ("mm2", &["mm²", "mm^2"]),
    ("m2", &["m²", "m^2", "sqm"]),
    ("ha", &[]),
    ("mm3", &["mm³", "mm^3"]),
    ("m3", &["m³", "m^3"]),
    ("L", &["l", "litre", "litres"]),
    ("g", &[]),
    ("kg", &[]),
    ("t", &["tonne", "tonnes"]),
    ("N", &[]),
    ("kN", &[]),
    ("MN", &[]),
    ("kNm", &["kN·m", "kN.m"]),
    ("kN/m", &[]),
    ("kN/m2", &["kN/m²"]),
    ("Pa", &[]),
    ("kPa", &[]),
    ("MPa", &[]),
    ("GPa", &[]),
    ("V", &["volt", "volts"]),
    ("mV", &[]),
    ("kV", &[]),
    ("A", &["amp", "amps"]),
    ("mA", &[]),
    ("kA", &[]),
    ("W", &["watt", "watts"]),
    ("kW", &[]),
    ("MW", &[]),
    ("kVA", &[]),
    ("MVA", &[]),
    ("kWh", &[]),
    ("Hz", &[]),
    ("kHz", &[]),
    ("ohm", &["Ω", "ohms"]),
    ("°C", &["degC", "℃"]),
    ("K", &[]),
    ("%", &["percent"]),
    ("m/s", &[]),
    ("s", &["sec", "second", "seconds"]),
    ("h", &["hr", "hour", "hours"]),
];

/// The canonical spelling of a unit.
pub(crate) fn unit(word: &str) -> Option<&'static str> {
    UNITS.iter().find(|(name, others)| *name == word || others.contains(&word)).map(|(name, _)| *name)
}

/// The unit in a key such as `span_mm` or `voltage_kv`, where case is lost. `m` and `s` alone mean many other things,
/// so only spellings of at least two letters count, and only if exactly one unit has them.
pub(crate) fn unit_of_key(key: &str) -> Option<&'static str> {
    let (_, last) = key.rsplit_once('_')?;
    if last.len() < 2 {
        return None;
    }
    let mut units = UNITS.iter().filter(|(name, _)| name.eq_ignore_ascii_case(last));
    match (units.next(), units.next()) {
        (Some((name, _)), None) => Some(name),
        _ => None,
    }
}

/// The unit directly after a number, or after one blank.
fn unit_after(rest: &str) -> Option<&'static str> {
    let word = rest.strip_prefix([' ', '\u{a0}', '\u{202f}', '-']).unwrap_or(rest);
    let is_unit = |letter: char| letter.is_alphanumeric() || "%°Ω℃²³/^·".contains(letter);
    let end = word.find(|letter: char| !is_unit(letter)).unwrap_or(word.len());
    unit(&word[..end])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers(text: &str) -> Vec<(String, Option<&'static str>)> {
        tokens(text).into_iter().map(|token| (text[token.range].to_owned(), token.unit)).collect()
    }

    fn plain(text: &str) -> Vec<String> {
        numbers(text).into_iter().map(|(number, _)| number).collect()
    }

    #[test]
    fn numbers_are_equal_by_value() {
        let value = |text: &str| tokens(text)[0].value.clone();
        for same in ["1,250", "1250", "1250.00", "1.25e3", "1\u{202f}250", "1'250.0"] {
            assert_eq!(value(same), value("1250"), "{same}");
        }
        assert_ne!(value("-5"), value("5"));
        assert_eq!(value("0.0"), value("0"));
    }

    #[test]
    fn numbers_are_found_in_text() {
        assert_eq!(
            plain("from 3-5 m, at 2026-04-12; -7 and (−8)"),
            ["3", "5", "2026", "04", "12", "-7", "−8"]
        );
        assert_eq!(plain("M12 bolts, AS3008, 1st and 22nd, x_3"), Vec::<String>::new());
        assert_eq!(plain("1. First\n2) Second\n# 3 Title\n## 3.1 Other\n4 m"), ["4"]);
        assert_eq!(plain("The area is\n1250. Next\n45. and Ø12"), ["1250", "12"]);
        assert_eq!(plain("45."), ["45"]);
        assert_eq!(plain("1,2 and 12,5 and 1,2345 and 1.5."), ["1", "2", "12", "5", "1", "2345", "1.5"]);
        assert_eq!(
            numbers("10kV, 5 mm², 3 %, 20 °C and 6 pieces")[..4],
            [
                ("10".to_owned(), Some("kV")),
                ("5".to_owned(), Some("mm2")),
                ("3".to_owned(), Some("%")),
                ("20".to_owned(), Some("°C")),
            ]
        );
        assert_eq!(numbers("6 pieces")[0].1, None);
        assert_eq!(
            (unit_of_key("span_mm"), unit_of_key("voltage_kv"), unit_of_key("a_m")),
            (Some("mm"), Some("kV"), None)
        );
    }

    proptest! {
        #[test]
        fn tokens_are_in_order_and_parse(text in "([0-9.,eE+'#\\- \n]|\\PC){0,80}") {
            let mut last = 0;
            for token in tokens(&text) {
                prop_assert!(token.range.start >= last && token.range.end > token.range.start);
                last = token.range.end;
                prop_assert!(text.get(token.range).is_some());
            }
        }

        #[test]
        fn separators_do_not_matter(number in 0u64..10_000_000_000) {
            let digits = number.to_string();
            let grouped: String = digits.chars().enumerate().fold(String::new(), |mut text, (at, digit)| {
                if at > 0 && (digits.len() - at) % 3 == 0 {
                    text.push(',');
                }
                text.push(digit);
                text
            });
            let value = |text: &str| Decimal::parse(text).unwrap();
            prop_assert_eq!(&tokens(&format!("x {grouped} y"))[0].value, &value(&digits));
        }
    }
}
