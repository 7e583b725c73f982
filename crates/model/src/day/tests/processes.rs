//! Real processes that share a day; some are killed while they spend.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::*;
use crate::message::Usage;
use crate::meter::{Account, Charge, Meter, Quote, Refusal, Unpriced};

const CAP: u64 = 400_000;

fn start(directory: &Path, role: &str, name: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "day::tests::processes::spender", "--nocapture"])
        .env("AEC_SPENDER", role)
        .env("AEC_SPENDER_DIRECTORY", directory)
        .env("AEC_SPENDER_LOG", directory.join(name))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// A process's log of the provider: the bound of each call when it is sent, its cost when it is answered.
#[derive(Clone)]
struct Provider(Arc<fs_err::File>);

impl Provider {
    fn note(&self, line: &str) {
        (&*self.0).write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// What a provider may bill: the cost of an answered call, else its bound.
    fn billed(log: &Path) -> u64 {
        let mut calls = BTreeMap::new();
        for line in fs_err::read_to_string(log).unwrap().lines() {
            let mut words = line.split(' ');
            let call = words.next().unwrap().to_owned();
            let Some(money) = words.next() else { continue };
            calls.insert(call, money.parse::<u64>().unwrap());
        }
        calls.values().sum()
    }
}

fn quote(money: u64) -> Quote {
    Quote { model: "m".into(), money: Some(MicroDollars(money)), tokens: 1 }
}

fn charge(money: u64) -> Charge {
    Charge::Actual { usage: Usage::default(), cost: Some(MicroDollars(money)) }
}

/// Spends until the budget is gone.
async fn spend(account: Account, provider: Provider, task: u64) {
    for number in 0.. {
        let bound = 500 + (number * 37 + task * 101) % 1000;
        let call = match account.reserve(quote(bound)).await {
            Ok(call) => call,
            Err(Refusal::Short { .. }) => return,
            Err(other) => panic!("{other}"),
        };
        provider.note(&format!("{task}-{number} {bound}"));
        tokio::task::yield_now().await;
        let taken = bound * ((number + task) % 10) / 10;
        provider.note(&format!("{task}-{number} {taken}"));
        call.settle(charge(taken));
    }
}

/// Repeatedly reserves more than half of the budget, so that two processes can never hold it at once.
fn contend(book: &DayBook) {
    for _ in 0..200 {
        loop {
            match reserve(book, 60, 100) {
                Answer::Granted(booking) => break book.settle(booking, amount(0), MicroDollars(0)),
                Answer::Later => std::thread::yield_now(),
                Answer::Never(shortage) => panic!("{shortage}"),
            }
        }
    }
}

/// Adds the lines up one by one: spending and reservations may never exceed the cap.
fn replay(directory: &Path, cap: u64) -> usize {
    let mut open = BTreeMap::new();
    let mut settled = 0;
    let mut reservations = 0;
    for line in fs_err::read_to_string(file(directory)).unwrap().lines() {
        match serde_json::from_str(line) {
            Ok(Line::Reserve { run, id, amount, .. }) => {
                reservations += 1;
                assert_eq!(open.insert((run, id), amount.money.0), None, "{line}");
            }
            Ok(Line::Settle { run, id, amount, .. }) => {
                assert!(open.remove(&(run, id)).is_some(), "{line}");
                settled += amount.money.0;
            }
            _ => {}
        }
        assert!(settled + open.values().sum::<u64>() <= cap, "{line}");
    }
    reservations
}

#[test]
fn processes_that_contend_never_hold_more_than_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let children: Vec<Child> =
        (0..4).map(|number| start(dir.path(), "contend", &format!("contend-{number}"))).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(replay(dir.path(), 100), 800);
}

