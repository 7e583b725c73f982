//! Decisions of evolution without agents, tasks or models.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod simulation;
mod state;
mod view;
mod world;
