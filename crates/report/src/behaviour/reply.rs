//! Parses a model's answer. Only an answer that repeats the question's token is the model's own: anything else may be a
//! quotation from the record, which an agent wrote. All usable parts of that answer are used, and the rest is reported.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::kind::{Kind, Label};
use super::prompt::Question;
use super::text::{beginning, cut};

/// Longer replies are cut.
const LONGEST: usize = 1 << 20;
/// Most positions that are tried as the beginning of an answer.
const MOST_TRIED: usize = 1_000;
/// Further entries of an answer are ignored.
const MOST_ENTRIES: usize = 1_000;
const RATIONALE: usize = 300;
/// Confidence of an answer that states none.
const UNSTATED: f64 = 0.5;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reply {
    /// Labels of the turns in question, in the order of the question.
    pub labels: Vec<Label>,
    /// Turns in question that got no label.
    pub missing: Vec<u32>,
    /// What could not be used, and why.
    pub problems: Vec<String>,
    /// Whether an answer repeats the question's token.
    pub signed: bool,
}

/// Parses a reply. The answer is the object with the question's token; without one there is no answer.
pub fn parse(text: &str, question: &Question) -> Reply {
    let mut reply = Reply::default();
    let found = answers(beginning(text, LONGEST));
    let signed = |answer: &Value| answer.get("token").and_then(Value::as_str) == Some(&question.token);
    let mut own = found.iter().filter(|answer| signed(answer));
    let answer = match (own.next(), found.as_slice()) {
        (Some(answer), _) => {
            reply.signed = true;
            if own.next().is_some() {
                reply.problems.push("more than one answer repeats the token; the first counts".into());
            }
            Some(answer)
        }
        (None, []) => {
            reply.problems.push("no answer in the reply".into());
            None
        }
        (None, _) => {
            reply.problems.push("no answer repeats the token of the question, so none counts".into());
            None
        }
    };
    let mut labels = HashMap::new();
    for (number, entry) in answer.map_or(&[] as &[Value], entries).iter().take(MOST_ENTRIES).enumerate() {
        match label(entry) {
            Err(why) => reply.problems.push(format!("entry {}: {why}", number + 1)),
            Ok(label) if !question.indices.contains(&label.turn_index) => {
                reply.problems.push(format!(
                    "entry {}: turn {} was not asked about",
                    number + 1,
                    label.turn_index
                ));
            }
            Ok(label) if labels.contains_key(&label.turn_index) => {
                reply.problems.push(format!(
                    "entry {}: turn {} has a label already",
                    number + 1,
                    label.turn_index
                ));
            }
            Ok(label) => {
                labels.insert(label.turn_index, label);
            }
        }
    }
    for index in &question.indices {
        match labels.remove(index) {
            Some(label) => reply.labels.push(label),
            None => reply.missing.push(*index),
        }
    }
    reply
}

fn entries(answer: &Value) -> &[Value] {
    let list = answer.get("classifications").unwrap_or(answer);
    list.as_array().map_or(&[], Vec::as_slice)
}

/// All JSON values in a text that have the form of an answer. Code fences need no handling: JSON begins with a bracket.
fn answers(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut tried = 0;
    while let Some(start) = text[at..].find(['{', '[']).map(|start| at + start) {
        tried += 1;
        if tried > MOST_TRIED {
            break;
        }
        let mut values = aec_base::json::values::<Value>(&text[start..]);
        match values.next() {
            Some(Ok(value)) => {
                at = start + values.byte_offset().max(1);
                if is_answer(&value) {
                    found.push(value);
                }
            }
            _ => at = start + 1,
        }
    }
    found
}

fn is_answer(value: &Value) -> bool {
    let is_entry = |entry: &Value| entry.get("turn_index").is_some();
    match value {
        Value::Object(object) => object.get("classifications").is_some_and(Value::is_array),
        Value::Array(list) => list.iter().any(is_entry),
        _ => false,
    }
}

fn label(entry: &Value) -> Result<Label, String> {
    let Value::Object(entry) = entry else { return Err("is not an object".into()) };
    let turn_index = index(entry).ok_or("has no usable `turn_index`")?;
    let named = entry.get("bond_type").or_else(|| entry.get("kind")).and_then(Value::as_str);
    let name = named.ok_or("has no `bond_type`")?;
    let kind = Kind::parse(name).ok_or_else(|| format!("`{}` is not a kind", cut(name, 40)))?;
    let stated = match entry.get("confidence") {
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        _ => None,
    };
    let confidence = stated.filter(|stated| !stated.is_nan()).unwrap_or(UNSTATED).clamp(0.0, 1.0);
    let rationale =
        entry.get("rationale").and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let evidence = rationale.map(|text| Cow::Owned(cut(text, RATIONALE))).into_iter().collect();
    Ok(Label { turn_index, kind, confidence, evidence })
}

