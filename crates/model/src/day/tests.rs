//! Several processes that share a day.

mod processes;

use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;

use super::*;

const DAY: &str = "2026-11-16";

fn open(directory: &Path) -> DayBook {
    DayBook::open_with(directory, Arc::new(|| DAY.to_owned())).unwrap()
}

fn amount(money: u64) -> Amount {
    Amount { money: MicroDollars(money), tokens: money * 2 }
}

fn cap(money: u64) -> Budget {
    Budget::of_money(MicroDollars(money))
}

fn reserve(book: &DayBook, money: u64, cap_money: u64) -> Answer {
    book.reserve(amount(money), &cap(cap_money)).unwrap()
}

fn grant(book: &DayBook, money: u64, cap_money: u64) -> Booking {
    match reserve(book, money, cap_money) {
        Answer::Granted(booking) => booking,
        other => panic!("{other:?}"),
    }
}

fn file(directory: &Path) -> PathBuf {
    directory.join(format!("spend-{DAY}.jsonl"))
}

#[test]
fn two_books_of_one_directory_share_the_budget() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (open(dir.path()), open(dir.path()));
    let first = grant(&one, 60, 100);
    let second = grant(&two, 40, 100);
    assert_eq!(reserve(&one, 1, 100), Answer::Later);
    one.settle(first, amount(50), MicroDollars(5));
    assert_eq!(reserve(&two, 11, 100), Answer::Later);
    let third = grant(&two, 10, 100);
    two.settle(second, amount(40), MicroDollars(0));
    let shortage =
        Shortage::Money { cap: MicroDollars(100), spent: MicroDollars(90), asked: MicroDollars(11) };
    assert_eq!(reserve(&one, 11, 100), Answer::Never(shortage));
    let standing = one.standing().unwrap();
    assert_eq!((standing.spent, standing.reserved, standing.unconfirmed.0), (amount(90), amount(10), 5));
    two.settle(third, amount(0), MicroDollars(0));
    let by_tokens = two.reserve(amount(6), &Budget::of_tokens(191)).unwrap();
    assert_eq!(by_tokens, Answer::Never(Shortage::Tokens { cap: 191, spent: 180, asked: 12 }));
}

#[test]
fn what_a_run_that_ended_had_set_aside_is_spent() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (open(dir.path()), open(dir.path()));
    let _open = grant(&one, 60, 100);
    assert_eq!(reserve(&two, 50, 100), Answer::Later);
    drop(one);
    assert!(matches!(reserve(&two, 50, 100), Answer::Never(Shortage::Money { spent: MicroDollars(60), .. })));
    let standing = two.standing().unwrap();
    assert_eq!((standing.spent, standing.reserved, standing.unconfirmed.0), (amount(60), amount(0), 60));
    // Lock files of ended runs are removed, those of active runs stay.
    let three = open(dir.path());
    assert_eq!(fs_err::read_dir(dir.path().join("runs")).unwrap().count(), 2);
    drop((two, three));
    assert_eq!(fs_err::read_dir(dir.path().join("runs")).unwrap().count(), 0);
}

#[test]
fn half_a_line_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let book = open(dir.path());
    let booking = grant(&book, 60, 100);
    let mut text = fs_err::read_to_string(file(dir.path())).unwrap();
    text.push_str("{\"op\":\"settle\",\"run\":\"x\",\"id\":0,\"mon");
    fs_err::write(file(dir.path()), &text).unwrap();
    assert_eq!(book.standing().unwrap().reserved, amount(60));
    let other = open(dir.path());
    let second = grant(&other, 40, 100);
    assert_eq!(book.standing().unwrap().reserved, amount(100));
    book.settle(booking, amount(1), MicroDollars(0));
    other.settle(second, amount(2), MicroDollars(0));
    for book in [&book, &other, &open(dir.path())] {
        let standing = book.standing().unwrap();
        assert_eq!((standing.spent, standing.reserved, standing.damaged_lines), (amount(3), amount(0), 1));
    }
    let text = fs_err::read_to_string(file(dir.path())).unwrap();
    assert_eq!(text.lines().filter(|line| serde_json::from_str::<Line>(line).is_err()).count(), 1);
}

