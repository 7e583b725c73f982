//! Texts of values that are right or wrong for a field.

use serde_json::{Value as Json, json};

use super::values::{OPTIONS, UNITS};
use super::{Known, Random};

/// Units that do not fit any field of the answers files, and texts that are not units.
const STRANGE_UNITS: [&str; 16] = [
    "cd", "kW/kVA.s", "or 13", "furlongs", "kN/kN/m7", "m12", "dB", "Hz2", "±1", "/", "(m", "per m", "mol",
    "m::n", "x10^", "K.A",
];

/// The text of a value as written after the key, and whether it must be right or wrong.
pub(crate) fn value(random: &mut Random, spec: &Json) -> (String, Known) {
    match spec["type"].as_str().unwrap() {
        "list" => list_value(random, spec),
        "table" => table_value(random, spec),
        "text" => cell(random, spec, &spec["accept"]),
        _ => cell(random, spec, &spec["value"]),
    }
}

fn list_value(random: &mut Random, spec: &Json) -> (String, Known) {
    if random.one_in(12) {
        return (strange(random), Known::Open);
    }
    let mut known = Known::Right;
    let mut items = Vec::new();
    for expected in spec["items"].as_array().unwrap() {
        let (text, one) = if random.one_in(6) {
            cell(random, &spec["item"], expected)
        } else {
            right(random, &spec["item"], expected)
        };
        // A value that is wrong for its own item may be right for another.
        known = if one == Known::Right { known } else { Known::Open };
        items.push(text);
    }
    match random.below(8) {
        0 if !items.is_empty() => {
            items.push(items[random.below(items.len())].clone());
            known = Known::Wrong;
        }
        1 if !items.is_empty() => {
            let at = random.below(items.len());
            items.remove(at);
            known = Known::Wrong;
        }
        2 => {
            items.reverse();
            known = if spec["ordered"] == json!(true) { Known::Open } else { known };
        }
        3 if random.one_in(20) => {
            items = (0..60).map(|at| at.to_string()).collect();
            known = Known::Wrong;
        }
        _ => {}
    }
    (format!("[{}]", items.join(", ")), known)
}

fn table_value(random: &mut Random, spec: &Json) -> (String, Known) {
    if random.one_in(12) {
        return (strange(random), Known::Open);
    }
    let keyed = random.one_in(4);
    let mut known = Known::Right;
    let mut rows = Vec::new();
    for row in spec["rows"].as_array().unwrap() {
        let mut cells = Vec::new();
        for (name, column) in spec["columns"].as_object().unwrap() {
            if keyed && name == "beam" {
                continue;
            }
            let (text, one) = if random.one_in(8) {
                cell(random, column, &row[name])
            } else {
                right(random, column, &row[name])
            };
            known = match one {
                Known::Right => known,
                other => {
                    if known == Known::Wrong {
                        known
                    } else {
                        other
                    }
                }
            };
            cells.push(format!("\"{}\": {text}", spelled(random, name)));
        }
        let cells = format!("{{{}}}", cells.join(", "));
        rows.push(if keyed {
            format!(
                "\"{}\": {cells}",
                row["beam"].as_str().map_or_else(|| row["beam"].to_string(), str::to_owned)
            )
        } else {
            cells
        });
    }
    match random.below(8) {
        0 => {
            let again = random.below(rows.len());
            rows.push(rows[again].clone());
        }
        1 => {
            let at = random.below(rows.len());
            rows.remove(at);
            known = Known::Wrong;
        }
        2 if !keyed => {
            rows.push("{\"beam\": \"B0\", \"Load\": 77777}".to_owned());
            known = Known::Wrong;
        }
        3 => rows.reverse(),
        4 if !keyed && random.one_in(4) => {
            rows.push("{\"beam\": null}".to_owned());
            known = Known::Open;
        }
        _ => {}
    }
    (if keyed { format!("{{{}}}", rows.join(", ")) } else { format!("[{}]", rows.join(", ")) }, known)
}

/// A key in another spelling.
pub(crate) fn spelled(random: &mut Random, name: &str) -> String {
    match random.below(6) {
        0 => name.to_uppercase(),
        1 => name.replace(['_', '-'], " "),
        2 => name.replace([' ', '_'], "-"),
        3 => name.replace([' ', '-'], ""),
        _ => name.to_owned(),
    }
}

fn cell(random: &mut Random, spec: &Json, expected: &Json) -> (String, Known) {
    match random.below(6) {
        0 => wrong(random, spec, expected),
        1 => (strange(random), Known::Open),
        _ => right(random, spec, expected),
    }
}

