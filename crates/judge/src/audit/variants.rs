//! Variants of an answer: wrong ones, which must lose, and equivalent ones, which must not.

use serde_json::{Map, Number, Value, json};

use super::answer::Answer;

#[derive(Clone, Debug)]
pub(crate) struct Variant {
    pub(crate) name: String,
    pub(crate) output: Vec<u8>,
}

pub(crate) fn variant(name: impl Into<String>, output: Vec<u8>) -> Variant {
    Variant { name: name.into(), output }
}

/// Answers that are wrong in one place or in all of them.
pub(crate) fn mutants(golden: &Answer) -> Vec<Variant> {
    let mut mutants = Vec::new();
    let object = &golden.object;
    for (key, value) in object {
        for (how, changed) in wrong_values(value) {
            mutants.push(variant(format!("{key} {how}"), golden.with(&replaced(object, key, changed))));
        }
        let mut without = object.clone();
        without.shift_remove(key);
        mutants.push(variant(format!("{key} left out"), golden.with(&without)));
        if value.is_number() {
            for word in ["NaN", "Infinity", "1e999"] {
                let marker = "\u{1}marker\u{1}";
                let text =
                    serde_json::to_string_pretty(&replaced(object, key, json!(marker))).unwrap_or_default();
                let quoted = serde_json::to_string(marker).unwrap_or_default();
                mutants.push(variant(
                    format!("{key} is {word}"),
                    golden.with_text(&text.replace(&quoted, word)),
                ));
            }
        }
    }
    mutants.extend(swapped(golden));
    let numbers = |change: &dyn Fn(f64) -> f64| -> Map<String, Value> {
        object.iter().map(|(key, value)| (key.clone(), map_number(value, change))).collect()
    };
    if object.values().any(Value::is_number) {
        mutants
            .push(variant("every number times ten", golden.with(&numbers(&|number| number * 10.0 + 10.0))));
        mutants.push(variant("every number halved", golden.with(&numbers(&|number| number / 2.0 - 1.0))));
    }
    mutants
}

fn wrong_values(value: &Value) -> Vec<(&'static str, Value)> {
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(0.0);
            let mut wrong = vec![("is null", Value::Null), ("is a word", json!("unknown"))];
            let mut change = |how, changed: f64| {
                if let Some(changed) = Number::from_f64(changed) {
                    wrong.push((how, Value::Number(changed)));
                }
            };
            if number == 0.0 {
                change("is a hundred", 100.0);
            } else {
                change("is zero", 0.0);
                change("has the other sign", -number);
                change("is half as much again", number * 1.5);
                change("is ten times as much", number * 10.0);
                change("is a thousand times as much", number * 1000.0);
                change("is a thousandth", number / 1000.0);
            }
            wrong
        }
        Value::Bool(truth) => vec![("is the opposite", json!(!truth)), ("is null", Value::Null)],
        Value::String(_) => vec![("is another word", json!("something else")), ("is null", Value::Null)],
        Value::Array(_) => vec![("is empty", json!([])), ("is null", Value::Null)],
        Value::Object(_) => vec![("is empty", json!({})), ("is null", Value::Null)],
        Value::Null => Vec::new(),
    }
}

/// Answers with two numbers swapped, if that makes a difference.
fn swapped(golden: &Answer) -> Vec<Variant> {
    let numbers: Vec<(&String, f64)> =
        golden.object.iter().filter_map(|(key, value)| Some((key, value.as_f64()?))).collect();
    numbers
        .windows(2)
        .filter(|pair| (pair[0].1 - pair[1].1).abs() > 0.2 * pair[0].1.abs().max(pair[1].1.abs()))
        .map(|pair| {
            let mut object = golden.object.clone();
            let first = golden.object[pair[0].0].clone();
            let second = golden.object[pair[1].0].clone();
            object.insert(pair[0].0.clone(), second);
            object.insert(pair[1].0.clone(), first);
            variant(format!("{} and {} swapped", pair[0].0, pair[1].0), golden.with(&object))
        })
        .collect()
}

fn map_number(value: &Value, change: &dyn Fn(f64) -> f64) -> Value {
    match value.as_f64().and_then(|number| Number::from_f64(change(number))) {
        Some(number) => Value::Number(number),
        None => value.clone(),
    }
}

pub(crate) fn replaced(object: &Map<String, Value>, key: &str, value: Value) -> Map<String, Value> {
    let mut changed = object.clone();
    changed.insert(key.to_owned(), value);
    changed
}

