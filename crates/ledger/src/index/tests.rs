//! Compares the index with its files: fresh, rebuilt, shared, and damaged in every way.

use std::path::Path;
use std::time::{Duration, SystemTime};

use aec_judge::verdict::Outcome;

use super::*;
use crate::example;

fn ledger() -> (tempfile::TempDir, Ledger) {
    let directory = tempfile::tempdir().unwrap();
    let ledger = Ledger::new(directory.path().join("ledger"));
    fs_err::create_dir(ledger.root()).unwrap();
    (directory, ledger)
}

fn place(ledger: &Ledger, experiment: &str) -> std::path::PathBuf {
    ledger.root().join(experiment)
}

/// Makes a directory look as if it had not changed for a while.
fn settle(path: &Path) {
    let times = std::fs::FileTimes::new().set_modified(SystemTime::now() - Duration::from_mins(1));
    std::fs::File::open(path).unwrap().set_times(times).unwrap();
}

fn ids(rows: &[Row]) -> Vec<String> {
    rows.iter().map(|row| row.file().id()).collect()
}

fn by_id() -> Filter {
    Filter { order: Order::Id, attempts: Attempts::All, ..Filter::default() }
}

fn counts(refreshed: &Refreshed) -> (usize, usize, usize) {
    (refreshed.added, refreshed.removed, refreshed.broken)
}

#[test]
fn a_row_holds_what_the_record_says() {
    let (_directory, ledger) = ledger();
    let scored = example::record("exp", "a", 1);
    let failed = example::with_outcome(example::record("exp", "b", 1), Outcome::InfraFault);
    let digests = [example::write(&ledger, &scored), example::write(&ledger, &failed)];
    let mut index = Index::open(&ledger).unwrap();
    assert!(index.is_kept());
    index.refresh().unwrap();
    let rows = index.query(&by_id()).unwrap();
    for (row, (record, digest)) in rows.iter().zip([&scored, &failed].into_iter().zip(digests)) {
        let size = row.file().path(&ledger).metadata().unwrap().len();
        assert_eq!(*row, Row::new(record, digest, size));
    }
    assert_eq!(rows[1].fault_boundary.as_deref(), Some("provider"));
}

#[test]
fn only_what_is_new_is_read() {
    let (_directory, ledger) = ledger();
    for trial in ["a", "b"] {
        example::write(&ledger, &example::record("exp", trial, 1));
    }
    let mut index = Index::open(&ledger).unwrap();
    assert_eq!(counts(&index.refresh().unwrap()), (2, 0, 0));
    settle(&place(&ledger, "exp"));
    assert_eq!(counts(&index.refresh().unwrap()), (0, 0, 0));
    // A new file is not noticed if the directory's time does not change.
    example::write(&ledger, &example::record("exp", "c", 1));
    let text = fs_err::read(place(&ledger, "exp").join("a.json")).unwrap();
    fs_err::remove_file(place(&ledger, "exp").join("a.json")).unwrap();
    settle_like_before(&index, &place(&ledger, "exp"));
    assert_eq!(counts(&index.refresh().unwrap()), (0, 0, 0));
    // A changed directory is listed; known files are not read again.
    fs_err::write(place(&ledger, "exp").join("b.json"), "garbage").unwrap();
    fs_err::write(place(&ledger, "exp").join("d.json"), text).unwrap();
    let refreshed = index.refresh().unwrap();
    assert_eq!(counts(&refreshed), (1, 1, 1));
    assert_eq!(refreshed.problems[0].id.as_deref(), Some("L022"));
    assert_eq!(ids(&index.query(&by_id()).unwrap()), ["exp/b", "exp/c"]);
    // A rebuild notices a record that was changed in place.
    let rebuilt = index.rebuild().unwrap();
    assert_eq!(counts(&rebuilt), (1, 0, 2));
    assert_eq!(ids(&index.query(&by_id()).unwrap()), ["exp/c"]);
}

/// Sets a directory to the time stored in the index.
fn settle_like_before(index: &Index, path: &Path) {
    let noted: i64 =
        index.connection.query_row("SELECT modified FROM directories", [], |row| row.get(0)).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(noted.cast_unsigned());
    std::fs::File::open(path).unwrap().set_times(std::fs::FileTimes::new().set_modified(time)).unwrap();
}