/// Values of wrong types and edge cases of the grammars.
const STRANGE: &[&str] = &[
    "null",
    "None",
    "NaN",
    "-Infinity",
    "1e999",
    "-1e-999",
    "true",
    "[]",
    "{}",
    "[12]",
    "\"\"",
    "\"  \"",
    "12 or 13",
    "\"12 or 13\"",
    "\"12-13\"",
    "\"12 – 13\"",
    "\"1/2\"",
    "\"5 1/2 in\"",
    "\"12,5\"",
    "\"0,125\"",
    "\"1,23,456\"",
    "\"1 234,5\"",
    "\"١٢\"",
    "\"1_000\"",
    "\"0x10\"",
    "\"1e99999999\"",
    "\"~ 12\"",
    "\"< 12\"",
    "\"12 ± 1\"",
    "\"approximately 12\"",
    "{\"value\": 12}",
    "{\"value\": 12, \"value\": 13}",
    "{\"value\": \"12 m\", \"unit\": \"mm\"}",
    "{\"unit\": \"kN\"}",
    "{\"value\": [12], \"units\": null}",
    "{'Value': 12, 'UNITS': 'kN'}",
    "\"steel beam or Timber\"",
    "\"C25/30, C30/37\"",
    "\"not\"",
    "\"yes and no\"",
    "yes",
    "\"\\u00e9\\ud83d\\ude00\\ud800\\x41\\q\"",
    "\"1\\u00a0234\"",
    "np.float64(12.5)",
    "np.int64(7)",
    "np.array(3)",
    "Decimal(2)",
    "12.5 kN",
    "12 # note",
    "'single \\' quote'",
    "\"two\nlines\"",
    "9007199254740993",
    "-0",
    "+5",
    ".5",
    "5.",
    "00012",
    "1.2.3",
    "\"1.2×10^3\"",
    "\"1.2 x 10⁻³ kN\"",
    "\"1.2*10**-3\"",
    "\"1.2×10^(3)\"",
    "\"1.2×10^{3\"",
    "\"1×103\"",
    "\"2 x 10\"",
    "\"≈ 5\"",
    "\"−5\"",
    "\"- 5\"",
    "\"12 ft 6 in\"",
    "{\"a\": {\"value\": 1}}",
    "[[1]]",
    "[{\"beam\": \"B0\"}, 3]",
    "\"5%\"",
    "\"5 1/m\"",
    "\"**12.5**\"",
    "\"$12.5\\\\,\\\\text{kN}$\"",
    "\"$1.2 \times 10^{3}$ kN\"",
    "\"\\\\boxed{12 \\\\text{ m}}\"",
    "\"1{,}234 \\\\%\"",
    "\"12 bolts\"",
    "\"12 No. (M20)\"",
    "\"12 m (at midspan)\"",
    "\"12 (rounded to 3 s.f.)\"",
    "\"12 m (AS 3600 cl. 8.1)\"",
    "\"12 (in kip)\"",
    "\"12 kJ\"",
    "\"1_234.5\"",
    "\"PASS ✅\"",
    "\"✅\"",
    "\"not ok ❌ (76%)\"",
    "\"pass (fail)\"",
    "\"compliant\"",
    "\"<number>\"",
    "\"TBD\"",
    "\"XX.X\"",
    "[\"...\"]",
    "[{\"beam\": \"B0\", \"Load\": \"...\"}]",
    "[[12]]",
    "[null]",
    "\"AS 3600?\"",
    "\"!pass\"",
    "\"AS 3600 (concrete)\"",
];

fn strange(random: &mut Random) -> String {
    match random.below(10) {
        0 => format!("\"12 {}\"", unit(random)),
        1 => {
            let escapes =
                ["\\ud7ff", "\\ud800", "\\udbff", "\\udc00", "\\udfff", "\\ue000", "\\u0", "\\x7", "\\n"];
            format!("\"{}{}\"", random.pick(&escapes), random.pick(&escapes))
        }
        _ => random.pick(STRANGE).to_owned(),
    }
}

/// A unit, or something similar to one.
fn unit(random: &mut Random) -> String {
    let atoms = [
        "m", "mm", "kN", "N", "s", "K", "°C", "lb", "F", "g", "%", "°", "Pa", "kt", "metres", "Metres", "µm",
        "Ω", "sq m", "m_H2O", "x", "pcf",
    ];
    let joints = [".", "·", "*", " ", "-", "/", " / ", "/(", "(", ")", ")/", "", " per ", "**", "  "];
    let powers = ["", "", "", "2", "^2", "²", "⁻¹", "-1", "^-3", "**2", "^", "0", "12", "^{2}", "9"];
    let mut text = (*random.item(&["", "", "", "(", "[", "1/", "/"])).to_owned();
    let most = if random.one_in(20) { 10 } else { 3 };
    for at in 0..=random.below(most) {
        text.push_str(if at == 0 { "" } else { random.pick(&joints) });
        text.push_str(random.pick(&atoms));
        text.push_str(random.pick(&powers));
    }
    text.push_str(random.pick(&["", "", "", ")", "]", ".", "/"]));
    text
}

