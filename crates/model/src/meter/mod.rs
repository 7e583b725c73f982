//! One meter for all model calls of a process: accounts in a tree, each with a budget that cannot be overdrawn.
//!
//! Before a call, the most that it can take is reserved in its account and in all accounts above, or the call is not
//! made. Afterwards its actual cost is charged and the rest released. So spending never exceeds a budget, not even with
//! concurrent calls.
//!
//! A task that holds a reservation must not wait for another one of the same tree: it might wait for itself.

mod budget;
mod ledger;
mod state;
mod totals;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

pub use budget::{AccountKind, Amount, Budget, Charge, Quote, Refusal, Shortage};
pub use totals::{Spending, Totals};

use self::ledger::Ledger;
use self::state::{Chain, Grant, State};
use crate::day::DayBook;

/// The first pause before the book of the day is read again while other processes hold the budget.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// The longest pause before it is read again.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What to do with unpriced models if there is a budget in money.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unpriced {
    #[default]
    Refuse,
    /// Allow them: their tokens count, their money does not.
    Allow,
}

/// Identifies an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct AccountId(u64);

/// Identifies a waiting caller. Later callers have higher numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Waiting(u64);

/// The meter. Clones share it.
#[derive(Clone, Debug)]
pub struct Meter {
    shared: Arc<Shared>,
}

/// A mutex of the standard library: it is held for a few additions, and never across an `await`. With a book it is also
/// held for one locked append to a file, which takes microseconds; without that the accounts and the book could
/// disagree.
#[derive(Debug)]
struct Shared(Mutex<State>);

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Meter {
    pub fn new(unpriced: Unpriced) -> Self {
        Self { shared: Arc::new(Shared(Mutex::new(State::new(unpriced)))) }
    }

    /// Changes how models without a price are treated.
    pub fn decide_on_unpriced(&self, unpriced: Unpriced) {
        self.shared.state().unpriced = unpriced;
    }

    /// Opens an account, below another or at the root. It lives as long as a handle, an account below it or a
    /// reservation does; its spending stays counted in the accounts above.
    pub fn open(&self, parent: Option<&Account>, kind: impl Into<AccountKind>, budget: Budget) -> Account {
        enter(&self.shared, parent, Ledger::new(kind.into(), budget, None))
    }

    /// Opens an account at the root whose budget all processes with the same book share.
    pub fn open_day(&self, book: DayBook, budget: Budget) -> Account {
        enter(&self.shared, None, Ledger::new(AccountKind::Day, budget, Some(book)))
    }

    /// Opens an account of an experiment below another, whose budget all processes with the same book share.
    pub fn open_book(&self, parent: &Account, book: DayBook, budget: Budget) -> Account {
        enter(&self.shared, Some(parent), Ledger::new(AccountKind::Experiment, budget, Some(book)))
    }
}

fn enter(shared: &Arc<Shared>, parent: Option<&Account>, ledger: Ledger) -> Account {
    let shared = parent.map_or(shared, |parent| &parent.0.shared).clone();
    let id = shared.state().open(ledger);
    let above = parent.map_or(&[][..], |parent| &parent.0.chain);
    let chain: Chain = above.iter().copied().chain([id]).collect();
    Account(Arc::new(Node { shared, chain, id, _parent: parent.cloned() }))
}

/// An account. Clones are the same account.
#[derive(Clone, Debug)]
pub struct Account(Arc<Node>);

#[derive(Debug)]
struct Node {
    shared: Arc<Shared>,
    chain: Chain,
    id: AccountId,
    /// Keeps the accounts above open.
    _parent: Option<Account>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.shared.state().close(self.id);
    }
}

