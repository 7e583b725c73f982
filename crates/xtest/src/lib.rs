//! Development only: a separate environment for every test, and task trees to work on.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test stops at the first thing that cannot be arranged"
)]

pub mod bench;
pub mod chance;
pub mod environment;
pub mod files;
pub mod fixed;
pub mod hub;
pub mod lock;
pub mod modal;
pub mod podman;
pub mod port;
pub mod prime;
pub mod running;
pub mod stand_in;
pub mod terminal;
pub mod tree;
pub mod venv;
pub mod wait;

pub use environment::{Run, TestEnv};
use sha2::{Digest as _, Sha256};

/// Whether `AEC_TEST=full` asks for the long versions of tests.
pub fn full() -> bool {
    std::env::var_os("AEC_TEST").is_some_and(|tier| tier == "full")
}

/// Fails a test that needs a part of this machine (see `needs.rs`) which is there but does not work.
pub fn cannot(what: &str, part: &str, why: &str) -> ! {
    panic!("cannot {what}: {why}\nAEC_TEST_WITHOUT={part} leaves out the tests that need this")
}

/// The SHA-256 of some bytes, in hexadecimal.
fn sha256(bytes: &[u8]) -> String {
    let digit = |number: u8| char::from_digit(number.into(), 16).unwrap_or('0');
    Sha256::digest(bytes).iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
