//! Many concurrent calls in random order. The state checks all caps and queues itself after every step.

use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;

use super::*;

/// Pseudo-random numbers that are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// The results of the calls, counted by their callers.
#[derive(Default)]
struct Tally {
    spent: AtomicU64,
    calls: AtomicU64,
    unbilled: AtomicU64,
    refused: AtomicU64,
    given_up: AtomicU64,
}

impl Tally {
    fn add(counter: &AtomicU64, number: u64) {
        counter.fetch_add(number, Ordering::Relaxed);
    }

    fn sum<'a>(tallies: &'a [Self], counter: impl Fn(&'a Self) -> &'a AtomicU64) -> u64 {
        tallies.iter().map(|tally| counter(tally).load(Ordering::Relaxed)).sum()
    }
}

async fn make_calls(account: Account, tally: Arc<Vec<Tally>>, index: usize, seed: u64, calls: u64) {
    let mut dice = Dice(seed);
    let tally = &tally[index];
    for _ in 0..calls {
        let bound = 1 + dice.below(2000);
        let taken = dice.below(bound + 1);
        if dice.below(20) == 0 {
            // Gives up before or while waiting, or right after being admitted.
            let patience =
                tokio::time::timeout(Duration::from_micros(dice.below(100)), account.reserve(quote(bound)));
            match patience.await {
                Err(_) => Tally::add(&tally.given_up, 1),
                Ok(Err(_)) => Tally::add(&tally.refused, 1),
                Ok(Ok(call)) => {
                    call.settle(Charge::Nothing);
                    Tally::add(&tally.unbilled, 1);
                }
            }
            continue;
        }
        let Ok(call) = account.reserve(quote(bound)).await else {
            Tally::add(&tally.refused, 1);
            continue;
        };
        for _ in 0..dice.below(4) {
            tokio::task::yield_now().await;
        }
        match dice.below(10) {
            0 => {
                call.settle(Charge::Nothing);
                Tally::add(&tally.unbilled, 1);
                continue;
            }
            1 => {
                drop(call);
                Tally::add(&tally.spent, bound);
            }
            2 => {
                call.settle(Charge::Bound { tokens: taken, cost: Some(MicroDollars(taken)) });
                Tally::add(&tally.spent, taken);
            }
            _ => {
                call.settle(actual(taken));
                Tally::add(&tally.spent, taken);
            }
        }
        Tally::add(&tally.calls, 1);
    }
}

