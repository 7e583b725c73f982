//! Budgets hold, whichever callers ask, wait, give up or are dropped.

mod crowd;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::failure::{Failure, FailureKind};
use crate::message::Usage;
use crate::money::MicroDollars;
use crate::price::{Bound, PriceList};

fn dollars(micro: u64) -> Budget {
    Budget::of_money(MicroDollars(micro))
}

fn quote(money: u64) -> Quote {
    Quote { model: "m".into(), money: Some(MicroDollars(money)), tokens: money }
}

fn actual(money: u64) -> Charge {
    let usage = Usage { input: money, ..Usage::default() };
    Charge::Actual { usage, cost: Some(MicroDollars(money)) }
}

/// A call that may have to wait, polled by hand.
struct Asked(Pin<Box<dyn Future<Output = Result<Reservation, Refusal>>>>);

impl Asked {
    fn new(account: &Account, quote: Quote) -> Self {
        let account = account.clone();
        Self(Box::pin(async move { account.reserve(quote).await }))
    }

    fn poll(&mut self) -> Option<Result<Reservation, Refusal>> {
        match self.0.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        }
    }
}

/// Reserves without waiting.
fn ask(account: &Account, quote: Quote) -> Result<Reservation, Refusal> {
    Asked::new(account, quote).poll().expect("no need to wait")
}

fn wait(account: &Account, money: u64) -> Asked {
    let mut asked = Asked::new(account, quote(money));
    assert!(asked.poll().is_none());
    asked
}

fn spent(account: &Account) -> u64 {
    account.totals().all.spent.0
}

#[test]
fn what_is_set_aside_is_charged_or_given_back_in_every_account_above() {
    let meter = Meter::new(Unpriced::Refuse);
    let experiment = meter.open(None, "experiment", dollars(1000));
    let trial = meter.open(Some(&experiment), "trial", dollars(300));
    let call = ask(&trial, quote(200)).unwrap();
    let totals = experiment.totals();
    assert_eq!(
        (totals.reserved, totals.remaining, totals.open_calls),
        (MicroDollars(200), Some(MicroDollars(800)), 1)
    );
    let usage = Usage { input: 1, cache_read: 2, cache_write: 3, output: 4, reasoning: 5 };
    call.settle(Charge::Actual { usage, cost: Some(MicroDollars(120)) });
    ask(&trial, quote(100)).unwrap().settle(Charge::Bound { tokens: 70, cost: Some(MicroDollars(60)) });
    ask(&trial, quote(100)).unwrap().settle(Charge::Nothing);
    insta::assert_json_snapshot!(experiment.totals());
    assert_eq!(trial.totals().all, experiment.totals().all);
    assert_eq!(trial.totals().remaining, Some(MicroDollars(120)));
    drop(trial);
    assert_eq!(spent(&experiment), 180);
    assert_eq!(meter.shared.state().sizes(), (1, 0));
}

#[test]
fn a_call_that_can_never_fit_is_refused_at_once_and_says_why() {
    let meter = Meter::new(Unpriced::Refuse);
    let day = meter.open(None, "day 1", Budget { money: Some(MicroDollars(1_000_000)), tokens: Some(5000) });
    let trial = meter.open(Some(&day), "trial 7", dollars(2_000_000));
    ask(&trial, Quote { tokens: 10, ..quote(400_000) }).unwrap().settle(actual(2000));
    let refusal = ask(&trial, Quote { tokens: 10, ..quote(999_000) }).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "the budget of day 1 does not cover the call: $0.002000 of $1.000000 are spent and the call can cost \
         $0.999000; raise the budget, or lower the limit of output tokens"
    );
    let failure = Failure::from(refusal);
    assert_eq!((failure.kind, failure.retryable), (FailureKind::Budget, false));
    let refusal = ask(&trial, Quote { tokens: 3001, ..quote(1) }).unwrap_err();
    assert!(refusal.to_string().contains("2000 of 5000 tokens are spent and the call can take 3001"));
    assert_eq!(day.totals().open_calls, 0);
}

