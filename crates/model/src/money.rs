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
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// The amount of a number of dollars, if it is one: finite, not negative, not absurd. Rounded down, since it
    /// is a limit that somebody set.
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        // Counted in decimals: 8.2 times a million is less than 8,200,000 in binary.
        let micro = Decimal::of(dollars)?.units_towards_zero(6)?;
        // The bound keeps every sum of amounts far from the edge of the type.
        let micro = u64::try_from(micro).ok().filter(|micro| *micro <= 1_000_000_000_000_000)?;
        (dollars >= 0.0).then_some(Self(micro))
    }

    /// The amount as a number of dollars, for files and people.
    #[expect(clippy::cast_precision_loss, reason = "amounts stay far below 2^53")]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// What is left when the other is taken away; nothing if it is more.
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
