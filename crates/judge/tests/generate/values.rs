//! Random answers files, and texts of values that are right or wrong for them.

use serde_json::{Map, Value as Json, json};

use super::{Answers, Known, Random};

const NAMES: [&str; 14] = [
    "moment",
    "shear_force",
    "Voltage drop",
    "cable-size",
    "n_bolts",
    "compliant",
    "grade",
    "standard",
    "loads",
    "beam_table",
    "ΔT",
    "flow rate",
    "Größe",
    "utilisation",
];

/// An expected unit, and how its quantities may be given: text and factor to multiply with.
type Unit = (&'static str, &'static [(&'static str, f64)]);

const UNITS: &[Unit] = &[
    ("", &[("", 1.0), ("-", 1.0), ("ratio", 1.0), ("%", 100.0), ("m/m", 1.0), ("mm/m", 1000.0)]),
    ("kN", &[("kN", 1.0), ("N", 1e3), ("MN", 1e-3), ("KN", 1.0), ("kip", 0.224_808_943_099_710_5)]),
    (
        "kN.m",
        &[
            ("kNm", 1.0),
            ("kN·m", 1.0),
            ("kN-m", 1.0),
            ("kN m", 1.0),
            ("N.m", 1e3),
            ("kN*m", 1.0),
            ("(kNm)", 1.0),
        ],
    ),
    (
        "MPa",
        &[
            ("MPa", 1.0),
            ("N/mm2", 1.0),
            ("N/mm²", 1.0),
            ("Mpa", 1.0),
            ("kPa", 1e3),
            ("GPa", 1e-3),
            ("N mm^-2", 1.0),
        ],
    ),
    (
        "m",
        &[
            ("m", 1.0),
            ("mm", 1e3),
            ("cm", 100.0),
            ("km", 1e-3),
            ("metres", 1.0),
            ("ft", 3.280_839_895_013_123),
        ],
    ),
    ("mm2", &[("mm2", 1.0), ("mm^2", 1.0), ("mm²", 1.0), ("cm2", 0.01), ("m**2", 1e-6)]),
    ("L/s", &[("L/s", 1.0), ("l/s", 1.0), ("m3/h", 3.6), ("m³/s", 1e-3), ("L per s", 1.0), ("lps", 1.0)]),
    ("mV/(A.m)", &[("mV/(A.m)", 1.0), ("mV/A.m", 1.0), ("mV/A/m", 1.0), ("V/(A·km)", 1.0)]),
    ("%", &[("%", 1.0), ("percent", 1.0), ("-", 0.01), ("pct", 1.0)]),
    (
        "W/(m2.K)",
        &[("W/(m2.K)", 1.0), ("W/m²K", 1.0), ("W/m2.K", 1.0), ("W m-2 K-1", 1.0), ("kW/(m².°C)", 1e-3)],
    ),
    ("kVA", &[("kVA", 1.0), ("VA", 1e3), ("MVA", 1e-3)]),
    ("deg", &[("deg", 1.0), ("°", 1.0), ("rad", 0.017_453_292_519_943_295), ("degrees", 1.0)]),
    ("degC", &[("°C", 1.0), ("C", 1.0), ("deg C", 1.0), ("℃", 1.0)]),
    ("ohm/km", &[("ohm/km", 1.0), ("Ω/km", 1.0), ("mΩ/m", 1.0), ("Ohms/km", 1.0)]),
    ("lbf", &[("lbf", 1.0), ("lb", 1.0), ("lbs", 1.0), ("kip", 1e-3)]),
    ("kg/m3", &[("kg/m3", 1.0), ("kg/m³", 1.0), ("t/m3", 1e-3), ("kg m⁻³", 1.0)]),
];

/// Units of no kind above, and texts that are no unit.
const STRANGE_UNITS: [&str; 16] = [
    "cd", "kW/kVA.s", "or 13", "furlongs", "kN/kN/m7", "m12", "dB", "Hz2", "±1", "/", "(m", "per m", "mol",
    "m::n", "x10^", "K.A",
];

const OPTIONS: [&str; 6] = ["C25/30", "C30/37", "steel beam", "Timber", "non-compliant", "N20"];
const TEXTS: [&str; 6] =
    ["AS 3600", "Eurocode 2", "BS EN 1992-1-1", "Müller's method", "Σ moments", "pump house"];

fn shuffled<'a, T>(random: &mut Random, items: &'a [T]) -> Vec<&'a T> {
    let mut items: Vec<&T> = items.iter().collect();
    for at in (1..items.len()).rev() {
        items.swap(at, random.below(at + 1));
    }
    items
}

/// A random answers file.
pub(crate) fn answers(random: &mut Random) -> Answers {
    let count = 1 + random.below(6);
    let names: Vec<&str> = shuffled(random, &NAMES).into_iter().take(count).copied().collect();
    let mut fields = Vec::new();
    for name in names {
        let mut spec = field(random);
        if random.one_in(3) {
            spec.insert("weight".to_owned(), json!(random.number(2).abs()));
        }
        if random.one_in(4) {
            spec.insert("meaning".to_owned(), json!("what is | asked\nfor"));
        }
        fields.push((name.to_owned(), Json::Object(spec)));
    }
    let object: Map<String, Json> = fields.iter().cloned().collect();
    let text = json!({"version": 1, "output": "output.json", "fields": object}).to_string();
    Answers { text, fields }
}

fn field(random: &mut Random) -> Map<String, Json> {
    let kind = random.below(9);
    let json = match kind {
        5 => list(random),
        6 => table(random),
        _ => {
            let mut spec = scalar(random, kind);
            let value = expected(random, &spec);
            let key = if spec["type"] == "text" { "accept" } else { "value" };
            let value = if key == "accept" && !value.is_array() { json!([value]) } else { value };
            spec.as_object_mut().unwrap().insert(key.to_owned(), value);
            spec
        }
    };
    json.as_object().unwrap().clone()
}

/// A field without its value: 0 and 1 number, 2 integer, 3 boolean, 4 choice, else text.
fn scalar(random: &mut Random, kind: usize) -> Json {
    match kind {
        0 | 1 => {
            let mut spec = json!({"type": "number"});
            let (unit, _) = random.item(UNITS);
            if !unit.is_empty() {
                spec["unit"] = json!(unit);
            }
            match random.below(4) {
                0 => spec["rel_tol"] = json!(0.01),
                1 => spec["abs_tol"] = json!(random.number(1).abs()),
                2 => spec["sig"] = json!(1 + random.below(4)),
                _ => {
                    spec["rel_tol"] = json!(0.001);
                    spec["abs_tol"] = json!(0);
                }
            }
            if *unit == "degC" && random.one_in(2) {
                spec["difference"] = json!(true);
            }
            if random.one_in(8) {
                spec["unit_words"] = json!(["units of it"]);
            }
            spec
        }
        2 if random.one_in(3) => json!({"type": "integer", "unit": "m"}),
        2 => json!({"type": "integer"}),
        3 if random.one_in(3) => {
            json!({"type": "boolean", "true_words": ["adequate"], "false_words": ["not ok"]})
        }
        3 => json!({"type": "boolean"}),
        4 => {
            let mut spec = json!({"type": "choice", "options": OPTIONS});
            if random.one_in(3) {
                spec["aliases"] = json!({"wood": "Timber", "c30": "C30/37"});
            }
            spec
        }
        _ => json!({"type": "text"}),
    }
}

fn expected(random: &mut Random, spec: &Json) -> Json {
    match spec["type"].as_str().unwrap() {
        "number" if spec["abs_tol"].is_number() && random.one_in(8) => json!(0),
        "number" if random.one_in(3) => json!(1 + random.below(5000)),
        "number" => json!(random.number(4)),
        "integer" if random.one_in(6) => {
            json!(format!("{}{:018}", 1 + random.below(900), random.below(1_000_000)))
        }
        "integer" => json!(i64::try_from(random.below(3000)).unwrap() - 500),
        "boolean" => json!(random.one_in(2)),
        "choice" => json!(random.item(&OPTIONS)),
        _ if random.one_in(3) => json!(["AS 3600", "AS3600"]),
        _ => json!(random.item(&TEXTS)),
    }
}

fn list(random: &mut Random) -> Json {
    let kind = random.below(6);
    let item = scalar(random, kind);
    let items: Vec<Json> = (0..random.below(6)).map(|_| expected(random, &item)).collect();
    json!({"type": "list", "item": item, "items": items, "ordered": random.one_in(2)})
}

fn table(random: &mut Random) -> Json {
    let mut columns = json!({"beam": {"type": if random.one_in(2) { "text" } else { "integer" }}});
    for name in ["Load", "span m", "ok"].into_iter().take(1 + random.below(3)) {
        let kind = random.below(6);
        columns[name] = scalar(random, kind);
    }
    let rows: Vec<Json> = (0..=random.below(4))
        .map(|at| {
            let mut row = Map::new();
            for (name, spec) in columns.as_object().unwrap() {
                let value = match (name.as_str(), spec["type"].as_str()) {
                    ("beam", Some("text")) => json!(format!("B{at}")),
                    ("beam", _) => json!(at),
                    _ => expected(random, spec),
                };
                row.insert(name.clone(), value);
            }
            Json::Object(row)
        })
        .collect();
    json!({"type": "table", "key": "beam", "columns": columns, "rows": rows})
}

/// The text of a value for a field as it stands behind the key, and whether it must be right or wrong.
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
        // Wrong for its own item may be right for another.
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

/// Values of the wrong kind and edges of grammars.
fn strange(random: &mut Random) -> String {
    let texts = [
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
    ];
    random.pick(&texts).to_owned()
}

/// A text of the expected value.
fn right(random: &mut Random, spec: &Json, expected: &Json) -> (String, Known) {
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
        3 => format!("\"{text}.00\""),
        4 => format!("{{\"value\": {text}}}"),
        _ => text,
    }
}

/// A text of another value than the expected one.
fn wrong(random: &mut Random, spec: &Json, expected: &Json) -> (String, Known) {
    let text = match spec["type"].as_str().unwrap() {
        "number" => {
            let value = expected.as_f64().unwrap();
            match random.below(3) {
                0 => format!("\"{value} {}\"", random.pick(&STRANGE_UNITS)),
                1 => format!("[{value}]"),
                _ => return (random.number(3).to_string(), Known::Open),
            }
        }
        "integer" => {
            let text = expected.as_str().map_or_else(|| expected.to_string(), str::to_owned);
            match random.below(3) {
                0 => format!("{text}1"),
                1 => format!("{text}.5"),
                _ => format!("\"{text} {}\"", random.pick(&STRANGE_UNITS)),
            }
        }
        "boolean" => (if expected == &json!(true) { "false" } else { "\"pass\"" }).to_owned(),
        "choice" => {
            let other = random.item(&OPTIONS);
            if expected == other { "\"none of them\"".to_owned() } else { format!("\"{other}\"") }
        }
        _ => "\"something else\"".to_owned(),
    };
    (text, Known::Wrong)
}
