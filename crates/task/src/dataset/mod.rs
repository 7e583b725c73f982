//! Datasets: frozen, hashed, versioned lists of tasks. The document is `docs/datasets.md`.
//!
//! A version that is written is never changed. What a dataset means is decided by the content of its tasks: the
//! manifest names each task with the hash of its files, and everything that uses one can tell drift.

pub mod archive;
pub mod diff;
pub mod duplicates;
pub mod freeze;
pub mod hash;
pub mod import;
pub mod manifest;
pub mod paths;
pub mod reference;
pub mod split;
pub mod store;
pub mod suite_output;
pub mod tree;
mod unpack;
pub mod verify;

use aec_base::document::Family;
use aec_base::problem::Problem;

/// Problems of datasets are `D…`.
pub const FAMILY: Family = Family('D');

/// An error of this family.
fn finding(number: u32, what: impl Into<String>) -> Problem {
    Problem::error(what).id(FAMILY.number(number))
}
