//! `aec-bench-agent`: the small program that goes into rooms and containers. It lies beside `aec-bench`.
//!
//! It must use the crate `agent` alone: what else this package depends on holds the library and the generator.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    ExitCode::from(aec_agent::run(&arguments))
}
