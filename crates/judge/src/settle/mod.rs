//! What an agent's answer is, what of its work is frozen for the judge, and what became of the trial. Every way in which
//! an agent can be run or read back decides this here; `python/environment/judge.py` is the twin for exported packages.
//! The rules are in `docs/judge.md`, "What counts as the answer".

pub mod freeze;
pub mod order;
pub mod outcome;

#[cfg(test)]
mod tests;
