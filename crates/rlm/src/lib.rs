//! What the long-document harnesses know without a model, a process or a clock: splitting of sources, plans of calls,
//! merging and tracing of what the calls found, and reports in the making.
//!
//! Every function here is pure. Settings and report templates are files of a task
//! ([`aec_task::long_documents`]); what opens files, calls models and counts money lives elsewhere.

#![forbid(unsafe_code)]

pub mod merge;
pub mod plan;
pub mod reply;
pub mod report;
pub mod split;
pub mod trace;

mod number;
mod sentence;
