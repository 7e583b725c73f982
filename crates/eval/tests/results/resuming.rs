//! A run can be continued from whatever is left of it.

use std::path::Path;

use aec_base::problem::Problem;
use aec_eval::results::facts::RowFacts;
use aec_eval::results::resume::{OpenRun, open};
use aec_eval::results::row::RolloutRow;
use aec_eval::results::writer::ResultsWriter;
use aec_run::import::Row;
use proptest::prelude::*;
use tempfile::TempDir;

use super::support::{description, errored, fixture, line, ready, row};

fn run_of(results: &[u8]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    drop(ResultsWriter::create(directory.path(), description(2, 2)).unwrap());
    std::fs::write(directory.path().join("results.jsonl"), results).unwrap();
    directory
}

fn results(run: &Path) -> Vec<u8> {
    std::fs::read(run.join("results.jsonl")).unwrap()
}

fn problem_of(results: &[u8]) -> Problem {
    open(run_of(results).path(), None).unwrap_err()
}

fn place(problem: &Problem) -> (&str, &str, Option<u32>) {
    let file = problem.file.as_ref().unwrap().file_name().unwrap().to_str().unwrap();
    (problem.id.as_deref().unwrap(), file, problem.line)
}

/// A row in the format of verifiers, without a rollout number.
fn unnumbered(row: &RolloutRow) -> Vec<u8> {
    let text = String::from_utf8(line(row)).unwrap();
    let at = text.find(",\"rollout_number\"").unwrap();
    format!("{}}}\n", &text[..at]).into_bytes()
}

fn again(row: RolloutRow, attempt: u32) -> RolloutRow {
    RolloutRow { attempt, ..row }
}

fn missing(run: &OpenRun) -> Vec<(i64, u32)> {
    run.present.missing([0, 1], 2).collect()
}

#[test]
fn only_what_is_missing_is_left_to_do() {
    let rows = [line(&row(1, 0, 1.0)), line(&errored(0, 1))].concat();
    let directory = run_of(&rows);
    let run = open(directory.path(), None).unwrap();
    assert_eq!(missing(&run), [(0, 0), (1, 1)]);
    assert_eq!(run.present.errored(), [(0, 1, 1)]);
    assert_eq!(run.present.get(1, 0), Some(Row { attempt: 1, has_error: false }));
    assert_eq!(run.present.get(1, 1), None);
    assert_eq!(run.complete([0, 1], 2), None);
    assert_eq!(run.complete([1], 1).unwrap().id.as_deref(), Some("R035"));
    assert!(run.check(&description(3, 2)).is_ok());
    let mut other = description(2, 2);
    other.configuration.insert("model".to_owned(), "other".into());
    assert_eq!(run.check(&other).unwrap_err().id.as_deref(), Some("R032"));

    let writer = ResultsWriter::resume(run, description(2, 2)).unwrap();
    writer.write(ready(&row(0, 0, 0.0))).unwrap();
    writer.write(ready(&row(1, 1, 1.0))).unwrap();
    let metadata = writer.finish(description(2, 2)).unwrap();
    assert_eq!((metadata.complete, metadata.rollouts), (Some(true), Some(4)));
    assert!(results(directory.path()).starts_with(&rows), "rows are appended");
    let run = open(directory.path(), None).unwrap();
    let note = run.complete([0, 1], 2).unwrap();
    assert!(note.what.contains("4 rows") && note.why.unwrap().starts_with("1 of them"));
}

#[test]
fn the_last_attempt_counts() {
    let directory = run_of(&[line(&errored(0, 0)), line(&row(0, 1, 1.0))].concat());
    let run = open(directory.path(), None).unwrap();
    let (example, number, attempt) = run.present.errored()[0];
    let writer = ResultsWriter::resume(run, description(2, 2)).unwrap();
    writer.write(ready(&again(errored(example, number), attempt + 1))).unwrap();
    writer.write(ready(&again(row(example, number, 0.5), attempt + 2))).unwrap();
    let metadata = writer.finish(description(2, 2)).unwrap();
    assert_eq!((metadata.rollouts, metadata.avg_error, metadata.reward), (Some(2), Some(0.0), Some(0.75)));
    let run = open(directory.path(), None).unwrap();
    assert_eq!(run.present.errored(), []);
    assert_eq!(run.present.get(0, 0), Some(Row { attempt: 3, has_error: false }));
    let facts = [again(row(0, 0, 0.5), 3), row(0, 1, 1.0)].map(|row| RowFacts::of(&row));
    let mut alone = aec_eval::results::aggregate::Aggregate::new(2, 0.5);
    for facts in &facts {
        alone.add(facts);
    }
    assert_eq!(run.aggregate.summary(), alone.summary());
}