/// The child process of these tests; run directly, it does nothing.
#[test]
fn spender() {
    let Ok(role) = std::env::var("AEC_SPENDER") else { return };
    let variable = |name| PathBuf::from(std::env::var_os(name).unwrap());
    let book = open(&variable("AEC_SPENDER_DIRECTORY"));
    let log = fs_err::OpenOptions::new().create(true).append(true).open(variable("AEC_SPENDER_LOG")).unwrap();
    let provider = Provider(Arc::new(log));
    if role == "contend" {
        return contend(&book);
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    runtime.block_on(async {
        let meter = Meter::new(Unpriced::Refuse);
        let day = meter.open_day(book, cap(CAP));
        let trial = meter.open(Some(&day), "trial", Budget::UNLIMITED);
        match role.as_str() {
            "spend" => {
                let tasks: Vec<_> =
                    (0..4).map(|task| tokio::spawn(spend(trial.clone(), provider.clone(), task))).collect();
                for task in tasks {
                    task.await.unwrap();
                }
            }
            // Has calls in flight when it is killed.
            "hold" => {
                let mut calls = Vec::new();
                for number in 0..3 {
                    calls.push(trial.reserve(quote(7000)).await.unwrap());
                    provider.note(&format!("{number} 7000"));
                }
                let last = calls.pop().unwrap();
                provider.note("2 5000");
                last.settle(charge(5000));
                provider.note("ready");
                std::future::pending::<()>().await;
            }
            // Is killed at any point: while reserving, settling, or writing.
            _ => loop {
                let call = trial.reserve(quote(90)).await.unwrap();
                provider.note("go");
                call.settle(charge(0));
            },
        }
    });
}

/// Waits until a condition holds, and reads the day meanwhile.
fn await_that(book: &DayBook, what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        let standing = book.standing().unwrap();
        assert!(standing.spent.plus(standing.reserved).money.0 <= CAP, "{standing:?}");
        assert!(begin.elapsed() < Duration::from_mins(2), "{what}: {standing:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn processes_stay_within_the_day_together_though_some_are_killed() {
    let dir = tempfile::tempdir().unwrap();
    let book = open(dir.path());
    let log = |name: &str| dir.path().join(name);
    let lines = |name: &str| fs_err::read_to_string(log(name)).map_or(0, |text| text.lines().count());
    let mut victims: Vec<Child> =
        [("hold", "hold-0"), ("hold", "hold-1"), ("spin", "spin-0"), ("spin", "spin-1")]
            .map(|(role, name)| start(dir.path(), role, name))
            .into();
    await_that(&book, "victims", || {
        lines("hold-0") == 5 && lines("hold-1") == 5 && lines("spin-0") > 30 && lines("spin-1") > 30
    });
    let mut spenders: Vec<Child> =
        (0..3).map(|number| start(dir.path(), "spend", &format!("spend-{number}"))).collect();
    // A late process may find everything already spent.
    let spending = || (0..3).map(|number| lines(&format!("spend-{number}"))).sum::<usize>();
    await_that(&book, "spenders begin", || spending() > 60);
    for victim in &mut victims {
        victim.kill().unwrap();
        victim.wait().unwrap();
    }
    await_that(&book, "spenders end", || {
        spenders.iter_mut().all(|spender| match spender.try_wait().unwrap() {
            Some(status) => {
                assert!(status.success());
                true
            }
            None => false,
        })
    });

    let standing = book.standing().unwrap();
    let billed: u64 = ["hold-0", "hold-1", "spend-0", "spend-1", "spend-2"]
        .map(|name| Provider::billed(&log(name)))
        .iter()
        .sum();
    assert_eq!(Provider::billed(&log("hold-0")), 19_000);
    let spent = standing.spent.money.0;
    assert_eq!(standing.reserved, Amount::default());
    assert!(billed <= spent && spent <= CAP, "{billed} {standing:?}");
    // A spinning process has at most one call in flight, and no process stops while the cheapest call would fit.
    assert!(spent - billed <= 2 * 90 && CAP - spent < 1500, "{billed} {standing:?}");
    assert!(standing.damaged_lines <= 2);
    assert!(replay(dir.path(), CAP) > 500);
    assert_eq!(open(dir.path()).standing().unwrap(), standing);
}

#[test]
fn a_call_waits_for_another_process_and_gives_up_without_a_trace() {
    let dir = tempfile::tempdir().unwrap();
    let other = open(dir.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let meter = Meter::new(Unpriced::Refuse);
    let day = meter.open_day(open(dir.path()), cap(100));
    runtime.block_on(async {
        let held = grant(&other, 60, 100);
        let mut waiting: Vec<_> = (0..50)
            .map(|_| {
                let day = day.clone();
                tokio::spawn(async move { day.reserve(quote(80)).await })
            })
            .collect();
        tokio::task::yield_now().await;
        // A reservation that can never fit is refused at once, even with others waiting.
        assert!(day.reserve(quote(101)).await.is_err());
        let last = waiting.split_off(1);
        // The task that wakes the others may be dropped at any time.
        for task in &last[..49] {
            task.abort();
        }
        let own = waiting.pop().unwrap();
        other.settle(held, Amount { money: MicroDollars(20), tokens: 0 }, MicroDollars(0));
        let call = own.await.unwrap().unwrap();
        assert_eq!(day.totals().remaining, Some(MicroDollars(0)));
        call.settle(charge(0));
        let held = grant(&other, 80, 100);
        let own = tokio::spawn({
            let day = day.clone();
            async move { day.reserve(quote(50)).await }
        });
        tokio::task::yield_now().await;
        drop(other);
        let refusal = own.await.unwrap().unwrap_err();
        assert!(refusal.to_string().contains("$0.000100 of $0.000100 are spent"), "{refusal}");
        drop(held);
    });
    assert_eq!(day.totals().all.spent, MicroDollars(0));
}
