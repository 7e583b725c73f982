//! Makes submissions from values: one object or several, in every accepted syntax, and damaged ones.

use super::texts::{spelled, value};
use super::{Answers, Known, Random, Submission};

const CHARACTERS: [&str; 56] = [
    "{", "}", "[", "]", "\"", "'", ",", ":", "\\", "/", "#", "//", "/*", "*/", "```", "~~~json", "\n",
    "\r\n", " ", "\u{a0}", "\u{2009}", "\u{feff}", "0", "1", "9", ".", "-", "−", "e", "E", "x10^", "×", "²",
    "%", "°", "np.", "\u{0}", "\u{7f}", "é", "😀", "**", "*", "_", "__", "`", "$", "=", "(", ")", " (", "✅",
    "❌", "\\text{", "\\times", "\\,", "?",
];

/// A random submission for an answers file.
pub(crate) fn submission(random: &mut Random, answers: &Answers) -> Submission {
    let mut known = Vec::new();
    let mut pairs = Vec::new();
    for (name, spec) in &answers.fields {
        if random.one_in(20) {
            known.push(Known::Wrong);
            continue;
        }
        let (text, mut one) = value(random, spec);
        let mut key = spelled(random, name);
        if let Some(unit) = spec["unit"].as_str().filter(|_| random.one_in(8)) {
            key = with_unit(random, &key, unit);
            // A value in another unit than that of its key is not one value.
            one = if text.parse::<f64>().is_ok() { one } else { Known::Open };
        }
        known.push(one);
        pairs.push((key, text));
    }
    if pairs.is_empty() {
        pairs.push(("nothing".to_owned(), "1".to_owned()));
    }
    if random.one_in(4) {
        pairs.reverse();
    }
    let open = vec![Known::Open; known.len()];
    let object = object(random, &pairs);
    let (text, known) = match random.below(27) {
        0..=7 => (wrapped(random, &object), known),
        8 => (format!("{}\n\nAgain:\n{}", wrapped(random, &object), wrapped(random, &object)), known),
        9 => (format!("{object}\n{{\"note\": \"unrelated\", \"list\": [1, 2]}}"), known),
        10 => (format!("{{\"answers\": {object}}}"), known),
        11 => (format!("[{object}]"), known),
        12 => (serde_json::to_string(&object).unwrap(), known),
        13 => {
            let objects: Vec<String> =
                pairs.iter().map(|pair| self::object(random, std::slice::from_ref(pair))).collect();
            (objects.join("\n"), known)
        }
        14 => {
            let (name, _) = random.item(&pairs).clone();
            (format!("{object}\n```\n{{\"{name}\": 987654.5}}"), open)
        }
        15 => {
            let mut pairs = pairs.clone();
            pairs.push((random.item(&pairs).0.clone(), "\"another\"".to_owned()));
            (self::object(random, &pairs), open)
        }
        16 => {
            let whole = wrapped(random, &object);
            (damaged(random, &whole), open)
        }
        17 => {
            let once = damaged(random, &object);
            (damaged(random, &once), open)
        }
        18 => (object.chars().take(random.below(object.len())).collect(), open),
        19 => (garbage(random, &pairs), open),
        20 => (format!("{}{object}", noise(random)), open),
        21 if random.one_in(10) => (attack(random, &pairs), open),
        21 => (object.replace(['{', '}'], ""), vec![Known::Wrong; known.len()]),
        22 => {
            let half = object.chars().take(object.chars().count() / 2).collect::<String>();
            (format!("{half}{object}"), open)
        }
        23 => {
            let (outer, inner) = pairs.split_at(pairs.len().div_ceil(2));
            let mut outer = outer.to_vec();
            outer.push(("results".to_owned(), self::object(random, inner)));
            (self::object(random, &outer), known)
        }
        24 => {
            let places = [
                "\"...\"",
                "\"<number>\"",
                "\"TBD\"",
                "null",
                "\"[value]\"",
                "\"___\"",
                "{\"value\": \"…\"}",
            ];
            let empty: Vec<(String, String)> =
                pairs.iter().map(|(key, _)| (key.clone(), random.pick(&places).to_owned())).collect();
            (format!("{}\n{object}", self::object(random, &empty)), known)
        }
        25 => {
            let (name, value) = random.item(&pairs).clone();
            let other = self::object(random, &[(name, "\"another\"".to_owned()), ("note".to_owned(), value)]);
            let mut pairs = pairs.clone();
            pairs.push(("other".to_owned(), other));
            (self::object(random, &pairs), open)
        }
        _ if random.one_in(4) => (object.replace('"', "”"), known),
        _ => (object, known),
    };
    // The relaxed grammar cannot read these values, which makes the whole object unreadable.
    let readable = !pairs.iter().any(|(_, value)| {
        ["yes", "Decimal(2)", "np.array(3)", "12 # note"].iter().any(|bad| value.contains(bad))
    });
    let known = if readable { known } else { vec![Known::Open; answers.fields.len()] };
    Submission { bytes: encoded(random, &text), known }
}