#[test]
fn a_time_that_is_too_recent_is_not_believed() {
    let (_directory, ledger) = ledger();
    example::write(&ledger, &example::record("exp", "a", 1));
    let directory = place(&ledger, "exp");
    // In the future, so that it stays recent however long the next steps take.
    let recent = std::fs::FileTimes::new().set_modified(SystemTime::now() + Duration::from_mins(1));
    std::fs::File::open(&directory).unwrap().set_times(recent).unwrap();
    let mut index = Index::open(&ledger).unwrap();
    index.refresh().unwrap();
    let noted: Option<i64> =
        index.connection.query_row("SELECT modified FROM directories", [], |row| row.get(0)).unwrap();
    assert_eq!(noted, None);
    // A second file within the same clock tick is found.
    example::write(&ledger, &example::record("exp", "b", 1));
    std::fs::File::open(&directory).unwrap().set_times(recent).unwrap();
    assert_eq!(counts(&index.refresh().unwrap()), (1, 0, 0));
}

#[test]
fn a_broken_file_is_told_again_and_forgotten_when_it_is_mended() {
    let (_directory, ledger) = ledger();
    example::write(&ledger, &example::record("exp", "a", 1));
    let bad = place(&ledger, "exp").join("b.json");
    fs_err::write(&bad, "{").unwrap();
    fs_err::write(place(&ledger, "exp").join("x y.json"), "{").unwrap();
    for path in [bad.clone(), place(&ledger, "exp").join("x y.json"), place(&ledger, "exp")] {
        settle(&path);
    }
    let mut index = Index::open(&ledger).unwrap();
    assert_eq!(counts(&index.refresh().unwrap()), (1, 0, 2));
    let again = index.refresh().unwrap();
    assert_eq!(counts(&again), (0, 0, 2));
    let told: Vec<_> = again.problems.iter().map(|problem| problem.id.as_deref().unwrap()).collect();
    assert_eq!(told, ["L002", "L024"]);
    assert_eq!(again.problems[0].file.as_deref(), Some(bad.as_path()));
    // Repaired in place: the directory's time does not change.
    fs_err::write(&bad, example::record("exp", "b", 1).to_json().unwrap()).unwrap();
    settle_like_before(&index, &place(&ledger, "exp"));
    assert_eq!(counts(&index.refresh().unwrap()), (1, 0, 1));
    fs_err::remove_dir_all(place(&ledger, "exp")).unwrap();
    assert_eq!(counts(&index.refresh().unwrap()), (0, 2, 0));
}

#[test]
fn the_latest_attempt_is_the_highest_that_is_there() {
    let (_directory, ledger) = ledger();
    for attempt in [2, 1, 10] {
        example::write(&ledger, &example::record("exp", "a", attempt));
    }
    let mut index = Index::open(&ledger).unwrap();
    index.refresh().unwrap();
    let latest = |index: &Index| ids(&index.query(&Filter::default()).unwrap());
    assert_eq!(latest(&index), ["exp/a.10"]);
    assert_eq!(ids(&index.query(&by_id()).unwrap()), ["exp/a", "exp/a.2", "exp/a.10"]);
    fs_err::remove_file(place(&ledger, "exp").join("a.10.json")).unwrap();
    index.refresh().unwrap();
    assert_eq!(latest(&index), ["exp/a.2"]);
    let third = example::record("exp", "a", 3);
    index.add(&third, Digest::of(b"x"), 7).unwrap();
    assert_eq!(latest(&index), ["exp/a.3"]);
    // Adding the same record again changes nothing.
    index.add(&third, Digest::of(b"x"), 7).unwrap();
    assert_eq!(index.count(&by_id()).unwrap(), 3);
}

