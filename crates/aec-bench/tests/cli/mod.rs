//! The command line from outside: the real binary and real files; checks output and exit codes.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod archive;
mod bad_input;
mod config;
mod dataset_archive;
mod dataset_commands;
mod dataset_findings;
mod dataset_kill;
mod dev;
mod documents;
mod edges;
mod envelope;
mod examples;
mod experiment;
mod gateway;
mod generate;
mod help;
mod host;
mod init;
mod judging;
mod ledger;
mod leftovers;
mod lost_output;
mod models;
mod readme;
mod runs_attacks;
mod runs_export;
mod runs_kill;
mod runs_package;
mod schema;
mod server;
mod suite;
mod tables;
mod task_commands;
mod task_file;
mod task_validate;
mod template;

use aec_xtest::TestEnv;

/// A separate environment for each test.
fn world() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_aec-bench"))
}

/// A test environment with a project without tasks.
fn empty_project() -> TestEnv {
    let env = world();
    let run = env.run(["init", "--no-example", "--quiet"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    env
}
