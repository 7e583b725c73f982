//! Reports on ledgers, with the real program.

#![expect(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod behaviour;
mod compare;
mod evaluate;
mod faults;
mod page;
mod simulation;
mod traces;
mod transcripts;
mod world;