#[test]
fn what_was_spent_before_counts_once_and_is_part_of_no_total() {
    let meter = Meter::new(Unpriced::Refuse);
    let run = meter.open(None, AccountKind::Run, Budget::UNLIMITED);
    run.limit(dollars(100), Amount { money: MicroDollars(60), tokens: 0 });
    let trial = run.open(AccountKind::Trial, dollars(30));
    ask(&trial, quote(30)).unwrap().settle(actual(25));
    assert_eq!((spent(&run), run.totals().remaining), (25, Some(MicroDollars(15))));
    // The account kind is data, independent of the message.
    let refused = |money: u64| Failure::from(ask(&trial, quote(money)).unwrap_err());
    assert_eq!(refused(16).account, Some(AccountKind::Run));
    assert!(refused(16).message.contains("$0.000085 of $0.000100 are spent"), "{}", refused(16).message);
    assert_eq!(refused(6).account, Some(AccountKind::Trial));
    let kept = serde_json::to_string(&refused(6)).unwrap();
    assert_eq!(serde_json::from_str::<Failure>(&kept).unwrap(), refused(6));
    let unpriced = Quote { money: None, ..quote(1) };
    assert_eq!(Failure::from(ask(&trial, unpriced).unwrap_err()).account, None, "no budget is used up");
}

#[test]
fn unpriced_is_not_free() {
    let unpriced = || Quote { money: None, ..quote(50) };
    let strict = Meter::new(Unpriced::Refuse);
    let account = strict.open(None, "a", dollars(u64::MAX));
    let below = strict.open(Some(&account), "b", Budget::UNLIMITED);
    let refusal = ask(&below, unpriced()).unwrap_err();
    assert!(
        refusal.to_string().starts_with("the model m is unpriced, so the budget of a in money"),
        "{refusal}"
    );
    // Without a budget in money an unknown price breaks no limit.
    let free = strict.open(None, "c", Budget::of_tokens(100));
    ask(&free, unpriced())
        .unwrap()
        .settle(Charge::Actual { usage: Usage { input: 40, ..Usage::default() }, cost: None });
    assert_eq!((free.totals().all.unpriced_calls, free.totals().remaining_tokens), (1, Some(60)));

    let lax = Meter::new(Unpriced::Allow);
    let account = lax.open(None, "a", Budget { money: Some(MicroDollars(10)), tokens: Some(100) });
    drop(ask(&account, unpriced()).unwrap());
    let totals = account.totals();
    assert_eq!((totals.all.unpriced_calls, totals.all.unconfirmed_tokens), (1, 50));
    assert_eq!((totals.all.spent, totals.remaining), (MicroDollars(0), Some(MicroDollars(10))));
    assert!(ask(&account, Quote { tokens: 51, ..unpriced() }).is_err());
}

#[test]
fn a_reservation_that_is_dropped_counts_in_full() {
    let meter = Meter::new(Unpriced::Refuse);
    let account = meter.open(None, "a", dollars(1000));
    drop(ask(&account, quote(100)).unwrap());
    let all = account.totals().all;
    assert_eq!((all.calls, all.spent.0, all.unconfirmed.0, all.unconfirmed_tokens), (1, 100, 100, 100));
    ask(&account, quote(100)).unwrap().settle(Charge::Nothing);
    assert_eq!((spent(&account), account.totals().all.unbilled_calls), (100, 1));
    drop(ask(&account, quote(100)).unwrap());
    assert_eq!(spent(&account), 200);
    // A priced model whose answer has no cost: the bound is charged.
    ask(&account, quote(100)).unwrap().settle(Charge::Actual { usage: Usage::default(), cost: None });
    let all = account.totals().all;
    assert_eq!((all.spent.0, all.unconfirmed.0, all.unpriced_calls), (300, 300, 0));
}

#[test]
fn a_call_that_takes_more_than_was_set_aside_is_charged_in_full() {
    let meter = Meter::new(Unpriced::Refuse);
    let account = meter.open(None, "a", dollars(100));
    let first = ask(&account, quote(60)).unwrap();
    let mut second = wait(&account, 50);
    first.settle(actual(120));
    assert!(matches!(second.poll(), Some(Err(Refusal::Short { .. }))));
    let totals = account.totals();
    assert_eq!(
        (totals.all.over_reserved, totals.all.spent.0, totals.remaining),
        (1, 120, Some(MicroDollars(0)))
    );
}

#[test]
fn who_waits_is_served_in_order_and_a_small_call_does_not_overtake() {
    let meter = Meter::new(Unpriced::Refuse);
    let account = meter.open(None, "a", dollars(100));
    let holder = ask(&account, quote(60)).unwrap();
    let mut large = wait(&account, 90);
    // This one would fit, but then the large one might wait forever.
    let mut small = wait(&account, 10);
    holder.settle(actual(0));
    assert!(small.poll().unwrap().is_ok());
    let large = large.poll().unwrap().unwrap();
    assert_eq!(account.totals().open_calls, 1, "the small call was dropped and charged");
    large.settle(actual(90));
    assert_eq!(spent(&account), 100);
}

