//! Rules and constraints: expressions over the quantities of a template.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use minijinja::value::Rest;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value};

/// Most steps of one evaluation; a rule needs some dozens.
const FUEL: u64 = 10_000;

/// Functions that an expression may use.
pub(crate) const FUNCTIONS: [&str; 20] = [
    "sqrt", "exp", "ln", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "radians", "degrees",
    "abs", "min", "max", "floor", "ceil", "round", "pi",
];

type Function = fn(f64) -> f64;

/// A valid expression.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    text: String,
    names: Vec<String>,
}

impl Expression {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let compiled = environment().compile_expression(text).map_err(|error| message(&error))?;
        let mut names: Vec<String> = compiled
            .undeclared_variables(false)
            .into_iter()
            .filter(|name| !FUNCTIONS.contains(&name.as_str()))
            .collect();
        names.sort();
        Ok(Self { text: text.to_owned(), names })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn number(&self, values: &BTreeMap<String, Value>) -> Result<f64, String> {
        let value = self.evaluate(values)?;
        f64::try_from(value)
            .ok()
            .filter(|number| number.is_finite())
            .ok_or_else(|| format!("`{}` is not a finite number", self.text))
    }

    pub(crate) fn holds(&self, values: &BTreeMap<String, Value>) -> Result<bool, String> {
        Ok(self.evaluate(values)?.is_true())
    }

    fn evaluate(&self, values: &BTreeMap<String, Value>) -> Result<Value, String> {
        let compiled = environment().compile_expression(&self.text).map_err(|error| message(&error))?;
        compiled
            .eval(Value::from(values.clone()))
            .map_err(|error| format!("`{}`: {}", self.text, message(&error)))
    }
}

fn message(error: &Error) -> String {
    error.detail().map_or_else(|| error.to_string(), str::to_owned)
}

fn environment() -> &'static Environment<'static> {
    static ENVIRONMENT: OnceLock<Environment<'static>> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let mut environment = Environment::empty();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL));
        let functions: [(&'static str, Function); 14] = [
            ("sqrt", f64::sqrt),
            ("exp", f64::exp),
            ("ln", f64::ln),
            ("log10", f64::log10),
            ("sin", f64::sin),
            ("cos", f64::cos),
            ("tan", f64::tan),
            ("asin", f64::asin),
            ("acos", f64::acos),
            ("atan", f64::atan),
            ("radians", f64::to_radians),
            ("degrees", f64::to_degrees),
            ("floor", f64::floor),
            ("ceil", f64::ceil),
        ];
        for (name, function) in functions {
            environment.add_function(name, move |x: f64| function(x));
        }
        environment.add_function("abs", f64::abs);
        environment.add_function("atan2", f64::atan2);
        environment.add_function("min", |numbers: Rest<f64>| extreme(&numbers, f64::min));
        environment.add_function("max", |numbers: Rest<f64>| extreme(&numbers, f64::max));
        environment.add_function("round", round);
        environment.add_global("pi", std::f64::consts::PI);
        environment
    })
}

fn extreme(numbers: &[f64], choose: fn(f64, f64) -> f64) -> Result<f64, Error> {
    numbers
        .iter()
        .copied()
        .reduce(choose)
        .ok_or_else(|| Error::new(ErrorKind::MissingArgument, "nothing to compare"))
}

/// Rounds like Python: halves to even.
fn round(number: f64, places: Option<i32>) -> f64 {
    match places {
        None | Some(0) => number.round_ties_even(),
        Some(places) if places > 0 => {
            format!("{number:.*}", usize::try_from(places).unwrap_or(0)).parse().unwrap_or(number)
        }
        Some(places) => {
            let unit = 10_f64.powi(-places);
            (number / unit).round_ties_even() * unit
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> BTreeMap<String, Value> {
        [("a", Value::from(3)), ("b", Value::from(0.5)), ("kind", Value::from("sand"))]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }

    #[test]
    fn arithmetic_is_that_of_python() {
        for (text, expected) in [
            ("a / 2", 1.5),
            ("a // 2", 1.0),
            ("a ** 2 * b", 4.5),
            ("-a + 1", -2.0),
            ("sqrt(a + 6) + pi * 0", 3.0),
            ("min(a, b, 7) + max(1, 2)", 2.5),
            ("round(2.5) + round(1.25, 1)", 3.2),
            ("1 if kind == \"sand\" else 2", 1.0),
            ("tan(radians(45))", 1.0),
            ("ceil(2.1) * 10 % 7", 2.0),
        ] {
            let number = Expression::parse(text).unwrap().number(&values()).unwrap();
            assert!((number - expected).abs() < 1e-9, "{text}: {number}");
        }
    }

    #[test]
    fn comparisons_may_be_chained() {
        assert!(Expression::parse("0 < b < a <= 3").unwrap().holds(&values()).unwrap());
        assert!(!Expression::parse("0 < a < b").unwrap().holds(&values()).unwrap());
        assert!(
            Expression::parse("kind in [\"sand\", \"clay\"] and not a > 5")
                .unwrap()
                .holds(&values())
                .unwrap()
        );
    }

    #[test]
    fn mistakes_are_errors() {
        assert!(Expression::parse("a +").is_err());
        let unknown = Expression::parse("a + c").unwrap();
        assert_eq!(unknown.names(), ["a", "c"]);
        assert!(unknown.number(&values()).is_err());
        assert!(Expression::parse("a / 0").unwrap().number(&values()).is_err());
        assert!(Expression::parse("ln(0)").unwrap().number(&values()).is_err());
        assert!(Expression::parse("kind").unwrap().number(&values()).is_err());
    }
}
