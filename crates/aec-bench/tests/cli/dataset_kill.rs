//! Killed at any moment, `dataset create` and `dataset import` leave everything or nothing.

use std::time::{Duration, Instant};

use aec_xtest::TestEnv;
use aec_xtest::tree::write_tree;

use crate::cli::dataset_commands::run;
use crate::cli::empty_project;

/// How often each command is killed.
pub(crate) fn kills() -> u32 {
    if aec_xtest::full() { 400 } else { 40 }
}

/// Moments spread evenly over a bit more than a whole run, without a pattern (fractions of the golden ratio).
pub(crate) fn moment(round: u32, whole: Duration) -> Duration {
    whole.mul_f64((f64::from(round) * 0.618_033_988_75).fract() * 1.1)
}

/// Starts a command and kills it after some time.
pub(crate) fn kill(env: &TestEnv, line: &str, after: Duration) {
    let mut child = env.start(line.split(' '));
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
}

pub(crate) fn hidden(env: &TestEnv, directory: &str) -> usize {
    let Ok(entries) = std::fs::read_dir(env.path(directory)) else { return 0 };
    entries.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.')).count()
}

#[test]
fn a_killed_create_leaves_a_whole_version_or_none() {
    let env = empty_project();
    write_tree(&env.path("tasks"), 60);
    let started = Instant::now();
    assert_eq!(run(&env, "dataset create --name set --version 0.0.1").code, Some(0));
    let whole = started.elapsed();
    let (mut made, mut missing) = (0, 0);
    for round in 0..kills() {
        let version = format!("1.0.{round}");
        kill(&env, &format!("dataset create --name set --version {version}"), moment(round, whole));
        let reference = format!("dataset verify set@{version}");
        if env.path(format!("artefacts/datasets/set/{version}")).exists() {
            made += 1;
            assert_eq!(run(&env, &reference).code, Some(0), "{version} is whole");
        } else {
            missing += 1;
            assert_eq!(run(&env, &reference).code, Some(3), "{version} is not there");
        }
        assert_eq!(run(&env, "dataset list --quiet").code, Some(0));
    }
    assert_eq!(made + missing, kills());
    assert_eq!(run(&env, "dataset create --name set --version 2.0.0").code, Some(0));
    assert_eq!(hidden(&env, "artefacts/datasets"), 0, "the next one clears up");
}

#[test]
fn a_killed_import_leaves_no_dataset_and_no_half_task() {
    let env = empty_project();
    write_tree(&env.path("tasks"), 60);
    assert_eq!(run(&env, "dataset create --name set --version 1.0.0").code, Some(0));
    assert_eq!(run(&env, "dataset export set --output set.tar.zst").code, Some(0));
    let archive = env.path("set.tar.zst");
    let other = empty_project();
    let import = format!("dataset import {}", archive.display());
    let started = Instant::now();
    assert_eq!(run(&other, &import).code, Some(0));
    let whole = started.elapsed();
    for round in 0..kills() {
        for directory in ["tasks", "artefacts/datasets"] {
            std::fs::remove_dir_all(other.path(directory)).unwrap();
            std::fs::create_dir(other.path(directory)).unwrap();
        }
        kill(&other, &import, moment(round, whole));
        if other.path("artefacts/datasets/set/1.0.0").exists() {
            assert_eq!(
                run(&other, "dataset verify set").code,
                Some(0),
                "round {round}: the dataset is whole"
            );
        } else {
            assert_eq!(run(&other, "dataset verify set").code, Some(3), "round {round}: there is no dataset");
        }
        // An incomplete task would block the import.
        assert_eq!(run(&other, &format!("{import} --dry-run")).code, Some(0), "round {round}");
        assert_eq!(run(&other, "task list").code, Some(0));
    }
    assert_eq!(run(&other, &import).code, Some(0), "importing again completes it");
    assert_eq!(run(&other, "dataset verify set").code, Some(0));
    assert_eq!((hidden(&other, "tasks"), hidden(&other, "artefacts/datasets")), (0, 0));
}
