//! What an account adds up to, for reports.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::Usage;
use crate::money::MicroDollars;

/// What was spent, by whomever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Spending {
    /// Calls that were or may have been billed.
    pub calls: u64,
    /// Calls that were reserved and cost nothing: never sent, or refused with an error status.
    pub unbilled_calls: u64,
    /// Calls of models without a price. Their money is not counted anywhere.
    pub unpriced_calls: u64,
    /// Calls that took more than was set aside for them. They are charged in full.
    pub over_reserved: u64,
    /// Tokens as the providers counted them.
    pub usage: Usage,
    /// Tokens of calls whose end nobody saw, at their bounds; not part of `usage`.
    pub unconfirmed_tokens: u64,
    /// Money spent, the unconfirmed included.
    pub spent: MicroDollars,
    /// How much of `spent` is a bound that no provider confirmed.
    pub unconfirmed: MicroDollars,
}

impl Spending {
    /// All tokens, the unconfirmed included.
    pub fn tokens(&self) -> u64 {
        self.usage.total().saturating_add(self.unconfirmed_tokens)
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.unbilled_calls += other.unbilled_calls;
        self.unpriced_calls += other.unpriced_calls;
        self.over_reserved += other.over_reserved;
        self.usage = self.usage.plus(&other.usage);
        self.unconfirmed_tokens = self.unconfirmed_tokens.saturating_add(other.unconfirmed_tokens);
        self.spent = self.spent.plus(other.spent);
        self.unconfirmed = self.unconfirmed.plus(other.unconfirmed);
    }
}

/// An account at one moment. What accounts below it spent is part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Totals {
    /// Its name.
    pub name: String,
    /// What was spent.
    pub all: Spending,
    /// The same by model.
    pub by_model: BTreeMap<String, Spending>,
    /// Calls under way.
    pub open_calls: u64,
    /// Money set aside for calls under way.
    pub reserved: MicroDollars,
    /// Tokens set aside for calls under way.
    pub reserved_tokens: u64,
    /// Money that can still be set aside; absent without a budget in money. An account of the day counts what other
    /// processes spent and set aside.
    pub remaining: Option<MicroDollars>,
    /// Tokens that can still be set aside; absent without a budget in tokens.
    pub remaining_tokens: Option<u64>,
}