#[test]
fn rows_of_verifiers_get_free_numbers() {
    let theirs =
        [unnumbered(&row(0, 0, 1.0)), unnumbered(&errored(0, 0)), unnumbered(&row(1, 0, 0.0))].concat();
    let directory = run_of(&theirs);
    let run = open(directory.path(), None).unwrap();
    assert_eq!(run.present.errored(), [(0, 1, 1)]);
    assert_eq!(missing(&run), [(1, 1)]);
    // New rows have numbers, and the numbers of the others stay.
    let ours = [line(&row(1, 1, 1.0)), line(&again(row(0, 1, 1.0), 2))].concat();
    let directory = run_of(&[theirs, ours].concat());
    let run = open(directory.path(), None).unwrap();
    assert_eq!((run.present.len(), run.present.errored(), missing(&run)), (4, vec![], vec![]));
    assert_eq!(run.aggregate.summary().reward.unwrap().mean, 0.75);
    // A number that is used later in the file is not assigned.
    let directory = run_of(&[unnumbered(&row(0, 9, 1.0)), line(&row(0, 0, 1.0))].concat());
    assert_eq!(missing(&open(directory.path(), None).unwrap()), [(1, 0), (1, 1)]);
}

#[test]
fn samples_of_verifiers_are_opened() {
    let directory = tempfile::tempdir().unwrap();
    for file in ["results.jsonl", "metadata.json"] {
        std::fs::copy(fixture("resume").join(file), directory.path().join(file)).unwrap();
    }
    let run = open(directory.path(), None).unwrap();
    assert_eq!((run.present.len(), run.notes.len()), (6, 0));
    assert_eq!(run.present.missing([0, 1, 2, 3], 2).collect::<Vec<_>>(), [(3, 0), (3, 1)]);
}

#[test]
fn a_torn_last_line_is_moved_aside() {
    let whole = line(&row(0, 0, 1.0));
    let torn = line(&row(0, 1, 1.0));
    let ends: [&[u8]; 4] = [&torn[..1], &torn[..torn.len() - 2], b"{\"example_id\": 1\xff\n", b"\0\0\0\0"];
    for end in ends {
        let directory = run_of(&[&whole, end].concat());
        let run = open(directory.path(), None).unwrap();
        assert_eq!((run.present.len(), run.notes.len()), (1, 1), "{end:?}");
        assert_eq!(run.notes[0].id.as_deref(), Some("R034"));
        assert_eq!(results(directory.path()), whole);
        assert_eq!(std::fs::read(directory.path().join("results.torn")).unwrap(), [end, b"\n"].concat());
        drop(run);
        assert_eq!(open(directory.path(), None).unwrap().notes, [], "it is done");
    }
}

#[test]
fn a_whole_row_without_a_line_break_is_kept() {
    let rows = [line(&row(0, 0, 1.0)), line(&row(0, 1, 1.0))].concat();
    let directory = run_of(&rows[..rows.len() - 1]);
    let run = open(directory.path(), None).unwrap();
    assert_eq!((run.present.len(), run.notes.len()), (2, 0));
    assert_eq!(results(directory.path()), rows);
}

#[test]
fn empty_files_and_empty_lines_are_no_problem() {
    for nothing in [&b""[..], b"\n", b"\n\r\n  \n", b"  "] {
        let directory = run_of(nothing);
        let run = open(directory.path(), None).unwrap();
        assert!(run.present.is_empty() && run.notes.is_empty(), "{nothing:?}");
        assert_eq!(results(directory.path()), nothing);
    }
}

#[test]
fn a_bad_line_in_the_middle_is_told_with_its_place() {
    let whole = line(&row(0, 0, 1.0));
    let later = line(&row(0, 1, 1.0));
    for (middle, id) in [(&b"{\"example_id\": \n"[..], "R020"), (b"{}\n", "R021"), (b"\xff\xff\n", "R020")] {
        let bytes = [&whole, middle, &later].concat();
        let directory = run_of(&bytes);
        let problem = open(directory.path(), None).unwrap_err();
        assert_eq!(place(&problem), (id, "results.jsonl", Some(2)));
        assert!(problem.fix.is_some());
        assert_eq!(results(directory.path()), bytes, "nothing is changed");
    }
    // At the end, too, text that is not the beginning of a row is left alone.
    for end in [&b"{}"[..], b"5\n", b"\x7fELF\x01\x02", b"\xff\xff\xff"] {
        let bytes = [&whole, end].concat();
        let directory = run_of(&bytes);
        assert_eq!(open(directory.path(), None).unwrap_err().line, Some(2), "{end:?}");
        assert_eq!(results(directory.path()), bytes);
    }
}

#[test]
fn rows_that_are_there_twice_are_told() {
    let fine = line(&row(0, 0, 1.0));
    assert_eq!(
        place(&problem_of(&[&fine[..], &line(&errored(0, 1)), &fine].concat())),
        ("R022", "results.jsonl", Some(3))
    );
    let after_success = [fine, line(&again(row(0, 0, 1.0), 2))].concat();
    assert!(problem_of(&after_success).what.contains("although attempt 1 of it has no error"));
    let twice =
        [line(&errored(0, 0)), line(&again(errored(0, 0), 2)), line(&again(row(0, 0, 1.0), 2))].concat();
    assert_eq!(place(&problem_of(&twice)), ("R022", "results.jsonl", Some(3)));
}