/// Answers with the same meaning in other spellings. `generous` adds those that only the standard contract accepts.
pub(crate) fn equivalents(golden: &Answer, generous: bool) -> Vec<Variant> {
    let object = &golden.object;
    let reversed: Map<String, Value> =
        object.iter().rev().map(|(key, value)| (key.clone(), value.clone())).collect();
    let mut extra = object.clone();
    extra.insert("remark".to_owned(), json!("checked twice"));
    let pretty = String::from_utf8_lossy(&golden.with(object)).into_owned();
    let compact = serde_json::to_string(object).unwrap_or_default();
    let mut equal = vec![
        variant("keys in another order", golden.with(&reversed)),
        variant("one more key", golden.with(&extra)),
        variant("without white space", golden.with_text(&compact)),
        variant("Windows line ends", pretty.replace('\n', "\r\n").into_bytes()),
        variant("white space at the end", format!("{pretty}\n\n").into_bytes()),
        variant("trailing zeros", golden.with_text(&trailing_zeros(object))),
    ];
    if generous {
        let strings: Map<String, Value> = object
            .iter()
            .map(|(key, value)| {
                (key.clone(), if value.is_number() { json!(value.to_string()) } else { value.clone() })
            })
            .collect();
        equal.extend([
            variant("byte-order mark", format!("\u{feff}{pretty}").into_bytes()),
            variant("a fence in capitals", format!("```JSON\n{compact}\n```\n").into_bytes()),
            variant("a bare fence", format!("```\n{compact}\n```\n").into_bytes()),
            variant("a fence on one line", format!("```json {compact} ```").into_bytes()),
            variant(
                "prose around it",
                format!("The answer is:\n\n{compact}\n\nas computed above.\n").into_bytes(),
            ),
            variant(
                "an unrelated block behind it",
                format!("{compact}\n\n```json\n{{\"author\": \"agent\"}}\n```\n").into_bytes(),
            ),
            variant("said twice", format!("{compact}\n{compact}\n").into_bytes()),
            variant("numbers as text", golden.with(&strings)),
        ]);
    }
    equal
}

/// The answer in forms that models write and the standard scorer reads.
pub(crate) fn dressed(golden: &Answer) -> Vec<Variant> {
    let each = |change: &dyn Fn(&str) -> Value| -> Map<String, Value> {
        let changed = golden.object.iter().map(|(key, value)| {
            let text = plain_text(value).filter(|text| !text.contains(['*', '$', '`', '(']));
            (key.clone(), text.map_or_else(|| value.clone(), |text| change(&text)))
        });
        changed.collect()
    };
    let lists: Map<String, Value> = golden
        .object
        .iter()
        .map(|(key, value)| {
            (key.clone(), if plain_text(value).is_some() { json!([value]) } else { value.clone() })
        })
        .collect();
    let mut nested: Map<String, Value> = golden.object.clone();
    let inner: Map<String, Value> =
        golden.object.iter().skip(1).map(|(key, value)| (key.clone(), value.clone())).collect();
    nested.retain(|key, _| !inner.contains_key(key));
    nested.insert("further_results".to_owned(), Value::Object(inner));
    let places: Map<String, Value> = golden.object.keys().map(|key| (key.clone(), json!("..."))).collect();
    let compact = |object: &Map<String, Value>| serde_json::to_string(object).unwrap_or_default();
    let filled = format!("{}\n\n{}", compact(&places), compact(&golden.object));
    vec![
        variant("values in bold", golden.with(&each(&|text| json!(format!("**{text}**"))))),
        variant("values as code", golden.with(&each(&|text| json!(format!("`{text}`"))))),
        variant("values as formulas", golden.with(&each(&|text| json!(format!("${text}$"))))),
        variant("values with a remark", golden.with(&each(&|text| json!(format!("{text} (governing)"))))),
        variant("values behind an equals sign", golden.with(&each(&|text| json!(format!("= {text}"))))),
        variant("values in lists of one", golden.with(&lists)),
        variant("all but one key one level deeper", golden.with(&nested)),
        variant("places to fill before it", golden.with_text(&filled)),
    ]
}

/// The answer with a second value for one key, which must not pay.
pub(crate) fn hedged(golden: &Answer) -> Vec<Variant> {
    let mut variants = Vec::new();
    for (key, value) in &golden.object {
        let Some(text) = plain_text(value) else { continue };
        let other = match value {
            Value::Number(number) => (number.as_f64().unwrap_or_default() * 1.5 + 7.0).to_string(),
            Value::Bool(truth) => (!truth).to_string(),
            _ => "something else".to_owned(),
        };
        for (how, hedge) in [
            ("hedged with `or`", json!(format!("{text} or {other}"))),
            ("hedged in brackets", json!(format!("{text} (or {other})"))),
            ("hedged in bold", json!(format!("**{text}** **{other}**"))),
            ("hedged in a list", json!([text, other])),
            ("in doubt", json!(format!("{text}?"))),
        ] {
            variants
                .push(variant(format!("{key} {how}"), golden.with(&replaced(&golden.object, key, hedge))));
        }
    }
    variants
}

/// The text of a value that is neither a list nor an object nor null.
fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// `2.5` as `2.500`: the same number.
fn trailing_zeros(object: &Map<String, Value>) -> String {
    let fields: Vec<String> = object
        .iter()
        .map(|(key, value)| {
            let key = serde_json::to_string(key).unwrap_or_default();
            match value {
                Value::Number(number) if number.is_f64() && !number.to_string().contains('e') => {
                    format!("{key}: {number}00")
                }
                other => format!("{key}: {other}"),
            }
        })
        .collect();
    format!("{{{}}}", fields.join(", "))
}

