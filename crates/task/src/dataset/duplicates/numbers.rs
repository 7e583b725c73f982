//! Tasks with the same text and nearly the same numbers.

use std::collections::{HashMap, HashSet};

use aec_base::digest::Digest;

use super::Likeness;
use super::alike::Groups;

/// A text and the numbers that were removed from it.
pub(super) struct Masked {
    /// Digest of the text with every number masked and runs of white space as one blank.
    text: Digest,
    numbers: Vec<f64>,
}

/// How far apart numbers may be, relative to the larger.
const TOLERANCE: f64 = 0.01;

pub(super) fn mask(text: &str) -> Masked {
    let bytes = text.as_bytes();
    let mut masked = Vec::with_capacity(bytes.len());
    let mut numbers = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at].is_ascii_digit() {
            let end = number_end(bytes, at);
            let digits: String = text[at..end].chars().filter(|c| *c != ',').collect();
            numbers.push(digits.parse().unwrap_or(f64::INFINITY));
            // This byte does not occur in UTF-8, so text never looks like a mask.
            masked.push(0xff);
            at = end;
        } else {
            if !bytes[at].is_ascii_whitespace() {
                masked.push(bytes[at]);
            } else if masked.last().is_some_and(|last| *last != b' ') {
                masked.push(b' ');
            }
            at += 1;
        }
    }
    if masked.last() == Some(&b' ') {
        masked.pop();
    }
    Masked { text: Digest::of(&masked), numbers }
}

/// The end of the number that begins at `start`: digits, thousands separated by commas, a fraction, an exponent.
fn number_end(bytes: &[u8], start: usize) -> usize {
    let digits = |from: usize| from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = digits(start);
    if end - start <= 3 {
        while bytes.get(end) == Some(&b',') && digits(end + 1) == end + 4 {
            end += 4;
        }
    }
    if bytes.get(end) == Some(&b'.') && digits(end + 1) > end + 1 {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = (end + 1 + sign).min(bytes.len());
        if digits(exponent) > exponent {
            end = digits(exponent);
        }
    }
    end
}

/// Joins all tasks whose texts are equal and whose numbers are close.
pub(super) fn join(masked: &[Masked], groups: &mut Groups) {
    let mut same_text: HashMap<&Digest, Vec<usize>> = HashMap::new();
    for (index, item) in masked.iter().enumerate() {
        same_text.entry(&item.text).or_default().push(index);
    }
    for bucket in same_text.into_values().filter(|bucket| bucket.len() > 1) {
        join_bucket(masked, bucket, groups);
    }
}

fn join_bucket(masked: &[Masked], bucket: Vec<usize>, groups: &mut Groups) {
    // Equal lists first, so that the sweep sees each list of numbers once.
    let mut first_of: HashMap<Vec<u64>, usize> = HashMap::new();
    let mut distinct = Vec::new();
    for index in bucket {
        let bits = masked[index].numbers.iter().map(|number| number.to_bits()).collect();
        match first_of.get(&bits) {
            Some(first) => groups.join(*first, index, Likeness::Identical),
            None => {
                first_of.insert(bits, index);
                distinct.push(index);
            }
        }
    }
    if distinct.len() < 2 {
        return;
    }
    let number = |index: usize, column: usize| masked[index].numbers.get(column).copied().unwrap_or(0.0);
    // A sweep along the column with the most distinct values compares the fewest pairs.
    let columns = masked[distinct[0]].numbers.len();
    let values =
        |column: usize| distinct.iter().map(|i| number(*i, column).to_bits()).collect::<HashSet<_>>().len();
    let column = (0..columns).max_by_key(|column| values(*column)).unwrap_or(0);
    distinct.sort_by(|a, b| number(*a, column).total_cmp(&number(*b, column)).then(a.cmp(b)));
    for (at, one) in distinct.iter().enumerate() {
        for other in &distinct[at + 1..] {
            if !near(number(*one, column), number(*other, column)) {
                break;
            }
            if groups.root(*one) != groups.root(*other) {
                let pairs = masked[*one].numbers.iter().zip(&masked[*other].numbers);
                if pairs.into_iter().all(|(a, b)| near(*a, *b)) {
                    groups.join(*one, *other, Likeness::Numbers);
                }
            }
        }
    }
}

#[expect(clippy::float_cmp, reason = "infinite numbers are near only to themselves")]
fn near(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()) && (a - b).is_finite()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_write_them() {
        let numbers = |text: &str| mask(text).numbers;
        assert_eq!(numbers("1,200.5 kN and 3e-4, then 2.5E3."), [1200.5, 3e-4, 2500.0]);
        assert_eq!(numbers("AS3008 1,2 and 1234,567"), [3008.0, 1.0, 2.0, 1234.0, 567.0]);
        assert_eq!(numbers("3-5 e5 5e x1."), [3.0, 5.0, 5.0, 5.0, 1.0]);
        assert_eq!(numbers("7e"), [7.0]);
        assert_eq!(mask(" a\n\n 1 ").text, mask("a 2").text);
        assert_ne!(mask("a 1").text, mask("b 1").text);
    }
}
