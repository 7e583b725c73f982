//! Output that cannot be written is an error: an empty file must not look like an empty result.

use std::fs::File;
use std::process::{Command, Output, Stdio};

use aec_xtest::TestEnv;

use crate::cli::world;

/// Commands that print a result, in a project with the example task and an experiment `x`.
const COMMANDS: [&str; 31] = [
    "--help",
    "--version",
    "run --help",
    "doctor",
    "config view",
    "config check",
    "task list",
    "task show civil/example-beam",
    "task validate",
    "search beam",
    "generate list-templates",
    "dataset list",
    "plan electrical --harness nop -e y",
    "run electrical --harness nop -e x",
    "run electrical --harness nop -e x --events events.jsonl",
    "runs list",
    "runs status x",
    "ledger list",
    "ledger verify",
    "ledger reindex",
    "report summary -e x",
    "report leaderboard -e x",
    "report fields -e x",
    "report traces -e x",
    "audit",
    "verify",
    "eval list",
    "evolve history",
    "schema record",
    "completions bash",
    "man",
];

fn project() -> TestEnv {
    let env = world();
    env.init();
    let run = env.run(["run", "electrical", "--harness", "nop", "-e", "x", "--quiet"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    // A list without rows prints nothing on stdout.
    let run = env.run(["dataset", "create", "--name", "d", "--version", "1.0.0"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    env
}

fn with_stdout(env: &TestEnv, line: &str, json: bool, stdout: Stdio) -> Output {
    let mut command: Command = env.command(&env.dir(), line.split(' ').chain(json.then_some("--json")));
    command.stdout(stdout).stderr(Stdio::piped()).output().unwrap()
}

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

/// Before, these exited with 0 and an empty file.
#[test]
fn a_full_disk_behind_stdout_is_an_error_in_every_command() {
    let env = project();
    for line in COMMANDS {
        for json in [false, true] {
            let code = |stdout: Stdio| {
                let output = with_stdout(&env, line, json, stdout);
                (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned(), output.stdout)
            };
            let (good, said, printed) = code(Stdio::piped());
            if printed.is_empty() {
                // What prints on stderr only loses nothing.
                assert!(!json && !said.is_empty(), "{line}: {good:?} {said}");
                continue;
            }
            let (lost, said, _) = code(full());
            let failed = !matches!(good, Some(0 | 1));
            assert!(
                lost == Some(4) || failed && lost == good,
                "{line} --json={json}: {good:?} became {lost:?}: {said}"
            );
            assert!(said.contains("cannot write standard output: No space left"), "{line}: {said}");
            // A reader that has enough is no error.
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let (enough, said, _) = code(writer.into());
            assert_eq!(enough, good, "{line} into a closed pipe: {said}");
        }
    }
}

#[test]
fn every_page_of_help_is_lost_loudly() {
    let env = world();
    let reference = include_str!("../../../../docs/reference/cli.md");
    let names = reference.lines().filter_map(|line| line.strip_prefix("## `aec-bench ")?.strip_suffix('`'));
    let mut count = 0;
    for name in names {
        let output = with_stdout(&env, &format!("{name} --help"), false, full());
        assert_eq!(output.status.code(), Some(4), "{name}");
        count += 1;
    }
    assert!(count > 80, "{count}");
}

#[test]
fn events_and_exports_that_are_lost_are_errors() {
    let env = project();
    let lost = |line: &str, json: bool, what: &str| {
        let output = with_stdout(&env, line, json, full());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(4), "{line}: {said}");
        assert!(said.contains(what), "{line}: {said}");
    };
    lost("run electrical --harness nop -e z --events -", true, "the events on standard output");
    lost("ledger export --output - --format jsonl", false, "No space left");
    lost("ledger export --output - --format csv", false, "No space left");
    std::os::unix::fs::symlink("/dev/full", env.path("full.jsonl")).unwrap();
    let output =
        with_stdout(&env, "run electrical --harness nop -e w --events full.jsonl", true, Stdio::piped());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("the events to "), "{said}");
}
