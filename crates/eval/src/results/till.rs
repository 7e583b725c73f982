//! What a run costs over all its sessions, and what it may cost.

use aec_model::client::Model;
use aec_model::message::Usage;
use aec_model::meter::{Account, Amount};
use aec_model::money::MicroDollars;
use aec_model::price::Price;
use aec_run::terms::{Caps, over};
use serde::{Deserialize, Serialize};

use crate::results::metadata::{Cost, Metadata};

/// `budget` of the metadata: what all sessions together spent, and what the user allowed them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpentSoFar {
    /// Dollars, with calls under way at the most that they can cost: a session that is killed may have paid for them.
    pub spent_usd: f64,
    /// Tokens, likewise.
    pub spent_tokens: u64,
    /// Calls of models without a price, whose dollars nobody knows.
    pub unpriced_calls: u64,
    /// What was said, and holds for the sessions that go on.
    #[serde(flatten)]
    pub caps: Caps,
}

/// Knows what a run has cost at any moment.
#[derive(Clone, Debug, Default)]
pub struct Till {
    /// What earlier sessions cost.
    pub earlier: Option<Cost>,
    /// What earlier sessions spent, and what is allowed.
    pub budget: SpentSoFar,
    /// Who pays in this session, and the price of the model.
    now: Option<(Account, Option<Price>)>,
}

impl Till {
    /// The till of a run that begins.
    pub fn new(account: Account, model: &Model, caps: Caps) -> Self {
        let price = model.prices().first().copied().flatten().cloned();
        let budget = SpentSoFar { caps, ..SpentSoFar::default() };
        Self { earlier: Some(Cost::default()), budget, now: Some((account, price)) }
    }

    /// Goes on with a run: costs add up, and what it was allowed holds where nothing is said now. `untold` is what rows
    /// took that the metadata does not know, at the price of now.
    pub(crate) fn go_on(&mut self, saved: &Metadata, untold: &Usage) {
        let mut cost = saved.cost.unwrap_or_default();
        // Runs of earlier versions say what they cost and no more.
        let mut spent = saved
            .budget
            .clone()
            .unwrap_or_else(|| SpentSoFar { spent_usd: cost.total_usd, ..SpentSoFar::default() });
        let price = self.now.as_ref().and_then(|(_, price)| price.as_ref());
        match price {
            Some(price) => {
                let read = price.cost(&Usage { output: 0, ..*untold }).dollars();
                let all = price.cost(untold).dollars();
                cost.input_usd += read;
                cost.output_usd += all - read;
                cost.total_usd += all;
                spent.spent_usd += all;
            }
            None => spent.unpriced_calls += u64::from(untold.total() > 0),
        }
        spent.spent_tokens = spent.spent_tokens.saturating_add(untold.total());
        self.earlier = Some(cost);
        self.budget = SpentSoFar { caps: over(&self.budget.caps, &spent.caps), ..spent };
    }

    /// What earlier sessions spent.
    pub fn spent_before(&self) -> Amount {
        let money = MicroDollars::from_dollars(self.budget.spent_usd + 5e-7).unwrap_or_default();
        Amount { money, tokens: self.budget.spent_tokens }
    }

    /// What all sessions spent until now.
    pub(crate) fn spent(&self) -> Option<SpentSoFar> {
        let totals = self.now.as_ref()?.0.totals();
        let now = Amount {
            money: totals.all.spent.plus(totals.reserved),
            tokens: totals.all.tokens().saturating_add(totals.reserved_tokens),
        };
        let sum = self.spent_before().plus(now);
        Some(SpentSoFar {
            spent_usd: sum.money.dollars(),
            spent_tokens: sum.tokens,
            unpriced_calls: self.budget.unpriced_calls + totals.all.unpriced_calls,
            caps: self.budget.caps.clone(),
        })
    }

    /// What all sessions cost until now; absent where some call had no price.
    pub fn cost(&self) -> Option<Cost> {
        let Some((account, price)) = &self.now else { return self.earlier };
        let spent = account.totals().all;
        if self.budget.unpriced_calls + spent.unpriced_calls > 0 {
            return None;
        }
        let read = Usage { output: 0, reasoning: 0, ..spent.usage };
        let input = price.as_ref().map(|price| price.cost(&read)).unwrap_or_default().min(spent.spent);
        let earlier = self.earlier.unwrap_or_default();
        Some(Cost {
            input_usd: earlier.input_usd + input.dollars(),
            output_usd: earlier.output_usd + spent.spent.minus(input).dollars(),
            total_usd: earlier.total_usd + spent.spent.dollars(),
        })
    }
}