#[test]
fn filters_totals_and_summaries() {
    let (_directory, ledger) = ledger();
    let mut records = Vec::new();
    for (number, trial) in ["a1", "a2", "b1", "b2"].into_iter().enumerate() {
        let mut record = example::record(if number < 3 { "one" } else { "two" }, trial, 1);
        record.evaluation.as_mut().unwrap().reward = Some([0.25, 0.75, 0.5, 1.0][number]);
        record.timestamp = aec_base::timestamp::Timestamp::from_seconds(1000 + number as u64);
        records.push(record);
    }
    records[2] = example::with_outcome(records[2].clone(), Outcome::AgentFault);
    records[2].cost.estimated_cost_usd = None;
    records[2].task.difficulty = None;
    records[3].task.task_id = "civil.pipe".to_owned();
    records[3].agent.model = None;
    let mut index = Index::in_memory(&ledger).unwrap();
    let all: Vec<_> = records.iter().map(|record| (record, Digest::of(b"x"), 1)).collect();
    index.add_all(&all).unwrap();
    let take = |filter: Filter| ids(&index.query(&filter).unwrap());
    let none = Filter::default;
    assert_eq!(take(none()), ["two/b2", "one/b1", "one/a2", "one/a1"]);
    assert_eq!(take(Filter { limit: Some(1), ..none() }), ["two/b2"]);
    assert_eq!(index.count(&Filter { limit: Some(1), ..none() }).unwrap(), 4);
    assert_eq!(take(Filter { experiments: vec!["two".into()], ..none() }), ["two/b2"]);
    assert_eq!(take(Filter { experiments: vec!["two".into(), "one".into()], ..none() }).len(), 4);
    assert_eq!(take(Filter { trial_prefix: Some("a".into()), ..none() }), ["one/a2", "one/a1"]);
    assert_eq!(take(Filter { task_prefix: Some("civil/".into()), ..none() }), ["two/b2"]);
    assert_eq!(take(Filter { outcome: Some(Outcome::AgentFault), ..none() }), ["one/b1"]);
    assert_eq!(take(Filter { model: Some("%".into()), ..none() }), [""; 0]);
    let field = |field: &str, value: &str| Filter { fields: vec![(field.into(), value.into())], ..none() };
    assert_eq!(take(field("model", "unknown")), ["two/b2"]);
    assert_eq!(take(field("difficulty", "unknown")), ["one/b1"]);
    assert_eq!(take(field("attempt", "1")).len(), 4);
    assert_eq!(take(field("fault", "harness")), ["one/b1"]);
    assert_eq!(take(field("completeness", "partial")), [""; 0]);
    assert_eq!(take(field("1=1; --", "1")), [""; 0]);

    let totals = index.totals(&none()).unwrap();
    assert_eq!(totals.outcomes, [(Outcome::Scored, 3), (Outcome::AgentFault, 1)].into());
    assert!((totals.mean_reward.unwrap() - 0.5).abs() < 1e-12, "a fault of the agent is worth nothing");
    assert_eq!((totals.count, totals.without_cost), (4, 1));
    assert!((totals.cost_usd - 3.0 * 0.0123).abs() < 1e-12);
    index.add(&example::record("one", "a1", 2), Digest::of(b"x"), 1).unwrap();
    let summaries = index.summaries().unwrap();
    let shown: Vec<_> = summaries
        .iter()
        .map(|summary| (summary.experiment_id.as_str(), summary.trials.count, summary.attempts))
        .collect();
    assert_eq!(shown, [("one", 3, 4), ("two", 1, 1)]);
    assert_eq!(summaries[0].first.as_ref().unwrap().as_str(), "1970-01-01T00:16:40Z");
    assert_eq!(summaries[0].last.as_ref().unwrap().as_str(), "2026-04-12T00:00:02Z");
    assert_eq!(index.totals(&field("agent", "nobody")).unwrap().mean_reward, None);
}

#[test]
fn kept_sums_are_those_of_the_rows() {
    let (_directory, ledger) = ledger();
    let mut index = Index::open(&ledger).unwrap();
    let sums = |index: &Index| {
        let of = |experiments: &[&str], attempts| Filter {
            experiments: experiments.iter().map(ToString::to_string).collect(),
            attempts,
            ..Filter::default()
        };
        let filters = [
            of(&[], Attempts::Latest),
            of(&[], Attempts::All),
            of(&["one"], Attempts::All),
            of(&["one", "two"], Attempts::Latest),
            Filter { outcome: Some(Outcome::Scored), ..of(&[], Attempts::Latest) },
        ];
        let totals = filters.map(|filter| index.totals(&filter).unwrap());
        (totals, index.summaries().unwrap())
    };
    let step = |index: &mut Index, change: &dyn Fn(&mut Index)| {
        change(index);
        let added_up = sums(index);
        index.refresh().unwrap();
        let stale: u32 = index
            .connection
            .query_row("SELECT count(*) FROM directories WHERE counted = 0", [], |row| row.get(0))
            .unwrap();
        assert_eq!(stale, 0);
        let kept = sums(index);
        index.connection.execute("UPDATE directories SET counted = 0", []).unwrap();
        assert_eq!(kept, sums(index), "what is kept is what is there");
        index.refresh().unwrap();
        added_up == kept
    };
    let write = |experiment: &str, trial: &str, attempt| {
        example::write(&ledger, &example::record(experiment, trial, attempt))
    };
    assert!(!step(&mut index, &|_| {
        write("one", "a", 1);
        write("one", "b", 1);
        write("two", "a", 1);
    }));
    // Records added directly are counted before the next refresh.
    assert!(step(&mut index, &|index| {
        let failed = example::with_outcome(example::record("one", "a", 2), Outcome::InfraFault);
        let digest = example::write(&ledger, &failed);
        index.add(&failed, digest, 1).unwrap();
    }));
    assert!(!step(&mut index, &|_| fs_err::remove_file(place(&ledger, "one").join("a.2.json")).unwrap()));
    assert!(!step(&mut index, &|_| fs_err::remove_dir_all(place(&ledger, "two")).unwrap()));
    assert_eq!(index.summaries().unwrap().len(), 1);
}

