//! Units: one table shared with `python/verify.py`, and the parser of compound units.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use super::numeral::{digits_end, lowered};
use super::text::{is_space, word};

/// Flag, factor to SI, dimension (@ offset, ! energy or power), names; `verify.py` contains the same text and explains
/// it.
pub(super) const TABLE: &str = include_str!("units.txt");

/// Length, mass, time, current, temperature, angle, luminous flux, decibel, apparent and reactive power.
const DIMENSIONS: &str = "LMTIKAJBPQ";

/// Most atoms of one unit.
const MAX_ATOMS: usize = 8;

/// Longest text of a unit, in characters.
const MAX_UNIT: usize = 40;

type Dimension = [i32; 10];

/// Conversion to SI: `(x + offset) * factor`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unit {
    pub(super) factor: f64,
    pub(super) dimension: Dimension,
    pub(super) offset: f64,
    /// Whether it is made of a unit of energy or power.
    pub(super) energy: bool,
}

impl Unit {
    /// Whether `other` measures what this unit measures: kJ is no moment, though kN.m may be energy.
    pub(super) fn fits(&self, other: &Self) -> bool {
        self.dimension == other.dimension
            && (self.energy || !other.energy || self.dimension == PLAIN.dimension)
    }
}

/// The unit of a number without one.
pub(super) const PLAIN: Unit = Unit { factor: 1.0, dimension: [0; 10], offset: 0.0, energy: false };

struct Tables {
    first: HashMap<&'static str, Unit>,
    second: HashMap<&'static str, Unit>,
    prefixed: HashSet<&'static str>,
}

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let mut tables = Tables { first: HashMap::new(), second: HashMap::new(), prefixed: HashSet::new() };
        for line in TABLE.lines() {
            let mut parts = line.split(' ');
            let (Some(flag), Some(factor), Some(dimension)) = (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            let (dimension, offset) = dimension.split_once('@').unwrap_or((dimension, "0"));
            let energy = dimension.ends_with('!');
            let dimension = dimension.trim_end_matches('!');
            // A test reads every line of the table, so the defaults are never used.
            let unit = Unit {
                factor: factor.parse().unwrap_or(f64::NAN),
                dimension: powers(dimension),
                offset: offset.parse().unwrap_or(f64::NAN),
                energy,
            };
            for name in parts {
                if flag == "?" { &mut tables.second } else { &mut tables.first }.insert(name, unit);
                if flag == "+" {
                    tables.prefixed.insert(name);
                }
            }
        }
        tables
    })
}

/// Parses `L1M1T-2` into one exponent per dimension.
fn powers(text: &str) -> Dimension {
    let mut found = [0; 10];
    for (at, c) in text.char_indices() {
        if let Some(slot) = DIMENSIONS.find(c) {
            let rest = &text[at + 1..];
            let end = rest.find(|c: char| c.is_ascii_uppercase()).unwrap_or(rest.len());
            found[slot] = rest[..end].parse().unwrap_or_default();
        }
    }
    found
}

pub(super) fn temperature() -> Dimension {
    powers("K1")
}

/// The factor from one unit to another; `None` if they are of different kinds, unknown, or have an offset.
pub fn conversion(from: &str, to: &str) -> Option<f64> {
    let (from, to) = (unit_of(from, false)?, unit_of(to, false)?);
    let plain = from.dimension == to.dimension && from.offset == 0.0 && to.offset == 0.0;
    plain.then(|| from.factor / to.factor)
}

fn prefix(c: char) -> Option<f64> {
    Some(match c {
        'T' => 1e12,
        'G' => 1e9,
        'M' => 1e6,
        'k' => 1e3,
        'h' => 1e2,
        'd' => 1e-1,
        'c' => 1e-2,
        'm' => 1e-3,
        'u' => 1e-6,
        'n' => 1e-9,
        'p' => 1e-12,
        _ => return None,
    })
}

/// Unifies characters that look alike, and spaces.
pub(super) fn normal(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            'µ' | 'μ' => spelled.push('u'),
            '\u{2126}' | '\u{3a9}' => spelled.push_str("ohm"),
            '·' | '\u{22c5}' | '\u{2219}' | '\u{2022}' | '×' => spelled.push('.'),
            '\u{2215}' | '\u{2044}' => spelled.push('/'),
            'º' | '\u{2da}' => spelled.push('°'),
            '\u{2103}' => spelled.push_str("°C"),
            '\u{2109}' => spelled.push_str("°F"),
            '\u{2212}' | '\u{2013}' | '\u{2011}' => spelled.push('-'),
            '{' | '}' => {}
            _ if is_space(c) => spelled.push(' '),
            _ => spelled.push(lowered(c).unwrap_or(c)),
        }
    }
    let parts: Vec<&str> = spelled.split(' ').filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