#[test]
fn what_was_read_is_not_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let book = open(dir.path());
    for _ in 0..3 {
        let booking = grant(&book, 10, 100);
        book.settle(booking, amount(7), MicroDollars(0));
    }
    let text = fs_err::read_to_string(file(dir.path())).unwrap();
    // In place: the file keeps its identity.
    fs_err::write(file(dir.path()), text.replace("\"money\":7", "\"money\":9")).unwrap();
    assert_eq!(book.standing().unwrap().spent, amount(21));
    assert_eq!(open(dir.path()).standing().unwrap().spent.money, MicroDollars(27));
    // A file that was truncated or replaced counts with its present contents.
    fs_err::write(file(dir.path()), "").unwrap();
    assert_eq!(book.standing().unwrap().spent, amount(0));
    fs_err::remove_dir_all(dir.path()).unwrap();
    grant(&book, 100, 100);
    assert_eq!(reserve(&book, 1, 100), Answer::Later);
}

#[test]
fn a_new_day_has_a_new_budget_and_old_calls_stay_with_their_day() {
    let dir = tempfile::tempdir().unwrap();
    let day = Arc::new(AtomicU64::new(16));
    let clock = day.clone();
    let today: Today = Arc::new(move || format!("2026-11-{}", clock.load(Ordering::Relaxed)));
    let book = DayBook::open_with(dir.path(), today).unwrap();
    let before = grant(&book, 100, 100);
    assert_eq!(reserve(&book, 1, 100), Answer::Later);
    day.store(17, Ordering::Relaxed);
    let after = grant(&book, 100, 100);
    book.settle(before, amount(30), MicroDollars(0));
    book.settle(after, amount(40), MicroDollars(0));
    assert_eq!(book.standing().unwrap().spent, amount(40));
    assert_eq!(open(dir.path()).standing().unwrap().spent, amount(30));
    assert_eq!(book.inner().sheets.len(), 2);
    let booking = grant(&book, 60, 100);
    book.settle(booking, amount(0), MicroDollars(0));
    assert_eq!(book.inner().sheets.len(), 1);
}

#[test]
fn a_later_format_is_not_guessed_at() {
    let dir = tempfile::tempdir().unwrap();
    fs_err::write(file(dir.path()), "{\"op\":\"open\",\"schema_version\":2,\"day\":\"x\"}\n").unwrap();
    let error = DayBook::open_with(dir.path(), Arc::new(|| DAY.to_owned())).unwrap_err();
    assert!(error.to_string().contains("has format 2"), "{error}");
}

#[test]
fn the_system_clock_names_a_day() {
    let dir = tempfile::tempdir().unwrap();
    let day = DayBook::open(dir.path()).unwrap().standing().unwrap().day;
    assert_eq!((day.len(), &day[..2], day.matches('-').count()), (10, "20", 2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn books_agree_and_never_exceed_the_cap(
        steps in prop::collection::vec((0..4u8, 0..3usize, 0..60u64, 0..100u64), 0..40),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut books: Vec<DayBook> = (0..3).map(|_| open(dir.path())).collect();
        let mut held: Vec<Vec<(Booking, u64)>> = vec![Vec::new(), Vec::new(), Vec::new()];
        let mut spent = 0;
        for (kind, who, money, share) in steps {
            let reserved: u64 = held.iter().flatten().map(|(_, money)| money).sum();
            match kind {
                0 | 1 => {
                    let answer = reserve(&books[who], money, 150);
                    let fits = spent + reserved + money <= 150;
                    prop_assert_eq!(matches!(answer, Answer::Granted(_)), fits);
                    prop_assert_eq!(matches!(answer, Answer::Never(_)), spent + money > 150);
                    if let Answer::Granted(booking) = answer {
                        held[who].push((booking, money));
                    }
                }
                2 => if let Some((booking, money)) = held[who].pop() {
                    spent += money * share / 100;
                    books[who].settle(booking, amount(money * share / 100), MicroDollars(0));
                },
                _ => {
                    // The run ends and another one replaces it.
                    spent += held[who].drain(..).map(|(_, money)| money).sum::<u64>();
                    books[who] = open(dir.path());
                }
            }
            let reserved: u64 = held.iter().flatten().map(|(_, money)| money).sum();
            for book in &books {
                let standing = book.standing().unwrap();
                prop_assert_eq!((standing.spent.money.0, standing.reserved.money.0), (spent, reserved));
            }
            prop_assert!(spent + reserved <= 150);
        }
    }
}
