//! Answers at the edges of the tolerances in a standard answers file.

use serde_json::{Value, json};

use super::answer::Answer;
use super::variants::{Variant, replaced, variant};

/// Answers just outside a tolerance, which must lose, and just inside it, which must not.
#[derive(Default)]
pub(crate) struct Edges {
    pub(crate) outside: Vec<Variant>,
    pub(crate) inside: Vec<Variant>,
}

/// The edges of every numeric field of an answers file.
pub(crate) fn edges(golden: &Answer, answers: &[u8]) -> Edges {
    let mut edges = Edges::default();
    let answers: Value = aec_base::json::from_slice(answers).unwrap_or_default();
    let Some(fields) = answers["fields"].as_object() else { return edges };
    for (name, field) in fields {
        let (Some(value), true) = (field["value"].as_f64(), field["type"] == "number") else { continue };
        let tolerance = tolerance(field, value);
        if !golden.object.contains_key(name) || tolerance <= 0.0 {
            continue;
        }
        let mut edge = |list: fn(&mut Edges) -> &mut Vec<Variant>, share: f64| {
            let text = format!("{name} off by {share} of its tolerance");
            let object = replaced(&golden.object, name, json!(value + share * tolerance));
            list(&mut edges).push(variant(text, golden.with(&object)));
        };
        for share in [1.01, -1.01, 2.0, -2.0] {
            edge(|edges| &mut edges.outside, share);
        }
        for share in [0.99, -0.99] {
            edge(|edges| &mut edges.inside, share);
        }
    }
    edges
}

fn tolerance(field: &Value, value: f64) -> f64 {
    let stated = |key: &str| field[key].as_f64().unwrap_or(0.0);
    let half_a_digit = match field["sig"].as_i64().and_then(|digits| i32::try_from(digits).ok()) {
        #[expect(clippy::cast_possible_truncation, reason = "the exponent of a finite number fits")]
        Some(digits) if value != 0.0 => 0.5 * 10_f64.powi(value.abs().log10().floor() as i32 - digits + 1),
        _ => 0.0,
    };
    stated("abs_tol").max(stated("rel_tol") * value.abs()).max(half_a_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerances_are_the_largest_that_is_stated() {
        for (field, value, expected) in [
            (json!({"rel_tol": 0.01}), 200.0, 2.0),
            (json!({"rel_tol": 0.01, "abs_tol": 5}), 200.0, 5.0),
            (json!({"sig": 3}), 1234.0, 5.0),
            (json!({"sig": 3}), 0.01234, 0.00005),
            (json!({}), 1.0, 0.0),
        ] {
            assert!((tolerance(&field, value) - expected).abs() < 1e-12, "{field} {value}");
        }
    }
}
