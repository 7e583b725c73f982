//! Takes values out of an object: a value that is null, not finite or of another type counts as absent.

use serde_json::{Map, Value};

pub(crate) type Object = Map<String, Value>;

/// The kind of a value, with its article.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// A text that is not empty.
pub(crate) fn text(object: &Object, key: &str) -> Option<String> {
    object.get(key)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The first of some keys that holds a text that is not empty.
pub(crate) fn first_text(object: &Object, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| text(object, key))
}

/// A text or a number, as text: ids may be either.
pub(crate) fn id(object: &Object, key: &str) -> Option<String> {
    match object.get(key)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        // Beyond this size, different numbers become equal when read as floats.
        Value::Number(number) if number.as_f64().is_some_and(|size| number.is_f64() && size.abs() > 9e15) => {
            None
        }
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

pub(crate) fn number(object: &Object, key: &str) -> Option<f64> {
    object.get(key)?.as_f64().filter(|number| number.is_finite())
}

/// A non-negative integer; `43.0` is 43.
pub(crate) fn count(object: &Object, key: &str) -> Option<u64> {
    let value = object.get(key)?;
    value.as_u64().or_else(|| whole(value.as_f64()?))
}

pub(crate) fn flag(object: &Object, key: &str) -> Option<bool> {
    object.get(key)?.as_bool()
}

pub(crate) fn object<'a>(object: &'a Object, key: &str) -> Option<&'a Object> {
    object.get(key)?.as_object()
}

/// A value moved out of an object; null counts as absent.
pub(crate) fn take(object: &mut Object, key: &str) -> Option<Value> {
    object.remove(key).filter(|value| !value.is_null())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole, not negative and below 2^53: nothing is lost"
)]
fn whole(number: f64) -> Option<u64> {
    const LARGEST: f64 = 9_007_199_254_740_992.0;
    (number.fract() == 0.0 && (0.0..LARGEST).contains(&number)).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_count_is_whole_and_not_negative() {
        for (value, expected) in [
            (json!(3), Some(3)),
            (json!(43.0), Some(43)),
            (json!(0.5), None),
            (json!(-1), None),
            (json!(-1.0), None),
            (json!(1e300), None),
            (json!("3"), None),
            (json!(null), None),
        ] {
            let mut object = Object::new();
            object.insert("n".to_owned(), value.clone());
            assert_eq!(count(&object, "n"), expected, "{value}");
        }
    }
}