#[test]
fn who_waits_in_one_trial_does_not_stop_another() {
    let meter = Meter::new(Unpriced::Refuse);
    let experiment = meter.open(None, "experiment", dollars(95));
    let [one, two] = ["one", "two"].map(|name| meter.open(Some(&experiment), name, dollars(50)));
    let held = ask(&one, quote(40)).unwrap();
    let mut waiting = wait(&one, 40);
    let other = ask(&two, quote(50)).unwrap();
    held.settle(actual(10));
    // Now the trial has enough and the experiment has not.
    assert!(waiting.poll().is_none());
    let mut behind = wait(&two, 0);
    other.settle(actual(45));
    waiting.poll().unwrap().unwrap().settle(actual(40));
    behind.poll().unwrap().unwrap().settle(actual(0));
    assert_eq!(spent(&experiment), 95);
}

#[test]
fn who_waits_is_refused_once_it_is_hopeless() {
    let meter = Meter::new(Unpriced::Refuse);
    let account = meter.open(None, "a", dollars(100));
    let first = ask(&account, quote(60)).unwrap();
    let mut hopeless = wait(&account, 50);
    let mut fits = wait(&account, 40);
    first.settle(actual(60));
    assert!(hopeless.poll().unwrap().is_err());
    fits.poll().unwrap().unwrap().settle(actual(40));
}

#[test]
fn giving_up_leaves_nothing_behind() {
    let meter = Meter::new(Unpriced::Refuse);
    let account = meter.open(None, "a", dollars(100));
    let holder = ask(&account, quote(60)).unwrap();
    let first = wait(&account, 90);
    let mut second = wait(&account, 40);
    drop(first);
    let second = second.poll().unwrap().unwrap();
    // A grant that its caller never takes is released, and the next caller moves up.
    let unaware = wait(&account, 60);
    let mut next = wait(&account, 100);
    holder.settle(actual(0));
    assert_eq!(account.totals().open_calls, 2);
    second.settle(actual(0));
    assert!(next.poll().is_none());
    drop(unaware);
    next.poll().unwrap().unwrap().settle(actual(100));
    assert_eq!((spent(&account), account.totals().all.calls), (100, 3));
    assert_eq!(meter.shared.state().sizes(), (1, 0));
}

#[test]
fn a_quote_bounds_text_pictures_and_answer() {
    let price = PriceList::builtin().find("anthropic", "claude-haiku-4-5", None).unwrap();
    let input = Bound { tokens: 1000, images: 2 };
    let quote = Quote::new("haiku", Some(&price), input, 500);
    assert_eq!(quote.tokens, 1000 + 2 * 5000 + 500);
    assert_eq!(quote.money, Some(MicroDollars(11_000 * 5 / 4 + 500 * 5)));
    let unpriced = Quote::new("x", None, input, 500);
    assert_eq!((unpriced.tokens, unpriced.money), (101_500, None));
}

#[tokio::test]
async fn processes_that_share_two_books_stay_within_both() {
    let directory = tempfile::tempdir().unwrap();
    let book = |name: &str| DayBook::open_timeless(&directory.path().join(name)).unwrap();
    // Two meters act as two processes: a budget of the day above one of the experiment.
    let processes: Vec<Account> = (0..2)
        .map(|_| {
            let meter = Meter::new(Unpriced::Refuse);
            let day = meter.open_day(book("day"), dollars(100));
            meter.open_book(&day, book("experiment"), dollars(60))
        })
        .collect();
    let first = ask(&processes[0], quote(40)).unwrap();
    let second = ask(&processes[1], quote(20)).unwrap();
    // The day has enough, the experiment has not: nothing stays reserved in the book of the day.
    let mut waiting = wait(&processes[1], 30);
    assert_eq!(book("day").standing().unwrap().reserved.money, MicroDollars(60));
    first.settle(actual(10));
    assert_eq!(book("experiment").standing().unwrap().spent.money, MicroDollars(10));
    second.settle(actual(20));
    let third = waiting.poll().expect("there is room now").unwrap();
    assert_eq!(book("day").standing().unwrap().reserved.money, MicroDollars(30));
    third.settle(actual(30));
    assert!(ask(&processes[0], quote(1)).is_err(), "together they have spent everything");
    assert_eq!(book("day").standing().unwrap().spent.money, MicroDollars(60));
    assert_eq!(book("day").standing().unwrap().reserved.money, MicroDollars(0));
}
