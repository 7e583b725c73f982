//! The pure part of the long-document harnesses, without a model, a process or a clock: splitting sources, planning
//! calls, merging and tracing what the calls found, and assembling reports.
//!
//! Settings and report templates are files of a task ([`aec_task::long_documents`]); other crates open files, call
//! models and count money.

#![forbid(unsafe_code)]

pub mod merge;
pub mod plan;
pub mod reply;
pub mod report;
pub mod split;
pub mod trace;

mod number;
mod sentence;