#[test]
fn what_is_no_run_is_told() {
    let directory = run_of(b"");
    for file in ["metadata.json", "results.jsonl"] {
        let directory = run_of(b"");
        std::fs::remove_file(directory.path().join(file)).unwrap();
        let problem = open(directory.path(), None).unwrap_err();
        assert_eq!(problem.id.as_deref(), Some("R024"));
        assert!(problem.what.contains(file), "{}", problem.what);
    }
    assert_eq!(open(&directory.path().join("none"), None).unwrap_err().id.as_deref(), Some("R024"));
    std::fs::write(directory.path().join("metadata.json"), "[").unwrap();
    assert_eq!(open(directory.path(), None).unwrap_err().id.as_deref(), Some("R026"));
}

#[test]
fn a_huge_line_is_a_row_like_any_other() {
    let mut huge = row(0, 0, 1.0);
    huge.answer = Some("ü".repeat(5_000_000).into());
    let directory = run_of(&[line(&huge), line(&row(0, 1, 0.0))].concat());
    assert_eq!(open(directory.path(), None).unwrap().present.len(), 2);
}

#[test]
fn a_resumed_run_keeps_its_date_and_adds_its_time() {
    let directory = run_of(b"");
    let path = directory.path().join("metadata.json");
    let mut metadata = aec_eval::results::metadata::Metadata::read(&path).unwrap();
    metadata.time = Some(1000.0);
    metadata.write(&path).unwrap();
    let mut now = description(2, 2);
    now.date = aec_base::timestamp::Timestamp::from_seconds(1_900_000_000);
    let writer = ResultsWriter::resume(open(directory.path(), None).unwrap(), now.clone()).unwrap();
    let last = writer.finish(now).unwrap();
    assert_eq!(last.date, metadata.date);
    assert!(last.time.unwrap() >= 1000.0);
}

/// Attempts of rollouts, all but the last of each with an error; whether the first have numbers; shuffled.
fn any_attempts() -> impl Strategy<Value = (Vec<RolloutRow>, Vec<Vec<u8>>)> {
    let rollout = (1..4_u32, 0.0..1.0_f64, any::<bool>(), any::<bool>());
    proptest::collection::vec(rollout, 1..8).prop_map(|rollouts| {
        let (mut last, mut first, mut later) = (Vec::new(), Vec::new(), Vec::new());
        for (index, (attempts, reward, has_error, is_ours)) in rollouts.into_iter().enumerate() {
            // One rollout per example, so that a row without a number gets 0.
            let example = i64::try_from(index).unwrap();
            for attempt in 1..=attempts {
                let is_good = attempt == attempts && !has_error;
                let row = again(if is_good { row(example, 0, reward) } else { errored(example, 0) }, attempt);
                match (attempt, is_ours) {
                    (1, false) => first.insert(0, unnumbered(&row)),
                    (1, true) => first.push(line(&row)),
                    _ => later.push(line(&row)),
                }
                if attempt == attempts {
                    last.push(row);
                }
            }
        }
        first.extend(later);
        (last, first)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn aggregates_of_a_file_are_those_of_the_last_attempts((last, lines) in any_attempts()) {
        let directory = run_of(&lines.concat());
        let run = open(directory.path(), None).unwrap();
        let mut alone = aec_eval::results::aggregate::Aggregate::new(2, 0.5);
        for row in &last {
            alone.add(&RowFacts::of(row));
            let there = Row { attempt: row.attempt, has_error: row.error.is_some() };
            prop_assert_eq!(run.present.get(row.example_id, 0), Some(there));
        }
        prop_assert_eq!(run.present.len(), last.len());
        prop_assert_eq!(run.aggregate.summary(), alone.summary());
    }

    #[test]
    fn a_file_cut_anywhere_is_continued(cut in 0.0..1.0_f64) {
        let rows: Vec<_> = (0..4).map(|index| line(&row(index / 2, u32::try_from(index % 2).unwrap(), 1.0))).collect();
        let all = rows.concat();
        let length = (all.len() as f64 * cut) as usize;
        let directory = run_of(&all[..length]);
        let run = open(directory.path(), None).unwrap();
        let whole = all[..length].split(|byte| *byte == b'\n').count() - 1;
        let lacks_only_its_break = all.get(length) == Some(&b'\n');
        prop_assert_eq!(run.present.len(), whole + usize::from(lacks_only_its_break));
        let left: Vec<_> = run.present.missing([0, 1], 2).collect();
        let writer = ResultsWriter::resume(run, description(2, 2)).unwrap();
        for (example, number) in left {
            writer.write(ready(&row(example, number, 1.0))).unwrap();
        }
        prop_assert_eq!(writer.finish(description(2, 2)).unwrap().complete, Some(true));
        prop_assert_eq!(results(directory.path()), all);
    }
}
