//! Datasets: frozen, hashed, versioned lists of tasks. See `docs/datasets.md`.
//!
//! A written version is never changed. The content of its tasks defines a dataset: the manifest names each task with
//! the hash of its files, so every user of a dataset can detect that a task has changed.

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

/// Ids of problems of datasets begin with `D`.
pub const FAMILY: Family = Family('D');

fn finding(number: u32, what: impl Into<String>) -> Problem {
    Problem::error(what).id(FAMILY.number(number))
}