/// A text with the expected value, also with marks around it.
fn right(random: &mut Random, spec: &Json, expected: &Json) -> (String, Known) {
    let (text, known) = plainly_right(random, spec, expected);
    (if random.one_in(4) { dressed(random, spec, expected, text) } else { text }, known)
}

/// The same value as models write it.
fn dressed(random: &mut Random, spec: &Json, expected: &Json, text: String) -> String {
    if random.one_in(5) {
        return format!("[{text}]");
    }
    let inner = match text.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')) {
        Some(inner) => inner.to_owned(),
        None if text.parse::<f64>().is_ok() => text,
        None => return text,
    };
    let inner = inner.trim();
    let of_number = matches!(spec["type"].as_str(), Some("number" | "integer"));
    match random.below(if of_number { 12 } else { 8 }) {
        0 | 1 if !inner.contains('*') => format!("\"**{inner}**\""),
        2 => format!("\"`{inner}`\""),
        3 => format!("\"${inner}$\""),
        4 if !inner.starts_with('≈') => format!("\"= {inner}\""),
        5 => format!("\"{inner} (governs)\""),
        6 if !inner.contains('*') => format!("\"__{inner}__ (rounded)\""),
        7 if expected.is_boolean() => {
            format!("\"{inner} {}\"", if expected == &json!(true) { "✅" } else { "❌" })
        }
        7 if spec["type"] == "choice" => format!("\"✔\u{fe0f} {inner}\""),
        8 if !inner.starts_with('≈') => format!("\"approx. {inner}\""),
        9 => format!("\"{inner} approx.\""),
        10 => format!("\"\\\\({inner}\\\\)\""),
        11 if spec["type"] == "integer" && spec.get("unit").is_none() => format!("\"{inner} No.\""),
        _ => format!("\"{inner}\""),
    }
}

fn plainly_right(random: &mut Random, spec: &Json, expected: &Json) -> (String, Known) {
    let text = match spec["type"].as_str().unwrap() {
        "number" => return number(random, spec, expected.as_f64().unwrap()),
        "integer" => integer(random, spec, expected),
        "boolean" => {
            let words: &[&str] = match (expected == &json!(true), spec.get("true_words").is_some()) {
                (true, false) => &["true", "True", "\"yes\"", "\"PASS\"", "\" true \"", "'Yes.'", "np.True_"],
                (true, true) => &["\"adequate\"", "\"Adequate!\""],
                (false, false) => &["false", "False", "\"no\"", "\"Fail\"", "FALSE"],
                (false, true) => &["\"not ok\"", "\"Not-OK\""],
            };
            random.pick(words).to_owned()
        }
        "choice" => {
            let option = expected.as_str().unwrap();
            let option = if option == "Timber" && spec.get("aliases").is_some() && random.one_in(2) {
                "WOOD"
            } else {
                option
            };
            match random.below(4) {
                0 => quoted(random, &option.to_uppercase()),
                1 => quoted(random, &format!(" {}. ", option.replace([' ', '-'], "_"))),
                2 => format!("{{\"value\": \"{option}\"}}"),
                _ => quoted(random, option),
            }
        }
        _ => {
            let text = expected.as_array().map_or(expected, |accept| random.item(accept)).as_str().unwrap();
            match random.below(3) {
                0 => format!("\"  {} \"", text.replace(' ', " \\u00a0 ")),
                1 => format!("\"“{text}”.\"").replace(['“', '”'], "*"),
                _ => format!("\"{text}\""),
            }
        }
    };
    (text, Known::Right)
}

fn quoted(random: &mut Random, text: &str) -> String {
    if random.one_in(3) { format!("'{text}'") } else { format!("\"{text}\"") }
}

fn number(random: &mut Random, spec: &Json, value: f64) -> (String, Known) {
    let expected = spec["unit"].as_str().unwrap_or_default();
    let (_, forms) = UNITS.iter().find(|(unit, _)| *unit == expected).unwrap();
    let (unit, factor) = *random.item(forms);
    let value = value * factor;
    if random.one_in(3) {
        let value = value / factor;
        let text = value.to_string();
        let text = match random.below(5) {
            0 => format!("{value:e}"),
            1 => format!("{text} {expected}").trim_end().to_owned(),
            2 => format!("np.float64({text})"),
            _ => text,
        };
        return (text, Known::Right);
    }
    let digits = digits(random, value);
    let text = match random.below(4) {
        0 => format!("{{\"value\": {value}, \"unit\": \"{unit}\"}}"),
        1 => format!("{{'unit': '{unit}', 'value': '{digits}'}}"),
        2 if !unit.starts_with(['-', '°', '%', '(']) => format!("\"{digits}{unit}\""),
        _ => quoted(random, &format!("{digits} {unit}")),
    };
    (text, Known::Right)
}

