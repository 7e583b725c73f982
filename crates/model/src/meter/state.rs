//! The tree of accounts and the waiting callers, behind one lock.
//!
//! A waiting caller is in the queue of one account: the topmost one that stops it. The head of every queue does not fit
//! its account now but may later, so some reservation there will look at the queue again when it is settled. Hence no
//! wake-up is lost; and because only heads are checked, no caller is woken in vain.
//!
//! Order: no caller passes an account while an earlier caller waits there. A caller that waits further down the tree
//! does not stop callers that do not pass there.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Notify;

use super::budget::{Amount, Budget, Charge, Quote, Refusal};
use super::ledger::{Bill, Fit, Ledger};
use super::totals::Totals;
use super::{AccountId, Unpriced, Waiting};
use crate::day::{Answer, Booking};

/// The accounts from the root to the requested one.
pub(super) type Chain = Arc<[AccountId]>;

/// A granted reservation, with its bookings in the books of these accounts.
#[derive(Debug)]
pub(super) struct Grant(Vec<(AccountId, Booking)>);

/// The decision on a request.
enum Decision {
    Granted(Grant),
    Refused(Refusal),
    Wait(AccountId),
}

/// A waiting caller.
#[derive(Debug)]
struct Waiter {
    chain: Chain,
    quote: Quote,
    /// The account in whose queue it is; absent once it is decided.
    at: Option<AccountId>,
    outcome: Option<Result<Grant, Refusal>>,
    bell: Arc<Notify>,
}

/// The accounts and the waiting callers.
#[derive(Debug)]
pub(super) struct State {
    pub(super) unpriced: Unpriced,
    accounts: HashMap<AccountId, Ledger>,
    books: Vec<AccountId>,
    waiters: HashMap<Waiting, Waiter>,
    /// The caller that polls the books on behalf of all that wait for them.
    poller: Option<Waiting>,
    next: u64,
}

