//! Rollouts that other programs made, in one neutral form.
//!
//! A rollout is one attempt of a model at one task. Three kinds of writers are read: hosted evaluations (pages of
//! samples), verifiers up to 0.3 (`results.jsonl`) and verifiers from 0.4 on (`traces.jsonl`). Each changed its
//! spelling several times, so a reader takes every shape it knows, keeps what is absent absent, and notes what it had
//! to read otherwise than it was written. One bad row is one problem; the rows around it are read.
//!
//! [`reader::open`] is where reading begins. From a [`rollout::Rollout`] follow its events and its conversation
//! ([`conversation`]), what reports read of it ([`outcome`]) and rows to train on ([`training`]).
//!
//! Nothing here opens a connection, asks the clock, or holds more than one row at a time.

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
