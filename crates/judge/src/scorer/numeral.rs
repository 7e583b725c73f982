//! Numbers as engineers write them: grouped digits, powers of ten in several spellings, a unit after the number.
//!
//! This module implements only the grammar; the standard library converts what it accepts, with the same rounding as
//! Python.

use aec_base::decimal::Decimal;

use super::MAX_NUMERAL;
use super::relaxed::trim;
use super::text::{is_minus, is_space};

/// A decimal number without leading zeros, and the text after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Numeral {
    pub(super) negative: bool,
    pub(super) digits: String,
    pub(super) exponent: i64,
    pub(super) rest: String,
}

impl Numeral {
    /// The number as a float; infinite if it is too large.
    pub(super) fn real(&self) -> f64 {
        let size = self.decimal().absolute().to_f64();
        if self.negative { -size } else { size }
    }

    /// The number in canonical form.
    pub(super) fn decimal(&self) -> Decimal {
        Decimal::new(self.negative, &self.digits, self.exponent)
    }
}

/// The end of the run of ASCII digits that begins at `i`.
pub(super) fn digits_end(text: &[char], mut i: usize) -> usize {
    while text.get(i).is_some_and(char::is_ascii_digit) {
        i += 1;
    }
    i
}

fn skip(text: &[char], mut i: usize) -> usize {
    while text.get(i).is_some_and(|c| is_space(*c)) {
        i += 1;
    }
    i
}

/// Reads a text that begins with one number.
pub(super) fn numeral(text: &str) -> Option<Numeral> {
    let text: Vec<char> = text.chars().collect();
    let text = trim(&text);
    if text.len() > MAX_NUMERAL {
        return None;
    }
    let mut i = if matches!(text.first(), Some('≈' | '~')) { skip(text, 1) } else { 0 };
    let negative = text.get(i).is_some_and(|c| is_minus(*c));
    if negative || text.get(i) == Some(&'+') {
        i = skip(text, i + 1);
    }
    let start = i;
    i = digits_end(text, start);
    let mut digits: String = text[start..i].iter().collect();
    let mark = text.get(i).copied();
    // A group that begins with 0 follows a decimal comma, not a thousands separator.
    if (1..=3).contains(&digits.len())
        && !digits.starts_with('0')
        && matches!(mark, Some(',' | '_' | ' ' | '\u{a0}' | '\u{2009}' | '\u{202f}' | '\u{2007}'))
    {
        while text.get(i).copied() == mark && digits_end(text, i + 1) == i + 4 {
            digits.extend(&text[i + 1..i + 4]);
            i += 4;
        }
    }
    let mut exponent = 0;
    if text.get(i) == Some(&'.') {
        let start = i + 1;
        i = digits_end(text, start);
        digits.extend(&text[start..i]);
        exponent = -i64::try_from(i - start).ok()?;
    }
    if digits.is_empty() {
        return None;
    }
    let (power, i) = power_of_ten(text, i);
    let exponent = exponent + power?;
    let rest = rest_of(trim(&text[i..]))?.iter().collect();
    Some(Numeral { negative, digits: digits.trim_start_matches('0').to_owned(), exponent, rest })
}

/// The text after a number, unless it may be part of a second number.
fn rest_of(mut rest: &[char]) -> Option<&[char]> {
    let digit = |at: usize| rest.get(at).is_some_and(char::is_ascii_digit);
    let one_over = rest.starts_with(&['1', '/']);
    if (digit(0) || matches!(rest.first(), Some('.' | ','))) && !one_over {
        while let [front @ .., '.' | ','] = rest {
            rest = front;
        }
        return rest.is_empty().then_some(rest);
    }
    // "12 or 13"
    if rest.windows(2).any(|pair| is_space(pair[0]) && pair[1].is_ascii_digit()) {
        return None;
    }
    // "12-13", "1/2"
    let range_end = if one_over {
        rest.get(2)
    } else if rest.first().is_some_and(|c| is_minus(*c) || *c == '/') {
        rest.get(1)
    } else {
        None
    };
    (!range_end.is_some_and(|c| c.is_ascii_digit() || *c == '.')).then_some(rest)
}

