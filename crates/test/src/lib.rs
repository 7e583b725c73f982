//! Development only: an environment of its own for every test, and task trees to work on.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test stops at the first thing that cannot be arranged"
)]

pub mod bench;
pub mod environment;
pub mod prime;
pub mod tree;
pub mod venv;

pub use environment::{Run, TestEnv};

/// Whether the long versions of tests are asked for (`AEC_TEST=full`).
pub fn full() -> bool {
    std::env::var_os("AEC_TEST").is_some_and(|tier| tier == "full")
}
