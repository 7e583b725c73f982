//! Harbor: converts tasks to and from its directory contract, runs jobs with its own program, and imports job
//! directories. The document is `docs/harbor.md`.

pub mod agent;
pub mod checksum;
pub mod fault;
pub mod import;
pub mod job;
pub mod keep;
mod output;
pub mod program;
pub mod result;
pub mod run;
pub mod runtime;
pub mod task;

use aec_base::document::Family;

/// Problems of jobs and of the translation of tasks are `Y…`.
pub const FAMILY: Family = Family('Y');
