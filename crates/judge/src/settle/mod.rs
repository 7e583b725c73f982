//! Which answer of an agent counts, which files are frozen for the judge, and what the outcome of a trial is. All
//! ways of running an agent or importing its results use this module; `python/environment/judge.py` is its twin for
//! exported packages. The rules are in `docs/judge.md`, "What counts as the answer".

pub mod blame;
pub mod freeze;
pub mod order;
pub mod outcome;

#[cfg(test)]
mod tests;