/// Answers of agents that do no engineering.
pub(crate) fn null_answers(golden: &Answer, instruction: &str) -> Vec<Variant> {
    let all = |value: &Value| -> Map<String, Value> {
        golden.object.keys().map(|key| (key.clone(), value.clone())).collect()
    };
    let mut nulls = vec![
        variant("an empty file", Vec::new()),
        variant("an empty object", golden.with(&Map::new())),
        variant("the instruction itself", instruction.as_bytes().to_vec()),
    ];
    for (name, value) in [
        ("zeros", json!(0)),
        ("ones", json!(1)),
        ("true everywhere", json!(true)),
        ("pass everywhere", json!("pass")),
        ("yes everywhere", json!("yes")),
    ] {
        nulls.push(variant(name, golden.with(&all(&value))));
    }
    for number in echoed_numbers(instruction) {
        nulls.push(variant(format!("{number} everywhere"), golden.with(&all(&json!(number)))));
    }
    nulls
}

/// The median of each number over similar tasks; `None` with fewer than three tasks.
pub(crate) fn medians(golden: &Answer, siblings: &[&Answer]) -> Option<Variant> {
    const FEWEST: usize = 3;
    if siblings.len() < FEWEST {
        return None;
    }
    let median = |key: &String| {
        let mut numbers: Vec<f64> =
            siblings.iter().filter_map(|sibling| sibling.object.get(key)?.as_f64()).collect();
        numbers.sort_by(f64::total_cmp);
        numbers.get(numbers.len() / 2).copied()
    };
    let usual = golden.object.keys().filter_map(|key| Some((key.clone(), json!(median(key)?)))).collect();
    Some(variant("the medians of similar tasks", golden.with(&usual)))
}

/// The numbers of the instruction, also with other unit prefixes.
fn echoed_numbers(instruction: &str) -> Vec<f64> {
    const MOST: usize = 40;
    let mut numbers: Vec<f64> = Vec::new();
    let words = instruction.split(|c: char| !(c.is_ascii_digit() || c == '.'));
    for number in words.filter_map(|word| word.trim_matches('.').parse::<f64>().ok()) {
        for factor in [1.0, 1000.0, 0.001, 100.0, 0.01] {
            let echoed = number * factor;
            if echoed.is_finite()
                && !numbers.iter().any(|known| (known - echoed).abs() <= echoed.abs() * 1e-9)
            {
                numbers.push(echoed);
            }
        }
    }
    numbers.truncate(MOST);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn golden() -> Answer {
        Answer::parse(b"{\"a\": 2.5, \"b\": 100, \"ok\": true, \"name\": \"x\"}").unwrap()
    }

    #[test]
    fn mutants_differ_and_equivalents_do_not() {
        let golden = golden();
        let mutants = mutants(&golden);
        assert!(mutants.len() > 25, "{}", mutants.len());
        for mutant in &mutants {
            let parsed = Answer::parse(&mutant.output);
            assert!(parsed.is_none_or(|parsed| parsed.object != golden.object), "{}", mutant.name);
        }
        assert!(mutants.iter().any(|mutant| mutant.name == "a and b swapped"));
        assert!(mutants.iter().any(|mutant| String::from_utf8_lossy(&mutant.output).contains("\"a\": NaN")));
        for equal in equivalents(&golden, true) {
            let text = String::from_utf8_lossy(&equal.output).into_owned();
            let first = text.find('{').unwrap();
            let mut stream =
                serde_json::Deserializer::from_str(&text[first..]).into_iter::<Map<String, Value>>();
            let object = stream.next().unwrap().unwrap();
            let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            for (key, value) in &golden.object {
                let (left, right) = (plain(&object[key]), plain(value));
                let same = left == right || left.parse::<f64>().ok() == right.parse::<f64>().ok();
                assert!(same, "{}: {key} is {left}", equal.name);
            }
        }
    }

    #[test]
    fn forms_and_hedges_are_made_of_every_value() {
        let golden = golden();
        let texts = |variants: Vec<Variant>| -> Vec<String> {
            variants.iter().map(|one| String::from_utf8_lossy(&one.output).into_owned()).collect()
        };
        let dressed = texts(dressed(&golden));
        for part in ["\"**2.5**\"", "\"`true`\"", "\"x (governing)\"", "\"further_results\"", "\"a\":\"...\""]
        {
            assert!(dressed.iter().any(|text| text.contains(part)), "{part}");
        }
        let hedged = texts(hedged(&golden));
        assert_eq!(hedged.len(), 5 * golden.object.len());
        assert!(hedged.iter().any(|text| text.contains("\"true or false\"")));
    }

    #[test]
    fn inputs_are_echoed_with_unit_prefixes() {
        let numbers = echoed_numbers("A span of 2.5 m carries 12 kN. Step 3.");
        for expected in [2.5, 2500.0, 12.0, 12_000.0, 0.012, 3.0] {
            assert!(numbers.iter().any(|number| (number - expected).abs() < 1e-9), "{expected}");
        }
    }
}