/// A number in one of its spellings.
fn digits(random: &mut Random, value: f64) -> String {
    let plain = value.to_string();
    let grouped = |mark: &str| {
        let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
        let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
        let mut text = String::new();
        for (at, c) in whole.chars().enumerate() {
            if at > 0 && (whole.len() - at) % 3 == 0 {
                text.push_str(mark);
            }
            text.push(c);
        }
        if fraction.is_empty() { format!("{sign}{text}") } else { format!("{sign}{text}.{fraction}") }
    };
    let (mantissa, power) = {
        let text = format!("{value:e}");
        let (mantissa, power) = text.split_once('e').unwrap();
        (mantissa.to_owned(), power.to_owned())
    };
    let raised: String = power
        .chars()
        .map(|c| {
            if c == '-' {
                '⁻'
            } else {
                "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(c.to_digit(10).unwrap() as usize).unwrap()
            }
        })
        .collect();
    match random.below(12) {
        0 => grouped(","),
        1 => grouped(" "),
        2 => grouped("\u{202f}"),
        3 => grouped("\u{a0}"),
        4 => format!("{mantissa}×10^{power}"),
        5 => format!("{mantissa} x 10^{power}"),
        6 => format!("{mantissa}E{power}"),
        7 => format!("{mantissa} × 10{raised}"),
        8 => plain.replace('-', "−"),
        9 => format!("≈{plain}"),
        _ => plain,
    }
}

fn integer(random: &mut Random, spec: &Json, expected: &Json) -> String {
    let text = expected.as_str().map_or_else(|| expected.to_string(), str::to_owned);
    match random.below(6) {
        0 => format!("\"{text}\""),
        1 => format!("{text}.0"),
        2 if spec.get("unit").is_some() => format!("\"{text} m\""),
        5 if spec.get("unit").is_some() && !text.starts_with('0') => format!("\"{text}000 mm\""),
        3 => format!("\"{text}.00\""),
        4 => format!("{{\"value\": {text}}}"),
        _ => text,
    }
}

/// A text with another value than the expected one.
fn wrong(random: &mut Random, spec: &Json, expected: &Json) -> (String, Known) {
    let text = match spec["type"].as_str().unwrap() {
        "number" => {
            let value = expected.as_f64().unwrap();
            match random.below(6) {
                0 => return (format!("\"{value} {}\"", unit(random)), Known::Open),
                3 => format!("\"{value} {}\"", random.pick(&STRANGE_UNITS)),
                1 => format!("[{value}, {value}]"),
                4 => hedged(random, &value.to_string(), &(value + 1.0).to_string()),
                _ => return (random.number(3).to_string(), Known::Open),
            }
        }
        "integer" => {
            let text = expected.as_str().map_or_else(|| expected.to_string(), str::to_owned);
            match random.below(4) {
                0 => format!("{text}1"),
                1 => format!("{text}.5"),
                2 => hedged(random, &text, "5"),
                _ => format!("\"{text} {}\"", random.pick(&STRANGE_UNITS)),
            }
        }
        "boolean" if random.one_in(3) => {
            let (word, tick) = if expected == &json!(true) { ("yes", "❌") } else { ("no", "✅") };
            let (word, tick) = (word.to_owned(), format!("\"{word} {tick}\""));
            if random.one_in(2) { tick } else { hedged(random, &word, "fail") }
        }
        "boolean" => (if expected == &json!(true) { "false" } else { "\"pass\"" }).to_owned(),
        "choice" if random.one_in(3) => hedged(random, expected.as_str().unwrap(), "N20, C25/30"),
        "choice" => {
            let other = random.item(&OPTIONS);
            if expected == other { "\"none of them\"".to_owned() } else { format!("\"{other}\"") }
        }
        _ if random.one_in(3) => {
            let text = expected.as_array().map_or(expected, |accept| random.item(accept)).as_str().unwrap();
            let text = text.to_owned();
            hedged(random, &text, "other text 7")
        }
        _ => "\"something else\"".to_owned(),
    };
    (text, Known::Wrong)
}

/// Two answers in one value, or doubt about one.
fn hedged(random: &mut Random, text: &str, other: &str) -> String {
    match random.below(10) {
        0 => format!("\"{text} or {other}\""),
        1 => format!("\"{text} (or {other})\""),
        2 => format!("\"{text} [{other} or so]\""),
        3 => format!("\"**{text}** **{other}**\""),
        4 => format!("\"{text}?\""),
        5 => format!("\"{text} (?)\""),
        6 => format!("[\"{text}\", \"{other}\"]"),
        7 => format!("\"${text}$ / ${other}$\""),
        8 => format!("\"!{text}\""),
        _ => format!("\"{text} (alternatively {other})\""),
    }
}
