//! The loop through Prime with the real program, against a stand-in of Prime's service: push, hosted evaluation, import,
//! adapters, training. The commands are those of the documentation.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod again;
mod evaluate;
mod import;
mod training;
mod world;