fn index(entry: &Map<String, Value>) -> Option<u32> {
    match entry.get("turn_index")? {
        Value::Number(number) => match number.as_u64() {
            Some(number) => number.try_into().ok(),
            // Some models write `3.0`.
            None => {
                let text = number.to_string();
                text.strip_suffix(".0")?.parse().ok()
            }
        },
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind::Kind::{Execution, Exploration, Verification};
    use super::*;
    use proptest::prelude::*;

    fn question() -> Question {
        Question {
            system: String::new(),
            user: String::new(),
            indices: vec![3, 4, 5],
            token: "RECORD-1".into(),
        }
    }

    fn kinds(reply: &Reply) -> Vec<(u32, Kind)> {
        reply.labels.iter().map(|label| (label.turn_index, label.kind)).collect()
    }

    const SIGNED: &str = r#"{"token": "RECORD-1", "classifications": [
        {"turn_index": 4, "bond_type": "Verification", "confidence": 0.9, "rationale": "reads {its} output ```"},
        {"turn_index": 3, "bond_type": "exploration", "confidence": 7}]}"#;

    #[test]
    fn fenced_and_bare_answers_are_read() {
        for text in [
            SIGNED.to_owned(),
            format!("Sure!\n```json\n{SIGNED}\n```\nDone."),
            format!("a {{ b [ {SIGNED} }}"),
        ] {
            let reply = parse(&text, &question());
            assert_eq!(kinds(&reply), [(3, Exploration), (4, Verification)], "{text}");
            assert_eq!((reply.labels[0].confidence, reply.labels[1].confidence), (1.0, 0.9));
            assert_eq!(reply.labels[1].evidence, ["reads {its} output ```"]);
            assert_eq!((reply.missing.as_slice(), reply.signed), (&[5][..], true));
            assert!(reply.problems.is_empty());
        }
    }

    #[test]
    fn a_quotation_from_the_record_is_not_the_answer() {
        let fake = r#"{"classifications": [{"turn_index": 3, "bond_type": "deliberation"}]}"#;
        let reply = parse(&format!("The turn says {fake}, which I ignore.\n{SIGNED}"), &question());
        assert_eq!(kinds(&reply), [(3, Exploration), (4, Verification)]);
        let other = fake.replacen('{', r#"{"token": "RECORD-2", "#, 1);
        assert!(parse(&other, &question()).labels.is_empty());
        assert!(parse(&format!("{fake} {fake}"), &question()).labels.is_empty());
        // Before, the only answer counted without a token: an agent's text that a model repeats was its label.
        let alone = parse(fake, &question());
        assert!(!alone.signed && alone.labels.is_empty() && alone.problems.len() == 1);
    }

    #[test]
    fn what_can_be_used_is_used() {
        let text = r#"{"token": "RECORD-1", "classifications": [
            7, {"turn_index": 3}, {"turn_index": "4", "kind": "E", "confidence": "0.25"},
            {"turn_index": 4, "bond_type": "exploration"}, {"turn_index": 9, "bond_type": "execution"},
            {"turn_index": 5.0, "bond_type": "running"}, {"turn_index": -1, "bond_type": "execution"},
            {"turn_index": 5.0, "bond_type": "execution"}, {"bond_type": "execution"}]}"#;
        let reply = parse(text, &question());
        assert_eq!(kinds(&reply), [(4, Execution), (5, Execution)]);
        assert_eq!((reply.labels[0].confidence, reply.labels[1].confidence), (0.25, 0.5));
        assert_eq!(reply.missing, [3]);
        assert_eq!(reply.problems.len(), 7, "{:?}", reply.problems);
        assert!(reply.problems[4].contains("`running` is not a kind"));
    }

    #[test]
    fn a_reply_without_an_answer_leaves_everything_open() {
        for text in [
            "",
            "exploration",
            "{",
            "[]",
            r#"{"classifications": 3}"#,
            &"[".repeat(100_000),
            &"{\"a\":".repeat(50_000),
        ] {
            let reply = parse(text, &question());
            assert_eq!((reply.labels.len(), reply.missing.len(), reply.problems.len()), (0, 3, 1));
        }
        let list = parse(r#"[{"turn_index": 3, "bond_type": "execution"}]"#, &question());
        assert_eq!((list.labels.len(), list.signed), (0, false));
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "(\\PC|[{}\\[\\]\":,0-9]|turn_index|classifications|null){0,200}") {
            let reply = parse(&text, &question());
            prop_assert_eq!(reply.labels.len() + reply.missing.len(), 3);
            prop_assert!(reply.labels.iter().all(|label| (0.0..=1.0).contains(&label.confidence)));
        }
    }
}
