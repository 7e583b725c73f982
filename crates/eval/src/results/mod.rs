//! The files of an evaluation: rows, aggregates, metadata, directories; resuming a run and comparing runs.
//!
//! `results.jsonl` and `metadata.json` have the fields of verifiers 0.1.14 in its order, followed by some of our own.
//! Files written by verifiers 0.1.9 to 0.3.1 can be read as well.

pub mod aggregate;
pub mod compare;
pub mod configuration;
pub mod directory;
pub mod facts;
mod json;
pub mod lock;
mod message;
pub mod metadata;
pub mod moments;
pub mod number;
pub mod passes;
pub mod payers;
pub mod present;
mod problems;
pub mod resume;
pub mod row;
pub mod scan;
pub mod summary;
pub mod till;
pub mod timing;
mod value;
pub mod writer;

use crate::FAMILY;

pub use facts::RowFacts;
pub use number::Finite;
pub use row::{RolloutRow, RowError, TokenUsage, ToolDefs};
pub use timing::{Span, Timing};

/// The rows of a run, one rollout per line.
pub const RESULTS_FILE: &str = "results.jsonl";

/// Configuration and aggregates of a run.
pub const METADATA_FILE: &str = "metadata.json";
