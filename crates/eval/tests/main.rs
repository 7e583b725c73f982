//! Evaluations from outside: their files, their workers, the hub and heartbeats. One executable: linking takes longer than most tests.

mod config;
mod heartbeat;
mod hub;
mod results;
mod worker;
