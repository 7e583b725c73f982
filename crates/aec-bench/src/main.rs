//! `aec-bench`: engineering tasks with executable verifiers, for evaluation and training.
//!
//! The program itself; the crate `cli` does the work.

use std::process::ExitCode;

/// Rollouts, records and rows are many small texts; for them this allocator takes half the time of the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|first| first == aec_sandbox::SHIM_ARGUMENT) {
        return ExitCode::from(u8::try_from(aec_sandbox::run_shim()).unwrap_or(1));
    }
    aec_cli::run(&arguments)
}