/// A key that states a unit.
fn with_unit(random: &mut Random, key: &str, unit: &str) -> String {
    match random.below(5) {
        0 => format!("{key}_{unit}"),
        1 => format!("{key} [{unit}]"),
        2 => format!("{key} in {}", unit.to_uppercase()),
        3 => format!("{key}_{}", unit.to_lowercase().replace(['.', '/', '(', ')'], "_")),
        _ => format!("{key} ({unit})"),
    }
}

fn encoded(random: &mut Random, text: &str) -> Vec<u8> {
    match random.below(30) {
        0 => format!("\u{feff}{text}").into_bytes(),
        1 => [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect(),
        2 => [0xfe, 0xff].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect(),
        _ => text.as_bytes().to_vec(),
    }
}

/// One object in a random syntax.
fn object(random: &mut Random, pairs: &[(String, String)]) -> String {
    let (gap, end) =
        *random.item(&[("", ""), (" ", " "), ("\n  ", "\n"), ("\r\n\t", "\r\n"), ("\u{a0}", "")]);
    let mut text = "{".to_owned();
    for (at, (key, value)) in pairs.iter().enumerate() {
        let bare = key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
        let key = match random.below(8) {
            0 => format!("'{key}'"),
            1 if bare => key.clone(),
            _ => format!("\"{key}\""),
        };
        text.push_str(gap);
        text.push_str(&format!("{key}:{}{value}", random.pick(&["", " ", "  "])));
        let last = at + 1 == pairs.len();
        if !last || random.one_in(4) {
            text.push(',');
        }
        match random.below(20) {
            0 => text.push_str(" // a comment, \"quoted\"\n"),
            1 => text.push_str(" # another {\n"),
            2 => text.push_str(" /* third } */ "),
            _ => {}
        }
    }
    text.push_str(end);
    text.push('}');
    text
}

fn wrapped(random: &mut Random, object: &str) -> String {
    match random.below(9) {
        0 => format!("```json\n{object}\n```"),
        1 => format!("Here it is:\n\n  ~~~JSON\n{object}\n  ~~~\nDone {{really}}."),
        2 => format!("```{object}```"),
        3 => format!("```\r\n{object}"),
        4 => format!(
            "I don't know {{x}}, but \\frac{{1}}{{2}} and {object} it's fine, see {{\"format\": <number>}}"
        ),
        5 => format!("\n\n {object} \n"),
        6 => format!("{{\"ignored\": {{\"a\": [1, {{\"b\": null}}]}}}}\n{object}"),
        _ => object.to_owned(),
    }
}

fn damaged(random: &mut Random, text: &str) -> String {
    let mut characters: Vec<String> = text.chars().map(String::from).collect();
    for _ in 0..=random.below(3) {
        if characters.is_empty() {
            break;
        }
        let at = random.below(characters.len());
        let new = random.pick(&CHARACTERS).to_owned();
        match random.below(4) {
            0 => drop(characters.remove(at)),
            1 => characters[at] = new,
            2 => characters.insert(at, new),
            _ => {
                let other = random.below(characters.len());
                characters.swap(at, other);
            }
        }
    }
    characters.concat()
}

fn noise(random: &mut Random) -> String {
    (0..random.below(12)).map(|_| random.pick(&CHARACTERS)).collect()
}

fn garbage(random: &mut Random, pairs: &[(String, String)]) -> String {
    let mut text = String::new();
    for _ in 0..random.below(30) {
        match random.below(4) {
            0 => text.push_str(&random.item(pairs).1),
            1 => text.push_str(&format!("\"{}\":", random.item(pairs).0)),
            _ => text.push_str(random.pick(&CHARACTERS)),
        }
    }
    text
}

/// Small versions of attacks that should exhaust a scorer.
fn attack(random: &mut Random, pairs: &[(String, String)]) -> String {
    let (name, value) = random.item(pairs).clone();
    let pair = format!("\"{name}\": {value}");
    match random.below(9) {
        0 => format!("{{{pair}}}{}", "{#".repeat(250 + random.below(30))),
        1 => format!("{{{pair}}}{}", "{/*".repeat(250 + random.below(300))),
        2 => format!("{{{pair}}} ").repeat(60 + random.below(10)),
        3 => {
            format!("{}{pair}{}", "{\"a\":".repeat(60), "}".repeat(60)).replace("\"a\":\"", "\"a\":{\"") + "}"
        }
        4 => format!("{}{{{pair}}}{}", "{\"a\":".repeat(55 + random.below(20)), "}".repeat(75)),
        5 => format!("{{\"{name}\": {}1{}}}", "[".repeat(70), "]".repeat(70)),
        6 => format!("{{\"{name}\": [{}]}}", "1,".repeat(12 + random.below(36))),
        7 => format!("{{\"{name}\": {}}}", "9".repeat(250 + random.below(12))),
        _ => format!("{{\"{name}\": \"{}\"}}", "\\".repeat(random.below(200))),
    }
}