/// The exponent of `e3`, `x10^3` and similar forms at `i`, and its end; 0 if there is none, `None` if it is absurdly
/// large.
fn power_of_ten(text: &[char], i: usize) -> (Option<i64>, usize) {
    let signed = |at: usize| text.get(at).is_some_and(|c| is_minus(*c) || *c == '+');
    if matches!(text.get(i), Some('e' | 'E')) {
        let start = if signed(i + 1) { i + 2 } else { i + 1 };
        let end = digits_end(text, start);
        return if end > start {
            (whole(text[i + 1..start].first(), &text[start..end]), end)
        } else {
            (Some(0), i)
        };
    }
    let mut k = skip(text, i);
    if !matches!(text.get(k), Some('x' | 'X' | '*' | '×' | '·' | '\u{22c5}' | '\u{2219}')) {
        return (Some(0), i);
    }
    k = skip(text, k + 1);
    if text.get(k..k + 2) != Some(&['1', '0']) {
        return (Some(0), i);
    }
    k += 2;
    if text.get(k).copied().and_then(lowered).is_some() {
        let plain: Vec<char> = text[k..].iter().map_while(|c| lowered(*c)).collect();
        let start = usize::from(matches!(plain.first(), Some('+' | '-')));
        let readable = plain.len() > start && digits_end(&plain, start) == plain.len();
        return if readable {
            (whole(plain[..start].first(), &plain[start..]), k + plain.len())
        } else {
            (Some(0), i)
        };
    }
    if text.get(k) == Some(&'^') {
        k += 1;
    } else if text.get(k..k + 2) == Some(&['*', '*']) {
        k += 2;
    } else {
        return (Some(0), i);
    }
    let close = match text.get(k) {
        Some('(') => Some(')'),
        Some('{') => Some('}'),
        _ => None,
    };
    k += usize::from(close.is_some());
    let start = if signed(k) { k + 1 } else { k };
    let end = digits_end(text, start);
    if end == start || close.is_some_and(|close| text.get(end) != Some(&close)) {
        return (Some(0), i);
    }
    (whole(text[k..start].first(), &text[start..end]), end + usize::from(close.is_some()))
}

/// Converts a superscript digit or sign to a plain one.
pub(super) fn lowered(c: char) -> Option<char> {
    Some(match c {
        '⁰' => '0',
        '¹' => '1',
        '²' => '2',
        '³' => '3',
        '⁴' => '4',
        '⁵' => '5',
        '⁶' => '6',
        '⁷' => '7',
        '⁸' => '8',
        '⁹' => '9',
        '⁻' => '-',
        '⁺' => '+',
        _ => return None,
    })
}

/// A small whole number; `None` if it is not small.
fn whole(sign: Option<&char>, digits: &[char]) -> Option<i64> {
    let digits: String = digits.iter().skip_while(|c| **c == '0').collect();
    if digits.len() > 5 {
        return None;
    }
    let number: i64 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    Some(if sign.is_some_and(|c| is_minus(*c)) { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read() {
        for (text, value, rest) in [
            ("12.5", 12.5, ""),
            (" 12.5 kN ", 12.5, "kN"),
            ("12.5kN", 12.5, "kN"),
            ("5.", 5.0, ""),
            (".5", 0.5, ""),
            ("+5", 5.0, ""),
            ("\u{2212}5", -5.0, ""),
            ("- 5", -5.0, ""),
            ("≈ 5 m", 5.0, "m"),
            ("1,234.5", 1234.5, ""),
            ("1 234.5", 1234.5, ""),
            ("1_234.5", 1234.5, ""),
            ("1_234_567 m", 1_234_567.0, "m"),
            ("1\u{202f}234\u{202f}567", 1_234_567.0, ""),
            ("12\u{a0}345 m", 12345.0, "m"),
            ("1e3", 1000.0, ""),
            ("1.5E-3 m", 0.0015, "m"),
            ("1e\u{2212}3", 0.001, ""),
            ("1.2×10^3", 1200.0, ""),
            ("1.2 x 10^3 N", 1200.0, "N"),
            ("1.2*10**-3", 0.0012, ""),
            ("1.2 · 10⁻³", 0.0012, ""),
            ("1.2×10^{3}", 1200.0, ""),
            ("1.2×10^(-3)", 0.0012, ""),
            ("12.5.", 12.5, ""),
            ("2 1/m", 2.0, "1/m"),
            ("2 /m", 2.0, "/m"),
            ("5 eV", 5.0, "eV"),
            ("0 -", 0.0, "-"),
            ("00012", 12.0, ""),
        ] {
            let read = numeral(text).unwrap_or_else(|| panic!("{text:?}"));
            assert!((read.real() - value).abs() < 1e-12, "{text:?} is {read:?}");
            assert_eq!(read.rest, rest, "{text:?}");
        }
    }

    #[test]
    fn what_is_not_one_number_is_not_read() {
        for text in [
            "",
            "-",
            ".",
            "kN",
            "true",
            "12,5",
            "0,125",
            "1,2345",
            "1,23,456",
            "1234,567",
            "1,234 567",
            "1_234,567",
            "12 3456",
            "12 or 13",
            "12-13",
            "12 – 13",
            "12 to 13",
            "12 ft 6 in",
            "1/2",
            "5 1/2",
            "1e999999",
            "٣",
            "１２",
            "nan",
            "inf",
            "1_000x 2",
            "2 x 10",
            "0.123 456",
            "--5",
            "12..5",
            "12 m 2",
        ] {
            assert_eq!(numeral(text), None, "{text:?}");
        }
        assert_eq!(numeral(&"1".repeat(257)), None);
        assert!(numeral("1e999").is_some_and(|read| read.real().is_infinite()));
    }

    #[test]
    fn decimals_compare_exactly() {
        let form = |text: &str| numeral(text).map(|read| read.decimal());
        assert_eq!(form("1000"), form("1e3"));
        assert_eq!(form("25.00"), form("0025"));
        assert_eq!(form("-0"), form("0.000e7"));
        assert_ne!(form("9007199254740993"), form("9007199254740992"));
        assert_ne!(form("5"), form("-5"));
    }
}
