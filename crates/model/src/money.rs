//! Money, counted in millionths of a dollar. Nothing is rounded in the payer's favour.

use std::fmt;

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
        let micro = (dollars * 1e6).floor();
        // The bound keeps every sum of amounts far from the edge of the type.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        (dollars.is_finite() && (0.0..=1e15).contains(&micro)).then_some(Self(micro as u64))
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