#[test]
fn ids_are_found_by_unique_beginnings() {
    let (_directory, ledger) = ledger();
    let mut index = Index::in_memory(&ledger).unwrap();
    for (experiment, trial, attempt) in [
        ("one", "abc", 1),
        ("one", "abc", 2),
        ("one", "abcd", 1),
        ("one2", "abc", 1),
        ("two", "x.5", 1),
        ("two", "unknown", 1),
    ] {
        index.add(&example::record(experiment, trial, attempt), Digest::of(b"x"), 1).unwrap();
    }
    let find = |id: &str| match index.find(id) {
        Ok(row) => row.file().id(),
        Err(FindError::Ambiguous(ids)) => ids.join(" "),
        Err(error) => error.to_string(),
    };
    assert_eq!(find("abcd"), "one/abcd");
    assert_eq!(find("abc"), "one/abc one2/abc");
    assert_eq!(find("one/abc"), "one/abc.2");
    assert_eq!(find("one/abc.2"), "one/abc.2");
    assert_eq!(find("one2/abc"), "one2/abc");
    assert_eq!(find("one/ab"), "one/abc one/abcd");
    assert_eq!(find("tw/x"), "two/x.5");
    assert_eq!(find("x.5"), "two/x.5");
    assert_eq!(find("unknown"), "two/unknown");
    for none in ["one/abc.3", "z", "%", "../x", "a'b", "one/abc/x"] {
        assert_eq!(find(none), "there is no such record", "{none}");
    }
    assert!(find("").contains(' '), "{}", find(""));
}

#[test]
fn whatever_is_wrong_with_the_file_it_is_made_anew() {
    let (_directory, ledger) = ledger();
    example::write(&ledger, &example::record("exp", "a", 1));
    let fine = |ledger: &Ledger| {
        let (count, refreshed) = Index::ask(ledger, |index| index.count(&Filter::default())).unwrap();
        (count, refreshed.added)
    };
    assert_eq!(fine(&ledger), (1, 1));
    assert_eq!(fine(&ledger), (1, 0));
    let path = ledger.index_file();
    let sound = fs_err::read(&path).unwrap();
    let mut torn = sound.clone();
    torn.truncate(sound.len() / 2);
    let mut scrambled = sound;
    scrambled[4096..].fill(0xa5);
    for (what, bytes) in [
        ("garbage", b"not a database, but long enough to have a header of its own........".repeat(100)),
        ("empty", Vec::new()),
        ("short", b"SQLite".to_vec()),
        ("torn", torn),
        ("scrambled", scrambled),
    ] {
        fs_err::write(&path, bytes).unwrap();
        assert_eq!(fine(&ledger), (1, 1), "{what}");
        assert_eq!(fine(&ledger), (1, 0), "{what}: and is kept");
    }
    for statement in ["PRAGMA user_version = 99", "DROP TABLE broken", "UPDATE records SET outcome = 'won'"] {
        let foreign = Connection::open(&path).unwrap();
        foreign.execute_batch(statement).unwrap();
        drop(foreign);
        let (rows, _) = Index::ask(&ledger, |index| index.query(&Filter::default())).unwrap();
        assert_eq!(rows[0].outcome, Outcome::Scored, "{statement}");
        assert_eq!(fine(&ledger), (1, 0), "{statement}: and is kept");
    }
}

