//! Totals of an account, for reports.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::Usage;
use crate::money::MicroDollars;

/// Sums of spending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Spending {
    /// Calls that were or may have been billed.
    pub calls: u64,
    /// Calls that were reserved but cost nothing: never sent, or refused with an error status.
    pub unbilled_calls: u64,
    /// Calls of unpriced models. Their money is not counted anywhere.
    pub unpriced_calls: u64,
    /// Calls that took more than was reserved for them. They are charged in full.
    pub over_reserved: u64,
    /// Tokens as the providers counted them.
    pub usage: Usage,
    /// Tokens of calls whose end is unknown, at their bounds; not part of `usage`.
    pub unconfirmed_tokens: u64,
    /// Money spent, including the unconfirmed part.
    pub spent: MicroDollars,
    /// Part of `spent` that is a bound no provider confirmed.
    pub unconfirmed: MicroDollars,
}

impl Spending {
    /// All tokens, including unconfirmed ones.
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

/// An account at one moment, including the accounts below it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Totals {
    /// Its name.
    pub name: String,
    /// What was spent.
    pub all: Spending,
    /// The same by model.
    pub by_model: BTreeMap<String, Spending>,
    /// Calls in flight.
    pub open_calls: u64,
    /// Money reserved for calls in flight.
    pub reserved: MicroDollars,
    /// Tokens reserved for calls in flight.
    pub reserved_tokens: u64,
    /// Money that can still be reserved; absent without a budget in money. For an account of the day it includes the
    /// spending and reservations of other processes.
    pub remaining: Option<MicroDollars>,
    /// Tokens that can still be reserved; absent without a budget in tokens.
    pub remaining_tokens: Option<u64>,
}
