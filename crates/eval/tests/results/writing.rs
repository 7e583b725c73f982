//! Rows reach the disk, and disk errors are reported.

use std::process::Command;

use aec_eval::results::lock::RunLock;
use aec_eval::results::metadata::{Cost, Metadata};
use aec_eval::results::resume;
use aec_eval::results::writer::{NotTaken, ResultsWriter};

use super::support::{description, errored, line, ready, row};
use super::write_rows::command;

#[test]
fn rows_are_on_the_disk_after_a_flush_and_metadata_at_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let run = directory.path();
    let writer = ResultsWriter::create(run, description(2, 2)).unwrap();
    let begun = Metadata::read(&run.join("metadata.json")).unwrap();
    assert_eq!((begun.rollouts, begun.complete), (Some(0), Some(false)));
    let rows = [row(1, 0, 1.0), row(0, 1, 0.0), errored(0, 0)];
    for row in &rows {
        writer.write(ready(row)).unwrap();
    }
    writer.flush().unwrap();
    assert_eq!(writer.synced(), 3);
    let expected: Vec<u8> = rows.iter().flat_map(line).collect();
    assert_eq!(std::fs::read(run.join("results.jsonl")).unwrap(), expected);

    writer.try_write(ready(&row(1, 1, 0.5))).unwrap();
    let mut last = description(2, 2);
    last.till.earlier = Some(Cost { total_usd: 2.0, ..Cost::default() });
    let metadata = writer.finish(last).unwrap();
    assert_eq!((metadata.complete, metadata.rollouts, metadata.avg_error), (Some(true), Some(4), Some(0.25)));
    assert_eq!(metadata.cost.unwrap().total_usd, 2.0);
    assert_eq!(Metadata::read(&run.join("metadata.json")).unwrap(), metadata);
    let bytes = std::fs::read(run.join("results.jsonl")).unwrap();
    assert!(bytes.starts_with(&expected), "nothing is rewritten");
    assert_eq!(bytes.split(|byte| *byte == b'\n').count(), 5);
    let mut names: Vec<_> = std::fs::read_dir(run).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [".lock", "metadata.json", "results.jsonl"]);
}

#[test]
fn a_writer_that_is_dropped_leaves_a_run_that_can_be_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let writer = ResultsWriter::create(directory.path(), description(2, 1)).unwrap();
    writer.write(ready(&row(0, 0, 1.0))).unwrap();
    drop(writer);
    let run = resume::open(directory.path(), None).unwrap();
    assert_eq!((run.metadata.rollouts, run.metadata.complete), (Some(1), Some(false)));
    assert_eq!(run.present.len(), 1);
}

#[test]
fn two_writers_never_share_a_run() {
    let directory = tempfile::tempdir().unwrap();
    let writer = ResultsWriter::create(directory.path(), description(2, 1)).unwrap();
    for problem in [
        ResultsWriter::create(directory.path(), description(2, 1)).unwrap_err(),
        resume::open(directory.path(), None).unwrap_err(),
    ] {
        assert_eq!(problem.id.as_deref(), Some("R029"));
    }
    drop(writer);
    let again = ResultsWriter::create(directory.path(), description(2, 1)).unwrap_err();
    assert_eq!(again.id.as_deref(), Some("R036"), "results are never begun anew");
    assert!(resume::open(directory.path(), None).is_ok());
}

#[test]
fn a_directory_that_is_gone_stops_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let run = directory.path().join("run");
    std::fs::create_dir(&run).unwrap();
    let writer = ResultsWriter::create(&run, description(2, 1)).unwrap();
    assert_eq!(writer.failed(), None);
    std::fs::rename(&run, directory.path().join("elsewhere")).unwrap();
    std::fs::write(&run, "in the way").unwrap();
    writer.write(ready(&row(0, 0, 1.0))).unwrap();
    let problem = writer.finish(description(2, 1)).unwrap_err();
    assert_eq!(problem.id.as_deref(), Some("R027"));
    let rows = std::fs::read(directory.path().join("elsewhere/results.jsonl")).unwrap();
    assert_eq!(rows, line(&row(0, 0, 1.0)), "the row is not lost");
}

