//! A process that is killed while it writes loses no row that was reported as written.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use aec_eval::results::resume;

use super::write_rows::command;

/// Pseudorandom numbers, the same in every run.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn no_synced_row_is_lost_at_any_moment() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = 7;
    let mut rows_before = 0;
    for moment in 0..20 {
        let mut child = command(directory.path()).stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut said = said.filter(|line| line.starts_with("synced "));
        let mut synced = 0;
        for _ in 0..=next(&mut random) % 8 {
            let line = said.next().expect("the child writes until it is killed");
            synced = line.strip_prefix("synced ").unwrap().parse::<usize>().unwrap();
        }
        // Somewhere between two syncs: the test is about this moment.
        let moment_of_death = Instant::now() + Duration::from_micros(next(&mut random) % 5000);
        while Instant::now() < moment_of_death {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // Its output from before it died that was not read yet.
        for line in said {
            synced = line.strip_prefix("synced ").unwrap().parse().unwrap_or(synced).max(synced);
        }

        let run = resume::open(directory.path(), None).unwrap();
        let rows = run.present.len();
        assert!(rows >= synced && rows >= rows_before, "moment {moment}: {rows} rows, {synced} synced");
        assert!(run.metadata.rollouts.unwrap() as usize <= rows);
        let written = std::fs::read(directory.path().join("results.jsonl")).unwrap();
        assert!(written.is_empty() || written.ends_with(b"\n"));
        // The child writes its rows in order, so there are no gaps.
        let examples = 0..i64::try_from(rows).unwrap();
        assert_eq!(run.present.missing(examples, 1).count(), 0);
        rows_before = rows;
    }
    assert!(rows_before > 20);
}
