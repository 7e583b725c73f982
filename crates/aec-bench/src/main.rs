//! `aec-bench`: engineering tasks with executable verifiers, for evaluation and training.
//!
//! This crate parses arguments, calls the other rooms and renders what they return. It has no logic of its own.

mod arguments;
mod commands;
mod context;
mod entry;
mod failure;
mod groups;
mod output;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    entry::run(&arguments)
}
