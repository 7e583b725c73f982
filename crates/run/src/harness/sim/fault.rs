//! Typical mistakes of engineers with a number.

use std::f64::consts::PI;

use serde_json::{Number, Value};

use super::chance::Chance;

/// A smaller relative change would count as right.
const NOTICED: f64 = 0.02;

/// Every kind of mistake with one number; results use these words.
const KINDS: [&str; 5] = ["unit_slip", "sign", "factor_forgotten", "rounded_too_early", "stale_value"];

/// A wrong number, and the mistake. If one kind of mistake does not change the number, another is used.
pub(crate) fn wrong_number(right: f64, chance: &mut Chance) -> (f64, &'static str) {
    for kind in chance.shuffled(KINDS.to_vec()) {
        let wrong = match kind {
            "unit_slip" => right * [1000.0, 0.001, 10.0][chance.below(3)],
            "sign" => -right,
            "factor_forgotten" => {
                let factor = [2.0, PI, 9.81, 3.0_f64.sqrt()][chance.below(4)];
                if chance.happens(0.5) { right * factor } else { right / factor }
            }
            "rounded_too_early" => format!("{right:.1e}").parse().unwrap_or(right),
            _ => {
                let off = 0.1 + 0.2 * chance.unit();
                right * if chance.happens(0.5) { 1.0 + off } else { 1.0 - off }
            }
        };
        let wrong = tidy(wrong);
        if wrong.is_finite() && (wrong - right).abs() > NOTICED * right.abs() {
            return (wrong, kind);
        }
    }
    // Only 0 stays unchanged by all of these.
    (1.0, "stale_value")
}

/// Removes digits that only come from floating-point arithmetic.
fn tidy(value: f64) -> f64 {
    format!("{value:.9e}").parse().unwrap_or(value)
}

pub(crate) fn json_number(value: f64, whole: bool) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and small")]
    if whole && value.fract() == 0.0 && value.abs() < 9e15 {
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// A wrong value: numbers by a mistake, booleans negated, texts replaced. `None` means that the field is left out, the
/// only mistake possible with null.
pub(crate) fn wrong_value(right: &Value, chance: &mut Chance) -> Option<(Value, &'static str)> {
    match right {
        Value::Number(number) => {
            let value = number.as_f64()?;
            let (wrong, kind) = wrong_number(value, chance);
            Some((json_number(wrong, number.is_i64() || number.is_u64()), kind))
        }
        Value::Bool(truth) => Some((Value::Bool(!truth), "sign")),
        Value::String(text) => Some((Value::String(wrong_text(text, chance)), "stale_value")),
        Value::Array(items) if !items.is_empty() => {
            let index = chance.below(items.len());
            let (wrong, kind) = wrong_value(&items[index], chance)?;
            let mut items = items.clone();
            items[index] = wrong;
            Some((Value::Array(items), kind))
        }
        Value::Object(fields) if !fields.is_empty() => {
            let index = chance.below(fields.len());
            let (key, right) = fields.iter().nth(index)?;
            let (wrong, kind) = wrong_value(right, chance)?;
            let mut fields = fields.clone();
            fields.insert(key.clone(), wrong);
            Some((Value::Object(fields), kind))
        }
        _ => None,
    }
}

/// A text with its numbers wrong, or an empty phrase.
fn wrong_text(text: &str, chance: &mut Chance) -> String {
    let changed = super::answer::wrong_numbers(text, 1.0, chance).0;
    if changed == text { "to be confirmed".to_owned() } else { changed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_number_is_always_wrong() {
        for seed in 0..2000 {
            let mut chance = Chance::new(&[1; 32], seed, 0.5);
            for right in [0.0, 1.0, -3.5, 1e-9, 4.2e12, 25.0, 0.000_123, f64::MAX, f64::MIN_POSITIVE] {
                let (wrong, kind) = wrong_number(right, &mut chance);
                assert!(
                    wrong.is_finite() && (wrong - right).abs() > 0.019 * right.abs(),
                    "{right} {wrong} {kind}"
                );
                assert!(right != 0.0 || wrong.abs() > 0.0);
            }
        }
    }

    #[test]
    fn whole_numbers_stay_whole_where_they_can() {
        assert_eq!(json_number(25_000.0, true).to_string(), "25000");
        assert_eq!(json_number(0.025, true).to_string(), "0.025");
        assert_eq!(json_number(25.0, false).to_string(), "25.0");
    }

    #[test]
    fn every_kind_of_value_can_be_wrong() {
        let mut chance = Chance::new(&[1; 32], 3, 0.5);
        for right in [
            serde_json::json!(true),
            serde_json::json!("use 25 mm2"),
            serde_json::json!("steel"),
            serde_json::json!([1, 2, 3]),
            serde_json::json!({ "a": [{ "b": 2.5 }] }),
        ] {
            assert_ne!(wrong_value(&right, &mut chance).unwrap().0, right);
        }
        assert!(wrong_value(&Value::Null, &mut chance).is_none());
        assert!(wrong_value(&serde_json::json!([]), &mut chance).is_none());
    }
}
