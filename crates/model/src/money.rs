//! Money, counted in millionths of a dollar. Nothing is rounded in the payer's favour.

use std::fmt;

use aec_base::decimal::Decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An amount in micro-dollars.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct MicroDollars(pub u64);

impl MicroDollars {
    pub const ZERO: Self = Self(0);

    /// Converts dollars, if the number is finite, not negative and not absurdly large. Rounds down, since it is a limit
    /// that the user set.
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        // In decimals, because 8.2 times a million is less than 8,200,000 in binary.
        let micro = Decimal::of(dollars)?.units_towards_zero(6)?;
        // The bound keeps every sum of amounts far from overflow.
        let micro = u64::try_from(micro).ok().filter(|micro| *micro <= 1_000_000_000_000_000)?;
        (dollars >= 0.0).then_some(Self(micro))
    }

    /// The amount in dollars, for files and display.
    #[expect(clippy::cast_precision_loss, reason = "amounts stay far below 2^53")]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e6
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference; zero if the other is greater.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for MicroDollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_what_was_written() {
        for (dollars, micro) in [
            (0.0, Some(0)),
            (8.2, Some(8_200_000)),
            (0.29, Some(290_000)),
            (4.35, Some(4_350_000)),
            (0.000_000_9, Some(0)),
            (1e9, Some(1_000_000_000_000_000)),
            (1e10, None),
            (-0.000_000_1, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
        ] {
            assert_eq!(MicroDollars::from_dollars(dollars), micro.map(MicroDollars), "{dollars}");
        }
    }
}
