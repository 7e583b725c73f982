//! The test server seen from outside, by a plain HTTP client that knows none of our own wire code.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod anthropic;
mod bedrock;
mod behaviour;
mod client;
mod faults;
mod openai;