impl State {
    pub(super) fn new(unpriced: Unpriced) -> Self {
        Self {
            unpriced,
            accounts: HashMap::new(),
            books: Vec::new(),
            waiters: HashMap::new(),
            poller: None,
            next: 0,
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(super) fn open(&mut self, ledger: Ledger) -> AccountId {
        let id = AccountId(self.number());
        if ledger.book.is_some() {
            self.books.push(id);
        }
        self.accounts.insert(id, ledger);
        id
    }

    /// Removes an account that has no handles, no calls in flight and no waiting callers.
    pub(super) fn close(&mut self, id: AccountId) {
        self.accounts.remove(&id);
        self.books.retain(|book| *book != id);
    }

    pub(super) fn limit(&mut self, id: AccountId, budget: Budget, before: Amount) {
        if let Some(ledger) = self.accounts.get_mut(&id) {
            ledger.limit(budget, before);
        }
    }

    pub(super) fn totals(&self, id: AccountId) -> Totals {
        self.accounts.get(&id).map(Ledger::totals).unwrap_or_default()
    }

    /// Decides on a request at once, or queues it.
    pub(super) fn excludes(&self, chain: &Chain, quote: &Quote) -> Option<Refusal> {
        self.on(chain).find_map(|(_, ledger)| ledger.excludes(quote, self.unpriced))
    }

    pub(super) fn has_limit(&self, chain: &Chain) -> bool {
        self.on(chain).any(|(_, ledger)| ledger.has_limit())
    }

    pub(super) fn ask(
        &mut self,
        chain: &Chain,
        quote: &Quote,
    ) -> Result<Result<Grant, Refusal>, (Waiting, Arc<Notify>)> {
        let waiting = Waiting(self.number());
        let decided = match self.decide(waiting, chain, quote) {
            Decision::Granted(grant) => Ok(Ok(grant)),
            Decision::Refused(refusal) => Ok(Err(refusal)),
            Decision::Wait(at) => {
                let bell = Arc::new(Notify::new());
                let waiter = Waiter {
                    chain: chain.clone(),
                    quote: quote.clone(),
                    at: None,
                    outcome: None,
                    bell: bell.clone(),
                };
                self.waiters.insert(waiting, waiter);
                self.park(waiting, at);
                self.appoint();
                Err((waiting, bell))
            }
        };
        self.check();
        decided
    }

    fn decide(&mut self, waiting: Waiting, chain: &Chain, quote: &Quote) -> Decision {
        let mut stop = None;
        for (id, ledger) in self.on(chain) {
            match ledger.fit(quote, self.unpriced) {
                Fit::Never(refusal) => return Decision::Refused(refusal),
                Fit::Later => stop = stop.or(Some(id)),
                Fit::Now => {}
            }
            if ledger.queue.first().is_some_and(|first| *first < waiting) {
                stop = stop.or(Some(id));
            }
        }
        if let Some(id) = stop {
            let hopeless = self.on(chain).find_map(|(_, ledger)| {
                let shortage = ledger.book.as_ref()?.known_shortage(quote.amount(), ledger.budget())?;
                Some(ledger.refuse(shortage))
            });
            return hopeless.map_or(Decision::Wait(id), Decision::Refused);
        }
        // Books come last, since asking them reserves.
        let mut bookings = Vec::new();
        let mut obstacle = None;
        for (id, ledger) in self.on(chain) {
            let Some(book) = &ledger.book else { continue };
            obstacle = match book.reserve(quote.amount(), ledger.budget()) {
                Ok(Answer::Granted(made)) => {
                    bookings.push((id, made));
                    continue;
                }
                Ok(Answer::Later) => Some(Decision::Wait(id)),
                Ok(Answer::Never(shortage)) => Some(Decision::Refused(ledger.refuse(shortage))),
                Err(error) => Some(Decision::Refused(Refusal::Book(error.to_string()))),
            };
            break;
        }
        if let Some(obstacle) = obstacle {
            // If one book refuses, the bookings in others are released.
            self.close_bookings(Grant(bookings), &Bill::default());
            return obstacle;
        }
        for id in chain.iter() {
            if let Some(ledger) = self.accounts.get_mut(id) {
                ledger.reserve(quote);
            }
        }
        Decision::Granted(Grant(bookings))
    }

    fn on<'a>(&'a self, chain: &'a Chain) -> impl Iterator<Item = (AccountId, &'a Ledger)> {
        chain.iter().filter_map(|id| Some((*id, self.accounts.get(id)?)))
    }

    fn park(&mut self, waiting: Waiting, at: AccountId) {
        if let Some(ledger) = self.accounts.get_mut(&at) {
            ledger.queue.insert(waiting);
        }
        if let Some(waiter) = self.waiters.get_mut(&waiting) {
            waiter.at = Some(at);
        }
    }

    /// Charges a call and admits waiting callers that fit now.
    pub(super) fn settle(&mut self, chain: &Chain, quote: &Quote, charge: Charge, grant: Grant) {
        let bill = Bill::new(quote, charge);
        for id in chain.iter() {
            if let Some(ledger) = self.accounts.get_mut(id) {
                ledger.settle(quote, &bill);
            }
        }
        self.close_bookings(grant, &bill);
        self.admit(chain);
    }

    /// Releases a reservation whose caller gave up before using it.
    fn withdraw(&mut self, chain: &Chain, quote: &Quote, grant: Grant) {
        for id in chain.iter() {
            if let Some(ledger) = self.accounts.get_mut(id) {
                ledger.release(quote);
            }
        }
        self.close_bookings(grant, &Bill::default());
        self.admit(chain);
    }

    fn close_bookings(&self, grant: Grant, bill: &Bill) {
        for (id, booking) in grant.0 {
            if let Some(book) = self.accounts.get(&id).and_then(|ledger| ledger.book.as_ref()) {
                book.settle(booking, bill.amount(), bill.unconfirmed());
            }
        }
    }

    /// Checks the heads of the queues of some accounts, root first, until each head must wait.
    fn admit(&mut self, accounts: &[AccountId]) {
        for id in accounts {
            while let Some(waiting) = self.accounts.get_mut(id).and_then(|ledger| ledger.queue.pop_first()) {
                let Some(waiter) = self.waiters.get(&waiting) else { continue };
                let (chain, quote) = (waiter.chain.clone(), waiter.quote.clone());
                let outcome = match self.decide(waiting, &chain, &quote) {
                    Decision::Wait(at) => {
                        // It stays, or moves to another account where it does not fit or an earlier caller waits.
                        self.park(waiting, at);
                        if at == *id {
                            break;
                        }
                        continue;
                    }
                    Decision::Granted(grant) => Ok(grant),
                    Decision::Refused(refusal) => Err(refusal),
                };
                if let Some(waiter) = self.waiters.get_mut(&waiting) {
                    waiter.at = None;
                    waiter.outcome = Some(outcome);
                    waiter.bell.notify_one();
                }
            }
        }
        self.appoint();
        self.check();
    }

    /// Makes sure that one caller polls the books while any caller waits for them.
    fn appoint(&mut self) {
        let waits_for_book = |waiting: &Waiting| {
            let at = self.waiters.get(waiting).and_then(|waiter| waiter.at);
            at.is_some_and(|at| self.books.contains(&at))
        };
        if self.poller.as_ref().is_some_and(waits_for_book) {
            return;
        }
        let first = |id: &AccountId| self.accounts.get(id)?.queue.first().copied();
        self.poller = self.books.iter().find_map(first);
        if let Some(waiter) = self.poller.and_then(|poller| self.waiters.get(&poller)) {
            waiter.bell.notify_one();
        }
    }

    pub(super) fn is_poller(&self, waiting: Waiting) -> bool {
        self.poller == Some(waiting)
    }

    /// Checks the books again.
    pub(super) fn poll(&mut self) {
        let books = self.books.clone();
        self.admit(&books);
    }

    /// Takes the decision on a waiting caller, once it is made.
    pub(super) fn take_outcome(&mut self, waiting: Waiting) -> Option<Result<Grant, Refusal>> {
        let outcome = self.waiters.get_mut(&waiting)?.outcome.take()?;
        self.waiters.remove(&waiting);
        Some(outcome)
    }

    /// Removes a caller that gave up waiting.
    pub(super) fn leave(&mut self, waiting: Waiting) {
        let Some(waiter) = self.waiters.remove(&waiting) else { return };
        if let Some(at) = waiter.at {
            if let Some(ledger) = self.accounts.get_mut(&at) {
                ledger.queue.remove(&waiting);
            }
            self.admit(&[at]);
        }
        if let Some(Ok(grant)) = waiter.outcome {
            self.withdraw(&waiter.chain, &waiter.quote, grant);
        }
    }

    #[cfg(not(test))]
    fn check(&self) {}

    /// Checks the invariants.
    #[cfg(test)]
    fn check(&self) {
        let mut standing = 0;
        for (id, ledger) in &self.accounts {
            ledger.check();
            standing += ledger.queue.len();
            for waiting in &ledger.queue {
                assert_eq!(self.waiters[waiting].at, Some(*id));
            }
            if let Some(head) = ledger.queue.first()
                && ledger.book.is_none()
            {
                assert_eq!(ledger.fit(&self.waiters[head].quote, self.unpriced), Fit::Later);
            }
        }
        let parked = self.waiters.values().filter(|waiter| waiter.at.is_some()).count();
        assert_eq!(standing, parked);
        let decided = self.waiters.values().filter(|waiter| waiter.outcome.is_some()).count();
        assert_eq!(parked + decided, self.waiters.len());
        let at_books = self.books.iter().any(|id| !self.accounts[id].queue.is_empty());
        assert_eq!(self.poller.is_some(), at_books);
    }

    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.accounts.len(), self.waiters.len())
    }
}
