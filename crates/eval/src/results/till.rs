//! The cost of a run over all its sessions, and its limits.

use std::collections::HashMap;

use aec_model::client::Model;
use aec_model::message::Usage;
use aec_model::meter::Amount;
use aec_model::money::MicroDollars;
use aec_model::price::Price;
use aec_run::terms::{Caps, over};
use serde::{Deserialize, Serialize};

use crate::results::facts::RowFacts;
use crate::results::metadata::{Cost, Metadata};
use crate::results::payers::{Payers, UnderWay};
use crate::results::resume::UntoldRow;

/// `budget` of the metadata: what all sessions together spent, and what the user allowed them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpentSoFar {
    /// Dollars. Calls under way count with the most they can cost, because a killed session may have paid for them.
    pub spent_usd: f64,
    /// Tokens, likewise.
    pub spent_tokens: u64,
    /// Calls of models without a price; their cost in dollars is unknown.
    pub unpriced_calls: u64,
    /// The part that was spent by rollouts that have no row yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub under_way: Vec<UnderWay>,
    /// The user's limits, which also hold for later sessions.
    #[serde(flatten)]
    pub caps: Caps,
}

/// Computes the cost of a run at any moment.
#[derive(Clone, Debug, Default)]
pub struct Till {
    pub earlier: Option<Cost>,
    /// What earlier sessions spent, and the limits.
    pub budget: SpentSoFar,
    /// The payers of this session, and the price of the model.
    now: Option<(Payers, Option<Price>)>,
}

impl Till {
    pub fn new(payers: Payers, model: &Model, caps: Caps) -> Self {
        let price = model.prices().first().copied().flatten().cloned();
        let budget = SpentSoFar { caps, ..SpentSoFar::default() };
        Self { earlier: Some(Cost::default()), budget, now: Some((payers, price)) }
    }

    /// Continues a run: costs add up, and its saved limits hold unless new ones are given. `untold` are rows newer than
    /// the metadata, counted at the current price without what their rollouts had already spent.
    pub(crate) fn go_on(&mut self, saved: &Metadata, untold: &[UntoldRow]) {
        let mut cost = saved.cost.unwrap_or_default();
        // Runs of earlier versions record only their cost.
        let mut spent = saved
            .budget
            .clone()
            .unwrap_or_else(|| SpentSoFar { spent_usd: cost.total_usd, ..SpentSoFar::default() });
        let under_way: HashMap<_, _> =
            spent.under_way.drain(..).map(|one| ((one.example_id, one.rollout_number), one)).collect();
        let price = self.now.as_ref().and_then(|(_, price)| price.as_ref());
        for row in untold {
            let known = under_way.get(&row.rollout).copied().unwrap_or_default();
            // A rollout may have spent more than its row tells, on failed attempts.
            let tokens = row.usage.total().max(known.spent_tokens);
            spent.spent_tokens = spent
                .spent_tokens
                .saturating_add(tokens)
                .saturating_sub(known.spent_tokens + known.reserved_tokens);
            let Some(price) = price else {
                spent.unpriced_calls += u64::from(row.usage.total() > 0);
                continue;
            };
            let read = price.cost(&Usage { output: 0, ..row.usage }).dollars();
            let all = price.cost(&row.usage).dollars();
            let more = (all - known.spent_usd).max(0.0);
            spent.spent_usd = (spent.spent_usd + more - known.reserved_usd).max(0.0);
            let share = if all > 0.0 { read / all } else { 0.0 };
            cost.input_usd += more * share;
            cost.output_usd += more * (1.0 - share);
            cost.total_usd += more;
        }
        self.earlier = Some(cost);
        self.budget = SpentSoFar { caps: over(&self.budget.caps, &spent.caps), ..spent };
    }

    /// Records that the row of a rollout is on the disk.
    pub(crate) fn row_written(&self, facts: &RowFacts) {
        if let Some((payers, _)) = &self.now {
            payers.end(facts);
        }
    }

    pub fn spent_before(&self) -> Amount {
        let money = MicroDollars::from_dollars(self.budget.spent_usd + 5e-7).unwrap_or_default();
        Amount { money, tokens: self.budget.spent_tokens }
    }

    pub(crate) fn spent(&self) -> Option<SpentSoFar> {
        let (totals, under_way) = self.now.as_ref()?.0.spent();
        let now = Amount {
            money: totals.all.spent.plus(totals.reserved),
            tokens: totals.all.tokens().saturating_add(totals.reserved_tokens),
        };
        let sum = self.spent_before().plus(now);
        Some(SpentSoFar {
            spent_usd: sum.money.dollars(),
            spent_tokens: sum.tokens,
            unpriced_calls: self.budget.unpriced_calls + totals.all.unpriced_calls,
            under_way,
            caps: self.budget.caps.clone(),
        })
    }

    /// The cost of all sessions so far; absent if some call had no price.
    pub fn cost(&self) -> Option<Cost> {
        let Some((payers, price)) = &self.now else { return self.earlier };
        let spent = payers.account.totals().all;
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
