//! The numbers of one account: spent, reserved, and whether a call fits.

use std::collections::{BTreeMap, BTreeSet};

use super::budget::{AccountKind, Amount, Budget, Charge, Quote, Refusal, Shortage};
use super::totals::{Spending, Totals};
use super::{Unpriced, Waiting};
use crate::day::DayBook;
use crate::money::MicroDollars;
use crate::price::Missing;

/// The charge of a call, computed once for all accounts above it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bill(Spending);

impl Bill {
    pub(super) fn new(quote: &Quote, charge: Charge) -> Self {
        let set_aside = quote.money.unwrap_or_default();
        let mut bill = Spending { calls: 1, ..Spending::default() };
        match charge {
            Charge::Nothing => bill = Spending { unbilled_calls: 1, ..Spending::default() },
            Charge::Actual { usage, cost } => {
                bill.usage = usage;
                match cost {
                    Some(cost) => bill.spent = cost,
                    // The model had a price when the call was reserved, so a missing cost does not mean zero.
                    None => (bill.spent, bill.unconfirmed) = (set_aside, set_aside),
                }
                bill.unpriced_calls = u64::from(cost.is_none() && quote.money.is_none());
            }
            Charge::Bound { tokens, cost } => {
                bill.unconfirmed_tokens = tokens;
                bill.spent = cost.unwrap_or(set_aside);
                bill.unconfirmed = bill.spent;
                bill.unpriced_calls = u64::from(cost.is_none() && quote.money.is_none());
            }
        }
        bill.over_reserved = u64::from(bill.spent > set_aside || bill.tokens() > quote.tokens);
        Self(bill)
    }

    /// The amount spent.
    pub(super) fn amount(&self) -> Amount {
        Amount { money: self.0.spent, tokens: self.0.tokens() }
    }

    pub(super) fn unconfirmed(&self) -> MicroDollars {
        self.0.unconfirmed
    }
}

/// Whether a call fits an account.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Now,
    /// Not now, but perhaps when calls in flight are settled.
    Later,
    /// Not even then.
    Never(Refusal),
}

/// The numbers of an account and its waiting callers.
#[derive(Debug)]
pub(super) struct Ledger {
    kind: AccountKind,
    budget: Budget,
    /// What was spent of the budget before this process. It is not part of any total.
    before: Amount,
    all: Spending,
    by_model: BTreeMap<String, Spending>,
    reserved: Amount,
    open_calls: u64,
    /// The callers that wait because of this account, in order of arrival.
    pub(super) queue: BTreeSet<Waiting>,
    /// The book that decides on the budget instead of these numbers, because other processes share the budget.
    pub(super) book: Option<DayBook>,
}

impl Ledger {
    pub(super) fn new(kind: AccountKind, budget: Budget, book: Option<DayBook>) -> Self {
        Self {
            kind,
            budget,
            before: Amount::default(),
            all: Spending::default(),
            by_model: BTreeMap::new(),
            reserved: Amount::default(),
            open_calls: 0,
            queue: BTreeSet::new(),
            book,
        }
    }

    pub(super) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Sets the budget, and how much of it was spent before.
    pub(super) fn limit(&mut self, budget: Budget, before: Amount) {
        (self.budget, self.before) = (budget, before);
    }

    fn spent(&self) -> Amount {
        self.before.plus(Amount { money: self.all.spent, tokens: self.all.tokens() })
    }

    pub(super) fn refuse(&self, shortage: Shortage) -> Refusal {
        Refusal::Short { account: self.kind.clone(), shortage }
    }

    pub(super) fn has_limit(&self) -> bool {
        self.budget != Budget::UNLIMITED
    }

    /// Why a call would not even fit if nothing were spent.
    pub(super) fn excludes(&self, quote: &Quote, unpriced: Unpriced) -> Option<Refusal> {
        if self.budget.money.is_some() && quote.money.is_none() && unpriced == Unpriced::Refuse {
            let (account, model) = (self.kind.clone(), quote.model.to_string());
            let missing = Missing { provider: "PROVIDER".to_owned(), model: model.clone() };
            return Some(Refusal::Unpriced { account, model, missing });
        }
        self.budget.shortage(Amount::default(), quote.amount()).map(|shortage| self.refuse(shortage))
    }

    pub(super) fn fit(&self, quote: &Quote, unpriced: Unpriced) -> Fit {
        if let Some(refusal @ Refusal::Unpriced { .. }) = self.excludes(quote, unpriced) {
            return Fit::Never(refusal);
        }
        if self.book.is_some() {
            return Fit::Now;
        }
        let asked = quote.amount();
        if let Some(shortage) = self.budget.shortage(self.spent(), asked) {
            return Fit::Never(self.refuse(shortage));
        }
        match self.budget.shortage(self.spent().plus(self.reserved), asked) {
            Some(_) => Fit::Later,
            None => Fit::Now,
        }
    }

    pub(super) fn reserve(&mut self, quote: &Quote) {
        self.reserved = self.reserved.plus(quote.amount());
        self.open_calls += 1;
    }

    /// Releases a reservation.
    pub(super) fn release(&mut self, quote: &Quote) {
        self.reserved = self.reserved.minus(quote.amount());
        self.open_calls -= 1;
    }

    pub(super) fn settle(&mut self, quote: &Quote, bill: &Bill) {
        self.release(quote);
        self.all.add(&bill.0);
        match self.by_model.get_mut(&*quote.model) {
            Some(spending) => spending.add(&bill.0),
            None => {
                self.by_model.insert(quote.model.to_string(), bill.0);
            }
        }
    }

    pub(super) fn totals(&self) -> Totals {
        let taken = match self.book.as_ref().map(DayBook::standing) {
            Some(Ok(standing)) => standing.spent.plus(standing.reserved),
            // If the book cannot be read, nothing may be spent.
            Some(Err(_)) => Amount { money: MicroDollars(u64::MAX), tokens: u64::MAX },
            None => self.spent().plus(self.reserved),
        };
        Totals {
            name: self.kind.to_string(),
            all: self.all,
            by_model: self.by_model.clone(),
            open_calls: self.open_calls,
            reserved: self.reserved.money,
            reserved_tokens: self.reserved.tokens,
            remaining: self.budget.money.map(|cap| cap.minus(taken.money)),
            remaining_tokens: self.budget.tokens.map(|cap| cap.saturating_sub(taken.tokens)),
        }
    }

    /// Checks the invariants.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let taken = self.spent().plus(self.reserved);
        if self.all.over_reserved == 0 && self.book.is_none() && self.before == Amount::default() {
            assert_eq!(self.budget.shortage(taken, Amount::default()), None, "{}", self.kind);
        }
        assert!(self.open_calls > 0 || self.reserved == Amount::default(), "{}", self.kind);
        let mut sum = Spending::default();
        self.by_model.values().for_each(|spending| sum.add(spending));
        assert_eq!(sum, self.all, "{}", self.kind);
    }
}
