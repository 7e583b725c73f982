//! A price of tokens as an exact number.
//!
//! The unit is the pico-dollar per token, which is the micro-dollar per million tokens: six decimals of the figure on a
//! price page. Every published price is a multiple of it.

use std::borrow::Cow;
use std::fmt;

use aec_base::decimal::Decimal;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Pico-dollars per token in one dollar per million tokens.
const PER_DOLLAR: u64 = 1_000_000;

/// The highest accepted price in dollars per million tokens. It keeps every product of tokens and prices within 128
/// bits.
const HIGHEST: u64 = 1_000_000;

/// A price in pico-dollars per token; written in files as dollars per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    pub const FREE: Self = Self(0);

    /// A price in pico-dollars per token, if it is not absurdly high.
    pub fn from_pico_dollars(pico_dollars: u64) -> Option<Self> {
        (pico_dollars <= HIGHEST * PER_DOLLAR).then_some(Self(pico_dollars))
    }

    /// Pico-dollars per token.
    pub fn pico_dollars(self) -> u64 {
        self.0
    }

    /// A price in dollars per million tokens, if it is a whole number of pico-dollars per token.
    fn of(dollars: &Decimal) -> Option<Self> {
        Self::from_pico_dollars(u64::try_from(dollars.in_units(6)?).ok()?)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0 / PER_DOLLAR, self.0 % PER_DOLLAR);
        let fraction = format!("{fraction:06}");
        let fraction = fraction.trim_end_matches('0');
        // Prices are in cents, so at least two decimals.
        write!(f, "{whole}.{fraction:0<2}")
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // At most thirteen digits, so the shortest decimal of the nearest binary number is the exact price.
        #[expect(clippy::cast_precision_loss, reason = "at most 10^12")]
        serializer.serialize_f64(self.0 as f64 / PER_DOLLAR as f64)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RateVisitor)
    }
}

struct RateVisitor;

impl RateVisitor {
    fn read<E: Error>(decimal: Option<Decimal>, written: impl fmt::Display) -> Result<Rate, E> {
        decimal.and_then(|decimal| Rate::of(&decimal)).ok_or_else(|| {
            E::custom(format!(
                "must be between 0 and {HIGHEST} dollars per million tokens and have at most six decimals, not {written}"
            ))
        })
    }
}

impl Visitor<'_> for RateVisitor {
    type Value = Rate;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of dollars per million tokens")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Rate, E> {
        Self::read(Some(Decimal::of_units(value.into(), 0)), value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Rate, E> {
        Self::read(Some(Decimal::of_units(value.into(), 0)), value)
    }

    /// A parsed document holds binary numbers. The shortest decimal with the same binary number is the one in the file,
    /// if that had at most fifteen digits; accepted prices have at most thirteen.
    fn visit_f64<E: Error>(self, value: f64) -> Result<Rate, E> {
        Self::read(Decimal::of(value), value)
    }
}

impl JsonSchema for Rate {
    fn schema_name() -> Cow<'static, str> {
        "Rate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Dollars per million tokens, with at most six decimals.",
            "type": "number",
            "minimum": 0,
            "maximum": HIGHEST,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decimals_are_read_digit_by_digit() {
        let read = |text: &str| serde_json::from_str::<Rate>(text).ok();
        for (text, pico) in [
            ("0", 0),
            ("3", 3_000_000),
            ("0.075", 75_000),
            ("18.75", 18_750_000),
            ("0.00875", 8_750),
            ("0.000001", 1),
            ("1e3", 1_000_000_000),
            ("1000000", 1_000_000_000_000),
        ] {
            assert_eq!(read(text), Some(Rate(pico)), "{text}");
        }
        for text in ["-1", "-0.5", "0.0000001", "1000000.000001", "1e30", "18446744073709551615", "\"1\""] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(Rate(75_000).to_string(), "0.075");
        assert_eq!(Rate(3_000_000).to_string(), "3.00");
        assert_eq!(Rate(2_500_000).to_string(), "2.50");
    }

    proptest! {
        #[test]
        fn a_rate_survives_binary_numbers(pico in 0..=HIGHEST * PER_DOLLAR) {
            let rate = Rate(pico);
            let json = serde_json::to_string(&rate).unwrap();
            prop_assert_eq!(serde_json::from_str::<Rate>(&json).unwrap(), rate);
            prop_assert_eq!(Decimal::parse(&rate.to_string()).and_then(|decimal| Rate::of(&decimal)), Some(rate));
        }
    }
}