/// Parses a unit. `again` prefers second readings: `lb` is then a force and `F` a temperature.
pub(super) fn unit_of(text: &str, again: bool) -> Option<Unit> {
    let spelled = normal(text);
    let mut text = spelled.as_str();
    for (open, close) in [('(', ')'), ('[', ']')] {
        if let Some(inner) = text.strip_prefix(open).and_then(|inner| inner.strip_suffix(close)) {
            text = inner.trim_matches(' ');
            break;
        }
    }
    if text.chars().count() > 1 {
        text = text.strip_suffix('.').unwrap_or(text);
    }
    if text.is_empty() || text.chars().count() > MAX_UNIT {
        return None;
    }
    atom(&text.replace(' ', "_"), again).or_else(|| compound(&text.replace(" per ", "/"), again))
}

fn atom(name: &str, again: bool) -> Option<Unit> {
    let tables = tables();
    if let Some(unit) = tables.second.get(name).filter(|_| again).or_else(|| tables.first.get(name)) {
        return Some(*unit);
    }
    let mut characters = name.chars();
    if let Some(factor) = characters.next().and_then(prefix)
        && tables.prefixed.contains(characters.as_str())
        && let Some(unit) = tables.first.get(characters.as_str())
    {
        return Some(Unit { factor: factor * unit.factor, offset: 0.0, ..*unit });
    }
    if name.chars().count() < 4 {
        return None;
    }
    tables.first.get(name.to_ascii_lowercase().as_str()).copied()
}

/// Products, quotients and powers; everything after a slash divides, as engineers write kJ/kg.K.
fn compound(text: &str, again: bool) -> Option<Unit> {
    let text: Vec<char> = ungrouped(text)?.chars().collect();
    let mut found = PLAIN;
    let mut i = if text.starts_with(&['1', '/']) { 2 } else { usize::from(text.first() == Some(&'/')) };
    let mut below = i > 0;
    for _ in 0..MAX_ATOMS {
        let start = i;
        while text.get(i).is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '%' | '°' | '_')) {
            i += 1;
        }
        let name: String = text[start..i].iter().collect();
        let unit = atom(&name, again)?;
        let (power, after) = exponent(&text, i)?;
        found.energy |= unit.energy;
        for _ in 0..power.abs() {
            found.factor =
                if below == (power < 0) { found.factor * unit.factor } else { found.factor / unit.factor };
        }
        let sign = if below { -power } else { power };
        for (total, one) in found.dimension.iter_mut().zip(unit.dimension) {
            *total += sign * one;
        }
        if after == text.len() {
            return (found.factor > 0.0 && found.factor < f64::INFINITY).then_some(found);
        }
        let raised = after > i;
        i = spaces(&text, after);
        match text.get(i) {
            Some('.' | '*' | '-') => i += 1,
            Some('/') => {
                below = true;
                i += 1;
            }
            _ if i == after && !raised => return None,
            _ => {}
        }
        i = spaces(&text, i);
    }
    None
}

fn spaces(text: &[char], mut i: usize) -> usize {
    while text.get(i) == Some(&' ') {
        i += 1;
    }
    i
}

/// Removes the brackets of `a/(b.c)` or `(a.b)/c`; `None` if there are others.
fn ungrouped(text: &str) -> Option<String> {
    if !text.contains(['(', ')']) {
        return Some(text.to_owned());
    }
    let (start, end) = (text.find('(')?, text.find(')')?);
    let inner = text.get(start + 1..end)?;
    if inner.contains(['/', '(']) || text.matches(['(', ')']).count() != 2 {
        return None;
    }
    let behind = text[..start].ends_with('/') && end + 1 == text.len();
    let before = start == 0 && text[end + 1..].starts_with('/');
    (behind || before).then(|| format!("{}{inner}{}", &text[..start], &text[end + 1..]))
}

