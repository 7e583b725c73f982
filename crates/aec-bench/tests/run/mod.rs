//! Runs from outside: the real binary, a model server that counts its requests, and the files on disk afterwards.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod advice;
mod answers;
mod attacks;
mod blame;
mod events;
mod evidence;
mod faults;
mod kill;
mod lessons;
mod limits;
mod long_documents;
pub(crate) mod plan;
mod records;
mod replay;
mod resume;
mod secrets;
mod sight;
mod stuck;
mod terms;
mod withheld;
pub(crate) mod world;

use world::{Project, Server};
