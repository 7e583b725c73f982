//! The whole loop with Prime: the real program against a stand-in for Prime's service: push, hosted evaluation, import,
//! adapters, training. The commands are those of the documentation.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod again;
mod evaluate;
mod import;
mod training;
mod world;
