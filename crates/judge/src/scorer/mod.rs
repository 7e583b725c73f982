//! The standard scorer: typed answers against a submission.
//!
//! A generated task contains `tests/answers.json` and `python/verify.py` as its verifier. This is the same scorer in
//! Rust: the same decisions in the same order, down to the bytes of `details.json`, used if a task's `verify.py` is
//! exactly the standard one. `tests/differential.rs` compares the two. `docs/answers.md` is the contract.
//!
//! | file | subject |
//! |---|---|
//! | `text` | folding, canonical floats |
//! | `relaxed` | JSON and its common slips |
//! | `numeral` | numbers |
//! | `units` | units and conversions |
//! | `spec`, `answers` | the answers file |
//! | `submission` | from bytes to the values given for each field |
//! | `reading` | the meaning of one given value |
//! | `grading` | the score of a field |
//! | `report` | the result and its JSON |
//! | `contract` | the description for the agent |

mod answers;
mod contract;
mod grading;
mod numeral;
mod reading;
mod relaxed;
mod report;
mod spec;
mod submission;
mod text;
mod units;

pub use answers::{Answers, AnswersError};
pub use contract::contract;
pub use grading::{score, score_unreadable};
pub use report::{FieldScore, Score, Status, Unreadable};
pub use units::conversion;

/// The verifier script of which this module is the twin.
pub const STANDARD_VERIFY_PY: &str = include_str!("../../../../python/verify.py");

/// Most bytes of a submission.
pub const MAX_SUBMISSION: usize = 1 << 20;

/// Most nested lists and objects.
const MAX_DEPTH: usize = 64;

/// Most objects with expected keys.
const MAX_BLOCKS: usize = 64;

/// Most expected items of a list, rows of a table.
const MAX_ITEMS: usize = 200;

/// Longest number with its unit, in characters.
const MAX_NUMERAL: usize = 256;

#[cfg(test)]
mod tests;
