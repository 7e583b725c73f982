//! `aec-bench eval` from outside: the real program, a model server with the provider's protocol, files on disk.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod cheaters;
mod doors;
mod events;
mod files;
mod flags;
mod kills;
mod library;
mod native;
mod published;
mod python;
mod resume;
mod saved;
mod seed;
mod terminal;
mod tools;
mod world;
