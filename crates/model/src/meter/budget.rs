//! Budgets and the amounts requested from them.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, FailureKind};
use crate::message::Usage;
use crate::money::MicroDollars;
use crate::price::{Bound, DEFAULT_IMAGE_TOKENS, Missing, Price};

/// The most that may be spent. What is absent is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Money.
    pub money: Option<MicroDollars>,
    /// Tokens of all kinds.
    pub tokens: Option<u64>,
}

impl Budget {
    /// No limit.
    pub const UNLIMITED: Self = Self { money: None, tokens: None };

    pub fn of_money(money: MicroDollars) -> Self {
        Self { money: Some(money), tokens: None }
    }

    pub fn of_tokens(tokens: u64) -> Self {
        Self { money: None, tokens: Some(tokens) }
    }

    /// What is missing if `asked` is added to `spent`.
    pub(crate) fn shortage(&self, spent: Amount, asked: Amount) -> Option<Shortage> {
        if let Some(cap) = self.money
            && spent.money.plus(asked.money) > cap
        {
            return Some(Shortage::Money { cap, spent: spent.money, asked: asked.money });
        }
        match self.tokens {
            Some(cap) if spent.tokens.saturating_add(asked.tokens) > cap => {
                Some(Shortage::Tokens { cap, spent: spent.tokens, asked: asked.tokens })
            }
            _ => None,
        }
    }
}

/// The kind of an account. Code compares it to see which limit ended a call; users read its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccountKind {
    /// All processes of a day.
    Day,
    /// A run, over all its sessions.
    Run,
    /// An experiment whose workers share its budget.
    Experiment,
    /// The trials of an evolution.
    Evaluations,
    /// One attempt at a trial.
    Trial,
    /// A limit that a harness sets for itself within a trial.
    Harness,
    /// An account on which no code decides.
    Named(String),
}

impl fmt::Display for AccountKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Day => "the day",
            Self::Run => "the run",
            Self::Experiment => "the experiment",
            Self::Evaluations => "the evaluations",
            Self::Trial => "the trial",
            Self::Harness => "the harness",
            Self::Named(name) => name,
        })
    }
}

impl<S: AsRef<str> + ?Sized> From<&S> for AccountKind {
    fn from(name: &S) -> Self {
        Self::Named(name.as_ref().to_owned())
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    pub money: MicroDollars,
    pub tokens: u64,
}

impl Amount {
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { money: self.money.plus(other.money), tokens: self.tokens.saturating_add(other.tokens) }
    }

    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self { money: self.money.minus(other.money), tokens: self.tokens.saturating_sub(other.tokens) }
    }
}

/// How a budget falls short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    Money {
        cap: MicroDollars,
        /// Spent for good.
        spent: MicroDollars,
        /// The most that the call can cost.
        asked: MicroDollars,
    },
    Tokens {
        cap: u64,
        /// Spent for good.
        spent: u64,
        /// The most that the call can take.
        asked: u64,
    },
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Money { cap, spent, asked } => {
                write!(f, "{spent} of {cap} are spent and the call can cost {asked}")
            }
            Self::Tokens { cap, spent, asked } => {
                write!(f, "{spent} of {cap} tokens are spent and the call can take {asked}")
            }
        }
    }
}

/// The most that a call can take, computed before it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    /// The name of the model in totals.
    pub model: Arc<str>,
    /// The most that it can cost; `None` when the model is unpriced.
    pub money: Option<MicroDollars>,
    /// The most tokens that it can take.
    pub tokens: u64,
}

impl Quote {
    /// The quote of a call with this input and at most `output` output tokens.
    pub fn new(model: &str, price: Option<&Price>, input: Bound, output: u64) -> Self {
        let image_tokens = price.map_or(DEFAULT_IMAGE_TOKENS, |price| price.image_tokens);
        let all_input = input.tokens.saturating_add(input.images.saturating_mul(image_tokens));
        Self {
            model: model.into(),
            money: price.map(|price| price.worst_case(input.tokens, output, input.images)),
            tokens: all_input.saturating_add(output),
        }
    }

    /// The amount to reserve for it.
    pub(super) fn amount(&self) -> Amount {
        Amount { money: self.money.unwrap_or_default(), tokens: self.tokens }
    }
}

/// How a call is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// The provider reported the usage.
    Actual {
        usage: Usage,
        /// Their price; `None` when the model is unpriced.
        cost: Option<MicroDollars>,
    },
    /// The provider may have billed up to this, for example after a lost connection.
    Bound {
        tokens: u64,
        /// The most that they cost; `None` means the reserved amount.
        cost: Option<MicroDollars>,
    },
    /// Nothing was billed: the call was never sent, or refused with an error status.
    Nothing,
}

/// Why a call may not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(
        "the budget of {account} does not cover the call: {shortage}; raise the budget, or lower the limit of output tokens"
    )]
    Short { account: AccountKind, shortage: Shortage },
    #[error("the model {model} is unpriced, so the budget of {account} in money cannot hold; {}", missing.ways_out())]
    Unpriced { account: AccountKind, model: String, missing: Missing },
    #[error("the day's spending is unknown: {0}")]
    Book(String),
}

impl Refusal {
    /// Names a model without a price as price lists do. The meter knows only the name in totals.
    #[must_use]
    pub(crate) fn naming(mut self, seller: impl FnOnce() -> Option<Missing>) -> Self {
        if let Self::Unpriced { missing, .. } = &mut self
            && let Some(found) = seller()
        {
            *missing = found;
        }
        self
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let failure = Self::lasting(FailureKind::Budget, refusal.to_string());
        match refusal {
            Refusal::Short { account, .. } => Self { account: Some(account), ..failure },
            Refusal::Unpriced { .. } | Refusal::Book(_) => failure,
        }
    }
}
