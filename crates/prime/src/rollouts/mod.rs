//! Rollouts of other programs, converted to one neutral form.
//!
//! A rollout is one attempt of a model at one task. Three formats are read: hosted evaluations (pages of samples),
//! verifiers up to 0.3 (`results.jsonl`) and verifiers from 0.4 on (`traces.jsonl`). Each format changed several times,
//! so a reader accepts every known shape, leaves missing values absent, and notes what it read differently from how it
//! was written. A bad row is reported as one problem; the rows around it are read.
//!
//! Reading begins with [`reader::open`]. A [`rollout::Rollout`] can be converted to events and a conversation
//! ([`conversation`]), to the facts that reports need ([`outcome`]) and to rows to train on ([`training`]).
//!
//! Nothing here opens a connection, reads the clock, or holds more than one row at a time.

pub mod conversation;
pub mod json;
pub mod message;
pub mod outcome;
pub mod problem;
pub mod reader;
pub mod rollout;
pub mod rows;
pub mod run;
pub mod stop;
pub mod tool_result;
pub mod training;

mod behaviour;
mod document;
mod python;
mod recognise;
mod sample;
mod task;
mod trace;
mod value;
