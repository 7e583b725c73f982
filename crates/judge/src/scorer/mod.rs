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
//! | `words` | the lists of words |
//! | `marks` | emphasis, LaTeX, ticks and other marks around a value |
//! | `remarks` | remarks in brackets behind a value |
//! | `keys` | keys that are a name and a unit |
//! | `spec`, `answers` | the answers file |
//! | `submission` | from bytes to the values given for each field |
//! | `reading` | the meaning of one given value |
//! | `grading` | the score of a field |
//! | `report` | the result and its JSON |
//! | `contract` | the description for the agent |

use std::sync::OnceLock;

use aec_base::digest::Digest;

mod answers;
mod contract;
mod grading;
mod keys;
mod marks;
mod numeral;
mod reading;
mod relaxed;
mod remarks;
mod report;
mod spec;
mod submission;
mod text;
mod units;
mod words;

pub use answers::{Answers, AnswersError};
pub use contract::contract;
pub use grading::{score, score_unreadable};
pub use report::{FieldScore, Score, Status, Unreadable};
pub use units::conversion;

/// The verifier script of which this module is the twin.
pub const STANDARD_VERIFY_PY: &str = include_str!("../../../../python/verify.py");

/// The revision of the rules, stated in `details.json`; `docs/answers.md` lists the revisions.
pub const REVISION: u32 = 2;

/// Size and SHA-256 of the scripts of earlier revisions. A task that carries one is judged by its own script, in a room.
const EARLIER: [(u32, usize, &str); 1] =
    [(1, 52_951, "13aca73b488c76874d71838fe2ff5682f02a0e6dcd851e9262837e1fd3b9f4ab")];

/// The revision of the standard scorer that a `verify.py` is, to the byte; `None` for any other script.
pub fn revision_of(script: &[u8]) -> Option<u32> {
    if script == STANDARD_VERIFY_PY.as_bytes() {
        return Some(REVISION);
    }
    let same = |size: usize, digest: &str| script.len() == size && Digest::of(script).hex() == digest;
    EARLIER.iter().find(|(_, size, digest)| same(*size, digest)).map(|(revision, _, _)| *revision)
}

/// SHA-256 of the script of this revision.
pub fn standard_digest() -> Digest {
    static DIGEST: OnceLock<Digest> = OnceLock::new();
    *DIGEST.get_or_init(|| Digest::of(STANDARD_VERIFY_PY.as_bytes()))
}

/// Most bytes of a submission.
pub const MAX_SUBMISSION: usize = 1 << 20;

/// Most nested lists and objects.
const MAX_DEPTH: usize = 64;

/// Most objects with expected keys, and most values for one key.
const MAX_BLOCKS: usize = 64;

/// Most expected items of a list, rows of a table.
const MAX_ITEMS: usize = 200;

/// Longest number with its unit, in characters.
const MAX_NUMERAL: usize = 256;

/// Longest value in which marks and remarks are looked for, in characters.
const MAX_FORM: usize = 256;

#[cfg(test)]
mod tests;
