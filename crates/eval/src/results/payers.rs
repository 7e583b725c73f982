//! The accounts that pay for the rollouts of an evaluation: its own, and one below it for each rollout without a row.
//!
//! A killed session may leave rows that are newer than its metadata. The sum in the metadata already includes what such
//! a rollout had spent by then; only the rollout's own account can tell how much that was.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use aec_model::meter::{Account, AccountKind, Budget, Totals};
use serde::{Deserialize, Serialize};

use crate::results::facts::RowFacts;

/// Accounts of rollouts, by example and number.
type Rollouts = BTreeMap<(i64, u32), Account>;

/// The account of an evaluation with those of its rollouts. Clones share the accounts.
#[derive(Clone, Debug)]
pub struct Payers {
    pub account: Account,
    /// Absent if nothing is saved: then nothing can be resumed either.
    under_way: Arc<OnceLock<Mutex<Rollouts>>>,
}

/// The spending of a rollout that has no row yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnderWay {
    pub example_id: i64,
    pub rollout_number: u32,
    pub spent_usd: f64,
    pub spent_tokens: u64,
    /// The most that the call under way can cost.
    pub reserved_usd: f64,
    pub reserved_tokens: u64,
}

impl Payers {
    pub fn new(account: Account) -> Self {
        Self { account, under_way: Arc::default() }
    }

    /// Starts to keep one account per rollout.
    pub(crate) fn keep_apart(&self) {
        self.under_way.get_or_init(Mutex::default);
    }

    /// The account of a rollout that starts, for the first time or again.
    pub(crate) fn begin(&self, example_id: i64, rollout_number: u32) -> Account {
        let Some(mut under_way) = self.lock() else { return self.account.clone() };
        let account = self.account.open(AccountKind::Trial, Budget::default());
        under_way.insert((example_id, rollout_number), account.clone());
        account
    }

    /// Closes the account of a rollout whose row is on the disk.
    pub(crate) fn end(&self, facts: &RowFacts) {
        if let (Some(mut under_way), Some(number)) = (self.lock(), facts.rollout_number) {
            under_way.remove(&(facts.example_id, number));
        }
    }

    /// The spending of this session, and the part of it by rollouts without a row, as far as they spent anything.
    pub(crate) fn spent(&self) -> (Totals, Vec<UnderWay>) {
        let under_way = self.lock();
        let rollouts = || under_way.iter().flat_map(|under_way| under_way.iter());
        let (all, each) = self.account.totals_with(rollouts().map(|(_, account)| account));
        let spent = |(&(example_id, rollout_number), totals): (&(i64, u32), Totals)| UnderWay {
            example_id,
            rollout_number,
            spent_usd: totals.all.spent.dollars(),
            spent_tokens: totals.all.tokens(),
            reserved_usd: totals.reserved.dollars(),
            reserved_tokens: totals.reserved_tokens,
        };
        let each = rollouts().map(|(rollout, _)| rollout).zip(each).map(spent);
        (all, each.filter(|one| one.spent_tokens + one.reserved_tokens > 0).collect())
    }

    fn lock(&self) -> Option<MutexGuard<'_, Rollouts>> {
        Some(self.under_way.get()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
