//! Evaluations from outside: files, workers, the hub and heartbeats. One executable, because linking takes longer than
//! most tests.

mod config;
mod heartbeat;
mod hub;
mod results;
mod worker;
