//! Rollouts of other programs: files that they wrote, every spelling, and whatever else may lie in a file.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod conversation;
mod properties;
mod reading;
mod shapes;
mod traces;
mod training;
mod writers;
