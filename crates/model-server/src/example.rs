//! Makes a minimal value that satisfies a JSON Schema, for the simple cases: the arguments of a tool call.

use serde_json::{Map, Value, json};

use crate::draw::Draws;

/// Recursion stops here, for schemas that contain themselves.
const DEEPEST: usize = 12;

/// A value with the required keys only.
pub(crate) fn example(schema: &Value, draws: &mut Draws) -> Value {
    match value(schema, schema, draws, 0) {
        Value::Null if schema.get("type").is_none() => json!({}),
        value => value,
    }
}

fn value(root: &Value, schema: &Value, draws: &mut Draws, depth: usize) -> Value {
    if depth > DEEPEST {
        return Value::Null;
    }
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        let found = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return found.map_or(Value::Null, |found| value(root, found, draws, depth + 1));
    }
    if let Some(constant) = schema.get("const") {
        return constant.clone();
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array).filter(|choices| !choices.is_empty())
    {
        return choices[usize::try_from(draws.next() % choices.len() as u64).unwrap_or(0)].clone();
    }
    for combination in ["anyOf", "oneOf", "allOf"] {
        if let Some(first) = schema.get(combination).and_then(Value::as_array).and_then(|list| list.first()) {
            return value(root, first, draws, depth + 1);
        }
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str).unwrap_or_default(),
        _ if schema.get("properties").is_some() => "object",
        _ => "",
    };
    match kind {
        "object" => object(root, schema, draws, depth),
        "array" => {
            let count = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(16);
            let item = schema.get("items").cloned().unwrap_or_default();
            (0..count).map(|_| value(root, &item, draws, depth + 1)).collect()
        }
        "string" => {
            let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0).min(4_096);
            let length = usize::try_from(least.max(6)).unwrap_or(6);
            let most = schema.get("maxLength").and_then(Value::as_u64).unwrap_or(u64::MAX);
            Value::String(draws.letters(length.min(usize::try_from(most).unwrap_or(usize::MAX))))
        }
        "integer" => json!(whole_number(schema, draws)),
        "number" => json!(real_number(schema)),
        "boolean" => json!(draws.next().is_multiple_of(2)),
        _ => Value::Null,
    }
}

fn object(root: &Value, schema: &Value, draws: &mut Draws, depth: usize) -> Value {
    let mut object = Map::new();
    let required = schema.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for key in required.iter().filter_map(Value::as_str) {
        let inner =
            schema.get("properties").and_then(|properties| properties.get(key)).unwrap_or(&Value::Null);
        object.insert(key.to_owned(), value(root, inner, draws, depth + 1));
    }
    Value::Object(object)
}

fn whole_number(schema: &Value, draws: &mut Draws) -> i64 {
    let bound = |key: &str| schema.get(key).and_then(Value::as_i64);
    let least = bound("minimum").or_else(|| Some(bound("exclusiveMinimum")?.saturating_add(1)));
    let most = bound("maximum").or_else(|| Some(bound("exclusiveMaximum")?.saturating_sub(1)));
    let drawn = i64::try_from(draws.next() % 10).unwrap_or(0);
    match (least, most) {
        (Some(least), Some(most)) => least.saturating_add(drawn).min(most),
        (Some(least), None) => least.saturating_add(drawn),
        (None, Some(most)) => drawn.min(most),
        (None, None) => drawn,
    }
}

fn real_number(schema: &Value) -> f64 {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum"));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum"));
    match (least, most) {
        (Some(least), Some(most)) => f64::midpoint(least, most),
        (Some(least), None) => least + 1.5,
        (None, Some(most)) => most - 1.5,
        (None, None) => 1.5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_keys_with_plain_values() {
        let schema = json!({"type": "object", "required": ["a", "b", "c", "d", "e", "f", "g"],
            "$defs": {"unit": {"enum": ["mm", "m"]}},
            "properties": {
                "a": {"type": "string", "minLength": 8},
                "b": {"type": "integer", "minimum": 3, "maximum": 4},
                "c": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                "d": {"type": "array", "minItems": 2, "items": {"type": "boolean"}},
                "e": {"$ref": "#/$defs/unit"},
                "f": {"anyOf": [{"type": "null"}, {"type": "string"}]},
                "g": {"type": "object", "required": ["x"], "properties": {"x": {"const": 7}}},
                "optional": {"type": "string"}}});
        for seed in 0..50 {
            let found = example(&schema, &mut Draws::new(seed));
            assert_eq!(found["a"].as_str().unwrap().len(), 8);
            assert!((3..=4).contains(&found["b"].as_i64().unwrap()));
            assert!((0.0..=1.0).contains(&found["c"].as_f64().unwrap()));
            assert!(
                found["d"].as_array().unwrap().iter().all(Value::is_boolean) && found["d"][1].is_boolean()
            );
            assert!(["mm", "m"].contains(&found["e"].as_str().unwrap()));
            assert!(found["f"].is_null() && found["g"]["x"] == 7 && found.get("optional").is_none());
        }
    }

    #[test]
    fn a_schema_within_itself_ends() {
        let schema = json!({"type": "object", "required": ["next"], "properties": {"next": {"$ref": "#"}}});
        assert!(example(&schema, &mut Draws::new(1)).is_object());
        assert_eq!(example(&json!({}), &mut Draws::new(1)), json!({}));
        assert_eq!(example(&Value::Null, &mut Draws::new(1)), json!({}));
    }
}