#[test]
fn thousands_of_calls_from_several_threads_stay_within_every_budget() {
    const TRIALS: usize = 40;
    const TASKS: usize = 8;
    const CALLS: u64 = 40;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    let meter = Meter::new(Unpriced::Refuse);
    // All together would spend about twice what the experiments and 1.2 times what the trials have.
    let day = meter.open(None, "day", dollars(4_500_000));
    let experiments: Vec<Account> = [3_000_000, 2_000_000]
        .iter()
        .enumerate()
        .map(|(index, cap)| meter.open(Some(&day), &format!("experiment {index}"), dollars(*cap)))
        .collect();
    let trials: Vec<Account> = (0..TRIALS)
        .map(|index| meter.open(Some(&experiments[index % 2]), &format!("trial {index}"), dollars(130_000)))
        .collect();
    let tally: Arc<Vec<Tally>> = Arc::new((0..TRIALS).map(|_| Tally::default()).collect());
    runtime.block_on(async {
        let tasks: Vec<_> = (0..TRIALS * TASKS)
            .map(|number| {
                let index = number % TRIALS;
                let seed = 77 + number as u64;
                tokio::spawn(make_calls(trials[index].clone(), tally.clone(), index, seed, CALLS))
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    for (index, trial) in trials.iter().enumerate() {
        let totals = trial.totals();
        assert_eq!(totals.all.spent.0, tally[index].spent.load(Ordering::Relaxed));
        assert_eq!(totals.all.calls, tally[index].calls.load(Ordering::Relaxed));
        assert!(totals.all.spent.0 <= 130_000);
    }
    let totals = day.totals();
    let made = Tally::sum(&tally, |tally| &tally.calls);
    let unbilled = Tally::sum(&tally, |tally| &tally.unbilled);
    let refused = Tally::sum(&tally, |tally| &tally.refused);
    let given_up = Tally::sum(&tally, |tally| &tally.given_up);
    assert_eq!(totals.all.spent.0, Tally::sum(&tally, |tally| &tally.spent));
    assert_eq!((totals.all.calls, totals.all.unbilled_calls), (made, unbilled));
    assert_eq!(made + unbilled + refused + given_up, (TRIALS * TASKS) as u64 * CALLS);
    assert!(totals.all.spent.0 <= 4_500_000 && refused > 0 && made > 1000);
    assert_eq!((totals.open_calls, totals.reserved, totals.reserved_tokens), (0, MicroDollars(0), 0));
    assert_eq!(meter.shared.state().sizes(), (3 + TRIALS, 0));
    drop(trials);
    assert_eq!(meter.shared.state().sizes(), (3, 0));
}

#[test]
fn thousands_who_wait_are_all_served() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    let meter = Meter::new(Unpriced::Refuse);
    let account = meter.open(None, "a", dollars(5010));
    runtime.block_on(async {
        let tasks: Vec<_> = (0..5000)
            .map(|_| {
                let account = account.clone();
                // Eleven at a time, each a tenth as expensive as its bound.
                tokio::spawn(async move {
                    let call = account.reserve(quote(10)).await.unwrap();
                    tokio::task::yield_now().await;
                    call.settle(actual(1));
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert_eq!((spent(&account), account.totals().all.calls), (5000, 5000));
}

#[derive(Clone, Debug)]
enum Step {
    Ask { account: usize, bound: u64, unpriced: bool },
    Look(usize),
    GiveUp(usize),
    Settle { call: usize, taken: u64 },
    Drop(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..5usize, 0..120u64, prop::bool::weighted(0.05))
            .prop_map(|(account, bound, unpriced)| Step::Ask { account, bound, unpriced }),
        3 => any::<usize>().prop_map(Step::Look),
        1 => any::<usize>().prop_map(Step::GiveUp),
        // Sometimes more than was reserved.
        4 => (any::<usize>(), 0..130u64).prop_map(|(call, taken)| Step::Settle { call, taken }),
        1 => any::<usize>().prop_map(Step::Drop),
    ];
    prop::collection::vec(step, 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_order_of_events_adds_up(steps in steps(), day_cap in 0u64..600, trial_cap in 0u64..300) {
        let meter = Meter::new(Unpriced::Refuse);
        let day = meter.open(None, "day", Budget { money: Some(MicroDollars(day_cap)), tokens: Some(2 * day_cap) });
        let middle = meter.open(Some(&day), "middle", Budget::UNLIMITED);
        let mut accounts = vec![day.clone(), middle.clone()];
        accounts.extend((0..3).map(|_| meter.open(Some(&middle), "trial", dollars(trial_cap))));
        let mut asked: Vec<Asked> = Vec::new();
        let mut calls: Vec<Reservation> = Vec::new();
        let (mut spent, mut over) = (0, false);
        for step in steps {
            match step {
                Step::Ask { account, bound, unpriced } => {
                    let mut quote = quote(bound);
                    if unpriced {
                        quote.money = None;
                    }
                    let mut future = Asked::new(&accounts[account], quote);
                    match future.poll() {
                        Some(Ok(call)) => calls.push(call),
                        Some(Err(_)) => {}
                        None => asked.push(future),
                    }
                }
                Step::Look(index) if !asked.is_empty() => {
                    let index = index % asked.len();
                    if let Some(outcome) = asked[index].poll() {
                        asked.remove(index);
                        calls.extend(outcome);
                    }
                }
                Step::GiveUp(index) if !asked.is_empty() => drop(asked.remove(index % asked.len())),
                Step::Settle { call, taken } if !calls.is_empty() => {
                    let call = calls.remove(call % calls.len());
                    over |= taken > call.quote().tokens;
                    spent += taken;
                    call.settle(actual(taken));
                }
                Step::Drop(index) if !calls.is_empty() => {
                    let call = calls.remove(index % calls.len());
                    spent += call.quote().money.unwrap().0;
                }
                _ => {}
            }
            prop_assert_eq!(day.totals().all.spent.0, spent);
            prop_assert!(over || spent <= day_cap);
        }
        // When all calls are settled, no caller is left waiting. A call that was granted meanwhile may be what others wait
        // for, so all are asked before each settlement.
        loop {
            asked.retain_mut(|future| match future.poll() {
                Some(outcome) => {
                    calls.extend(outcome);
                    false
                }
                None => true,
            });
            let Some(call) = calls.pop() else { break };
            call.settle(actual(0));
        }
        prop_assert_eq!(asked.len(), 0);
        prop_assert_eq!(meter.shared.state().sizes(), (5, 0));
    }
}
