//! Workers from outside: real interpreters with released versions of `verifiers`, and shell scripts in their place.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod discover;
mod faults;
mod lines;
mod v0;
mod v1;
mod world;