impl Account {
    /// Reserves the most that a call can take, here and in all accounts above. Waits while it does not fit but would if
    /// calls in flight turn out cheaper; fails if it can never fit. Dropping the future leaves nothing reserved.
    ///
    /// Callers that wait for the same account are served in order of arrival. While other processes hold the budget,
    /// their book is read again after 20 milliseconds, then after increasing pauses of up to two seconds; a caller with
    /// less patience sets a timeout.
    pub async fn reserve(&self, quote: Quote) -> Result<Reservation, Refusal> {
        let asked = self.0.shared.state().ask(&self.0.chain, &quote);
        let outcome = match asked {
            Ok(outcome) => outcome,
            Err((waiting, bell)) => Turn { shared: &self.0.shared, waiting, bell }.wait().await,
        };
        let grant = Some(outcome?);
        Ok(Reservation { account: self.clone(), quote, grant })
    }

    /// Whether a call would fit here and in all accounts above if nothing were spent. What this refuses, no waiting and no
    /// other order of calls can make possible.
    pub fn can_pay(&self, quote: &Quote) -> Result<(), Refusal> {
        self.0.shared.state().excludes(&self.0.chain, quote).map_or(Ok(()), Err)
    }

    /// Whether this account or one above has a budget.
    pub fn has_limit(&self) -> bool {
        self.0.shared.state().has_limit(&self.0.chain)
    }

    /// Opens an account below this one.
    #[must_use]
    pub fn open(&self, kind: impl Into<AccountKind>, budget: Budget) -> Self {
        enter(&self.0.shared, Some(self), Ledger::new(kind.into(), budget, None))
    }

    /// Sets the budget from now on. What was spent `before` this process counts against the budget, but is not part of
    /// any total. Must be called before any caller waits.
    pub fn limit(&self, budget: Budget, before: Amount) {
        self.0.shared.state().limit(self.0.id, budget, before);
    }

    pub fn totals(&self) -> Totals {
        self.0.shared.state().totals(self.0.id)
    }

    /// The totals of this account and of accounts below it, at the same moment.
    pub fn totals_with<'a>(&self, below: impl IntoIterator<Item = &'a Self>) -> (Totals, Vec<Totals>) {
        let state = self.0.shared.state();
        let below = below.into_iter().map(|account| state.totals(account.0.id)).collect();
        (state.totals(self.0.id), below)
    }
}

/// A place in a queue, which is left on drop.
struct Turn<'a> {
    shared: &'a Shared,
    waiting: Waiting,
    bell: Arc<Notify>,
}

impl Turn<'_> {
    async fn wait(self) -> Result<Grant, Refusal> {
        let mut pause = FIRST_PAUSE;
        loop {
            let is_poller = {
                let mut state = self.shared.state();
                if let Some(outcome) = state.take_outcome(self.waiting) {
                    return outcome;
                }
                state.is_poller(self.waiting)
            };
            // `Notify` keeps a notification that comes before the wait.
            if !is_poller {
                self.bell.notified().await;
            } else if tokio::time::timeout(pause, self.bell.notified()).await.is_err() {
                pause = LONGEST_PAUSE.min(pause * 2);
                self.shared.state().poll();
            }
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.shared.state().leave(self.waiting);
    }
}

/// The reservation of one call. It must be settled; dropped unsettled, it is charged in full, since the request may
/// have been billed.
#[derive(Debug)]
#[must_use = "a reservation that is dropped is charged in full"]
pub struct Reservation {
    account: Account,
    quote: Quote,
    /// Absent once it is settled.
    grant: Option<Grant>,
}

impl Reservation {
    pub fn quote(&self) -> &Quote {
        &self.quote
    }

    /// Charges the cost of the call and releases the rest.
    pub fn settle(mut self, charge: Charge) {
        self.close(charge);
    }

    fn close(&mut self, charge: Charge) {
        let Some(grant) = self.grant.take() else { return };
        self.account.0.shared.state().settle(&self.account.0.chain, &self.quote, charge, grant);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.close(Charge::Bound { tokens: self.quote.tokens, cost: self.quote.money });
    }
}

#[cfg(test)]
mod tests;
