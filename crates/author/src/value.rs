//! Values of parameters, printed exactly as they are used.

use serde::Serialize;

/// A value of a parameter or auxiliary quantity.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// Of an `int` parameter.
    Int(i64),
    /// Of a `float` parameter.
    Float(f64),
    /// Of an `enum` parameter.
    Text(String),
}

impl Value {
    #[expect(clippy::cast_precision_loss, reason = "templates are checked to stay within 2^53")]
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            Self::Text(_) => None,
        }
    }

    /// The value as the prompt prints it.
    pub(crate) fn printed(&self) -> String {
        match self {
            Self::Int(value) => value.to_string(),
            Self::Float(value) => printed_number(*value),
            Self::Text(text) => text.clone(),
        }
    }

    /// The value for expressions and prompts; whole numbers have no fraction.
    pub(crate) fn context(&self) -> minijinja::Value {
        match self {
            Self::Int(value) => minijinja::Value::from(*value),
            Self::Float(value) => number_context(*value),
            Self::Text(text) => minijinja::Value::from(text.as_str()),
        }
    }

    /// Whether two values look the same to a reader; 16 and 16.0 do.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self.number(), other.number()) {
            (Some(one), Some(other)) => one.total_cmp(&other).is_eq(),
            (None, None) => self == other,
            _ => false,
        }
    }
}

/// A number for expressions and prompts.
pub(crate) fn number_context(value: f64) -> minijinja::Value {
    match whole(value) {
        Some(whole) => minijinja::Value::from(whole),
        None => minijinja::Value::from(value),
    }
}

/// The shortest decimal text that reads back as this number. Very small ones have an exponent.
pub(crate) fn printed_number(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-4 { format!("{value:e}") } else { format!("{value}") }
}

/// A number without fraction as an integer.
#[expect(clippy::cast_possible_truncation, reason = "bounded just before")]
fn whole(value: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (value.fract() == 0.0 && value.abs() <= EXACT).then_some(value as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_values_read_back_exactly() {
        for value in [0.0, 85.0, 0.1, 12.5, 1.1e-6, 0.00012, 1e7, -3.25, 0.3] {
            assert_eq!(printed_number(value).parse::<f64>().unwrap().to_bits(), value.to_bits());
        }
        assert_eq!(printed_number(85.0), "85");
        assert_eq!(printed_number(0.000_001_1), "1.1e-6");
        assert_eq!(Value::Float(85.0).context().to_string(), "85");
        assert!(Value::Float(16.0).is_same(&Value::Int(16)));
    }
}
