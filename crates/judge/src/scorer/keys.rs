//! Keys that are the name of a field and a unit of its kind, `moment_kNm`.

use std::collections::HashMap;

use super::spec::Scalar;
use super::text::{compact, is_space};
use super::units::{normal, temperature, unit_of};

/// Longest key in which a unit is looked for, and longest such unit, in characters.
const MAX_KEY: usize = 100;
const MAX_SUFFIX: usize = 18;

/// Folded names of what has a unit, also without a unit at their end, and positions; `None` if several share a name or
/// it has no unit.
#[derive(Clone, Debug, Default)]
pub(super) struct Bases(HashMap<String, Option<usize>>);

impl Bases {
    /// From names and scalars; there is no scalar for a list or table.
    pub(super) fn new<'a>(named: impl Iterator<Item = (&'a str, Option<&'a Scalar>)>) -> Self {
        let named: Vec<(&str, Option<&Scalar>)> = named.collect();
        let with_unit = |scalar: Option<&'a Scalar>| scalar.filter(|scalar| !scalar.unit_text.is_empty());
        let mut bases = HashMap::new();
        for (at, (name, scalar)) in named.iter().enumerate() {
            let Some(scalar) = with_unit(*scalar) else { continue };
            let own = folded_unit(&scalar.unit_text);
            if let Some((base, _)) = unit_ends(name).into_iter().find(|(_, unit)| folded_unit(unit) == own) {
                bases.entry(base).and_modify(|found| *found = None).or_insert(Some(at));
            }
        }
        for (at, (name, scalar)) in named.iter().enumerate() {
            bases.insert(compact(name), with_unit(*scalar).map(|_| at));
        }
        if bases.values().all(Option::is_none) {
            bases.clear();
        }
        Self(bases)
    }

    /// What a key names, and the unit that it states.
    pub(super) fn find<'s>(
        &self,
        key: &str,
        scalar_at: impl Fn(usize) -> Option<&'s Scalar>,
    ) -> Option<(usize, String)> {
        if self.0.is_empty() {
            return None;
        }
        for (base, unit) in unit_ends(key) {
            let Some(Some(at)) = self.0.get(&base) else { continue };
            let Some(scalar) = scalar_at(*at) else { continue };
            if folded_unit(&unit) == folded_unit(&scalar.unit_text) {
                return Some((*at, scalar.unit_text.clone()));
            }
            let letters = unit.chars().count() > 1 || scalar.unit.dimension == temperature();
            if !letters || unit == "min" {
                continue;
            }
            for text in [unit.clone(), unit.replace('_', " ")] {
                let fits = |again| unit_of(&text, again).is_some_and(|unit| scalar.unit.fits(&unit));
                if fits(false) || fits(true) {
                    return Some((*at, text));
                }
            }
        }
        None
    }
}

/// The folded name and the unit for every place at which the rest of a key may be a unit, the shortest unit first.
fn unit_ends(key: &str) -> Vec<(String, String)> {
    let key = key.trim_matches(|c| is_space(c) || matches!(c, '*' | '`' | '_'));
    let joint = |b: u8| matches!(b, b' ' | b'_' | b'-' | b',' | b'/' | b'(' | b'[');
    if !key.bytes().any(joint) || key.chars().count() > MAX_KEY {
        return Vec::new();
    }
    let places: Vec<(usize, char)> = key.char_indices().collect();
    let first = places.len().saturating_sub(MAX_SUFFIX) + 1;
    let mut ends = Vec::new();
    for (at, c) in places.iter().skip(first).rev() {
        if !matches!(c, ' ' | '_' | '-' | ',' | '/' | '(' | '[') {
            continue;
        }
        let around = |c: char| matches!(c, ' ' | '_' | '-' | ',' | '/' | '(' | ')' | '[' | ']');
        let mut unit = key[*at..].trim_matches(around);
        if let Some(start) = unit.get(..3)
            && (start.eq_ignore_ascii_case("in ") || start.eq_ignore_ascii_case("in_"))
        {
            unit = &unit[3..];
        }
        if !unit.is_empty() {
            ends.push((compact(&key[..*at]), unit.to_owned()));
        }
    }
    ends
}

/// The letters and digits of a unit in lower case, without `per`: `kN/m³` and `KN_per_m3` are one.
fn folded_unit(text: &str) -> String {
    let plain = normal(text).to_ascii_lowercase();
    plain
        .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '%' | '°')))
        .filter(|part| *part != "per")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_fold() {
        for (text, folded) in [
            ("kN/m³", "knm3"),
            ("KN_per_m3", "knm3"),
            ("kN.m", "knm"),
            ("°C", "°c"),
            ("%", "%"),
            ("µm", "um"),
        ] {
            assert_eq!(folded_unit(text), folded, "{text}");
        }
    }

    #[test]
    fn every_place_of_a_unit_is_found() {
        let ends =
            |key| unit_ends(key).into_iter().map(|(base, unit)| format!("{base}|{unit}")).collect::<Vec<_>>();
        assert_eq!(ends("moment_kN_m"), ["momentkn|m", "moment|kN_m"]);
        assert_eq!(ends("Moment (kN.m)"), ["moment|kN.m", "moment|kN.m"]);
        assert_eq!(ends("moment_in_kNm"), ["momentin|kNm", "moment|kNm"]);
        assert!(ends("moment").is_empty() && ends("_m").is_empty());
        assert!(ends(&format!("{}_m", "a".repeat(99))).is_empty());
    }
}