#[test]
fn what_is_not_a_file_is_left_alone() {
    let (directory, ledger) = ledger();
    example::write(&ledger, &example::record("exp", "a", 1));
    let target = directory.path().join("elsewhere");
    fs_err::write(&target, "precious").unwrap();
    std::os::unix::fs::symlink(&target, ledger.index_file()).unwrap();
    let mut index = Index::open(&ledger).unwrap();
    assert!(!index.is_kept());
    assert_eq!(index.refresh().unwrap().added, 1);
    assert_eq!(fs_err::read_to_string(&target).unwrap(), "precious");
    // A ledger that does not exist yet is empty, and is not created.
    let none = Ledger::new(directory.path().join("none"));
    assert_eq!(Index::ask(&none, |index| index.count(&Filter::default())).unwrap().0, 0);
    assert!(!none.root().exists());
}

#[test]
fn several_writers_and_readers_at_once() {
    const WRITERS: usize = 4;
    const EACH: usize = 25;
    let (_directory, ledger) = ledger();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let ledger = &ledger;
            scope.spawn(move || {
                let mut index = Index::open(ledger).unwrap();
                assert!(index.is_kept());
                for number in 0..EACH {
                    let record = example::record("exp", &format!("t{writer}-{number}"), 1);
                    let digest = example::write(ledger, &record);
                    index.add(&record, digest, 1).unwrap();
                    if number % 10 == 0 {
                        index.refresh().unwrap();
                    }
                }
            });
        }
    });
    let mut index = Index::open(&ledger).unwrap();
    // No added record is lost, so none has to be read.
    assert_eq!(index.count(&Filter::default()).unwrap(), WRITERS * EACH);
    assert_eq!(counts(&index.refresh().unwrap()), (0, 0, 0));
}

#[test]
fn two_processes_add_at_once() {
    const EACH: usize = 50;
    const PLACE: &str = "AEC_LEDGER_TEST_PLACE";
    const THIS: &str = "index::tests::two_processes_add_at_once";
    // The test starts its own program again as each of the writers.
    if let Some(place) = std::env::var_os(PLACE) {
        let ledger = Ledger::new(place);
        let mut index = Index::open(&ledger).unwrap();
        assert!(index.is_kept());
        for number in 0..EACH {
            let record = example::record("exp", &format!("t{}-{number}", std::process::id()), 1);
            index.add(&record, example::write(&ledger, &record), 1).unwrap();
        }
        return;
    }
    let (_directory, ledger) = ledger();
    let start = || {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args([THIS, "--exact"]).env(PLACE, ledger.root()).stdout(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    for mut writer in [start(), start()] {
        assert!(writer.wait().unwrap().success());
    }
    let mut index = Index::open(&ledger).unwrap();
    assert_eq!(index.count(&Filter::default()).unwrap(), 2 * EACH);
    assert_eq!(counts(&index.refresh().unwrap()), (0, 0, 0));
}

#[test]
fn an_index_can_be_made_anew_while_another_process_has_it_open() {
    let (_directory, ledger) = ledger();
    for trial in ["a", "b"] {
        example::write(&ledger, &example::record("exp", trial, 1));
    }
    let mut other = Index::open(&ledger).unwrap();
    other.refresh().unwrap();
    assert_eq!(other.query(&Filter::default()).unwrap().len(), 2);
    assert_eq!(counts(&Index::open(&ledger).unwrap().rebuild().unwrap()), (2, 0, 0));
    other.add(&example::record("exp", "c", 1), Digest::of(b"x"), 1).unwrap();
    assert_eq!(other.query(&Filter::default()).unwrap().len(), 3);
    assert_eq!(Index::open(&ledger).unwrap().count(&Filter::default()).unwrap(), 3);
}

#[test]
fn a_link_in_place_of_an_experiment_is_not_followed() {
    let (directory, ledger) = ledger();
    let other = Ledger::new(directory.path().join("other"));
    example::write(&other, &example::record("exp", "a", 1));
    std::os::unix::fs::symlink(other.root().join("exp"), place(&ledger, "exp")).unwrap();
    let mut index = Index::open(&ledger).unwrap();
    assert_eq!(counts(&index.refresh().unwrap()), (0, 0, 0));
}
