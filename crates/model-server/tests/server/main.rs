//! Tests the server from outside, with a plain HTTP client that shares no code with our model client.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod anthropic;
mod bedrock;
mod behaviour;
mod client;
mod faults;
mod openai;
