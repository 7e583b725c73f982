//! Evolution and swarm from outside: the real binary, models played by the test, and the files on disk afterwards.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod budgets;
mod commands;
mod config;
mod defects;
mod division;
mod finds;
mod hostile;
mod kills;
mod outages;
mod swarms;
mod voices;
mod world;

use voices::{Said, Voices};
use world::World;
