//! Random answers files.

use serde_json::{Map, Value as Json, json};

use super::{Answers, Random};

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

/// An expected unit and other ways of giving its quantities: text and factor.
pub(super) type Unit = (&'static str, &'static [(&'static str, f64)]);

pub(super) const UNITS: &[Unit] = &[
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

pub(super) const OPTIONS: [&str; 6] = ["C25/30", "C30/37", "steel beam", "Timber", "non-compliant", "N20"];
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

/// Makes one random change below a value: another value, one key less, one key more.
pub(crate) fn change(random: &mut Random, json: &mut Json) {
    let odd = || {
        [
            json!(null),
            json!(true),
            json!(0),
            json!(-1),
            json!(0.5),
            json!(1e9),
            json!(1e300),
            json!(16),
            json!(""),
            json!("..."),
            json!("12"),
            json!("C30/37"),
            json!("kN"),
            json!("number"),
            json!("text"),
            json!("list"),
            json!([]),
            json!({}),
            json!(["a", "A"]),
            json!(["PASS"]),
            json!([1]),
            json!({"a": "Timber"}),
            json!({"c25/30": "Timber"}),
            json!("beam"),
            json!({"type": "boolean"}),
        ]
    };
    let deeper = !random.one_in(4);
    match json {
        Json::Object(map) if !map.is_empty() => {
            let keys: Vec<String> = map.keys().cloned().collect();
            let key = random.item(&keys).clone();
            match random.below(8) {
                0 => drop(map.remove(&key)),
                1 => {
                    let names = [
                        "rel_tol",
                        "abs_tol",
                        "sig",
                        "unit",
                        "unit_words",
                        "difference",
                        "weight",
                        "aliases",
                        "extra",
                        "ordered",
                    ];
                    map.insert((*random.item(&names)).to_owned(), random.item(&odd()).clone());
                }
                _ if deeper => change(random, map.get_mut(&key).unwrap()),
                _ => drop(map.insert(key, random.item(&odd()).clone())),
            }
        }
        Json::Array(items) if !items.is_empty() && deeper => {
            let at = random.below(items.len());
            change(random, &mut items[at]);
        }
        _ => *json = random.item(&odd()).clone(),
    }
}