#[test]
fn results_that_were_removed_stop_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let run = directory.path().join("run");
    std::fs::create_dir(&run).unwrap();
    let writer = ResultsWriter::create(&run, description(9, 1)).unwrap();
    writer.write(ready(&row(0, 0, 1.0))).unwrap();
    writer.flush().unwrap();
    std::fs::remove_dir_all(&run).unwrap();
    writer.write(ready(&row(1, 0, 1.0))).unwrap();
    let problem = writer.flush().unwrap_err();
    assert_eq!(problem.id.as_deref(), Some("R038"));
    assert_eq!(writer.failed(), Some(&problem), "it is known before anybody is told");
    assert_eq!(writer.synced(), 1);
    assert_eq!(writer.write(ready(&row(2, 0, 1.0))).unwrap_err(), problem);
    assert!(
        matches!(writer.try_write(ready(&row(2, 0, 1.0))), Err(NotTaken::Failed(told)) if told == problem)
    );
    assert_eq!(writer.finish(description(9, 1)).unwrap_err(), problem);
}

#[test]
fn a_full_disk_stops_the_run_and_leaves_whole_lines() {
    let directory = tempfile::tempdir().unwrap();
    // The limit is in units of 1024 or 512 bytes; its signal is ignored, so that writing fails.
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$@\"";
    let own = command(directory.path());
    let output = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(own.get_program())
        .args(own.get_args())
        .envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(!output.status.success(), "{said}");
    let told = |line: &&str| line.starts_with("synced ") || line.starts_with("failed ");
    let mut lines: Vec<_> = said.lines().filter(told).collect();
    let failure = lines.pop().unwrap();
    assert!(failure.starts_with("failed R038 "), "{said}");
    let synced: usize = lines.last().unwrap().strip_prefix("synced ").unwrap().parse().unwrap();

    let run = resume::open(directory.path(), None).unwrap();
    assert_eq!(run.notes, [], "what was half written was taken back");
    assert_eq!(run.present.len(), synced);
    let writer = ResultsWriter::resume(run, description(100_000, 1)).unwrap();
    let next = i64::try_from(synced).unwrap();
    writer.write(ready(&row(next, 0, 1.0))).unwrap();
    let metadata = writer.finish(description(100_000, 1)).unwrap();
    assert_eq!(metadata.rollouts, Some(synced as u64 + 1));
}

#[test]
fn many_threads_bring_rows() {
    let directory = tempfile::tempdir().unwrap();
    let writer = ResultsWriter::create(directory.path(), description(400, 1)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let writer = &writer;
            scope.spawn(move || {
                for example in 0..100 {
                    let mut row = ready(&row(thread * 100 + example, 0, 1.0));
                    while let Err(not_taken) = writer.try_write(row) {
                        match not_taken {
                            NotTaken::Full(back) => row = *back,
                            NotTaken::Failed(problem) => panic!("{problem}"),
                        }
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    let metadata = writer.finish(description(400, 1)).unwrap();
    assert_eq!((metadata.rollouts, metadata.complete), (Some(400), Some(true)));
    assert_eq!(metadata.reward_std, Some(0.0));
    assert_eq!(resume::open(directory.path(), None).unwrap().present.len(), 400);
}

#[test]
fn a_lock_is_free_as_soon_as_it_is_dropped() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let directory = tempfile::tempdir().unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Each child has the lock file open for a moment, between fork and exec.
        let children = scope.spawn(|| {
            for _ in 0..100 {
                assert!(Command::new("true").status().unwrap().success());
            }
            is_done.store(true, Ordering::Release);
        });
        while !is_done.load(Ordering::Acquire) && !children.is_finished() {
            drop(RunLock::take(directory.path()).unwrap());
        }
    });
}
