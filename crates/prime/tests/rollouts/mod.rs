//! Rollouts of other programs: files that they wrote, every format, and arbitrary other content.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod conversation;
mod properties;
mod reading;
mod shapes;
mod traces;
mod training;
mod writers;