/// The exponent after an atom and its end; 1 if there is none, `None` if it is unreadable.
fn exponent(text: &[char], i: usize) -> Option<(i32, usize)> {
    let k = if text.get(i..i + 2) == Some(&['*', '*']) {
        i + 2
    } else {
        i + usize::from(text.get(i) == Some(&'^'))
    };
    let negative = text.get(k) == Some(&'-');
    let at = k + usize::from(negative);
    let digits = digits_end(text, at) - at;
    let power = text.get(at).and_then(|c| c.to_digit(10)).and_then(|digit| i32::try_from(digit).ok());
    match power {
        Some(power @ 1..) if digits == 1 => Some((if negative { -power } else { power }, at + 1)),
        _ => (k == i && digits == 0).then_some((1, i)),
    }
}

/// Converts `x` from the unit `text` to the `expected` unit, or returns why that is impossible. The `words` also mean
/// the expected unit. A temperature `difference` is converted without an offset.
pub(super) fn convert(
    x: f64,
    text: &str,
    expected: &Unit,
    words: &[String],
    difference: bool,
) -> Result<f64, &'static str> {
    if text.is_empty() || (!words.is_empty() && words.contains(&word(text))) {
        return Ok(x);
    }
    // The second reading is tried only if the first does not fit.
    let first = unit_of(text, false);
    let unit = match first {
        Some(unit) if expected.fits(&unit) => unit,
        first => match (first, unit_of(text, true)) {
            (_, Some(unit)) if expected.fits(&unit) => unit,
            (None, None) => return Err("an unknown unit"),
            _ => return Err("a unit of another kind"),
        },
    };
    let (here, there) = if difference { (0.0, 0.0) } else { (unit.offset, expected.offset) };
    #[expect(clippy::float_cmp, reason = "the same unit converts without rounding")]
    let same = unit.factor == expected.factor && here == there;
    Ok(if same { x } else { (x + here) * unit.factor / expected.factor - there })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(x: f64, from: &str, to: &str) -> Option<f64> {
        convert(x, from, &unit_of(to, false).unwrap(), &[], false).ok()
    }

    #[test]
    fn every_line_of_the_table_is_read() {
        for line in TABLE.lines() {
            let parts: Vec<&str> = line.split(' ').collect();
            assert!(matches!(parts[0], "+" | "." | "?"), "{line}");
            assert!(parts[1].parse::<f64>().is_ok_and(|factor| factor > 0.0), "{line}");
            let dimension = parts[2].split(['@', '!']).next().unwrap();
            assert!(dimension == "0" || powers(dimension) != [0; 10], "{line}");
            assert!(parts.len() > 3, "{line}");
            for name in &parts[3..] {
                assert!(unit_of(name, false).is_some(), "{name}");
            }
        }
        let names: Vec<&str> = TABLE
            .lines()
            .filter(|line| !line.starts_with('?'))
            .flat_map(|line| line.split(' ').skip(3))
            .collect();
        let distinct: HashSet<&&str> = names.iter().collect();
        assert_eq!(names.len(), distinct.len(), "a name is there twice");
    }

    #[test]
    fn known_conversions() {
        // Figures from published conversion tables, not computed from the factors above.
        for (x, from, to, y) in [
            (1.0, "in", "mm", 25.4),
            (100.0, "ft2", "m2", 9.290_304),
            (1.0, "US gal", "L", f64::NAN),
            (1.0, "gal", "L", 3.785_411_784),
            (1.0, "ft^3", "L", 28.316_846_592),
            (1.0, "kip", "kN", 4.448_221_615),
            (1.0, "ksi", "MPa", 6.894_757_293),
            (14.695_948_8, "psi", "kPa", 101.325),
            (1.0, "atm", "bar", 1.013_25),
            (10.0, "m_H2O", "kPa", 98.0665),
            (10.0, "mH2O", "kPa", 98.0665),
            (1.0, "kWh", "MJ", 3.6),
            (1.0, "hp", "kW", 0.745_699_87),
            (1.0, "kip-ft", "kN.m", 1.355_817_95),
            (1.0, "kip/ft", "kN/m", 14.593_902_9),
            (1.0, "psf", "kPa", 0.047_880_26),
            (1.0, "kN/m²", "kPa", 1.0),
            (1.0, "N/mm2", "MPa", 1.0),
            (18.0, "kN/m3", "N/cm^3", 0.018),
            (36.0, "km/h", "m/s", 10.0),
            (1.0, "kn", "km/h", 1.852),
            (60.0, "mph", "ft/s", 88.0),
            (1.0, "m3/s", "L/s", 1000.0),
            (3.6, "m³/h", "L/s", 1.0),
            (1000.0, "gpm", "L/s", 63.090_196_4),
            (62.4, "lb/ft3", "kg/m³", 999.552),
            (1.0, "t/m3", "g/cm3", 1.0),
            (1.0, "g", "m/s2", 9.806_65),
            (45.0, "deg", "mrad", 785.398_163),
            (1.0, "°", "mrad", 17.453_292_5),
            (1000.0, "rpm", "rad/s", 104.719_755),
            (20.0, "°C", "K", 293.15),
            (68.0, "F", "degC", 20.0),
            (212.0, "°F", "C", 100.0),
            (1.0, "mohm/m", "ohm/km", 1.0),
            (1.0, "mV/A.m", "mV/(A.m)", 1.0),
            (1.0, "mV/A/m", "V/(A.km)", 1.0),
            (2.0, "µF", "nF", 2000.0),
            (5.0, "kΩ", "ohm", 5000.0),
            (1.0, "VA", "kVA", 0.001),
            (1.0, "MVAr", "kvar", 1000.0),
            (45.0, "%", "-", 0.45),
            (0.45, "ratio", "percent", 45.0),
            (1.0, "W/m2K", "W/(m2.K)", 1.0),
            (1.0, "W m-2 K-1", "W/m².K", 1.0),
            (1.0, "kJ/kg.K", "J/(kg·°C)", 1000.0),
            (10.0, "lb/ft", "N/m", 145.939_029),
            (1.0, "pcf", "kN/m3", 0.157_087_46),
            (30.0, "Mpa", "N/mm^2", 30.0),
            (5.0, "kN per m", "N/mm", 5.0),
            (5.0, "[kN]", "N", 5000.0),
            (5.0, "kN.", "N", 5000.0),
            (5.0, "Metres", "mm", 5000.0),
            (2.0, "1/m", "1/mm", 0.002),
            (1.0, "mm4", "m^4", 1e-12),
        ] {
            if y.is_nan() {
                assert_eq!(converted(x, from, to), None, "{from}");
                continue;
            }
            let found = converted(x, from, to).unwrap_or_else(|| panic!("{from} to {to}"));
            assert!((found - y).abs() <= 1e-6 * y.abs(), "{x} {from} is {found} {to}, not {y}");
        }
        let kelvin = unit_of("K", false).unwrap();
        assert_eq!(convert(5.0, "°C", &kelvin, &[], true), Ok(5.0));
        assert_eq!(convert(3.0, "bolts", &PLAIN, &["bolts".to_owned()], false), Ok(3.0));
        assert_eq!(convert(3.0, "bolts", &PLAIN, &[], false), Err("an unknown unit"));
        assert_eq!(convert(3.0, "kN", &PLAIN, &[], false), Err("a unit of another kind"));
    }

    #[test]
    fn units_of_another_kind_do_not_convert() {
        for (from, to) in [
            ("kW", "kVA"),
            ("kvar", "kVA"),
            ("kN", "kg"),
            ("m2", "m"),
            ("rad", "-"),
            ("Hz", "rpm"),
            ("dB", "-"),
            ("m", "kPa"),
            ("kN", "-"),
            ("%", "m"),
            ("s", "m"),
            ("kJ", "kN.m"),
            ("Wh", "N.m"),
            ("kcal", "kip-ft"),
            ("kW.h", "kN.m"),
            ("J/m3", "Pa"),
        ] {
            assert_eq!(converted(1.0, from, to), None, "{from} is not {to}");
        }
        assert_eq!(converted(1.0, "kN.m", "kJ"), Some(1.0), "work may be given as force and way");
        assert_eq!(converted(3.5, "kW/kW", "-"), Some(3.5), "a ratio of powers is a plain number");
        for unknown in [
            "",
            "or 13",
            "x",
            "kNN",
            "m12",
            "m0",
            "m^",
            "m/",
            "/",
            "1/",
            "a/(b/c)",
            "m//s",
            "kN (m)",
            "m.m.m.m.m.m.m.m.m",
            "((m))",
            "m ^2x",
            "mpa",
            "ton",
            "kNm=",
            "-5",
            "..",
        ] {
            assert_eq!(unit_of(unknown, false), None, "{unknown:?}");
        }
    }
}
